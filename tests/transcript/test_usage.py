"""Reported usage of each format: by hand, any bytes, and counted again in the raw JSON of real logs."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recap.economics import Usage
from recap.transcript.formats import READ, read_source
from recap.transcript.sources import ByteSource, open_source
from recap.transcript.usage import Reported, reported_usage

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


def lines(*records: Any) -> bytes:
    return b"".join(json.dumps(record).encode() + b"\n" for record in records)


def reported(data: bytes, format: str) -> list[Reported]:
    return list(reported_usage(ByteSource(data), format))


def spoken(id: str, output: int, *, at: str = "2026-01-01T00:00:00Z", **changes: Any) -> Any:
    usage = {
        "input_tokens": 3,
        "cache_read_input_tokens": 100,
        "cache_creation_input_tokens": 20,
        "output_tokens": output,
    }
    message = {"id": id, "role": "assistant", "model": "claude-opus-4-6", "usage": usage}
    return {"type": "assistant", "timestamp": at, "message": message} | changes


def test_a_claude_code_response_counts_once_with_its_last_output() -> None:
    log = lines(
        {"type": "user", "message": {"role": "user", "content": "go"}},
        spoken("m1", 1),
        spoken("m1", 40, at="2026-01-01T00:00:05.500Z"),
        spoken("m2", 7, at="2026-01-01T00:01:00Z"),
    )
    assert reported(log, "claude-code") == [
        Reported(2, Usage(3, 100, 20, 0, 40), 1767225605.5, "claude-opus-4-6"),
        Reported(4, Usage(3, 100, 20, 0, 7), 1767225660.0, "claude-opus-4-6"),
    ]


def test_side_chains_are_left_out_unless_they_are_all_there_is() -> None:
    side = spoken("s1", 5, isSidechain=True)
    assert [each.line for each in reported(lines(side, spoken("m1", 1)), "claude-code")] == [2]
    assert [each.line for each in reported(lines(side), "claude-code")] == [1]


def test_a_response_that_the_client_made_up_is_left_out() -> None:
    empty = spoken("m1", 0)
    empty["message"] |= {"model": "<synthetic>", "usage": {"input_tokens": 0, "output_tokens": 0}}
    assert reported(lines(empty), "claude-code") == []


def test_a_response_without_usage_is_left_out() -> None:
    bare = {"type": "assistant", "message": {"id": "m1", "content": []}}
    assert reported(lines(bare, {"type": "assistant", "message": "odd"}), "claude-code") == []


def test_a_claude_web_export_is_read_like_its_lines() -> None:
    document = json.dumps({"loglines": [7, {"type": "user"}, spoken("m1", 4)]}).encode()
    assert reported(document, "claude-web") == [
        Reported(3, Usage(3, 100, 20, 0, 4), 1767225600.0, "claude-opus-4-6")
    ]


def tokens(total: int, last: int, cached: int = 0) -> Any:
    counts = [
        {"input_tokens": n, "cached_input_tokens": cached, "output_tokens": 2}
        for n in (total, last)
    ]
    info = dict(zip(("total_token_usage", "last_token_usage"), counts, strict=True))
    return {"type": "event_msg", "payload": {"type": "token_count", "info": info}}


def test_a_codex_event_that_repeats_its_totals_is_no_response() -> None:
    log = lines(
        {"type": "turn_context", "payload": {"model": "gpt-5.3-codex"}},
        {"type": "event_msg", "payload": {"type": "token_count", "info": None}},
        tokens(1000, 1000),
        tokens(1000, 1000),
        tokens(2500, 1500, cached=900),
    )
    assert [(r.line, r.usage, r.model) for r in reported(log, "codex")] == [
        (3, Usage(uncached=1000, output=2), "gpt-5.3-codex"),
        (5, Usage(uncached=600, cache_read=900, output=2), "gpt-5.3-codex"),
    ]


def gemini(id: str, **counts: int) -> Any:
    return {"id": id, "type": "gemini", "model": "gemini-2.5-flash", "tokens": counts}


def test_gemini_cli_counts_the_cache_in_its_input() -> None:
    old = gemini("a", input=90, output=9, cached=0, thoughts=0, tool=0)
    new = gemini("a", input=100, output=10, cached=80, thoughts=5, tool=7)
    wanted = [Usage(uncached=27, cache_read=80, output=15)]
    head = {"sessionId": "s", "projectHash": "p"}
    journal = lines(head, {"type": "user", "id": "u"}, old, new)
    document = json.dumps(head | {"messages": [{"type": "user"}, old, new]}).encode()
    assert [each.usage for each in reported(journal, "gemini-cli")] == wanted
    assert [each.usage for each in reported(document, "gemini-cli")] == wanted


def test_opencode_counts_the_cache_beside_its_input() -> None:
    counts = {"input": 10, "output": 4, "reasoning": 3, "cache": {"read": 70, "write": 5}}
    info = {"role": "assistant", "modelID": "m", "tokens": counts, "time": {"created": 1.5e12}}
    document = json.dumps({"info": {}, "messages": [{"info": info}, {"info": 7}, {}]}).encode()
    assert reported(document, "opencode") == [Reported(1, Usage(10, 70, 5, 0, 4), 1.5e9, "m")]


def test_pi_counts_the_cache_beside_its_input() -> None:
    usage = {"input": 10, "output": 4, "cacheRead": 70, "cacheWrite": 5, "cost": {"total": 1}}
    said = {"role": "assistant", "model": "m", "usage": usage}
    log = lines(
        {"type": "message", "timestamp": "2026-01-01T01:00:00+01:00", "message": said},
        {"type": "message", "message": said | {"timestamp": 1767225600000}},
        {"type": "message", "message": "odd"},
    )
    once = Usage(10, 70, 5, 0, 4)
    assert reported(log, "pi") == [
        Reported(1, once, 1767225600.0, "m"),
        Reported(2, once, 1767225600.0, "m"),
    ]


def test_an_openhands_response_counts_once_in_both_forms() -> None:
    usage = {"prompt_tokens": 10, "completion_tokens": 4}
    answer = {"id": "r1", "created": 1767225600, "model": "m", "usage": usage}
    event = {"action": "run", "tool_call_metadata": {"model_response": answer}}
    wanted = [Reported(1, Usage(uncached=10, output=4), 1767225600.0, "m")]
    assert reported(json.dumps([event, event, {"action": "x"}]).encode(), "openhands") == wanted
    rows = lines({"history": [event, event]}, {"history": 7})
    assert reported(rows, "openhands") == wanted


def test_formats_without_usage_report_none() -> None:
    for format in ("aider", "copilot-cli", "openai-chat", "no such format"):
        assert reported(lines(spoken("m1", 1)), format) == []


@pytest.mark.parametrize("time", [None, "soon", -1, True, float("inf"), "99999-01-01", [1]])
def test_what_is_no_time_is_none(time: Any) -> None:
    assert reported(lines(spoken("m1", 1, at=time)), "claude-code")[0].time is None


FIELDS = (
    "type", "message", "payload", "usage", "info", "tokens", "id", "timestamp", "model", "messages",
    "history", "tool_call_metadata", "model_response", "input_tokens", "prompt_tokens", "input",
    "last_token_usage", "total_token_usage", "cache", "time", "created", "loglines", "isSidechain",
)  # fmt: skip
WORDS = st.sampled_from(("assistant", "message", "gemini", "event_msg", "token_count", "x"))
ANY = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | WORDS,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(FIELDS), inner, max_size=6)
    ),
    max_leaves=25,
)


@given(st.sampled_from(READ), st.lists(ANY, max_size=4), st.binary(max_size=20))
def test_any_lines_are_read(format: str, records: list[Any], junk: bytes) -> None:
    for data in (lines(*records) + junk, json.dumps(records).encode()):
        for each in reported(data, format):
            assert each.usage.input + each.usage.output > 0


def raw_records(path: Path) -> Iterator[tuple[int, Any]]:
    for number, line in enumerate(path.read_bytes().split(b"\n"), 1):
        try:
            yield number, json.loads(line)
        except ValueError:
            continue


@pytest.mark.corpus
def test_claude_code_logs_hold_what_the_raw_json_holds(corpus: Path) -> None:
    total = 0
    for path in sorted((corpus / "sessions" / "claude-code").glob("*.jsonl")):
        chains: dict[bool, dict[str, dict[str, int]]] = {False: {}, True: {}}
        for _, record in raw_records(path):
            said = record.get("message") if isinstance(record, dict) else None
            if record.get("type") == "assistant" and isinstance(said, dict) and said.get("usage"):
                chains[record.get("isSidechain") is True][said["id"]] = said["usage"]
        raw = (chains[False] or chains[True]).values()
        keys = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
        wanted = [[usage.get(key, 0) for key in (*keys, "output_tokens")] for usage in raw]
        found = [
            [u.uncached, u.cache_read, u.cache_write_5m + u.cache_write_1h, u.output]
            for u in (each.usage for each in reported_usage(open_source(path), "claude-code"))
        ]
        assert found == [row for row in wanted if any(row)], path.name
        total += len(found)
    assert total == 1124


@pytest.mark.corpus
@pytest.mark.parametrize(
    ("name", "lost"),
    [
        ("agentv-10turns-2compacted", 0),
        ("agentv-13turns-compacted", 0),
        ("agentv-2turns-open", 0),
        ("agentv-26turns-aborted", 88_335),  # of one response whose event is not in the log
    ],
)
def test_codex_responses_add_up_to_the_clients_totals(corpus: Path, name: str, lost: int) -> None:
    path = corpus / "sessions" / "codex" / f"{name}.jsonl"
    totals = [
        record["payload"]["info"]["total_token_usage"]
        for _, record in raw_records(path)
        if record["type"] == "event_msg" and record["payload"]["type"] == "token_count"
    ]
    found = sum((r.usage for r in reported_usage(open_source(path), "codex")), Usage())
    assert found.input == totals[-1]["input_tokens"] - lost
    if not lost:
        assert found.cache_read == totals[-1]["cached_input_tokens"]
        assert found.output == totals[-1]["output_tokens"]


@pytest.mark.corpus
def test_gemini_and_opencode_parts_add_up_to_their_totals(corpus: Path) -> None:
    """Which says what is counted in what: the reader of each must give the client's own total."""
    for format, name in (
        ("gemini-cli", "entire-12cb.json"),
        ("gemini-cli", "entire-ab2b.json"),
        ("opencode", "swarm-1turn-file.json"),
    ):
        path = corpus / "sessions" / format / name
        messages = json.loads(path.read_bytes())["messages"]
        raw = [message.get("info", message).get("tokens") or {} for message in messages]
        wanted = [counts["total"] for counts in raw if counts.get("total")]
        found = reported_usage(open_source(path), format)
        assert [each.usage.input + each.usage.output for each in found] == wanted
        assert all(each.time and each.model for each in found)


