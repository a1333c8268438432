"""Valid lists stay without findings; wherever a pair of call and result is cut, the rules bite."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recap.transcript.check import check, check_log
from tests.transcript.check_examples import (
    assistant,
    call,
    result,
    text,
    thinking,
    tool,
    tool_call,
    user,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

Messages = list[dict[str, Any]]
PAIRING = {"unanswered-call", "orphan-result"}

words = st.text("abé \n", min_size=1).map(lambda said: said + ".")
answers = st.none() | words | st.just("") | st.lists(words.map(text), max_size=2)


@st.composite
def anthropic_lists(draw: st.DrawFn) -> Messages:
    """Draw a list the Messages API takes."""
    messages, made = [{"role": "user", "content": draw(words)}], 0
    for _ in range(draw(st.integers(0, 5))):
        ids = [f"t{made + i}" for i in range(draw(st.integers(0, 3)))]
        made += len(ids)
        said = draw(st.lists(words.map(text), min_size=not ids, max_size=2))
        thoughts = draw(st.sampled_from(([], [thinking()])))
        messages.append(assistant(*thoughts, *said, *map(call, ids)))
        results = [result(i, content=draw(answers)) for i in draw(st.permutations(ids))]
        steering = draw(st.lists(words.map(text), min_size=not ids, max_size=1))
        messages.append(user(*results, *steering))
        if draw(st.booleans()):
            messages.append(user(text(draw(words))))
    return messages


@st.composite
def openai_lists(draw: st.DrawFn) -> Messages:
    """Draw a list Chat Completions takes."""
    messages: Messages = [{"role": "system", "content": draw(words)}]
    made = 0
    for _ in range(draw(st.integers(0, 5))):
        role = draw(st.sampled_from(("user", "developer", "assistant")))
        messages.append({"role": role, "content": draw(words)})
        ids = [f"c{made + i}" for i in range(draw(st.integers(0, 3)))]
        made += len(ids)
        if ids:
            said = draw(st.none() | words)
            calls = [tool_call(i) for i in ids]
            messages.append({"role": "assistant", "content": said, "tool_calls": calls})
            messages += [tool(i, draw(words)) for i in draw(st.permutations(ids))]
    return messages


@given(anthropic_lists())
def test_valid_anthropic_list_has_no_finding(messages: Messages) -> None:
    assert check(messages, "anthropic") == []


@given(openai_lists())
def test_valid_openai_list_has_no_finding(messages: Messages) -> None:
    assert check(messages, "openai") == []


def without_one(messages: Messages) -> Iterator[Messages]:
    """Yield the list with each message left out in turn, then each block, call by call."""
    for at, message in enumerate(messages):
        yield messages[:at] + messages[at + 1 :]
        for key in ("content", "tool_calls"):
            items = message.get(key)
            if isinstance(items, list):
                for number in range(len(items)):
                    rest = message | {key: items[:number] + items[number + 1 :]}
                    yield [*messages[:at], rest, *messages[at + 1 :]]


def ids_in(messages: Messages) -> tuple[set[str], set[str]]:
    """Return the ids of all calls and of all results, each id being used once."""
    calls, results = set(), set()
    for message in messages:
        calls.update(made["id"] for made in message.get("tool_calls") or ())
        if "tool_call_id" in message:
            results.add(message["tool_call_id"])
        for block in message["content"] if isinstance(message.get("content"), list) else ():
            if block["type"] == "tool_use":
                calls.add(block["id"])
            elif block["type"] == "tool_result":
                results.add(block["tool_use_id"])
    return calls, results


def assert_rules_bite_where_pairs_are_cut(messages: Messages, dialect: Any) -> None:
    for cut in without_one(messages):
        calls, results = ids_in(cut)
        expected = {"unanswered-call"} if calls - results else set()
        expected |= {"orphan-result"} if results - calls else set()
        found = {finding.code for finding in check(cut, dialect)}
        assert found & PAIRING == expected


@given(anthropic_lists())
def test_every_cut_pair_is_found_in_anthropic_lists(messages: Messages) -> None:
    assert_rules_bite_where_pairs_are_cut(messages, "anthropic")


@given(openai_lists())
def test_every_cut_pair_is_found_in_openai_lists(messages: Messages) -> None:
    assert_rules_bite_where_pairs_are_cut(messages, "openai")


def real_lists(corpus: Path, folder: str, key: str) -> Iterator[Messages]:
    paths = sorted((corpus / "sessions" / folder).glob("*.json"))
    assert paths
    for path in paths:
        yield json.loads(path.read_text("utf-8"))[key]


@pytest.mark.corpus
def test_real_anthropic_list_lacks_seven_results_and_nothing_else(corpus: Path) -> None:
    """Its parallel calls lost one result each when it was derived from a log."""
    for messages in real_lists(corpus, "anthropic-messages", "messages"):
        calls, results = ids_in(messages)
        found = check(messages)
        assert [finding.code for finding in found] == ["unanswered-call"] * len(calls - results)
        whole = [drop(message, calls - results) for message in messages]
        assert check(whole) == []
        assert_rules_bite_where_pairs_are_cut(whole, "anthropic")


def drop(message: dict[str, Any], ids: set[str]) -> dict[str, Any]:
    return message | {
        "content": [block for block in message["content"] if block.get("id") not in ids]
    }


@pytest.mark.corpus
def test_real_openai_lists_are_valid_but_for_repeated_ids(corpus: Path) -> None:
    for messages in real_lists(corpus, "openai-chat", "traj"):
        assert {finding.code for finding in check(messages)} <= {"repeated-call-id"}


@pytest.mark.corpus
def test_every_cut_pair_is_found_in_real_openai_lists(corpus: Path) -> None:
    for messages in real_lists(corpus, "openai-chat", "traj"):
        calls = [made["id"] for message in messages for made in message.get("tool_calls") or ()]
        if len(set(calls)) == len(calls):
            assert_rules_bite_where_pairs_are_cut(messages, "openai")


LOG_FINDINGS = {
    "entire-30e8-5turns": {"dangling-parent"},
    "entire-7d66-badline": {"glued-lines"},
    "entire-89e8-microcompact": {"dangling-parent"},
    "entire-ec38-orphan-open": {"orphan-result", "dangling-parent", "cut-chain", "unanswered-call"},
    "entire-fc99-compact-image": {"dangling-parent", "unanswered-call"},
}


@pytest.mark.corpus
def test_real_logs_give_the_findings_that_were_checked_by_hand(corpus: Path) -> None:
    paths = sorted((corpus / "sessions" / "claude-code").glob("*.jsonl"))
    assert paths
    for path in paths:
        found = {finding.code for finding in check_log(path)}
        assert found == LOG_FINDINGS.get(path.stem, set()), path.name


@pytest.mark.corpus
def test_requests_of_real_clients_have_no_finding(corpus: Path) -> None:
    captures = corpus.parent / "cases" / "gateway" / "captures"
    if not captures.is_dir():
        pytest.skip(f"captured requests not found at {captures}")
    seen = 0
    for path in sorted(captures.glob("*/*.json")):
        request = json.loads(path.read_text("utf-8"))
        if request["path"].endswith(("/messages", "/chat/completions")):
            seen += 1
            dialect: Any = "anthropic" if request["path"].endswith("/messages") else "openai"
            assert check(request["body"], dialect) == check(request["body"]) == [], path
    assert seen >= 80
