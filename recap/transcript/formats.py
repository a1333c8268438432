"""The formats Recap reads: recognition from content, and the two ways in, a file and bytes.

A format is one line of ``FORMATS``; what is recognised first in that order is read.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from recap.errors import InputError, UnknownFormatError, UsageError, shown
from recap.transcript import (
    aider,
    anthropic,
    claude_code,
    claude_lines,
    codex,
    copilot_cli,
    gemini_cli,
    gemini_contents,
    langchain,
    openai,
    opencode,
    openhands,
    pi,
    responses,
    swe_agent,
    swe_together,
)
from recap.transcript.doubt import with_doubt
from recap.transcript.lines import (
    ANY_CLAUDE,
    Record,
    RecordTest,
    Report,
    Rows,
    holding,
    is_strict,
    parse,
    read_records,
    split_lines,
)
from recap.transcript.model import Dialect, Json, Raw, Slice, Transcript
from recap.transcript.sample import Detector, Sample
from recap.transcript.sources import ByteSource, Sized, open_source

if TYPE_CHECKING:
    import os
    from collections.abc import Callable

SAMPLED_RECORDS = 20
SAMPLED_LINES = 2000
HEAD_BYTES = 4096
EMPTY = "empty"
"""Format of an input without content."""

_ANY = msgspec.json.Decoder()


class Input:
    """An input and the views of it that detectors and readers take."""

    def __init__(self, source: Sized) -> None:
        self.source = source
        self.is_record = ANY_CLAUDE
        self.report = Report()

    @cached_property
    def is_blank(self) -> bool:
        """True when it holds nothing but white space."""
        return not any(line.data.strip() for line in split_lines(self.source))

    @cached_property
    def value(self) -> tuple[Slice, Json] | None:
        """The whole input as one JSON value; None when it has records, or is no JSON.

        A single message is a record: the first line of a list with one message a line.
        """
        lines = (line for line in split_lines(self.source) if line.data.strip())
        first = next(lines, None)
        if first is None or (next(lines, None) and _is_json(first.data)):
            return None
        data = self.source.read(first.start, self.source.size)
        try:
            value, read = parse(data, _ANY)
        except ValueError:
            return None
        if isinstance(value, dict) and isinstance(value.get("role"), str):
            return None
        clean = read is data and is_strict(data)
        return Slice(self.source, first.start, self.source.size, clean), value

    @cached_property
    def sample(self) -> Sample:
        """What formats are recognised by."""
        head = self.source.read(0, min(HEAD_BYTES, self.source.size)).decode("utf-8", "replace")
        if self.value:
            document = self.value[1]
            return Sample(head, document, ((1, document),) if isinstance(document, dict) else ())
        records = read_records(self.source, _ANY, Report(), lines=SAMPLED_LINES)
        objects = (
            (record.line, record.value) for record in records if isinstance(record.value, dict)
        )
        return Sample(head, None, tuple(islice(objects, SAMPLED_RECORDS)))

    def document(self) -> Slice | Rows:
        """Return the handle on the document, or on its lines as if they were one array.

        Raises InputError when it holds no JSON.
        """
        if self.value:
            return self.value[0]
        records = read_records(self.source, _ANY, self.report, self.is_record)
        rows = Rows(tuple(_handle(self.source, record) for record in records))
        if not rows.items:
            raise InputError(f"{self.source.name}: holds no JSON")
        return rows


def _is_json(data: bytes) -> bool:
    try:
        parse(data, _ANY)
    except ValueError:
        return False
    return True


def _handle(source: Sized, record: Record[Json]) -> Slice:
    clean = record.is_exact and is_strict(record.data)
    return Slice(source, record.start, record.start + len(record.data), clean)


def _list_reader(read: Callable[[Raw], Transcript]) -> Callable[[Input], Transcript]:
    """Return a reader of documents and of lists with one message a line."""

    def read_input(given: Input) -> Transcript:
        transcript = read(given.document())
        findings = sorted(
            (*given.report.sorted(), *transcript.findings), key=lambda finding: finding.line
        )
        return replace(transcript, findings=tuple(findings), bytes_read=given.source.size)

    return read_input


def _list_detector(detect: Callable[[Json], str | None]) -> Detector:
    def detect_list(sample: Sample) -> str | None:
        if sample.document is not None:
            return detect(sample.document)
        return detect([record for _, record in sample.records])

    return detect_list


def _detect_claude_code(sample: Sample) -> str | None:
    for line, record in sample.records:
        if evidence := claude_lines.detect(record):
            return f"line {line}: {evidence}"
    return None


def _detect_claude_web(sample: Sample) -> str | None:
    document = sample.document
    is_export = isinstance(document, dict) and isinstance(document.get("loglines"), list)
    return "a list of loglines" if is_export else None


def _read_claude_web(given: Input) -> Transcript:
    if not given.value:
        raise InputError(f"{given.source.name}: is not one JSON document, which claude-web is")
    return claude_code.read_export(given.value[0], given.source)


def _read_gemini_cli(given: Input) -> Transcript:
    return gemini_cli.read(given.source, given.value[0] if given.value else None)


@dataclass(frozen=True, slots=True)
class Format:
    """A format of sessions.

    Attributes:
        name: As in ``--format`` and ``Transcript.format``.
        detect: Returns what shows that a sample is of the format, None if nothing does.
        read: Reads an input of the format.
        dialect: Dialect its contexts go out in by default.
        is_record: Tells its records where others are cut into them, see ``read_records``.
    """

    name: str
    detect: Detector
    read: Callable[[Input], Transcript]
    dialect: Dialect = "anthropic"
    is_record: RecordTest = ANY_CLAUDE


MESSAGES = holding(("role", "content"), ("role", "tool_calls"))
"""Records of lists of messages, one a line."""

FORMATS: tuple[Format, ...] = (
    Format("claude-web", _detect_claude_web, _read_claude_web),
    Format(
        "swe-together",
        _list_detector(swe_together.detect),
        _list_reader(swe_together.read),
        is_record=holding(("session_id", "messages")),
    ),
    Format(
        "codex", codex.detect, lambda given: codex.read(given.source), "openai", codex.IS_RECORD
    ),
    Format(
        "copilot-cli",
        copilot_cli.detect,
        lambda given: copilot_cli.read(given.source),
        "openai",
        copilot_cli.IS_RECORD,
    ),
    Format("gemini-cli", gemini_cli.detect, _read_gemini_cli, "openai", gemini_cli.IS_RECORD),
    Format("pi", pi.detect, lambda given: pi.read(given.source), "openai", pi.IS_RECORD),
    Format(
        "opencode",
        _list_detector(opencode.detect),
        _list_reader(opencode.read),
        "opencode",
        holding(("info", "parts")),
    ),
    Format("swe-agent", swe_agent.detect, _list_reader(swe_agent.read), "openai", MESSAGES),
    Format(
        "mini-swe-agent",
        swe_agent.detect_mini,
        _list_reader(swe_agent.read_mini),
        "openai",
        MESSAGES,
    ),
    Format(
        "openhands",
        openhands.detect,
        _list_reader(openhands.read),
        "openai",
        holding(("source", "action"), ("source", "observation"), ("instance_id", "history")),
    ),
    Format(
        "langchain",
        _list_detector(langchain.detect),
        _list_reader(langchain.read),
        "langchain",
        holding(("type", "data"), ("lc", "kwargs")),
    ),
    Format(
        "gemini-contents",
        _list_detector(gemini_contents.detect),
        _list_reader(gemini_contents.read),
        "gemini",
        holding(("role", "parts")),
    ),
    Format(
        "openai-responses",
        _list_detector(responses.detect),
        _list_reader(responses.read),
        "responses",
        holding(("role", "content"), ("type", "call_id"), ("type", "summary")),
    ),
    Format("aider", aider.detect, lambda given: aider.read(given.source), "openai"),
    Format("claude-code", _detect_claude_code, lambda given: claude_code.read(given.source)),
    Format(
        "anthropic-messages",
        _list_detector(anthropic.detect),
        _list_reader(anthropic.read),
        is_record=MESSAGES,
    ),
    Format(
        "openai-chat", _list_detector(openai.detect), _list_reader(openai.read), "openai", MESSAGES
    ),
)
"""The formats, the most telling first: the first that recognises an input reads it."""

ALIASES = {
    "anthropic": "anthropic-messages",
    "openai": "openai-chat",
    "responses": "openai-responses",
    "gemini": "gemini-contents",
}
"""Names of dialects, taken for the message lists of that dialect."""

READ = tuple(format.name for format in FORMATS)
"""Names of the formats."""


def open_log(path: str | os.PathLike[str], *, format: str | None = None) -> Transcript:
    """Return the session a file holds.

    Args:
        path: The file; a large one is read by offset and must not shrink while it is in use.
        format: Name of its format; None recognises it from the content.

    Raises:
        InputError: There is no such file, it cannot be read, or it lost bytes.
        UnknownFormatError: No reader knows the format.
        UsageError: ``format`` names no format.
    """
    return read_source(open_source(Path(path)), format)


def read_bytes(data: bytes, *, format: str | None = None, name: str = "<bytes>") -> Transcript:
    """Return the session that bytes hold; ``name`` stands for them in errors. See ``open_log``."""
    return read_source(ByteSource(data, name), format)


def recognise(path: str | os.PathLike[str]) -> tuple[str, str]:
    """Return the name of a file's format and what shows it; of a log only its head is read.

    Raises:
        InputError: There is no such file, or it cannot be read.
        UnknownFormatError: It is of no known format.
    """
    return recognise_source(open_source(Path(path), held_bytes=0))


def recognise_source(source: Sized) -> tuple[str, str]:
    """Return the name of a source's format and what shows it; see ``recognise``."""
    given = Input(source)
    if given.is_blank:
        return EMPTY, "the input is empty"
    format, evidence = _recognised(given)
    return format.name, evidence


