"""What the native module writes is what Python writes, whatever the lines are."""

from __future__ import annotations

import random
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recap.cmv import native
from recap.cmv.index import Index
from recap.cmv.options import TrimOptions
from recap.errors import InputError, InvalidContextError
from recap.transcript.sources import ByteSource
from tests.cmv.logs import EAGER, agent, call, done, log, result, said, thought, trimmed, user
from tests.cmv.test_trim_corpus import SESSIONS
from tests.cmv.test_trim_property import Session, seeds

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.skipif(native.lines is None, reason="recap.cmv._lines was not built")
ABSENT = pytest.param(Path(), marks=pytest.mark.skip(reason="no corpus (set RECAP_CORPUS)"))

SWAPS = [
    (b'"type"', b'"\\u0074ype"'), (b":", b" : "), (b", ", b" ,\t"), (b'"text": "', b'"text": "\\ud83d'),
    (b'"text": "', b'"text": "\\ud83d\\ude00\xc3\xa9\\/\\n'), (b'"content": "', b'"content": "\xff'),
    (b'"content": "', b'"content": "\xed\xa0\x80'), (b"3", b"NaN"), (b"3", b"03"), (b"5", b"5.0e-3"),
    (b'"input": {', b'"input": {"z": ' + b"[" * 90 + b"]" * 90 + b","), (b"null", b"7"),
    (b'"content": [', b'"content": [null, '), (b"e", b"\xc3\xa9"), (b"false", b"true"),
    (b'"message": {', b'"message": {"usage": {}, '), (b'"content"', b'"content": "a", "content"'),
    (b'"sessionId"', b'"x": {"sessionId": "q"}, "sessionId"'), (b'"uuid": "', b'"uuid": "\\u0061'),
    (b'"sessionId": "', b'"sessionId": "\\u0061'), (b'"parentUuid": "', b'"parentUuid": "\\u0061'),
    (b'{"parentUuid"', b'{"usage": {}, "parentUuid"'), (b'"stdout"', b'"agentId": "a1", "stdout"'),
    (b'"model": "', b'"model": "\\u00e9'), (b'"tool_use_id": "', b'"tool_use_id": "no'),
    (b'"usage"', b'"usage": 1, "usage"'), (b'"id": "', b'"id": null, "was": "'),
    (b'"is_error": true', b'"is_error": false'), (b'"tool_result"', b'"mcp_tool_result"'),
    (b"x" * 600, b"[Trimmed: " + b"x" * 600), (b"r" * 600, b"\\u00e9" * 600), (b"}", b"}\r"),
]  # fmt: skip
"""What stands in the place of what, once in a line: odd spellings, values and bytes."""

Change = tuple[int, int]
changes = st.lists(st.tuples(st.integers(0, 10**6), st.integers(0, len(SWAPS) + 3)), max_size=8)
plans = st.builds(
    TrimOptions,
    keep_last=st.sampled_from([0, 1, 5]),
    keep_thinking=st.booleans(),
    drop_inactive=st.booleans(),
    stub_errors=st.booleans(),
    stub_local_output=st.booleans(),
    requests=st.sampled_from(["keep", "writes"]),
    threshold=st.sampled_from([50, 500]),
    yes=st.just(True),
)


def changed(data: bytes, wanted: list[Change]) -> bytes:
    """Return a log with lines of it changed, cut, glued or hit by a stray byte."""
    lines = data.split(b"\n")
    for place, kind in wanted:
        at = place % len(lines)
        line = lines[at]
        if kind < len(SWAPS):
            lines[at] = line.replace(*SWAPS[kind], 1)
        elif kind == len(SWAPS):
            lines[at] = line[: place % (len(line) + 1)]
        elif kind == len(SWAPS) + 1:
            lines[at] = line + line
        elif kind == len(SWAPS) + 2:
            lines[at] = b" " + line + b" \r"
        elif line:
            spot = random.Random(place)
            where = spot.randrange(len(line))
            lines[at] = line[:where] + bytes([spot.randrange(256)]) + line[where + 1 :]
    return b"\n".join(lines)


