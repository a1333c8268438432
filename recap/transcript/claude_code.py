"""Reader of Claude Code logs, all generations, and of the claude.ai export of the same lines.

One pass over the lines makes a node of each line of the chain, with its parts; ``chain`` then finds
the session among them. Lines of other kinds are skipped without decoding their bodies.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from recap.errors import counted
from recap.transcript.anthropic import read_content
from recap.transcript.authors import classify_text, mark_steering
from recap.transcript.chain import Chain, chain_of
from recap.transcript.claude_lines import (
    BODY_DECODER,
    DECODER,
    KINDS,
    NULL,
    Line,
    compaction_of,
    parent_of,
    session_of,
    text_of,
)
from recap.transcript.claude_messages import Entry, messages_of
from recap.transcript.images import image_of
from recap.transcript.items import UNREADABLE
from recap.transcript.lines import (
    Parsed,
    Record,
    Report,
    elements,
    is_strict,
    members,
    parse,
    read_records,
)
from recap.transcript.links import Node, NodeKind, links_of
from recap.transcript.model import (
    HUMAN_AUTHORS,
    Dialect,
    Json,
    Part,
    Raw,
    Role,
    Slice,
    Transcript,
    decode,
)
from recap.transcript.parts import image_part, text_part
from recap.transcript.spans import MAX_DEPTH, is_deep, locate

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from recap.transcript.sources import Sized

SYNTHETIC = "<synthetic>"
"""The model of assistant lines the client wrote itself."""


class _Said(NamedTuple):
    """The fields of a line's message, and the handle on its content."""

    id: Json
    model: Json
    content: Json
    raw: Raw | None


def read(source: Sized) -> Transcript:
    """Return the session of a log: its live context and what native compactions replaced.

    Side chains and turns the person went back on are left out; findings say which. A log of side
    chains alone, as sub-agents have, is read as a session of its own.

    Raises:
        InputError: The file lost bytes while it was read.
    """
    return _read("claude-code", source, lambda report: read_records(source, DECODER, report))


def read_export(document: Slice, source: Sized) -> Transcript:
    """Return the session of a ``{"loglines": [...]}`` document."""
    return _read("claude-web", source, lambda report: _export_records(document, report))


def _export_records(document: Slice, report: Report) -> Iterator[Record[Line]]:
    lines = members(document).get("loglines")
    for number, raw in enumerate(elements(lines) if lines else (), 1):
        report.counts["lines"] = number
        assert isinstance(raw, Slice)
        try:
            parsed: Parsed[Line] = parse(raw.dump(), DECODER)
        except ValueError:
            report.add("bad-line", f"this element at byte {raw.start:,} cannot be read", number)
        else:
            yield Record(number, raw.start, parsed.data, parsed.value, raw.is_clean)


def _read(
    format: str, source: Sized, records: Callable[[Report], Iterable[Record[Line]]]
) -> Transcript:
    log = _Log(source, Report(), of_side_chains=False)
    log.read(records(log.report))
    if log.report.counts["sidechain_lines"] and not any(entry.parts for entry in log.entries):
        log = _Log(source, Report(), of_side_chains=True)
        log.read(records(log.report))
    return log.transcript(format)


