"""Reported bugs about stand-ins: what is kept is kept as it was, and numbers are those of the output."""

from __future__ import annotations

from tests.bugs.cases import ask, blocks_in, compacted, result, say, step, text, use, words_in


def test_b081_the_input_of_a_kept_call_is_verbatim() -> None:
    """A model that saw "[Input removed]" in old calls wrote just that into files."""
    body = "def parse(line):\n    return line\n" * 200
    messages = [
        ask("Write parser.py"),
        say(use("t1", "Write", file_path="parser.py", content=body)),
        ask(result("t1", "written")),
        say("Done."),
    ]
    done = compacted(messages, "Now the tests", pins=pins_of(messages))
    assert done.messages[1] is messages[1]
    tight = compacted(messages, "Now the tests", retention="0.01")
    assert blocks_in(tight.messages, "tool_use") in ([], [messages[1]["content"][0]])


def pins_of(messages: list[object]) -> list[str]:
    return [d.id for d in compacted(messages, "x").selection.decisions() if d.kind == "tools"]


def test_b083_numbers_are_measured_on_what_goes_out() -> None:
    """A tool said it pruned 184,249 tokens, and nothing was gone."""
    messages = [
        ask("Look"),
        *step("t1", "x" * 4000),
        say("One."),
        ask("Again"),
        *step("t2", "y" * 3000),
        say("Two."),
    ]
    done = compacted(messages, "now", retention="0.5")
    calls = [len('{"type":"tool_use","id":"t1","name":"Read","input":{}}')] * len(
        blocks_in(done.messages, "tool_use")
    )
    results = [len(block["content"]) for block in blocks_in(done.messages, "tool_result")]
    texts = [len(words) for words in words_in(done.messages)[:-1]]
    assert done.report.kept_chars == sum([*calls, *results, *texts])
    assert 0 < done.report.kept_chars < done.report.history_chars
    markers = [m["content"] for m in done.messages if str(m["content"]).startswith("[recap: ")]
    assert done.report.marker_chars == sum(map(len, markers))
    assert done.report.is_effective


def test_b087_errors_of_kept_blocks_are_whole() -> None:
    """The one line that mattered, the exception, was cut from a kept result."""
    trace = "Traceback (most recent call last):\n" + "  File x\n" * 60 + "KeyError: 'path'"
    messages = [
        ask("Run it"),
        say(text("Running."), use("t1", "Bash", command="make")),
        ask(result("t1", trace, is_error=True)),
        say("It fails."),
    ]
    done = compacted(messages, "Why the KeyError?")
    assert done.messages[2] is messages[2]
