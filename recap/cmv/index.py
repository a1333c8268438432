"""First pass: the lines of a log in arrays. No text is kept, some 50 bytes for each line."""

from __future__ import annotations

from array import array
from itertools import accumulate, compress, count
from typing import TYPE_CHECKING, Any

import msgspec

from recap.cmv import native
from recap.cmv.contents import ATTACHMENT, BLOCKS, COPY, PROGRESS, SCAN, SIDE, USAGE, Reader
from recap.cmv.records import (
    ABSENT,
    FAILURES,
    Record,
    decode_record,
    loose_record,
    text_of,
)
from recap.transcript.claude_lines import DECODER, compaction_of
from recap.transcript.lines import line_runs, parse
from recap.transcript.links import ASSISTANT, LINK, NO_PARENT, SYSTEM, USER, Links
from recap.transcript.model import decode

if TYPE_CHECKING:
    from collections.abc import Sequence

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

_FATES |= dict.fromkeys(_KINDS, NODE)
_SPOKEN = USER, ASSISTANT

LANE = 0x5BD1E9955BD1E995
"""Tells keys of side chains from those of the main conversation, which does not see them."""

_NARROW = 4
_MOST = (1 << 32) - 1
_SMALL = 1 << 12
"""Bytes of a line that are read at first when one is looked up."""

