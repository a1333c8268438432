"""Lines of a log as they stand in a branch: its own ids and paths in the place of the session's.

Only the bytes of those values change; what cannot be read stays as it is. Texts of messages
and requests are left alone, whatever they say.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from recap.cmv.streams import spliced
from recap.transcript.lines import BOM, split_lines
from recap.transcript.model import decode, encode
from recap.transcript.repair.patch import Edit
from recap.transcript.spans import element_spans, is_deep, member_spans

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from recap.transcript.sources import Sized
    from recap.transcript.spans import Span


_QUICK = {
    key: (b'"%s"' % key.encode(), re.compile(rb'"%s"\s*:\s*("[^"\\]*")' % key.encode()))
    for key in ("sessionId", "cwd")
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Moves:
    """What changes from a session to its branch.

    Attributes:
        session: Id of the new session; None leaves the ids.
        project: Folder of the project, as it was and as it is; None leaves it.
        folder: Folder of the files beside the log, as it was and as it is; None leaves it.
        files: Names of these files in their folder: other paths stay.
    """

    session: str | None
    project: tuple[str, str] | None = None
    folder: tuple[str, str] | None = None
    files: frozenset[str] = frozenset()


def claude_lines(source: Sized, moves: Moves) -> Iterator[bytes]:
    """Yield the lines of a Claude Code log as they stand in a branch, line ends included."""
    if source.read(0, min(len(BOM), source.size)) == BOM:
        yield BOM
    mover = _Mover(moves)
    for _, _, data, is_ended in split_lines(source):
        line = spliced(data, _claude_edits(data, moves, mover))
        yield line + b"\n" if is_ended else line


def codex_lines(source: Sized, moves: Moves) -> Iterator[bytes]:
    """Yield the lines of a Codex rollout as they stand in a branch.

    The first ``session_meta`` names the session; later ones are those of the sessions it was forked
    from.
    """
    is_named = moves.session is None
    for _, _, data, is_ended in split_lines(source):
        edits: list[Edit] = []
        if b'"session_meta"' in data or (moves.project and b'"turn_context"' in data):
            edits, has_id = _codex_edits(data, moves, is_named=is_named)
            is_named = is_named or has_id
        line = spliced(data, edits)
        yield line + b"\n" if is_ended else line


class _Mover:
    """Moves the paths of files beside a log within what tools put out."""

    def __init__(self, moves: Moves) -> None:
        self.old, self.new = map(_inner, moves.folder or ("", ""))
        self.names = frozenset(map(_inner, moves.files))
        self.path = re.compile(re.escape(self.old) + rb"/((?:[\w/-]|\.(?=[\w-]))+)", re.ASCII)

    def moved(self, data: bytes) -> bytes:
        """Return the bytes with the paths of known files moved."""
        return self.path.sub(self._moved, data)

    def _moved(self, match: re.Match[bytes]) -> bytes:
        return self.new + b"/" + match[1] if match[1] in self.names else match[0]


def _claude_edits(data: bytes, moves: Moves, mover: _Mover) -> list[Edit]:
    edits: list[Edit] = []
    if moves.session is not None and (span := _span_of(data, "sessionId")):
        edits.append(Edit(*span, encode(moves.session)))
    if moves.project is not None and (span := _span_of(data, "cwd")):
        edits += _folder_edit(data, span, moves.project)
    if mover.old and mover.old in data:
        for start, end in _tool_spans(data, _members(data)):
            new = mover.moved(data[start:end])
            if new != data[start:end]:
                edits.append(Edit(start, end, new))
    return edits


def _span_of(data: bytes, key: str) -> Span | None:
    """Return where the value of a line's own field stands.

    A key that stands before anything nested and is not there twice is the line's own: most are found
    so, without reading the line.
    """
    quoted, pattern = _QUICK[key]
    count = data.count(quoted)
    if count == 1:
        nested = data.find(b"{", 1)
        match = pattern.search(data, 0, nested if nested > 0 else len(data))
        if match and data.startswith(b"{"):
            return match.span(1)
    return _members(data).get(key) if count or b"\\u" in data else None


def _codex_edits(data: bytes, moves: Moves, *, is_named: bool) -> tuple[list[Edit], bool]:
    """Return the edits of a line, and whether it names the session."""
    fields = _members(data)
    kind = decode(data[slice(*fields["type"])]) if "type" in fields else None
    if kind not in ("session_meta", "turn_context") or "payload" not in fields:
        return [], False
    payload = _within(data, fields["payload"])
    is_name = kind == "session_meta" and not is_named and "id" in payload
    edits = [Edit(*payload["id"], encode(moves.session))] if is_name else []
    if moves.project is not None and "cwd" in payload:
        edits += _folder_edit(data, payload["cwd"], moves.project)
    return edits, is_name


def _folder_edit(data: bytes, span: Span, project: tuple[str, str]) -> list[Edit]:
    """Return the edit that moves a folder of the project; others stay."""
    old, new = project
    folder = decode(data[slice(*span)])
    if isinstance(folder, str) and (folder == old or folder.startswith(f"{old.rstrip('/')}/")):
        return [Edit(*span, encode(new.rstrip("/") + folder[len(old.rstrip("/")) :]))]
    return []


def _tool_spans(data: bytes, fields: Mapping[str, Span]) -> Iterator[Span]:
    """Yield where what tools put out stands in a line."""
    for name in ("toolUseResult", "attachment"):
        if name in fields:
            yield fields[name]
    if decode(data[slice(*fields.get("type", (0, 0)))] or b"null") != "user":
        return
    if "message" not in fields:
        return
    content = _within(data, fields["message"]).get("content")
    if content is None or data[content[0]] != ord("["):
        return
    for start, end in element_spans(data[slice(*content)]):
        block = _within(data, (content[0] + start, content[0] + end))
        kind = data[slice(*block["type"])] if "type" in block else b""
        if kind == b'"tool_result"' and "content" in block:
            yield block["content"]


def _members(data: bytes) -> dict[str, Span]:
    if not data.startswith(b"{") or is_deep(data):
        return {}
    try:
        return member_spans(data)
    except ValueError:
        return {}


def _within(data: bytes, span: Span) -> dict[str, Span]:
    """Return the members of an object that stands in a line, by where they stand in the line."""
    at, end = span
    inner = _members(data[at:end])
    return {name: (at + start, at + stop) for name, (start, stop) in inner.items()}


def _inner(text: str) -> bytes:
    """Return a text as it stands within a JSON string."""
    return encode(text)[1:-1]
