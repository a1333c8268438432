from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

import pytest

import recap
from recap.errors import InputError, UsageError
from recap.transcript.check import RULES, check, check_log, dialect_of, finding_to_json
from tests.transcript import check_examples as examples
from tests.transcript import dialect_examples
from tests.transcript.check_examples import (
    Example,
    assistant,
    call,
    chat,
    image,
    result,
    text,
    thinking,
    user,
)

if TYPE_CHECKING:
    from pathlib import Path

    from recap.transcript.model import Finding

FIRST_EXAMPLES = {
    "anthropic": examples.ANTHROPIC,
    "openai": examples.OPENAI,
    "responses": dialect_examples.RESPONSES,
    "gemini": dialect_examples.GEMINI,
    "langchain": dialect_examples.LANGCHAIN,
    "opencode": dialect_examples.OPENCODE,
    "claude-code": examples.CLAUDE_CODE,
}
ROWS = [
    (kind, code, example) for kind, rows in FIRST_EXAMPLES.items() for code, example in rows.items()
]
MORE_ROWS = [
    *(("anthropic", code, example) for code, example in examples.MORE_ANTHROPIC),
    *(("openai", code, example) for code, example in examples.MORE_OPENAI),
    *(("responses", code, example) for code, example in dialect_examples.MORE_RESPONSES),
    *(("gemini", code, example) for code, example in dialect_examples.MORE_GEMINI),
    *(("langchain", code, example) for code, example in dialect_examples.MORE_LANGCHAIN),
    *(("opencode", code, example) for code, example in dialect_examples.MORE_OPENCODE),
    *(("claude-code", code, example) for code, example in examples.MORE_CLAUDE_CODE),
]
PAIRING = {"unanswered-call", "orphan-result"}


def judge(kind: str, value: Any) -> list[Finding]:
    return check_log(value) if kind == "claude-code" else check(value, kind)  # type: ignore[arg-type]


def codes(findings: list[Finding]) -> set[str]:
    return {finding.code for finding in findings}


@pytest.mark.parametrize("kind", RULES)
def test_every_rule_has_an_example(kind: str) -> None:
    assert list(FIRST_EXAMPLES[kind]) == list(RULES[kind])  # type: ignore[index]


@pytest.mark.parametrize(
    ("kind", "code", "example"),
    ROWS + MORE_ROWS,
    ids=[f"{kind}-{code}" for kind, code, _ in ROWS + MORE_ROWS],
)
def test_rule_bites_on_its_example_and_only_there(kind: str, code: str, example: Example) -> None:
    findings = judge(kind, example.broken)
    assert codes(findings) == {code}
    assert {finding.severity for finding in findings} == {RULES[kind][code].severity}  # type: ignore[index]
    assert judge(kind, example.legal) == []


@pytest.mark.parametrize("kind", RULES)
def test_every_rule_states_its_origin_in_one_sentence(kind: str) -> None:
    for rule in RULES[kind].values():  # type: ignore[index]
        assert rule.sentence.endswith(".")
        assert rule.origin in ("vendor", "measured", "client", "ours")


def test_adjacent_messages_of_one_role_and_unknown_blocks_are_legal() -> None:
    unknown = {"type": "from_the_future", "payload": [1]}
    turn = [user(text()), user(text(), unknown), assistant(text()), assistant(unknown, call())]
    assert check([*turn, user(result()), user(unknown)], "anthropic") == []


def test_results_in_another_order_than_their_calls_are_legal() -> None:
    calls = [call(f"t{i}") for i in range(4)]
    results = [result(f"t{i}") for i in (2, 0, 3, 1)]
    assert check([user(text()), assistant(*calls), user(*results)], "anthropic") == []


def test_a_late_result_is_an_orphan_and_its_call_unanswered() -> None:
    late = [user(text()), assistant(call()), user(text()), assistant(text()), user(result())]
    found = [(finding.code, finding.line) for finding in check(late, "anthropic")]
    assert found == [("unanswered-call", 2), ("orphan-result", 5)]


def test_system_message_does_not_end_the_turn_that_answers_calls() -> None:
    notes = [{"role": "system", "content": "Be brief."}, assistant(text())]
    turns = [user(text()), assistant(call()), user(result()), *notes]
    assert check(turns, "anthropic") == []


def test_tool_message_after_another_role_answers_nothing() -> None:
    cut = chat(examples.calling(examples.tool_call()), *chat(), examples.tool())
    assert codes(check(cut, "openai")) == PAIRING