_AGENT = msgspec.json.Decoder(dict[str, msgspec.Raw])


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
        flags: What each node's line holds, see ``contents``.
        cost: Characters of each node's line that are sent.
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
        self.start = array("I" if source.size < 1 << 32 else "Q")
        self.flags = array("I")
        self.cost = array("I")
        self.versions: dict[str, None] = {}
        self.agents: dict[str, None] = {}
        self.unreadable = 0

    def read(self) -> Index:
        """Read the log."""
        number = 1
        known = native.lines.Reading(self.reading()) if native.lines else None
        for start, data, end, _ in line_runs(self.source):
            if known is None:
                number += self._add_run(number, start, data[:end].split(b"\n"))
            else:
                number = self._add_natively(known, number, start, (data, end))
        return self

    def reading(self) -> dict[str, Any]:
        """Return what the native module has to know to read lines as this index does."""
        reader = self.reader
        types = [(name, fate, _KINDS.get(name, -1)) for name, fate in _FATES.items()]
        return {
            "least": min(reader.least, _MOST),
            "threshold": min(reader.options.threshold, _MOST),
            "is_verbatim": reader.is_verbatim,
            "may_change_texts": reader.may_change_texts,
            "types": sorted(types, key=lambda each: each[1]),
            "node": NODE,
            "other": OTHER,
            "link": LINK,
            "user": USER,
            "assistant": ASSISTANT,
            "of_side_chains": self.of_side_chains,
        }

    def _add_natively(self, known: object, number: int, start: int, run: tuple[bytes, int]) -> int:
        """Add a run of lines, and return the number of the line behind it."""
        data, end = run
        links, at = self.links, 0
        while at <= end:
            place = number, start + at, len(links.tools), self.start.itemsize > _NARROW
            at, versions, fates, kinds, *columns = native.lines.read(data, at, end, known, *place)
            self.fates.extend(fates)
            self.versions.update(dict.fromkeys(versions))
            held = (
                links.line, self.start, links.uuid, links.parent, links.group,
                links.tools, links.first_tool, self.flags, self.cost,
            )  # fmt: skip
            links.kind.extend(kinds)
            for column, new in zip(held, columns, strict=True):
                column.frombytes(new)
            number += len(fates)
            if at <= end:
                stop = data.find(b"\n", at, end)
                stop = end if stop < 0 else stop
                number += self._add_run(number, start + at, [data[at:stop]])
                at = stop + 1
        return number

    def _add_run(self, number: int, start: int, lines: list[bytes]) -> int:
        """Add lines that follow one another, and return how many they are."""
        try:
            records = list(map(decode_record, lines))
        except FAILURES:
            self._add_one_by_one(number, start, lines)
        else:
            self._add(number, start, lines, records)
        return len(lines)

    def line_at(self, at: int) -> bytes:
        """Return the line of a node, the line end apart."""
        start, size = self.start[at], _SMALL
        while True:
            data = self.source.read(start, min(start + size, self.source.size))
            end = data.find(b"\n")
            if end >= 0 or start + size >= self.source.size:
                return data[:end] if end >= 0 else data
            size *= 16

    def _add_one_by_one(self, number: int, start: int, lines: list[bytes]) -> None:
        for at, data in enumerate(lines, number):
            try:
                self._add(at, start, [data], [decode_record(data)])
            except FAILURES:
                self._add_odd(at, start, data)
            start += len(data) + 1

    def _add_odd(self, number: int, start: int, data: bytes) -> None:
        """Add a line that the typed decoder refused."""
        fate = OTHER
        if data.strip():
            try:
                record, read = loose_record(data)
            except ValueError:
                self.unreadable += 1
                fate = RAW
            else:
                if record is not None:
                    self._add(number, start, [read], [record])
                    return
                fate = NULL if read.strip() == b"null" else OTHER
        self.fates.append(fate)

    def _add(self, number: int, start: int, lines: list[bytes], records: list[Record]) -> None:
        """Add lines that follow one another; of odd ones what can be decoded, of equal length."""
        self.versions.update(dict.fromkeys([each.version for each in records if each.version]))
        fates = [_FATES.get(record.type, OTHER) for record in records]
        self.fates.extend(fates)
        is_node = [fate == NODE for fate in fates]
        nodes = list(compress(records, is_node))
        if not nodes:
            return
        starts = accumulate([len(line) + 1 for line in lines], initial=start)
        first = len(self.start)
        self.links.line.extend(compress(count(number), is_node))
        self.start.extend(compress(starts, is_node))
        links = self.links
        for held, column in zip(
            (links.uuid, links.parent, links.group),
            links_in(nodes, self.of_side_chains),
            strict=True,
        ):
            held.extend(column)
        self._add_contents(first, nodes)
        for at, data in enumerate(compress(lines, is_node), first):
            if links.kind[at] == SYSTEM and nodes[at - first].subtype == "compact_boundary":
                line = parse(data, DECODER).value
                if line is not None:
                    links.compactions[at] = compaction_of(line)

    def _add_contents(self, first: int, nodes: list[Record]) -> None:
        links, read = self.links, self.reader.message
        kinds, tools_to, tools = links.kind, links.first_tool, links.tools
        for at, node in enumerate(nodes, first):
            kind = _KINDS[node.type]
            if kind in _SPOKEN:
                flags, cost, _, called = read(node)
                if called:
                    tools.extend(called)
                flags = self._with_cuts(flags, node)
                if node.message is None:
                    kind = LINK
            else:
                flags, cost = self._link(at, node)
            if (node.isSidechain is True) != self.of_side_chains:
                kind, flags = LINK, flags | SIDE
            kinds.append(kind)
            tools_to.append(len(tools))
            self.flags.append(flags)
            self.cost.append(cost)

    def _link(self, at: int, record: Record) -> tuple[int, int]:
        """Return the flags and the cost of a line that only links others, or may be queued."""
        if record.type == "progress":
            return PROGRESS, 0
        if record.type != "attachment":
            return 0, 0
        raw = bytes(record.attachment)
        queued = _queued(raw) if b"queued_command" in raw else None
        if queued is not None:
            if (record.isSidechain is True) == self.of_side_chains:
                self.links.is_queued.add(at)
            return ATTACHMENT, queued
        return ATTACHMENT | (BLOCKS if len(raw) > self.options.threshold else 0), 0

    def _with_cuts(self, flags: int, record: Record) -> int:
        """Return the flags with what may be cut of a line beside its content."""
        message = record.message
        if message is not None and message.usage is not ABSENT:
            flags |= USAGE
        if record.usage is not ABSENT:
            flags |= SCAN
        if record.toolUseResult is not ABSENT:
            raw = bytes(record.toolUseResult)
            if len(raw) > self.options.threshold:
                flags |= COPY
                if b'"agentId"' in raw:
                    self._note_agent(raw)
        return flags

    def _note_agent(self, raw: bytes) -> None:
        try:
            agent = text_of(bytes(_AGENT.decode(raw).get("agentId", ABSENT)))
        except FAILURES:
            return
        if agent:
            self.agents[agent] = None


def links_in(records: Sequence[Record], of_side_chains: bool) -> tuple[list[int], ...]:
    """Return columns of keys: of ids, of parents, and of what lines belong to.

    Args:
        records: Links of the chain.
        of_side_chains: They are of a sub-agent's log: side chains are its conversation.
    """
    uuids = [hash(record.uuid) if record.uuid else 0 for record in records]
    parents = [
        hash(record.parentUuid) if record.parentUuid
        else NO_PARENT if record.parentUuid is None else 0
        for record in records
    ]  # fmt: skip
    groups = [
        (hash(record.message.id) if record.message is not None and record.message.id else 0)
        if record.type == "assistant"
        else hash(record.sourceToolAssistantUUID) if record.sourceToolAssistantUUID else 0
        for record in records
    ]  # fmt: skip
    for at, record in enumerate(records):
        if (record.isSidechain is True) != of_side_chains:
            uuids[at] ^= LANE if uuids[at] else 0
            parents[at] ^= LANE if record.parentUuid else 0
    return uuids, parents, groups


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
