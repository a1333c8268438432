"""Reported bugs about thinking: it goes out as it was signed, or not at all."""

from __future__ import annotations

from typing import TYPE_CHECKING

import recap
from tests.bugs.cases import (
    ask,
    blocks_in,
    compacted,
    compacted_log,
    copy_of,
    redacted,
    result,
    say,
    step,
    text,
    thinking,
    use,
)
from tests.transcript import logs

if TYPE_CHECKING:
    from pathlib import Path


def test_b016_thinking_of_the_open_turn_is_untouched() -> None:
    """A compaction changed the thinking of the latest message: "cannot be modified", for good."""
    current = [
        ask("Now fix the parser"),
        say(thinking("first", "s1"), redacted("opaque"), text("I look."), use("t9")),
        ask(result("t9", "x" * 3000)),
    ]
    history = [ask("Hello"), *step("t1", "y" * 9000), say("Done.")]
    done = compacted([*history, *current], retention="0.05")
    assert all(out is given for out, given in zip(done.messages[-3:], current, strict=True))
    assert done.report.kept_blocks < done.report.blocks


def test_b018_thinking_of_another_model_stays_in_the_log_alone(tmp_path: Path) -> None:
    """Signatures are bound to a model: after a switch the replay was refused."""

    def spoken(uuid: str, parent: str, model: str) -> logs.Line:
        line = logs.agent(uuid, parent, thinking(f"by {model}"), logs.said(f"I am {model}"))
        line["message"]["model"] = model
        return line

    data = logs.log(
        logs.user("u1", None, "Who?"),
        spoken("a1", "u1", "model-a"),
        logs.user("u2", "a1", "And now?"),
        spoken("a2", "u2", "model-b"),
    )
    done = compacted_log(data, tmp_path, "Go on")
    assert blocks_in(done.messages, "thinking") == [thinking("by model-b")]
    assert done.report.notes["thinking-of-another-model"] == 1
    back = compacted_log(data, tmp_path, "Go on", model="model-a")
    assert blocks_in(back.messages, "thinking") == [thinking("by model-a")]
    assert (tmp_path / "session.jsonl").read_bytes() == data


def test_b020_no_thinking_is_made_up(tmp_path: Path) -> None:
    """A repair put thinking without a signature before a message that had none."""
    messages = [
        ask("One"),
        say(thinking("well"), text("a")),
        ask("Two"),
        say(text("no thinking here"), use("t1")),
        ask(result("t1")),
        say("b"),
    ]
    done = compacted(messages, "Three")
    assert blocks_in(done.messages, "thinking") == [thinking("well")]
    data = logs.log(
        logs.user("u1", None, "One"),
        logs.agent("a1", "u1", thinking("well"), logs.said("a")),
        logs.agent("a2", "ghost", logs.said("no thinking here")),
    )
    assert recap.repair(data).data.count(b'"thinking"') == data.count(b'"thinking"')


def test_b021_the_open_turn_of_a_responses_list_is_untouched() -> None:
    """A compaction between a result and the next sample dropped reasoning the provider wants back."""
    current = [
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Fix it"}]},
        {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "opaque"},
        {"type": "function_call", "call_id": "c9", "name": "read", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c9", "output": "x" * 3000},
    ]
    history = [
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Hello"}]},
        {"type": "function_call", "call_id": "c1", "name": "read", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c1", "output": "y" * 9000},
        {
            "type": "message",
            "role": "assistant",
            "content": [{"type": "output_text", "text": "Hi"}],
        },
    ]
    given = [*history, *current]
    done = compacted(given, retention="0.05", dialect="responses")
    assert done.messages[-4:] == current
    assert not any(item.get("output") == "y" * 9000 for item in done.messages)


def test_b022_redacted_thinking_obeys_the_rule_of_thinking() -> None:
    """A trimmer took out thinking and left its redacted twin."""
    messages = [
        ask("One"),
        say(thinking("well"), text("a")),
        ask("Two"),
        say(redacted("opaque"), text("b")),
        ask("Three"),
        say(redacted("alone")),
    ]
    kept = compacted(copy_of(messages), "Four")
    assert len(blocks_in(kept.messages, "thinking")) == 1
    assert blocks_in(kept.messages, "redacted_thinking") == [redacted("opaque")]
    assert kept.report.excluded == {"thinking-only": 1}
    without = compacted(
        messages, "Four", settings=recap.Settings(retention="1", keep_thinking=False)
    )
    assert blocks_in(without.messages, "thinking") == []
    assert blocks_in(without.messages, "redacted_thinking") == []
    assert without.report.notes["thinking-dropped"] == 3
