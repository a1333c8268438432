from __future__ import annotations

import gzip
import json
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recap.errors import InputError, RecapError, UnknownFormatError, UsageError
from recap.transcript.formats import FORMATS, READ, Input, open_log, read_bytes, recognise
from recap.transcript.model import Slice
from recap.transcript.sources import ByteSource
from tests.transcript.logs import agent, log, said, user, words

if TYPE_CHECKING:
    from recap.transcript.model import Transcript

CHAT = [
    {"role": "system", "content": "rules"},
    {"role": "user", "content": "question"},
    {"role": "assistant", "content": None, "tool_calls": [
        {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}]},
    {"role": "tool", "tool_call_id": "c1", "content": "done"},
]  # fmt: skip
BLOCKS = [
    {"role": "user", "content": [said("question")]},
    {"role": "assistant", "content": [{"type": "tool_use", "id": "c1", "name": "f", "input": {}}]},
    {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": "done"}]},
]
CLAUDE = log(user("u1", None, "question"), agent("a1", "u1", said("reply")))


def dumped(value: Any, *, indent: int | None = None) -> bytes:
    return json.dumps(value, indent=indent).encode()


def rows(values: list[Any]) -> bytes:
    return b"".join(dumped(value) + b"\n" for value in values)


# Recognition


@pytest.mark.parametrize("indent", [None, 2])
@pytest.mark.parametrize(
    ("value", "format"),
    [
        (CHAT, "openai-chat"),
        ({"messages": CHAT, "model": "m"}, "openai-chat"),
        ({"task_id": 3, "reward": 1.0, "info": {}, "traj": CHAT}, "openai-chat"),
        (BLOCKS, "anthropic-messages"),
        ({"messages": BLOCKS, "system": "rules"}, "anthropic-messages"),
        ({"session_id": "s", "messages": BLOCKS}, "swe-together"),
        ({"loglines": [user("u1", None, "question")]}, "claude-web"),
    ],
)
def test_a_document_is_recognised_however_it_is_laid_out(value, format, indent):
    data = dumped(value, indent=indent)
    transcript = read_bytes(data)
    assert transcript.format == format
    assert transcript.evidence
    assert transcript.bytes_read == len(data)
    assert "question" in words(transcript)
    for message in transcript.messages:
        assert all(part.raw.dump() in data for part in message.parts)


@pytest.mark.parametrize(
    ("values", "format"), [(CHAT, "openai-chat"), (BLOCKS, "anthropic-messages")]
)
def test_a_list_with_one_message_a_line_is_recognised(values, format):
    data = rows(values)
    transcript = read_bytes(data)
    assert transcript.format == format
    assert [m.line for m in transcript.messages] == list(range(1, len(values) + 1))
    assert all(part.raw.dump() in data for m in transcript.messages for part in m.parts)


def test_one_message_alone_is_a_list_of_one():
    assert words(read_bytes(dumped(CHAT[1]))) == ["question"]


def test_bad_lines_in_a_list_are_reported():
    transcript = read_bytes(rows(CHAT[:2]) + b'{"role": "us\n' + rows(CHAT[2:]))
    assert len(transcript.messages) == 4
    assert [(finding.code, finding.line) for finding in transcript.findings] == [("bad-line", 3)]


def test_a_log_is_recognised_by_any_of_its_first_records():
    noise = b'cut line","x":1}\n{"type":"unheard-of"}\n\n'
    transcript = read_bytes(noise + CLAUDE)
    assert transcript.format == "claude-code"
    assert transcript.evidence == "line 4: type user with message and uuid"


@pytest.mark.parametrize("data", [CLAUDE.split(b"\n")[0], CLAUDE.split(b"\n")[0] + b"\n"])
def test_a_log_of_one_line_is_recognised(data):
    assert words(read_bytes(data)) == ["question"]


def test_the_name_of_the_file_does_not_matter(tmp_path):
    path = tmp_path / "session.jsonl"
    path.write_bytes(dumped({"session_id": "s", "messages": BLOCKS}, indent=2))
    assert open_log(path).format == "swe-together"
    path.write_bytes(CLAUDE)
    assert open_log(str(path)).format == "claude-code"


def test_the_callers_word_overrides_recognition():
    plain = [{"role": "user", "content": "question"}]
    assert read_bytes(dumped(plain)).format == "openai-chat"
    transcript = read_bytes(dumped(plain), format="anthropic-messages")
    assert transcript.format == "anthropic-messages"
    assert transcript.evidence == "the caller's word"


@pytest.mark.parametrize(
    ("name", "format", "dialect"),
    [("openai", "openai-chat", "openai"), ("anthropic", "anthropic-messages", "anthropic")],
)
def test_a_dialect_names_its_message_lists(name, format, dialect):
    transcript = read_bytes(dumped(CHAT[1:2]), format=name)
    assert (transcript.format, transcript.dialect) == (format, dialect)


def test_recognise_says_which_format_and_why(tmp_path):
    path = tmp_path / "log"
    path.write_bytes(CLAUDE)
    assert recognise(path) == ("claude-code", "line 1: type user with message and uuid")
    path.write_bytes(b"\n")
    assert recognise(path) == ("empty", "the input is empty")
    path.write_bytes(rows([{"type": "session_meta", "payload": {}}]))
    assert recognise(path)[0] == "codex"


def test_recognising_a_log_reads_its_head_only():
    """Report B125."""

    class Counted:
        name = "log"
        size = len(CLAUDE) * 1_000_000
        read_bytes = 0

        def read(self, start: int, end: int) -> bytes:
            self.read_bytes += end - start
            return (CLAUDE * ((end - start) // len(CLAUDE) + 2))[: end - start]

    source = Counted()
    assert Input(source).sample.records
    assert source.read_bytes < 10_000_000 < source.size


def test_text_without_records_is_looked_at_no_further_than_a_log():
    """A chat history of Aider was searched for records to its end: four fifths of its reading."""
    first = dumped(CHAT[1]) + b"\n"
    text = b"#### a person's line\n"
    assert Input(ByteSource(text * 1_999 + first)).sample.records
    assert not Input(ByteSource(text * 2_000 + first)).sample.records


# Refusals


@pytest.mark.parametrize(
    ("data", "name"),
    [
        (rows([{"type": "session_meta", "payload": {}}]), "codex"),
        (b"# aider chat started at 2025-01-01 10:00:00\n\n#### hello\n", "aider"),
        (dumped({"trajectory": [{"action": "ls"}], "history": CHAT}), "swe-agent"),
        (dumped([{"type": "human", "data": {"content": "x"}}]), "langchain"),
    ],
)
def test_a_recognised_format_is_never_read_as_another(data, name, tmp_path):
    path = tmp_path / "log"
    path.write_bytes(data)
    assert recognise(path)[0] == name
    assert open_log(path).format == name


def test_an_unknown_format_is_a_usage_error_that_names_the_choices():
    with pytest.raises(UsageError, match=r"unknown format 'word': use one of .*claude-code"):
        read_bytes(CLAUDE, format="word")


@pytest.mark.parametrize(
    "data",
    [
        b"plain text\n",
        b"{}",
        b"[]",
        b"7",
        b'{"a": 1}\n{"b": 2}\n',
        b'{"messages": []}',
        b"[" * 100_000,
    ],
)
def test_an_unknown_input_gives_one_line_with_what_was_tried_and_the_next_step(data):
    with pytest.raises(UnknownFormatError) as caught:
        read_bytes(data, name="log")
    text = str(caught.value)
    assert text.startswith("log: no known format (tried ")
    assert all(format.name in text for format in FORMATS)
    assert "--format" in text
    assert "\n" not in text


@pytest.mark.parametrize("data", [bytes(range(256)) * 9, b"\x7fELF\x02\x01\0\0", b"\0" * 600])
def test_a_binary_file_is_called_one(data):
    with pytest.raises(InputError, match=r"^<bytes>: is a binary file"):
        read_bytes(data)


@pytest.mark.parametrize("format", ["openai-chat", "anthropic-messages", "swe-together"])
def test_what_holds_no_json_is_no_list(format):
    with pytest.raises(InputError, match="holds no JSON"):
        read_bytes(b"plain text\n", format=format)


def test_an_export_that_is_no_document_is_refused():
    with pytest.raises(InputError, match="is not one JSON document"):
        read_bytes(CLAUDE, format="claude-web")


def test_a_folder_is_refused(tmp_path):
    with pytest.raises(InputError, match="is a folder"):
        open_log(tmp_path)


def tried(data: bytes, format: str | None = None) -> Transcript | None:
    """Return the transcript, or None where a clear error was raised."""
    try:
        return read_bytes(data, format=format)
    except RecapError as err:
        text = str(err)
    assert text.startswith("<bytes>: ")
    assert "\n" not in text
    return None


@given(st.binary(max_size=300) | st.text().map(str.encode), st.sampled_from([None, *READ]))
def test_any_bytes_give_a_transcript_or_a_clear_error(data, format):
    transcript = tried(data, format)
    for message in transcript.messages if transcript else ():
        assert all(part.raw.dump() in data for part in message.parts if isinstance(part.raw, Slice))


@given(st.data())
def test_a_damaged_file_gives_a_transcript_or_a_clear_error(data):
    whole = data.draw(st.sampled_from([CLAUDE, dumped(CHAT), rows(BLOCKS), dumped({"traj": CHAT})]))
    broken = bytearray(whole)
    for _ in range(data.draw(st.integers(1, 4))):
        broken[data.draw(st.integers(0, len(whole) - 1))] = data.draw(st.integers(0, 255))
    transcript = tried(bytes(broken))
    for message in transcript.messages if transcript else ():
        assert all(isinstance(part.text(), str) for part in message.parts)


# Empty and missing


@pytest.mark.parametrize("data", [b"", b"\n", b" \r\n\t\n", b"\xef\xbb\xbf"])
def test_an_empty_input_is_an_empty_session(data):
    """Report B137."""
    transcript = read_bytes(data)
    assert (transcript.format, transcript.messages) == ("empty", ())
    assert read_bytes(data, format="openai-chat").dialect == "openai"


def test_a_session_is_read_once_its_file_appears(tmp_path):
    """Report B137."""
    path = tmp_path / "later.jsonl"
    with pytest.raises(InputError, match=r"later\.jsonl: no such file"):
        open_log(path)
    path.touch()
    assert open_log(path).messages == ()
    path.write_bytes(CLAUDE)
    assert words(open_log(path)) == ["question", "reply"]


def test_reading_needs_no_numpy():
    code = "import sys, recap.transcript.formats; sys.exit('numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


# Real files


@pytest.mark.corpus
def test_every_file_of_the_corpus_is_recognised_for_what_it_is(corpus):
    wrong = {}
    for path in sorted((corpus / "sessions").glob("*/*")):
        expected = path.parent.name
        try:
            found = open_log(path).format
        except UnknownFormatError as err:
            found = str(err).partition("this is ")[2].partition(" ")[0]
        if found != expected:
            wrong[path.name] = found
    assert not wrong


@pytest.mark.corpus
def test_every_swe_together_session_is_recognised(corpus):
    paths = list((corpus / "swe-together").glob("*.json"))
    assert len(paths) == 29
    assert {recognise(path)[0] for path in paths} == {"swe-together"}


@pytest.mark.corpus
def test_documents_of_the_corpus_keep_their_bytes(corpus):
    for folder in ("openai-chat", "anthropic-messages", "claude-web", "swe-together"):
        for path in sorted((corpus / "sessions" / folder).iterdir()):
            data = path.read_bytes()
            for message in open_log(path).messages:
                raws = [message.envelope.raw, *(part.raw for part in message.parts)]
                assert all(raw.dump() in data for raw in raws if isinstance(raw, Slice))


@pytest.mark.parametrize(
    ("data", "advice"),
    [
        (gzip.compress(b"{}", mtime=0), "zcat"),
        (b"\x28\xb5\x2f\xfd\x04\x00", "zstdcat"),
        ("\ufeff{}".encode("utf-16-le"), "iconv"),
        ("\ufeff{}".encode("utf-16-be"), "iconv"),
    ],
)
def test_bytes_that_can_be_made_readable_say_how(data, advice):
    with pytest.raises(InputError, match=advice):
        read_bytes(data)
