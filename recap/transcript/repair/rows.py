"""The index of a Claude Code log that a repair works on: ids and places, no text."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from recap.transcript.claude_lines import (
    DECODER,
    KINDS,
    NULL,
    Line,
    compaction_of,
    detect,
    parent_of,
    text_of,
)
from recap.transcript.lines import parse, split_lines
from recap.transcript.model import Json, decode

if TYPE_CHECKING:
    from recap.transcript.lines import Line as TextLine
    from recap.transcript.sources import Sized
    from recap.transcript.spans import Span

SPOKEN = ("user", "assistant")


@dataclass(slots=True)
class Row:
    """One record that can be a link of the chain.

    Attributes:
        line: 1-based line.
        span: Its bytes, without the line end.
        end: Offset of the line after it.
        type: The client's name of its kind.
        uuid: Its id, "" without one.
        parent: The parent's uuid; None for a root, "" where it does not say.
        lane: "" for the main conversation, else the side chain it belongs to.
        logical_parent: For a compaction boundary: last line of the context it replaced.
        owner: For a result: the line that made the call, where stated.
        named: uuids by which a compaction says where preserved messages begin, end and go.
        has_message: False where the message is null or missing.
        message_id: The API message an assistant line belongs to.
        size: Blocks of its content; 0 where it is text, or no list.
        calls: 0-based block and id of each call.
        results: 0-based block and id of each result.
        nulls: 0-based blocks that are null.
    """

    line: int
    span: Span
    end: int
    type: str
    uuid: str
    parent: str | None
    lane: str = ""
    logical_parent: str = ""
    owner: str = ""
    named: tuple[str, ...] = ()
    has_message: bool = True
    message_id: str = ""
    size: int = 0
    calls: tuple[tuple[int, str], ...] = ()
    results: tuple[tuple[int, str], ...] = ()
    nulls: tuple[int, ...] = ()

    @property
    def is_spoken(self) -> bool:
        """True for a line of the conversation."""
        return self.type in SPOKEN

    @property
    def holds_results_alone(self) -> bool:
        """True for a user line that says nothing: results, and what is null."""
        return (
            self.type == "user"
            and (self.size > 0 or not self.has_message)
            and len(self.results) + len(self.nulls) == self.size
        )


def is_record(value: Json) -> bool:
    """Return True for a decoded object that is a line of the log and no part of one."""
    return detect(value) is not None or (
        isinstance(value, dict) and ("uuid" in value or "sessionId" in value)
    )


def rows_of(source: Sized) -> list[Row]:
    """Return the records that have an id or are of a kind that links others, in file order."""
    rows: list[Row] = []
    uuids: dict[str, str] = {}
    for text in split_lines(source):
        if not text.data.strip():
            continue
        try:
            line = parse(text.data, DECODER).value
        except ValueError:
            continue
        if line is not None and (text_of(line.uuid) or text_of(line.type) in KINDS):
            row = _row(text, line)
            row.uuid = uuids.setdefault(row.uuid, row.uuid)  # one copy of each
            row.parent = uuids.get(row.parent, row.parent) if row.parent else row.parent
            rows.append(row)
    return rows


def _row(text: TextLine, line: Line) -> Row:
    kind = text_of(line.type)
    end = text.start + len(text.data)
    lane = text_of(line.agentId) or "side" if line.isSidechain is True else ""
    row = Row(
        text.number,
        (text.start, end),
        end + text.is_ended,
        KINDS_BY_NAME.get(kind, kind),
        text_of(line.uuid),
        parent_of(line.parentUuid),
        lane,
        text_of(line.logicalParentUuid),
        text_of(line.sourceToolAssistantUUID),
    )
    if line.compactMetadata is not NULL:
        compaction = compaction_of(line)
        row.named = (compaction.anchor, compaction.head, compaction.tail)
    if row.is_spoken:
        with suppress(ValueError):  # nested too deeply: nothing in it is looked at
            _fill(row, decode(bytes(line.message)))
    return row


KINDS_BY_NAME = {name: name for name in KINDS}
"""One copy of each name for all rows."""


def _fill(row: Row, message: Json) -> None:
    """Note what the message of a user or assistant line holds."""
    if not isinstance(message, dict):
        row.has_message = message is not None
        return
    row.message_id = text_of(message.get("id"))
    content = message.get("content")
    if not isinstance(content, list):
        return
    row.size = len(content)
    row.nulls = tuple(at for at, block in enumerate(content) if block is None)
    row.calls = _ids(content, "tool_use", "id")
    row.results = _ids(content, "tool_result", "tool_use_id")


def _ids(content: list[Json], ending: str, key: str) -> tuple[tuple[int, str], ...]:
    return tuple(
        (at, block[key])
        for at, block in enumerate(content)
        if isinstance(block, dict)
        and text_of(block.get("type")).endswith(ending)
        and isinstance(block.get(key), str)
    )
