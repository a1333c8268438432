"""What a session is called: the title that its client gave it, or the person."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

from recap.cmv.locations import HEAD_BYTES
from recap.transcript.model import decode

if TYPE_CHECKING:
    from pathlib import Path

_FIELDS = {"custom-title": "customTitle", "ai-title": "aiTitle", "summary": "summary"}
"""Lines of Claude Code that hold a title, the strongest first, and the field that it stands in."""

_TITLE = re.compile(
    rb'^\{[^\n]*"type"\s*:\s*"(?:custom-title|ai-title|summary)"[^\n]*\}$', re.MULTILINE
)
_MOST = 200


def title_of(path: Path) -> str:
    """Return the title of a session, "" where it has none.

    Looked for at both ends of the file, where clients write titles; the last one counts, and one that a
    person gave before one that was made up. A summary is a title of this session only when the line it
    names stands there as well: clients write those of other sessions too.
    """
    ends = _ends(path)
    found: dict[str, str] = {}
    for match in _TITLE.finditer(ends):
        try:
            line = decode(match[0])
        except ValueError:
            continue
        kind = line.get("type") if isinstance(line, dict) else None
        if not isinstance(line, dict) or kind not in _FIELDS:
            continue
        title = line.get(_FIELDS[str(kind)])
        if isinstance(title, str) and (kind != "summary" or _is_own(line.get("leafUuid"), ends)):
            found[str(kind)] = title
    return next((found[kind][:_MOST] for kind in _FIELDS if found.get(kind, "").strip()), "")


def _ends(path: Path) -> bytes:
    """Return the beginning and the end of a file, all of it where it is short; b"" if it is gone."""
    try:
        with path.open("rb") as stream:
            head = stream.read(HEAD_BYTES)
            size = stream.seek(0, os.SEEK_END)
            stream.seek(max(len(head), size - HEAD_BYTES))
            return head + (b"\n" if size > 2 * HEAD_BYTES else b"") + stream.read()
    except OSError:
        return b""


def _is_own(leaf: object, data: bytes) -> bool:
    if not isinstance(leaf, str):
        return False
    uuid = re.escape(leaf.encode("utf-8", "surrogatepass"))
    return re.search(rb'"uuid"\s*:\s*"' + uuid + rb'"', data) is not None
