"""The session that ships: valid, of the promised size, nobody's private data, and a good story."""

from __future__ import annotations

import json
import re
from importlib.resources import files
from pathlib import Path

import pytest

from recap.blocks.segment import segment
from recap.transcript.check import check_log
from recap.transcript.formats import open_log

FOLDER = Path(str(files("recap"))) / "demo"
SESSION = FOLDER / "session.jsonl"
NEXT_TURN = FOLDER / "next_turn.jsonl"
FINAL_CODE = re.compile(r"E4\d{3}_[A-Z_]+")


def texts(path: Path) -> list[str]:
    """Return the text of every part of a log."""
    return [part.text() for message in open_log(path).messages for part in message.parts]


def test_the_session_is_a_valid_log_without_oddities() -> None:
    assert check_log(SESSION) == []
    assert open_log(SESSION).findings == ()


def test_the_next_turn_continues_the_session() -> None:
    last = json.loads(SESSION.read_text(encoding="utf-8").splitlines()[-1])
    first = json.loads(NEXT_TURN.read_text(encoding="utf-8").splitlines()[0])
    assert first["parentUuid"] == last["uuid"]
    assert first["sessionId"] == last["sessionId"]
    request = (FOLDER / "request.txt").read_text(encoding="utf-8").strip()
    assert first["message"]["content"] == request
    assert [f for f in check_log(NEXT_TURN) if f.severity == "error"] == []


def test_the_session_has_the_promised_size() -> None:
    blocks = segment(open_log(SESSION).messages).blocks
    assert 120_000 <= SESSION.stat().st_size <= 250_000
    assert 60 <= len(blocks) <= 100
    assert 10 <= blocks[-1].turn + 1 <= 14


def test_every_call_has_its_result_and_tools_of_each_kind_occur() -> None:
    messages = open_log(SESSION).messages
    assert segment(messages).excluded == ()
    names = {part.name for m in messages for part in m.parts if part.kind == "call"}
    assert names == {"Read", "Grep", "Bash", "Edit", "Write"}


def test_a_person_steers_inside_an_open_tool_loop_once() -> None:
    authors = [part.author for m in open_log(SESSION).messages for part in m.parts]
    assert authors.count("steering") == 1


@pytest.mark.parametrize("path", [SESSION, NEXT_TURN], ids=lambda path: path.name)
def test_no_path_of_the_author_is_in_it(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert not re.findall(r"/(?:work|root|Users)/\S*|/home/(?!mira/)\S*|\.pyenv|venv", text)


def test_the_request_names_none_of_what_it_needs() -> None:
    request = (FOLDER / "request.txt").read_text(encoding="utf-8")
    assert not FINAL_CODE.search(request)
    assert "partner-northwind" not in request


def test_what_the_next_turn_needs_stands_only_early_in_the_session() -> None:
    """The final codes are in the page read in the second turn, and in nothing after it."""
    messages = open_log(SESSION).messages
    blocks = segment(messages).blocks
    needed = set(FINAL_CODE.findall("\n".join(texts(NEXT_TURN)))) - {"E4290_QUOTA"}
    assert len(needed) >= 5
    holding = {
        block.turn
        for block in blocks
        for ref in block.refs
        if needed & set(FINAL_CODE.findall(messages[ref.message].parts[ref.part].text()))
    }
    assert holding == {1}