@pytest.mark.corpus
def test_pi_and_openhands_logs_hold_what_the_raw_json_holds(corpus: Path) -> None:
    path = corpus / "sessions" / "pi" / "pimono-large-session.jsonl"
    raw = [
        record["message"]["usage"]
        for _, record in raw_records(path)
        if record["type"] == "message" and record["message"].get("usage")
    ]
    sums = [sum(usage[key] for usage in raw) for key in ("input", "cacheRead", "cacheWrite")]
    found = sum((each.usage for each in reported_usage(open_source(path), "pi")), Usage())
    assert [found.uncached, found.cache_read, found.cache_write_5m] == sums
    path = corpus / "sessions" / "openhands" / "traj-basic.json"
    usages = [each.usage for each in reported_usage(open_source(path), "openhands")]
    assert usages == [Usage(4, 0, 3482, 0, 1135), Usage(6, 3482, 1158, 0, 177)]


@pytest.mark.corpus
def test_every_real_log_gives_usage_by_the_format_it_is_read_as(corpus: Path) -> None:
    silent = []
    for format in ("claude-code", "codex", "gemini-cli", "opencode", "openhands", "pi"):
        for path in sorted((corpus / "sessions" / format).iterdir()):
            source = open_source(path)
            if not reported_usage(source, read_source(source).format):
                silent.append(path.name)
    assert silent == []
