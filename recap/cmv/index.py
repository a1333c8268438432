"""First pass: the lines of a log in arrays. No text is kept, some 100 bytes for each line."""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING

import msgspec

from recap.cmv.contents import ATTACHMENT, BLOCKS, COPY, LONG, PROGRESS, SCAN, SIDE, USAGE, Reader
from recap.cmv.places import Finder
from recap.cmv.records import ABSENT, FAILURES, Record, decode_record, loose_record, text_of
from recap.transcript.claude_lines import DECODER, compaction_of
from recap.transcript.lines import parse, split_lines
from recap.transcript.links import ASSISTANT, LINK, NO_PARENT, SYSTEM, USER, Links
from recap.transcript.model import decode

if TYPE_CHECKING:
    from recap.cmv.options import TrimOptions
    from recap.transcript.sources import Sized

NODE, OTHER, RAW, STATE, HISTORY, QUEUE, NULL = range(7)
"""What a line is: a link of the chain; one of another kind; one that cannot be read; metadata that
says how the session stands; history of files; of the queue; ``null``."""

_FATES = dict.fromkeys(
    (
        "summary", "custom-title", "ai-title", "tag", "agent-name", "agent-color", "agent-setting",
        "mode", "permission-mode", "pr-link", "last-prompt",
    ),
    STATE,
) | {
    "file-history-snapshot": HISTORY,
    "file-history-delta": HISTORY,
    "queue-operation": QUEUE,
}  # fmt: skip

_KINDS = {
    "user": USER, "assistant": ASSISTANT, "system": SYSTEM, "progress": LINK, "attachment": LINK,
}  # fmt: skip

LANE = 0x5BD1E9955BD1E995
"""Tells keys of side chains from those of the main conversation, which does not see them."""

_BATCH = 1024
"""Nodes that are put into the arrays at once."""

_AGENT = msgspec.json.Decoder(dict[str, msgspec.Raw])

CUT_USAGE, CUT_COPY, CUT_RESULT = range(3)
"""What a cut takes: usage, the copy of a result, the content of a result."""


