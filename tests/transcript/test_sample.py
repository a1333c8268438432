from __future__ import annotations

from typing import Any

import pytest

from recap.transcript.formats import FORMATS
from recap.transcript.sample import Sample


def rows(*records: Any) -> Sample:
    return Sample("", None, tuple(enumerate(records, 1)))


def document(value: Any) -> Sample:
    return Sample("", value, ((1, value),) if isinstance(value, dict) else ())


RECOGNISED = {
    "codex": [
        rows({"type": "session_meta", "payload": {"id": "x"}}),
        rows({"type": "other"}, {"type": "response_item", "payload": {}}),
    ],
    "copilot_cli": [
        rows({"type": "session.start", "data": {}}),
        rows({"type": "tool.x", "data": {}}),
    ],
    "gemini_cli": [
        rows({"sessionId": "x", "projectHash": "y"}, {"type": "user"}),
        document({"sessionId": "x", "projectHash": "y", "messages": []}),
    ],
    "pi": [rows({"type": "session", "id": "x", "cwd": "/"}, {"type": "message"})],
    "opencode": [
        document({"info": {"id": "x"}, "messages": [{"info": {}, "parts": []}]}),
        document({"info": {"id": "ses_1"}, "messages": []}),
    ],
    "swe_agent": [
        document({"trajectory": [{"action": "ls"}], "history": []}),
        document({"trajectory": [{"action": "ls"}], "environment": "x"}),
    ],
    "mini_swe_agent": [
        document({"messages": [], "trajectory_format": "mini-swe-agent-1"}),
        document(
            [
                {"role": "assistant", "content": "```bash\nls\n```"},
                {"role": "user", "content": "<returncode>0</returncode>"},
                {"role": "user", "content": "thanks"},
            ]
        ),
    ],
    "openhands": [
        document([{"source": "user", "action": "message"}]),
        rows({"instance_id": "x", "history": [{"source": "agent", "observation": "run"}]}),
    ],
    "langchain": [
        document([{"type": "human", "data": {"content": "x"}}]),
        document({"messages": [{"lc": 1, "type": "constructor", "kwargs": {}}]}),
    ],
    "openai_responses": [
        document({"object": "response", "output": []}),
        document({"input": [{"role": "user"}, {"type": "function_call_output", "call_id": "x"}]}),
        rows({"type": "message", "role": "user"}, {"type": "reasoning"}),
    ],
    "aider": [Sample("\n# aider chat started at 2025-01-01 10:00:00\n")],
}
OTHERS = [
    Sample(""),
    Sample("plain text about # aider chat started at"),
    document(None),
    document([]),
    document({}),
    document([1, None, "x"]),
    document({"messages": 7, "info": [], "input": "text", "trajectory": []}),
    document({"messages": [{"role": "user", "content": "x"}], "info": {"id": 7}}),
    document([{"role": "user", "content": "x"}, {"role": "assistant", "content": None}]),
    rows({}),
    rows({"type": 7, "data": {}, "payload": []}, {"type": "session"}, {"type": ["session.x"]}),
    rows({"type": "user", "message": {"content": "x"}, "uuid": "u"}),
    rows({"type": "message", "role": "user"}),
]
NAMES = list(RECOGNISED)
DETECT = {format.name.replace("-", "_"): format.detect for format in FORMATS}


@pytest.mark.parametrize("name", NAMES)
def test_a_format_is_recognised_by_its_own_samples(name):
    assert all(DETECT[name](sample) for sample in RECOGNISED[name])


@pytest.mark.parametrize("name", NAMES)
def test_a_format_is_not_recognised_in_others(name):
    samples = [sample for other in NAMES if other != name for sample in RECOGNISED[other]]
    assert [sample for sample in (*samples, *OTHERS) if DETECT[name](sample)] == []
