"""Reported bugs about the bytes of logs: a bad line costs itself, never the rest."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

import recap
from tests.bugs.cases import ask, compacted, compacted_log, result, say, use, words_in
from tests.transcript.logs import agent, codes, log, read, said, user, words

if TYPE_CHECKING:
    from pathlib import Path

FIRST = user("u1", None, "Where is it?")
SECOND = agent("a1", "u1", said("In the parser."))
THIRD = user("u2", "a1", "And the tests?")
TOLD = ["Where is it?", "In the parser.", "And the tests?"]


def raw(line: object) -> bytes:
    return json.dumps(line).encode()


def test_b044_a_record_behind_a_cut_one_is_read() -> None:
    """Two writers without a lock cut one record off in a string and began the next on its line."""
    cut = raw(agent("lost", "u1", said("abc")))[:-20]
    data = log(FIRST) + cut + raw(SECOND) + b"\n" + log(THIRD)
    transcript = read(data)
    assert words(transcript) == TOLD
    assert [(f.code, f.line) for f in transcript.findings] == [("cut-line", 2)]
    repaired = recap.repair(data)
    assert repaired.data == log(FIRST, SECOND, THIRD)
    assert b"".join(repaired.quarantine()) == cut + b"\n"


def test_b046_nul_bytes_hide_nothing() -> None:
    """After a crash a loader stopped at a run of NUL bytes and the model got an old context."""
    data = log(FIRST) + b"\0" * 500 + b"\n" + raw(SECOND) + b"\0" * 9000 + b"\n" + log(THIRD)
    transcript = read(data)
    assert words(transcript) == TOLD
    assert [(f.code, f.line) for f in transcript.findings] == [("nul-bytes", 2), ("nul-bytes", 3)]
    assert transcript.counts["bad_lines"] == 2
    assert recap.repair(data).data == log(FIRST, SECOND, THIRD)


def test_b048_only_a_line_feed_ends_a_line(tmp_path: Path) -> None:
    """Line separators of Unicode, raw in a string, cut the line in two and froze the session."""
    text = "a\u2028b\u2029c\u0085d"
    line = json.dumps(user("u1", None, text), ensure_ascii=False).encode()
    data = line + b"\n" + log(SECOND)
    assert len(text.splitlines()) == 4
    assert read(data).lines == 2
    done = compacted_log(data, tmp_path, "now")
    assert words_in(done.messages)[0] == text
    assert f'"content":"{text}"'.encode() in done.to_json()
    control = line.replace(b"\xa9c", b"\xa9\x0bc\x0c")
    assert words(read(control + b"\n"))[0] == text.replace("c", "\x0bc\x0c")


def test_b050_lone_surrogates_are_replaced_in_what_goes_out(tmp_path: Path) -> None:
    """A text cut between the halves of an emoji made every request invalid JSON."""
    data = log(FIRST) + raw(SECOND).replace(b"In the", b"\\ud83d In the") + b"\n"
    done = compacted_log(data, tmp_path, "now")
    assert words_in(done.messages)[1] == "\ufffd In the parser."
    json.loads(done.to_json().decode("utf-8"))
    assert (tmp_path / "session.jsonl").read_bytes() == data
    assert recap.repair(data).data == data


def test_b050_a_clipped_text_is_cut_between_characters() -> None:
    """The same where the product itself cuts."""
    paste = "\n".join(["\U0001f600" * 50] * 40)
    settings = recap.Settings(retention="1", paste_limit=201)
    done = compacted([ask(paste), say("ok")], "now", settings=settings)
    (clipped, *_) = words_in(done.messages)
    clipped.encode("utf-8")
    assert set(clipped.partition("\n[recap: ")[0]) <= {"\U0001f600", "\n"}
    assert len(clipped) < 300


def test_b052_the_locale_does_not_matter(tmp_path: Path) -> None:
    """A reader opened UTF-8 logs in the encoding of the locale."""
    words_ = "caf\u00e9 \u4e2d\u6587 \U0001f600"
    line = json.dumps(user("u1", None, words_), ensure_ascii=False).encode()
    (tmp_path / "session.jsonl").write_bytes(line + b"\r\n" + log(SECOND))
    environ = {"LC_ALL": "C", "PYTHONUTF8": "0", "PATH": os.environ["PATH"], "HOME": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", "from recap.cli import main; main()",
         "compact", "session.jsonl", "--request", "now", "--retention", "1"],
        cwd=tmp_path, env=environ, capture_output=True, check=True,
    )  # fmt: skip
    assert json.loads(done.stdout.decode("utf-8"))[0]["content"] == words_


def test_b052_carriage_returns_at_line_ends_are_accepted_and_kept() -> None:
    """Files from other systems end their lines with two bytes."""
    data = log(FIRST, SECOND, THIRD).replace(b"\n", b"\r\n")
    assert words(read(data)) == TOLD
    assert codes(read(data)) == []
    assert recap.repair(data).data == data


def test_b053_a_byte_order_mark_is_no_part_of_the_first_record() -> None:
    """The first record of such a file was lost."""
    data = b"\xef\xbb\xbf" + log(FIRST, SECOND)
    assert words(read(data)) == TOLD[:2]
    assert codes(read(data)) == []


@pytest.mark.parametrize("size", [3, 10, 17])
def test_b050_a_lone_surrogate_in_a_result_does_not_stop_a_list(size: int) -> None:
    """A tool's output that was cut by its own tool."""
    output = ("x" * size + "\ud83d") * 2
    messages = [ask("Go"), say(use("t1")), ask(result("t1", output)), say("ok")]
    done = compacted(messages, "now")
    assert done.messages[2]["content"][0]["content"] == output.replace("\ud83d", "\ufffd")
    assert messages[2]["content"][0]["content"] == output