def outcome(data: bytes, plan: TrimOptions, session: str | None) -> Any:
    try:
        return trimmed(data, plan, session_id=session)
    except (InputError, InvalidContextError) as err:
        return type(err), str(err)


def in_python(work: Callable[[], Any]) -> Any:
    """Return what work returns without the native module."""
    held, native.lines = native.lines, None
    try:
        return work()
    finally:
        native.lines = held


@given(seeds, st.integers(1, 8), changes, plans, st.sampled_from([None, 'new "id"']))
@settings(max_examples=80, deadline=None)
def test_both_write_the_same_bytes(
    seed: int, turns: int, wanted: list[Change], plan: TrimOptions, session: str | None
):
    data = changed(log(*Session(seed).lines_of_turns(turns)), wanted)
    natively = outcome(data, plan, session)
    assert natively == in_python(lambda: outcome(data, plan, session))


@pytest.mark.corpus
@pytest.mark.parametrize("path", SESSIONS or [ABSENT], ids=lambda path: path.stem)
def test_both_write_the_same_of_a_real_session(path: Path):
    data = path.read_bytes()
    spot = random.Random(path.stem)
    wanted = [(spot.randrange(10**6), spot.randrange(len(SWAPS) + 4)) for _ in range(40)]
    for log_of, session in ((data, None), (changed(data, wanted), "new")):
        natively = outcome(log_of, EAGER, session)
        assert natively == in_python(lambda of=log_of, id=session: outcome(of, EAGER, id))


def test_common_lines_are_read_natively():
    lines = log(
        user("u", None, "do \u00e9 \n"), agent("t", "u", thought()), *call(1, "t"),
        {"type": "file-history-snapshot"}, user("s", "r1", [said("and"), result("c1", "x")]), done("s"),
    )[:-1]  # fmt: skip
    index = Index(ByteSource(lines), EAGER)
    known = native.lines.Reading(index.reading())
    assert native.lines.read(lines, 0, len(lines), known, 1, 0, 0, False)[0] == len(lines) + 1


@pytest.mark.parametrize(
    "value",
    [
        b"01", b"1.", b".5", b"+1", b"1e", b"NaN", b"-", b"tru", b"[1,]", b"{,}", b'{"a" 1}', b"[1 2]",
        b'"\\x"', b'"\\u12g4"', b'"\\ud800"', b'"\\udc00\\ud800"', b'"\t"', b'"\xc0\x80"', b'"\xe2\x82"',
        b'"\xf4\x90\x80\x80"', b'"\xed\xa0\x80"', b'"', b"", b"[" * 70 + b"]" * 70, b'"\\', b'"\\u12', b"1}",
    ],
)  # fmt: skip
def test_what_is_no_strict_json_is_left_to_python(value: bytes):
    line = b'{"type":"note","x":' + value + b"}"
    known = native.lines.Reading(Index(ByteSource(b""), EAGER).reading())
    assert native.lines.read(line, 0, len(line), known, 1, 0, 0, False)[0] == 0


@pytest.mark.parametrize(
    "value",
    [b"-0.5E+9", b"[ ]", b"{ }", b'"\\ud83d\\ude00\xf0\x9f\x98\x80\xe2\x82\xac"', b"[1 , true]"],
)
def test_strict_json_is_taken(value: bytes):
    line = b'{"type":"note","x":' + value + b"}"
    known = native.lines.Reading(Index(ByteSource(b""), EAGER).reading())
    assert native.lines.read(line, 0, len(line), known, 1, 0, 0, False)[0] == len(line) + 1


def test_a_line_of_many_blocks_is_left_to_python():
    many = agent("m", "u", *[said("x")] * 1001)
    lines = log(user("u", None, "do"), many, done("m"))[:-1]
    index = Index(ByteSource(lines), EAGER)
    known = native.lines.Reading(index.reading())
    assert (
        native.lines.read(lines, 0, len(lines), known, 1, 0, 0, False)[0] == lines.index(b"\n") + 1
    )
    assert trimmed(lines) == in_python(lambda: trimmed(lines))
