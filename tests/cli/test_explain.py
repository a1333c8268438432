"""``recap explain``: every block, why, and nothing a terminal would obey."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from recap.cli.blocks import RULE_WORDS
from recap.select.selection import RULES

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.conftest import Cli

HOSTILE = "\x1b]52;c;cm0gLXJm\x07\x1b[2J\u202e\u200b\r\x9b31m"

GOLDEN = """\
NN of NNN characters kept in N ms, no model call, valid for Anthropic Messages
session  session.jsonl
request  the last one of the session

#  id        turn  kind   chars        why         u  r   score  begins with
N  IDENTITY     N  you       NN  kept  your words                Where is it?
N  IDENTITY     N  tools    NNN  -     outranked         NN,NNN  Read .../src/parser.py
N  IDENTITY     N  reply     NN  -     outranked                 In the parser.

--pin ID keeps a block.
"""


def line(number: int, kind: str, content: object) -> str:
    message: dict[str, object] = {"role": kind, "content": content}
    if kind == "assistant":
        message |= {"id": f"m{number}", "type": "message", "model": "test"}
    node = {
        "type": kind, "uuid": f"u{number}", "parentUuid": f"u{number - 1}" if number else None,
        "sessionId": "s", "timestamp": f"2026-03-01T10:00:{number:02}.000Z", "message": message,
    }  # fmt: skip
    return json.dumps(node) + "\n"


def log(path: Path, extra: str = "") -> Path:
    """Write a session of two turns: a question with a look at a file, and another question."""
    call = {
        "type": "tool_use",
        "id": "t",
        "name": "Read",
        "input": {"file_path": "/a/src/parser.py"},
    }
    result = {"type": "tool_result", "tool_use_id": "t", "content": f"class Parser: ...{extra}"}
    lines = [
        line(0, "user", f"Where is it?{extra}"),
        line(1, "assistant", [call]),
        line(2, "user", [result]),
        line(3, "assistant", [{"type": "text", "text": f"In the parser.{extra}"}]),
        line(4, "user", "And the tests?"),
    ]
    path.write_text("".join(lines), encoding="utf-8")
    return path


def shape(text: str) -> str:
    """Return a report with ids as letters and every digit as N; widths stay."""
    text = re.sub(r"\b[0-9a-f]{8}\b", "IDENTITY", re.sub(r"in [\d.]+ ms", "in N ms", text))
    return re.sub(r"\d", "N", text)


def test_the_plain_report_has_this_shape(cli: Cli, tmp_path: Path) -> None:
    log(tmp_path / "session.jsonl")
    text = cli("explain", "session.jsonl", "--retention", "0.01", COLUMNS="100").out
    assert shape(text) == GOLDEN


def test_every_block_of_the_history_has_a_row(cli: Cli, demo: Path, request_text: str) -> None:
    blocks = cli("explain", str(demo), "--request", request_text, "--json").json()["blocks"]
    assert [block["index"] for block in blocks] == list(range(len(blocks)))
    rows = cli("explain", str(demo), "--request", request_text).out.splitlines()
    assert all(any(block["id"][:8] in row for row in rows) for block in blocks)


def test_json_carries_the_whole_decision(cli: Cli, demo: Path) -> None:
    answer = cli("explain", str(demo), "--retention", "0.2", "--json").json()
    assert answer["schema"] == "recap.explain/1"
    assert answer["report"]["kept_blocks"] == sum(block["kept"] for block in answer["blocks"])
    assert answer["report"]["kept_chars"] == sum(
        block["cost_chars"] for block in answer["blocks"] if block["kept"]
    )
    assert all(block["rule"] in RULES and block["why"] for block in answer["blocks"])


def test_a_block_pulled_in_names_the_block_it_supports(
    cli: Cli, demo: Path, request_text: str
) -> None:
    options = ("--request", request_text, "--retention", "0.2")
    blocks = cli("explain", str(demo), *options, "--json").json()["blocks"]
    pulled = [block for block in blocks if block["rule"] == "expanded"]
    assert pulled
    for block in pulled:
        assert block["pulled_by"] > block["index"]
        assert blocks[block["pulled_by"]]["kept"]
        assert f"supports #{block['pulled_by']}" in block["why"]
    assert pulled[0]["why"] in cli("explain", str(demo), *options).out


def test_every_rule_has_words() -> None:
    assert RULE_WORDS.keys() == set(RULES)


def test_hostile_content_does_not_reach_the_terminal(cli: Cli, tmp_path: Path) -> None:
    log(tmp_path / "session.jsonl", HOSTILE)
    for arguments in (("explain",), ("inspect",), ("graph",), ("graph", "--dot")):
        out = cli(arguments[0], "session.jsonl", *arguments[1:]).out
        assert not set(HOSTILE[:1] + "\x07\u202e\u200b\r\x9b") & set(out)
    for name in ("explain", "inspect", "graph"):
        assert cli(name, "session.jsonl", "--json").out.replace("\n", "").isprintable()


def test_explain_and_compact_tell_the_same(cli: Cli, demo: Path) -> None:
    told = cli("explain", str(demo), "--json").json()["report"]
    done = cli("compact", str(demo), "--json").json()
    same = set(done) - {"schema", "elapsed_ms"}
    assert {key: told[key] for key in same} == {key: done[key] for key in same}