class _Log:
    """State of one pass over a log."""

    def __init__(self, source: Sized, report: Report, *, of_side_chains: bool) -> None:
        self.source = source
        self.report = report
        self.of_side_chains = of_side_chains
        self.entries: list[Entry] = []

    def read(self, records: Iterable[Record[Line]]) -> None:
        """Keep the nodes among the records."""
        for record in records:
            line = record.value
            if line is None:
                self._report_odd(record)
                continue
            kind = KINDS.get(line.type) if isinstance(line.type, str) else None
            if kind is None:
                self.report.counts["other_lines"] += 1
            elif (line.isSidechain is True) == self.of_side_chains:
                self.entries.append(self._entry(record, line, kind))
            else:
                self._count_side_line(line)

    def _report_odd(self, record: Record[Line]) -> None:
        self.report.counts["odd_lines"] += 1
        if record.data.strip() == b"null":
            self.report.add("null-line", "a null line: the client cannot resume this", record.line)
        else:
            self.report.add("odd-line", "this line is no JSON object", record.line, "note")

    def _count_side_line(self, line: Line) -> None:
        counts = self.report.counts
        counts["sidechain_lines" if line.isSidechain is True else "main_lines"] += 1
        counts["sidechains"] += line.isSidechain is True and line.parentUuid is None

    def _entry(self, record: Record[Line], line: Line, kind: NodeKind) -> Entry:
        self.report.counts[f"{line.type}_lines"] += 1
        parent, session = parent_of(line.parentUuid), session_of(line)
        if self.entries:  # most lines repeat these strings: one copy is kept
            before = self.entries[-1]
            parent = before.node.uuid if parent == before.node.uuid else parent
            session = before.session_id if session == before.session_id else session
        node = Node(record.line, kind, text_of(line.uuid), parent)
        entry = Entry(node, session_id=session)
        if line.type == "attachment":
            entry.parts = self._queued(record, line)
            entry.size = len(entry.parts)
            node.is_queued = bool(entry.parts)
        elif kind == "system":
            if line.subtype == "compact_boundary":
                node.compaction = compaction_of(line)
            self.report.counts["microcompactions"] += line.subtype == "microcompact_boundary"
        elif kind != "link":
            self._speak(entry, record, line)
        return entry

    def _speak(self, entry: Entry, record: Record[Line], line: Line) -> None:
        """Fill the entry of a user or assistant line."""
        node, number = entry.node, record.line
        try:
            message = self._message(record, line.message)
        except ValueError as err:
            node.kind = "link"
            self.report.add("unreadable-message", f"this message {err}", number)
            return
        if message is None:
            node.kind = "link"
            self.report.add("no-message", "this line has no message", number)
            return
        node.owner = text_of(line.sourceToolAssistantUUID)
        node.message_id = text_of(message.id)
        if line.isApiErrorMessage is True:
            self.report.counts["api_errors"] += 1
            return
        role: Role = "user" if node.kind == "user" else "assistant"
        try:
            found, flaws = read_content(message.raw, message.content, role, number, self.report)
        except UNREADABLE:
            self.report.add("unreadable-message", "this message cannot be read", number)
            return
        entry.size = len(found) + flaws
        parts = tuple(found)
        if isinstance(message.content, list):
            parts = self._blocks(parts, number)
        if role == "user":
            entry.parts = _with_authors(parts, line)
            node.result_ids = tuple(part.call_id for part in parts if part.kind == "result")
        else:
            entry.parts = parts
            entry.model = "" if message.model == SYNTHETIC else text_of(message.model)
            node.call_ids = tuple(part.call_id for part in parts if part.kind == "call")

    def _blocks(self, parts: tuple[Part, ...], line: int) -> tuple[Part, ...]:
        """Return the parts of a list without bare strings, which the client does not send."""
        sent = tuple([part for part in parts if part.path or part.kind != "text"])
        if len(sent) < len(parts):
            detail = "a bare string stands among the blocks; the client does not send it"
            self.report.add("bare-string", detail, line, "warning")
        return sent

    def _message(self, record: Record[Line], message: msgspec.Raw) -> _Said | None:
        """Return what a line's message says, None where it is no object; see ``_value``."""
        if record.is_exact:
            try:
                body = BODY_DECODER.decode(message)
                if body.content is not NULL and not is_deep(bytes(body.content)):
                    content = msgspec.json.decode(body.content)
                    return _Said(body.id, body.model, content, self._slice(record, body.content))
            except (msgspec.DecodeError, RecursionError):
                pass
        raw, fields = self._value(record, message)
        if not isinstance(fields, dict):
            return None
        handle = members(raw).get("content")
        return _Said(fields.get("id"), fields.get("model"), fields.get("content"), handle)

    def _slice(self, record: Record[Line], value: msgspec.Raw) -> Slice:
        """Return the handle on a value that stands in a record."""
        at = record.start + max(locate(record.data, value, 0), 0)
        return Slice(self.source, at, at + memoryview(value).nbytes, record.is_exact)

    def _value(self, record: Record[Line], value: msgspec.Raw) -> tuple[Slice, Json]:
        """Return the handle on any value of a record, and the decoded value.

        Raises ValueError with a reason when it cannot be decoded.
        """
        raw = self._slice(record, value)
        data = raw.dump()
        if is_deep(data):
            raise ValueError(f"nests deeper than {MAX_DEPTH} levels")
        try:
            decoded = decode(data)
        except ValueError as err:
            raise ValueError("cannot be decoded") from err
        if not is_strict(data):
            raw = Slice(raw.source, raw.start, raw.end, is_clean=False)
            detail = "it holds what JSON forbids; what goes out has it replaced"
            self.report.add("not-strict-json", detail, record.line, "warning")
        return raw, decoded

    def _queued(self, record: Record[Line], line: Line) -> tuple[Part, ...]:
        """Return what the person typed while the agent worked, where an attachment holds it."""
        if b"queued_command" not in bytes(line.attachment):
            return ()
        try:
            raw, fields = self._value(record, line.attachment)
        except ValueError as err:
            self.report.add("unreadable-attachment", f"this attachment {err}", record.line)
            return ()
        if not isinstance(fields, dict) or fields.get("type") != "queued_command":
            return ()
        prompt = members(raw).get("prompt")
        if prompt is None:
            return ()
        self.report.counts["queued_commands"] += 1
        value = fields["prompt"]
        blocks = elements(prompt) if isinstance(value, list) else [prompt]
        return tuple(part for block in blocks if (part := _queued_part(block)))

    def transcript(self, format: str) -> Transcript:
        """Return the session the entries hold."""
        chain = chain_of(links_of(entry.node for entry in self.entries), self.report)
        replaced = messages_of([self.entries[at] for at in chain.replaced], is_active=False)
        live = messages_of([self.entries[at] for at in chain.live], is_active=True)
        counts = self.report.counts
        if counts["sidechain_lines"]:
            detail = f"left out: {counted(counts['sidechain_lines'], 'line')} of side chains"
            self.report.add("sidechain", detail, 0, "note")
        lines = counts.pop("lines", 0)
        return Transcript(
            format=format,
            dialect="anthropic",
            messages=mark_steering((*replaced, *live)),
            findings=self.report.sorted(),
            session_id=self._session_id(chain),
            bytes_read=self.source.size,
            lines=lines,
            counts={name: count for name, count in sorted(counts.items()) if count},
        )

    def _session_id(self, chain: Chain) -> str:
        """Return the id on the newest line: a session resumed from another carries both."""
        ids = (self.entries[at].session_id for at in reversed(chain.live))
        return next((session_id for session_id in ids if session_id), "")


def _queued_part(raw: Raw) -> Part | None:
    block = raw.load()
    path, text = ((), block) if isinstance(block, str) else (("text",), None)
    if isinstance(block, dict):
        if block.get("type") == "image":
            return image_part(raw, "steering", image_of(block), dialect="anthropic")
        text = block.get("text")
    if not isinstance(text, str):
        return None
    author = classify_text(text)
    dialect: Dialect | None = "anthropic" if path else None
    return text_part(
        raw, text, "steering" if author == "human" else author, path=path, dialect=dialect
    )


def _with_authors(parts: tuple[Part, ...], line: Line) -> tuple[Part, ...]:
    """Return a user line's parts, those the client wrote itself marked so."""
    if line.isCompactSummary is True:
        return tuple(replace(part, author="summary") for part in parts)
    if line.isMeta is True:
        return tuple(
            replace(part, author="injected") if part.author in HUMAN_AUTHORS else part
            for part in parts
        )
    return parts
