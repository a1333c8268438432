"""A second judge: rendered contexts are what the request types of the vendors' own packages describe.

The types are TypedDicts. Fields they do not know pass. Lists inside are ``Iterable`` and pydantic checks
those only while they are walked, so each result is walked to its end.

The types of Responses ask for fields that the API fills in itself and its own clients do not send back
(Codex 0.171: no annotations, no status, null content of reasoning; opencode 1.18.33: no id of
reasoning). They are filled in first.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

import pytest

import recap
from recap.config import Settings
from recap.session import compact_transcript
from recap.transcript.formats import read_bytes

if TYPE_CHECKING:
    from pathlib import Path

    from pydantic import TypeAdapter

pytestmark = [pytest.mark.corpus, pytest.mark.slow]

SESSIONS = (
    "sessions/anthropic-messages/anthropic-messages-48b4.json",
    "sessions/claude-code/entire-fc99-compact-image.jsonl",
    "sessions/codex/agentv-10turns-2compacted.jsonl",
    "sessions/gemini-cli/entire-12cb.json",
    "sessions/langchain/langchain-messages_to_dict-tau3.json",
    "sessions/openai-chat/tau-airline-t3-trial0.json",
    "sessions/opencode/swarm-1turn-file.json",
    "sessions/openhands/multi-swe-bench-output.jsonl",
    "swe-together/nunchaku-quantize-bugfix.json",
)
DIALECTS = ("anthropic", "openai", "responses")


@cache
def judge(dialect: str) -> TypeAdapter[Any]:
    from anthropic.types import MessageParam
    from openai.types.chat import ChatCompletionMessageParam
    from openai.types.responses import ResponseInputItemParam
    from pydantic import TypeAdapter

    types = {
        "anthropic": list[MessageParam],
        "openai": list[ChatCompletionMessageParam],
        "responses": list[ResponseInputItemParam],
    }
    return TypeAdapter(types[dialect])


def walk(value: Any) -> None:
    """Exhaust every iterator of a validated value: what it holds is checked on the way."""
    if isinstance(value, Mapping):
        for each in value.values():
            walk(each)
    elif isinstance(value, list | tuple | Iterator):
        for each in value:
            walk(each)


def validate(messages: Any, dialect: str) -> None:
    filled = [with_defaults(each) for each in messages] if dialect == "responses" else messages
    walk(judge(dialect).validate_python(filled))


def with_defaults(item: dict[str, Any]) -> dict[str, Any]:
    """Return an item of the model with the fields that clients leave out."""
    if item.get("type") == "reasoning":
        return {"id": "rs", **{key: item[key] for key in item if item[key] is not None}}
    if item.get("role") != "assistant" or isinstance(item["content"], str):
        return item
    content = [
        {"annotations": [], **part} if part["type"] == "output_text" else part
        for part in item["content"]
    ]
    return {"id": "msg", "status": "completed", "type": "message", **item, "content": content}


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("name", SESSIONS)
def test_contexts_of_real_sessions_are_what_the_vendor_describes(
    corpus: Path, name: str, dialect: Any
) -> None:
    transcript = read_bytes((corpus / name).read_bytes())
    for retention in ("0.1", "1"):
        settings = Settings(retention=retention)
        done = compact_transcript(transcript, settings=settings, to=dialect)
        assert done.messages
        validate(done.messages, dialect)


@pytest.mark.parametrize("run", ["codex", "opencode-responses"])
def test_contexts_of_captured_requests_are_what_the_vendor_describes(
    corpus: Path, run: str
) -> None:
    folder = corpus.parent / "cases" / "gateway" / "captures" / run
    if not folder.is_dir():
        pytest.skip(f"captured requests not found at {folder}")
    for path in sorted(folder.glob("*.json")):
        body = json.loads(path.read_bytes())["body"]
        validate(recap.compact(body, retention="0.3").messages, "responses")


@pytest.mark.parametrize("dialect", DIALECTS)
def test_the_judge_refuses_what_is_wrong(dialect: str) -> None:
    from pydantic import ValidationError

    broken = {
        "anthropic": {"role": "user", "content": [{"type": "text", "text": 5}]},
        "openai": {"role": "assistant", "tool_calls": [{"id": "c", "type": "function"}]},
        "responses": {"type": "function_call", "call_id": "c", "name": "f"},
    }
    with pytest.raises(ValidationError):
        validate([broken[dialect]], dialect)