class Index:
    """What is known of a log.

    Attributes:
        source: The log.
        options: Those of the trim.
        reader: Reads what lines hold.
        of_side_chains: The log is one of a sub-agent: side chains are its conversation.
        fates: What each line is: ``NODE`` and so on.
        links: The nodes.
        start: Offset of each node's line.
        size: Bytes of each node's line, the line end apart.
        flags: What each node's line holds, see ``contents``.
        cost: Characters of each node's line that are sent.
        said: Hash of the words in each node's line; 0 without any.
        versions: Client versions in order of first appearance.
        agents: Ids of sub-agents, some of which only copies of results name.
        unreadable: Lines that are no JSON.
    """

    def __init__(
        self, source: Sized, options: TrimOptions, *, of_side_chains: bool = False
    ) -> None:
        self.source = source
        self.options = options
        self.reader = Reader(options)
        self.of_side_chains = of_side_chains
        self.fates = bytearray()
        self.links = Links()
        self.start = array("Q")
        self.size = array("I")
        self.flags = array("I")
        self.cost = array("I")
        self.said = array("q")
        self.versions: dict[str, None] = {}
        self.agents: dict[str, None] = {}
        self.unreadable = 0
        self._finder = Finder()
        self._cut_nodes = array("I")  # node << 2 | kind
        self._cuts = array("I")
        self._rows: list[tuple[int, ...]] = []
        self._flushed = 0

    def read(self) -> Index:
        """Read the log."""
        add, line = self.fates.append, self._line
        for number, start, data, _ in split_lines(self.source):
            try:
                add(line(number, start, data, decode_record(data)))
            except FAILURES:
                add(self._odd_line(number, start, data))
        self._flush()
        return self

    def cuts_of(self, at: int, cursor: int) -> tuple[list[tuple[int, int, int]], int]:
        """Return the cuts of a node and the cursor behind them; nodes are asked for in order.

        A cut is its kind, and the bytes that may go, from the line's start.
        """
        nodes, cuts = self._cut_nodes, self._cuts
        end = cursor
        while end < len(nodes) and nodes[end] >> 2 == at:
            end += 1
        found = [(nodes[n] & 3, cuts[2 * n], cuts[2 * n + 1]) for n in range(cursor, end)]
        return found, end

    def _flush(self) -> None:
        if self._rows:
            self.links.extend(self._rows)  # type: ignore[arg-type]  # its columns come first
            columns = list(zip(*self._rows, strict=True))[7:]
            mine = self.start, self.size, self.flags, self.cost, self.said
            for held, column in zip(mine, columns, strict=True):
                held.extend(column)
            self._flushed += len(self._rows)
            self._rows.clear()

    def _odd_line(self, number: int, start: int, data: bytes) -> int:
        if not data.strip():
            return OTHER
        try:
            record, read = loose_record(data)
        except ValueError:
            self.unreadable += 1
            return RAW
        if record is None:
            return NULL if read.strip() == b"null" else OTHER
        return self._line(number, start, read, record)

    def _line(self, number: int, start: int, data: bytes, record: Record) -> int:
        """Take a line; ``data`` is what can be decoded of it, of equal length."""
        if record.version is not None:
            self.versions[record.version] = None
        kind = _KINDS.get(record.type)
        if kind is None:
            return _FATES.get(record.type, OTHER)
        cost = said = 0
        message = message_key = None
        if kind in (USER, ASSISTANT):
            flags, cost, said, tools = self.reader.message(record)
            if tools:
                self.links.tools.extend(tools)
            message = record.message
            flags = self._with_cuts(flags, record, data)
            kind = LINK if message is None else kind
            message_key = message.id if message is not None else None
        else:
            flags, cost = self._link(record)
        side = 0
        if (record.isSidechain is True) != self.of_side_chains:
            side, kind, flags = LANE, LINK, flags | SIDE
        uuid, parent, owner = record.uuid, record.parentUuid, record.sourceToolAssistantUUID
        self._rows.append(
            (
                number,
                kind,
                hash(uuid) ^ side if uuid else 0,
                NO_PARENT if parent is None else hash(parent) ^ side if parent else 0,
                hash(message_key) if message_key else 0,
                hash(owner) if owner else 0,
                len(self.links.tools),
                start,
                len(data),
                flags,
                cost,
                said,
            )
        )
        if record.subtype == "compact_boundary" and kind == SYSTEM:
            at = self._flushed + len(self._rows) - 1
            line = parse(data, DECODER).value
            if line is not None:
                self.links.compactions[at] = compaction_of(line)
        if len(self._rows) == _BATCH:
            self._flush()
        return NODE

    def _link(self, record: Record) -> tuple[int, int]:
        """Return the flags and the cost of a line that only links others, or may be queued."""
        if record.type == "progress":
            return PROGRESS, 0
        if record.type != "attachment":
            return 0, 0
        raw = bytes(record.attachment)
        queued = _queued(raw) if b"queued_command" in raw else None
        if queued is not None:
            if (record.isSidechain is True) == self.of_side_chains:
                self.links.is_queued.add(self._flushed + len(self._rows))
            return ATTACHMENT, queued
        return ATTACHMENT | (BLOCKS if len(raw) > self.options.threshold else 0), 0

    def _with_cuts(self, flags: int, record: Record, data: bytes) -> int:
        """Note where what may be cut stands, and return the flags with what there is of it."""
        message = record.message
        if message is not None and message.usage is not ABSENT:
            flags |= USAGE | self._cut(CUT_USAGE, b"usage", message.usage, data)
        if record.usage is not ABSENT:
            flags |= USAGE | self._cut(CUT_USAGE, b"usage", record.usage, data)
        if record.toolUseResult is not ABSENT:
            raw = bytes(record.toolUseResult)
            if len(raw) > self.options.threshold:
                flags |= COPY | self._cut(CUT_COPY, b"toolUseResult", raw, data)
                self._note_agent(raw)
        if flags & LONG and not flags & BLOCKS:
            assert message is not None
            assert isinstance(message.content, list)
            flags |= self._result_cut(bytes(message.content[0].content), data)
        return flags

    def _cut(self, kind: int, key: bytes, value: msgspec.Raw | bytes, data: bytes) -> int:
        """Note where a member and the comma before it stand; ``SCAN`` when that is not certain."""
        start, end = self._finder.member(data, key, bytes(value))
        return SCAN if start < 0 else self._add_cut(kind, start, end)

    def _result_cut(self, raw: bytes, data: bytes) -> int:
        start, end = self._finder.value(data, b"content", raw)
        return SCAN if start < 0 else self._add_cut(CUT_RESULT, start, end)

    def _add_cut(self, kind: int, start: int, end: int) -> int:
        self._cut_nodes.append(self._flushed + len(self._rows) << 2 | kind)
        self._cuts.extend((start, end))
        return 0

    def _note_agent(self, raw: bytes) -> None:
        if b'"agentId"' in raw:
            try:
                agent = text_of(bytes(_AGENT.decode(raw).get("agentId", ABSENT)))
            except FAILURES:
                return
            if agent:
                self.agents[agent] = None


def _queued(raw: bytes) -> int | None:
    """Return the characters of what was typed while the agent worked; None for other attachments."""
    try:
        value = decode(raw)
    except ValueError:
        return None
    if not isinstance(value, dict) or value.get("type") != "queued_command":
        return None
    prompt = value.get("prompt")
    return (len(prompt) if isinstance(prompt, str) else len(raw)) if prompt else None
