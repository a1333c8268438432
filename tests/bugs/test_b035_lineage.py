"""Reported bugs about the parent chain of logs: what the file proves is read, a break is said."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import recap
from recap.session import compact_transcript
from tests.transcript.logs import Line, agent, codes, log, node, read, said, user, words

if TYPE_CHECKING:
    from collections.abc import Iterator


def chain(name: str, length: int, parent: str | None) -> Iterator[Line]:
    """Yield questions and answers, each the child of the one before."""
    for number in range(1, length + 1):
        uuid = f"{name}{number}"
        text = f"{name} says {number}"
        yield user(uuid, parent, text) if number % 2 else agent(uuid, parent, said(text))
        parent = uuid


def texts(name: str, length: int) -> list[str]:
    return [f"{name} says {number}" for number in range(1, length + 1)]


def test_b035_a_parent_that_was_never_written_cuts_nothing_off() -> None:
    """One missing uuid hid all but the last days of a conversation that the file held whole."""
    lines = [*chain("a", 100, None), *chain("b", 100, "ghost")]
    transcript = read(*lines)
    assert words(transcript) == texts("a", 100) + texts("b", 100)
    assert [(f.code, f.line) for f in transcript.findings] == [("gap", 101)]
    repaired = recap.repair(log(*lines))
    records = [json.loads(line) for line in repaired.data.splitlines()]
    uuids = {record["uuid"] for record in records}
    assert all(record["parentUuid"] in uuids for record in records[1:])
    assert [(each.code, each.line) for each in repaired.repairs] == [("dangling-parent", 101)]


def test_b037_what_is_not_proven_to_belong_is_offered_and_not_joined() -> None:
    """Joining broken islands blindly brought turns back that the person had rewound."""
    broken = read(*chain("a", 10, None), *chain("b", 5, "a11"))
    assert words(broken) == texts("a", 10) + texts("b", 5)
    assert codes(broken) == ["gap"]

    unproven = read(*chain("a", 10, None), *chain("b", 5, "a11"), user("c", "a10", "elsewhere"))
    assert words(unproven) == [*texts("a", 10), "elsewhere"]
    assert [(f.code, f.line, f.severity) for f in unproven.findings] == [("island", 11, "warning")]


def test_b037_rewound_turns_stay_out() -> None:
    """The person went back to an earlier line and went on from there."""
    rewound = read(*chain("a", 10, None), *chain("b", 5, "a2"))
    assert words(rewound) == texts("a", 2) + texts("b", 5)
    assert [(f.code, f.line) for f in rewound.findings] == [("rewound", 3)]
    broken = read(*chain("a", 10, None), *chain("b", 5, "a2"), *chain("c", 3, "b6"))
    assert words(broken) == texts("a", 2) + texts("b", 5) + texts("c", 3)
    assert codes(broken) == ["rewound", "gap"]


def test_b041_sizes_are_recomputed_from_content() -> None:
    """A branch inherited the counter of its parent and said "limit reached" at 18 % of it."""

    def history(usage: Any) -> bytes:
        lines = list(chain("a", 6, None))
        for line in lines:
            if line["type"] == "assistant":
                line["message"]["usage"] = usage
        return log(*lines)

    sizes = {
        compact_transcript(read(history(usage)), "now").report.history_chars
        for usage in (None, {"input_tokens": 199_000, "cache_read_input_tokens": 10**9})
    }
    assert sizes == {sum(map(len, texts("a", 6)))}


def test_b043_lines_that_say_nothing_are_links_and_no_forks() -> None:
    """Progress and attachment lines became parents, and a branch of the history was lost."""
    plain = list(chain("a", 6, None))
    mixed: list[Line] = []
    for number, line in enumerate(plain):
        if mixed:
            line = line | {"parentUuid": mixed[-1]["uuid"]}
        more = node("progress", f"p{number}", line["uuid"], data={"type": "hook_progress"})
        file = node("attachment", f"f{number}", f"p{number}", attachment={"type": "file"})
        mixed += [line, more, file]
    assert words(read(*mixed)) == words(read(*plain)) == texts("a", 6)
    assert codes(read(*mixed)) == []
