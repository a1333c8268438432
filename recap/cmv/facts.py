"""What a snapshot says of a session: its id, project, client versions, messages, files it names.

A Claude Code log is read line by line and none of it is kept; sessions of other agents go through
their readers.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import msgspec

from recap.errors import InputError
from recap.transcript.lines import parse, split_lines
from recap.transcript.model import decode

if TYPE_CHECKING:
    from pathlib import Path

    from recap.transcript.model import Json
    from recap.transcript.sources import Sized

CLAUDE_CODE = "claude-code"
CODEX = "codex"
OPENCODE = "opencode"
MOST = 10_000
"""Sub-agents and side files that are followed, versions that are kept."""

SIDE_FOLDERS = ("tool-results", "subagents")
"""Folders beside a session in which its client keeps what the log only names."""

_AGENT = re.compile(rb'"agentId"\s*:\s*"([A-Za-z0-9_-]{1,64})"')
_SIDE = re.compile(rb'/(tool-results|subagents)/([^/"\\\s<>\x00-\x1f]{1,255})')
_FILE_ID = re.compile(r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}")


class _Line(msgspec.Struct, gc=False):
    type: Any = None
    version: Any = None
    cwd: Any = None
    sessionId: Any = None  # noqa: N815
    isSidechain: Any = None  # noqa: N815


_DECODER = msgspec.json.Decoder(_Line)


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What is known of a session's bytes.

    Attributes:
        format: Name of the format.
        session: The client's id of the session; a file without one is known by its path.
        project: Folder the session was started in, "" where it does not say.
        versions: Versions of the client, in order of first appearance.
        messages: Count of messages by kind.
        agents: Ids of sub-agents, whose logs may stand in files of their own.
        named: Side files that the log names, as ``tool-results/NAME``.
    """

    format: str
    session: str
    project: str = ""
    versions: tuple[str, ...] = ()
    messages: tuple[tuple[str, int], ...] = ()
    agents: tuple[str, ...] = ()
    named: tuple[str, ...] = ()


def facts_of(source: Sized, path: Path) -> Facts:
    """Return what the bytes of a session say.

    Raises:
        InputError: They are empty, or of no known format.
    """
    from recap.transcript.formats import EMPTY, read_source, recognise_source

    format, _ = recognise_source(source)
    if format == EMPTY:
        raise InputError(f"{source.name} is empty: there is nothing to take")
    if format == CLAUDE_CODE:
        return _claude_facts(source, path)
    transcript = read_source(source, format)
    counts = Counter(message.role for message in transcript.messages)
    project, version = _stated(source, format)
    return Facts(
        format=format,
        session=transcript.session_id or str(path.resolve()),
        project=project,
        versions=(version,) if version else (),
        messages=tuple(sorted((role, count) for role, count in counts.items())),
    )


@dataclass(slots=True)
class _Claude:
    path: Path
    versions: dict[str, None] = field(default_factory=dict)
    folders: dict[str, None] = field(default_factory=dict)
    session: str = ""
    messages: Counter[str] = field(default_factory=Counter)
    agents: dict[str, None] = field(default_factory=dict)
    named: dict[str, None] = field(default_factory=dict)

    def take(self, line: _Line, data: bytes) -> None:
        for value, known in ((line.version, self.versions), (line.cwd, self.folders)):
            if isinstance(value, str) and value and len(known) < MOST:
                known[value] = None
        if isinstance(line.sessionId, str) and line.sessionId:
            self.session = line.sessionId
        if line.type in ("user", "assistant"):
            self.messages["sidechain" if line.isSidechain is True else line.type] += 1
        if b'"agentId"' in data:
            self.agents.update((each.decode(), None) for each in _AGENT.findall(data))
        if b"/tool-results/" in data or b"/subagents/" in data:
            self._note_sides(data)

    def _note_sides(self, data: bytes) -> None:
        marks = self.path.stem.encode(), self.session.encode()
        for match in _SIDE.finditer(data):
            if any(mark and data.endswith(b"/" + mark, 0, match.start()) for mark in marks):
                name = b"/".join(match.groups()).decode("utf-8", "replace")
                self.named[name] = None

    def project(self) -> str:
        """Return the folder the file's own folder is named after, else the first one."""
        own = (each for each in self.folders if slug(each) == self.path.parent.name)
        return next(own, next(iter(self.folders), ""))


def slug(folder: str) -> str:
    """Return the name Claude Code gives a project's folder: each other character becomes ``-``."""
    return re.sub("[^A-Za-z0-9]", "-", folder)


def _claude_facts(source: Sized, path: Path) -> Facts:
    found = _Claude(path.resolve())
    for _, _, data, _ in split_lines(source):
        if not data.lstrip().startswith(b"{"):
            continue
        try:
            line = _DECODER.decode(data)
        except (msgspec.DecodeError, RecursionError):
            try:
                parsed = parse(data, _DECODER)
            except ValueError:
                continue
            if parsed.value is None:
                continue
            line = parsed.value
        found.take(line, data)
    is_named = _FILE_ID.fullmatch(path.stem) is not None
    return Facts(
        format=CLAUDE_CODE,
        session=path.stem if is_named else found.session or str(found.path),
        project=found.project(),
        versions=tuple(found.versions),
        messages=tuple(sorted(found.messages.items())),
        agents=tuple(found.agents)[:MOST],
        named=tuple(found.named)[:MOST],
    )


def _stated(source: Sized, format: str) -> tuple[str, str]:
    """Return the project and the client version that a head states: of Codex and OpenCode."""
    head: Json = None
    try:
        if format == CODEX:
            lines = (decode(line.data) for line in split_lines(source) if line.data.strip())
            metas = (each for each in lines if isinstance(each, dict))
            head = next((m.get("payload") for m in metas if m.get("type") == "session_meta"), None)
        elif format == OPENCODE:
            whole = decode(source.read(0, source.size))
            head = whole.get("info") if isinstance(whole, dict) else None
    except ValueError:
        return "", ""
    keys = ("cwd", "cli_version") if format == CODEX else ("directory", "version")
    if not isinstance(head, dict):
        return "", ""
    project, version = (head.get(key) for key in keys)
    return (
        project if isinstance(project, str) else "",
        version if isinstance(version, str) else "",
    )
