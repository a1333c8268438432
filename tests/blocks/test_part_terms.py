from __future__ import annotations

import pytest

from recap.blocks.part_terms import Terms, _Memory, part_terms
from recap.transcript.model import Author, Held
from recap.transcript.parts import call_part
from tests.testing import call, result, text, thinking


@pytest.mark.parametrize("author", ["human", "command", "steering", "agent"])
def test_words_of_person_and_agent_feed_the_index(author: Author):
    assert "turn_key" in part_terms(text(f"rename turn_key of {author}_x", author)).names


@pytest.mark.parametrize(
    "author", ["injected", "local", "notification", "summary", "marker", "system"]
)
def test_machine_text_feeds_nothing(author: Author):
    assert part_terms(text("rename turn_key of everything", author)) == Terms((), ())


def test_thinking_feeds_nothing():
    assert part_terms(thinking("maybe turn_key")) == Terms((), ())


def test_results_feed_without_injected_reminders():
    found = part_terms(result("a", "one_name\n<system-reminder>two_name</system-reminder>")).names
    assert "one_name" in found
    assert "two_name" not in found


def test_calls_feed_their_name_and_string_values():
    found = part_terms(call("a", "TodoWrite", file_path="src/http_client.py", limit=20)).names
    assert {"TodoWrite", "src/http_client.py"} <= set(found)
    assert "file_path" not in found


def test_a_call_feeds_the_same_in_every_dialect():
    """Equal digests share one entry: what it holds must not depend on who came first."""
    arguments = '{"command": "cat one_name\\nC:\\\\repo\\\\main.py"}'
    openai = call_part(
        Held({"function": {"name": "Bash", "arguments": arguments}}),
        "Bash", "unmet", arguments, path=("function", "arguments"), dialect="openai",
    )  # fmt: skip
    anthropic = call("unmet", "Bash", command="cat one_name\nC:\\repo\\main.py")
    assert openai.digest == anthropic.digest
    first = part_terms(openai)
    assert "C:/repo/main.py" in first.names
    assert "command" not in first.names
    assert part_terms(anthropic) == first


def test_arguments_that_are_no_json_feed_as_text():
    part = call_part(
        Held({"function": {"name": "Bash", "arguments": "not_json {"}}),
        "Bash", "b", "not_json {", path=("function", "arguments"), dialect="openai",
    )  # fmt: skip
    assert "not_json" in part_terms(part).names


def test_terms_come_sorted():
    found = part_terms(text("zeta_one alpha_two Beta_three")).names
    assert list(found) == sorted(set(found))


def test_lines_are_the_same_wherever_they_stand_and_short_ones_are_none():
    one = part_terms(text("first line of many\n\tanother line here  \n}\nfirst line of many")).lines
    two = part_terms(
        result("a", "x\nanother line here\r\nfirst line of many\nthe third line of it")
    ).lines
    assert len(one) == 2
    assert set(one) < set(two)
    assert list(two) == sorted(two)


def test_lines_of_injected_reminders_are_none():
    found = part_terms(result("a", "<system-reminder>\na line of the machine\n</system-reminder>"))
    assert found.lines == ()


def test_a_part_seen_before_is_not_read_again():
    class Once(Held):
        reads = 0

        def load(self) -> str:
            type(self).reads += 1
            assert self.reads == 1, "read again"
            return "only_once here"

    from recap.transcript.parts import text_part

    part = text_part(Once("only_once here"), "only_once here", "human")
    assert part_terms(part) == part_terms(part)


def test_memory_keeps_what_was_asked_for_last():
    terms = Terms(("x" * 43,), ())  # 100 bytes each, and 300 for the entry
    memory = _Memory(1200)
    for key in (b"a", b"b", b"c"):
        memory.put(key, terms)
    memory.get(b"a")
    memory.put(b"d", terms)
    assert [key for key in (b"a", b"b", b"c", b"d") if memory.get(key)] == [b"a", b"c", b"d"]
    assert memory.size == 1200


def test_memory_does_not_hold_more_than_its_bound():
    memory = _Memory(1000)
    memory.put(b"a", Terms((), ("x" * 2000,)))
    assert memory.get(b"a") is None
    assert memory.size == 0


def test_parts_without_a_digest_are_not_remembered():
    memory = _Memory(1000)
    memory.put(b"", Terms(("x",), ()))
    assert memory.get(b"") is None
