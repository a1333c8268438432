"""What the tests of agents' logs share: logs by hand, faults to put into them, and the pipeline."""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING, Any

import recap
from recap.config import Settings
from recap.session import compact_transcript
from recap.transcript.dialects import DIALECTS
from recap.transcript.formats import read_bytes
from recap.transcript.model import HUMAN_AUTHORS, Slice, strings

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from recap.transcript.model import Part, PartKind, Transcript

Record = dict[str, Any]

RUNS = [
    *((dialect, share) for dialect in ("openai", "anthropic") for share in ("0.05", "0.1", "0.3")),
    *((dialect, "0.1") for dialect in DIALECTS),
]
"""Dialects and retentions."""


def lines(*records: Any) -> bytes:
    """Return the bytes of a log; bytes stand for a line as it is."""
    return b"".join(
        (record if isinstance(record, bytes) else json.dumps(record).encode()) + b"\n"
        for record in records
    )


def parts(transcript: Transcript, kind: PartKind | None = None) -> list[Part]:
    """Return the parts in order, all or those of a kind."""
    return [
        part
        for message in transcript.messages
        for part in message.parts
        if kind in (None, part.kind)
    ]


def shape(transcript: Transcript) -> list[tuple[str, list[str]]]:
    """Return the role and the kinds of the parts of each message."""
    return [(m.role, [part.kind for part in m.parts]) for m in transcript.messages]


def said(transcript: Transcript) -> list[str]:
    """Return the texts a person wrote."""
    return [part.text() for part in parts(transcript, "text") if part.author in HUMAN_AUTHORS]


def authors(transcript: Transcript) -> list[tuple[str, str]]:
    """Return the author and text of each text part."""
    return [(part.author, part.text()) for part in parts(transcript, "text")]


def live(transcript: Transcript) -> list[str]:
    """Return the texts of the live context."""
    return [
        part.text()
        for message in transcript.messages
        if message.is_active
        for part in message.parts
        if part.kind == "text"
    ]


def replaced(transcript: Transcript) -> list[str]:
    """Return the texts of what a native compaction replaced."""
    return [
        part.text()
        for message in transcript.messages
        if not message.is_active
        for part in message.parts
        if part.kind == "text"
    ]


def codes(transcript: Transcript) -> list[str]:
    """Return the codes of the findings."""
    return [finding.code for finding in transcript.findings]


def assert_exact(transcript: Transcript, data: bytes) -> None:
    """Every part's handle is on bytes of the file; only results with images are made anew."""
    for part in parts(transcript):
        if isinstance(part.raw, Slice):
            assert part.raw.dump() == data[part.raw.start : part.raw.end]
            json.loads(part.raw.dump().decode("utf-8", "replace"), strict=False)
        else:
            assert part.kind == "result"


def assert_contexts(transcript: Transcript) -> None:
    """Compactions of the session are valid in every dialect, and hold every word of the person."""
    words = Counter(text for text in said(transcript) if text.strip())
    for dialect, retention in RUNS:
        done = compact_transcript(transcript, settings=Settings(retention=retention), to=dialect)
        found = recap.check(done.messages, dialect)
        assert [finding for finding in found if finding.severity == "error"] == []
        persons = [m for m in done.messages if m.get("role", "user") == "user"]
        assert words - Counter(strings(persons)) == Counter()


def records(path: Path) -> list[Record]:
    """Return the records of a log without faults, by the standard library alone."""
    return [json.loads(line) for line in path.read_bytes().split(b"\n") if line.strip()]


def cuts(data: bytes, count: int) -> Iterator[bytes]:
    """Yield the file cut after lines spread over it, and once inside a line."""
    ends = [at for at, byte in enumerate(data) if byte == 10]
    for end in ends[:: max(1, len(ends) // count)]:
        yield data[: end + 1]
    yield data[: ends[-1] - 7]


DEEP = b'{"a":' * 100_000
LONE = rb"\ud83d"


def faults(data: bytes) -> dict[str, bytes]:
    """Return the log with one fault each, and what every reader has to survive."""
    rows = data.split(b"\n")
    middle = len(rows) // 2
    words = rows[middle].replace(b'":"', b'":"\xff\xfe ', 3).replace(b'": "', b'": "\xff\xfe ', 3)
    lone = rows[middle].replace(b'":"', b'":"' + LONE, 3).replace(b'": "', b'": "' + LONE, 3)

    def with_line(line: bytes) -> bytes:
        return b"\n".join([*rows[:middle], line, *rows[middle + 1 :]])

    return {
        "cut off": data[:-9],
        "cut in a line": with_line(rows[middle][: len(rows[middle]) // 2]),
        "cut into one another": with_line(rows[middle][: len(rows[middle]) // 2] + rows[1]),
        "glued": data.replace(b"\n", b"", 1),
        "all glued": data.replace(b"\n", b""),
        "no UTF-8": with_line(words),
        "lone surrogates": with_line(lone),
        "NaN": with_line(rows[middle][:-1] + b',"x":NaN}'),
        "NUL": with_line(b"\0" * 64),
        "NUL behind": with_line(rows[middle] + b"\0" * 64),
        "deep": with_line(DEEP),
        "deep and whole": with_line(b"[" * 100_000 + b"]" * 100_000),
        "deep member": with_line(rows[middle][:-1] + b',"x":' + b"[" * 900 + b"]" * 900 + b"}"),
        "other JSON": with_line(b'null\n[1,2]\n"text"\n7\n{}\n[]'),
        "CRLF and BOM": b"\xef\xbb\xbf" + data.replace(b"\n", b"\r\n"),
        "blank lines": data.replace(b"\n", b"\n\n \n"),
    }


def assert_survives(data: bytes, format: str) -> None:
    """Faulty logs are read, and what is whole of them stays."""
    whole = Counter(said(read_bytes(data, format=format)))
    for fault, broken in faults(data).items():
        transcript = read_bytes(broken, format=format)
        assert transcript.format == format
        lost = whole - Counter(said(transcript))
        assert sum(lost.values()) <= (len(whole) if fault == "all glued" else 2), fault
        for part in parts(transcript):
            part.text()
        compact_transcript(transcript, settings=Settings(retention="1"))