def test_image_of_unknown_size_or_kind_counts_but_is_not_judged() -> None:
    unknown = {"type": "image", "source": {"type": "from_the_future"}}
    assert check([user(unknown, image(data="!"), image(data="A"))], "anthropic") == []
    assert codes(check([user(*[unknown] * 101)], "anthropic")) == {"image-count-small-window"}


def test_dialect_is_found_from_the_first_message_that_decides() -> None:
    said = {"role": "user", "content": "x"}
    anthropic_error = [said, assistant(text(), thinking())]
    assert codes(check(anthropic_error)) == {"thinking-last"}
    openai_error = [said, {"role": "tool", "tool_call_id": "c", "content": "x"}]
    assert codes(check(openai_error)) == {"orphan-result"}
    assert check([{"role": "system", "content": "x"}, said]) == []
    assert check([{"role": "assistant", "content": "x"}, said]) == []
    assert codes(check([said, {"role": "developer", "content": ""}])) == {"blank-text"}
    assert codes(check([said, {"role": "user", "content": ""}])) == {"empty-content"}
    assert codes(check({"system": "s", "messages": [{"role": "tool"}]})) == {"unknown-role"}
    assert codes(check([user(examples.PICTURE), {"role": "user", "content": ""}])) == {"blank-text"}


def test_dialect_that_was_found_can_be_asked_for() -> None:
    assert dialect_of(chat(examples.tool())) == "openai"
    assert dialect_of({"messages": [user(image())]}) == "anthropic"
    assert dialect_of("no list") == "anthropic"


def test_unknown_dialect_is_a_usage_error() -> None:
    with pytest.raises(UsageError, match="'cohere'"):
        check([], "cohere")  # type: ignore[arg-type]


def test_findings_come_in_order_of_messages() -> None:
    broken = [user(text()), assistant(call()), user(text("")), user(*[image()] * 101)]
    lines = [finding.line for finding in check(broken, "anthropic")]
    assert lines == sorted(lines) == [0, 2, 3]


def test_findings_hold_no_conversation_text() -> None:
    secret = "hunter2 is the password"
    turn = [assistant(call(secret, name=secret, input=secret)), user(result(secret + "!"))]
    found = check([user(text(secret)), *turn], "anthropic")
    assert len(found) == 5
    assert not any("hunter2" in finding.detail for finding in found)


def test_json_of_a_finding_is_stable() -> None:
    finding = check([user(text(""))], "anthropic")[0]
    assert finding_to_json(finding) == {
        "code": "blank-text",
        "severity": "error",
        "line": 1,
        "detail": "Text 1 is empty or only white space.",
    }


def test_check_is_public() -> None:
    assert recap.check([user(text(""))], "anthropic") == check([user(text(""))], "anthropic")


def test_input_is_left_as_it_is() -> None:
    messages = [user(text()), assistant(call("t1"), call("t1")), user(result(), text(""))]
    before = copy.deepcopy(messages)
    check(messages)
    assert messages == before


def test_log_is_read_from_a_path_as_from_bytes(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    path.write_bytes(examples.CLAUDE_CODE["null-line"].broken)
    assert check_log(path) == check_log(str(path)) == check_log(path.read_bytes()) != []


def test_empty_log_is_an_empty_session() -> None:
    assert check_log(b"") == check_log(b"\xef\xbb\xbf\r\n") == []


def test_missing_log_is_an_input_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file"):
        check_log(tmp_path / "absent.jsonl")


def test_log_of_a_side_chain_alone_has_no_chain_of_its_own_to_lose() -> None:
    side = [examples.record("user", f"u{i}", None, isSidechain=True) for i in range(2)]
    assert check_log(examples.log(*side)) == []


def test_records_glued_on_one_line_are_lost_to_the_client() -> None:
    first, second = examples.dumped(examples.FIRST), examples.dumped(examples.REPLY)
    glued = examples.log(first.rstrip() + second, examples.NEXT)
    found = [(finding.code, finding.line, finding.severity) for finding in check_log(glued)]
    assert found == [("glued-lines", 1, "error"), ("dangling-parent", 2, "warning")]


def test_circle_of_parents_is_reported_once() -> None:
    ring = [examples.record("user", f"u{i}", f"u{(i + 1) % 5}") for i in range(5)]
    tail = [examples.record("user", f"v{i}", f"u{i}") for i in range(3)]
    assert [finding.code for finding in check_log(examples.log(*ring, *tail))] == ["parent-cycle"]