def read_source(source: Sized, name: str | None = None) -> Transcript:
    """Return the session a source holds; ``name`` is that of its format. See ``open_log``."""
    asked = format_named(name) if name else None
    given = Input(source)
    if given.is_blank:
        name, dialect = (asked.name, asked.dialect) if asked else (EMPTY, "anthropic")
        return Transcript(name, dialect, (), evidence="the input is empty", bytes_read=source.size)
    format, evidence = (asked, "the caller's word") if asked else _recognised(given)
    given.is_record = format.is_record
    transcript = replace(format.read(given), evidence=evidence)
    return with_doubt(transcript, lambda: _better(source, format.name)) if asked else transcript


def _better(source: Sized, name: str) -> Transcript | None:
    """Return the session as the format that is recognised reads it; None where that is ``name``."""
    given = Input(source)
    try:
        found, _ = _recognised(given)
    except InputError:
        return None
    if found.name == name:
        return None
    given.is_record = found.is_record
    return found.read(given)


def _recognised(given: Input) -> tuple[Format, str]:
    for format in FORMATS:
        if evidence := format.detect(given.sample):
            return format, evidence
    raise _refusal(given)


def format_named(name: str) -> Format:
    """Return the format of a name or alias; UsageError for none."""
    for format in FORMATS:
        if format.name == ALIASES.get(name, name):
            return format
    raise UsageError(f"unknown format {shown(name)}: use one of {', '.join(READ)}")


_OTHER_BYTES = {
    b"\x1f\x8b": "is compressed by gzip; unpack it, or pipe it in: zcat FILE | recap ... -",
    b"\x28\xb5\x2f\xfd": "is compressed by zstd; unpack it, or pipe it in: zstdcat FILE | recap ... -",
    b"\xff\xfe": "is text in UTF-16; sessions are UTF-8: iconv -f utf-16 -t utf-8 FILE",
    b"\xfe\xff": "is text in UTF-16; sessions are UTF-8: iconv -f utf-16 -t utf-8 FILE",
}
"""How files begin that a person can make readable, and how."""


def _refusal(given: Input) -> InputError:
    name, head = given.source.name, given.sample.head
    start = given.source.read(0, min(4, given.source.size))
    for magic, advice in _OTHER_BYTES.items():
        if start.startswith(magic):
            return InputError(f"{name}: {advice}")
    if "\0" in head or head.count("\ufffd") > len(head) // 10:
        return UnknownFormatError(f"{name}: is a binary file, not a session")
    tried = ", ".join(format.name for format in FORMATS)
    return UnknownFormatError(
        f"{name}: no known format (tried {tried}); if it is one of them, name it with --format"
    )
