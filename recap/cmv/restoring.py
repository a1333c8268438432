"""What a snapshot kept, given back: its bytes, or the content of one block that was trimmed."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple

from recap.cmv.facts import CLAUDE_CODE
from recap.cmv.making import making
from recap.cmv.side_files import AGENTS, is_safe
from recap.cmv.stubs import restorable
from recap.errors import UsageError, shown, shown_path
from recap.transcript.model import Json, decode, flat_text, strings

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from recap.cmv.homes import Homes
    from recap.store import BranchRow, History, SnapshotRow, Store

HASHED = "sha256:"
LEAST_BLOCK_ID = 8
"""Digits of a block's id that name it."""


class Restored(NamedTuple):
    """What was written: the session's file, and those beside it."""

    path: Path
    files: tuple[Path, ...]


class Original(NamedTuple):
    """Content that a stub stands for.

    Attributes:
        line: 1-based line of the snapshot, or 1-based message of a list.
        kind: ``result``, ``call``, ``line`` or ``block``.
        text: It, as a reader would see it.
        value: It, as JSON.
    """

    line: int
    kind: str
    text: str
    value: Json


def restore(
    store: Store,
    row: SnapshotRow,
    path: Path,
    *,
    replace: bool = False,
    with_files: bool = True,
    dry_run: bool = False,
) -> Restored:
    """Write a snapshot's bytes to a file, and the files beside it as its client has them.

    Args:
        store: Where it is.
        row: The snapshot.
        path: The new file.
        replace: Take the place of a file that is there.
        with_files: Write the files beside it as well.
        dry_run: Read and prove everything, write nothing.

    Raises:
        UsageError: Something has the name already, and it is not to be replaced.
        InputError: It cannot be written.
        StoreError: The bytes are not what was kept; then there is no file.
    """
    history = store.history
    files = [(path, history.read(row))]
    for side in row.sides if with_files else ():
        if is_safe(side.name):
            folder, _, name = side.name.partition("/")
            beside = path.parent / name if folder == AGENTS else path.with_suffix("") / side.name
            files.append((beside, history.read(side)))
    for target, _ in files:
        if not replace and os.path.lexists(target):
            raise UsageError(f"{shown_path(target)} is there already; name another")
    if dry_run:
        for _, pieces in files:
            for _ in pieces:
                pass
    else:
        with making(store, [target for target, _ in files], replaces=replace) as making_them:
            for number, (_, pieces) in enumerate(files):
                making_them.write(number, pieces)
            making_them.commit()
    return Restored(path, tuple(target for target, _ in files[1:]))


def branch_file(history: History, row: BranchRow, homes: Homes) -> Path:
    """Return the file of a branch.

    Raises:
        UsageError: It is not where its agent looks for it.
    """
    snapshot = history.snapshot(row.snapshot)
    path = homes.home / out if (out := _out_of(row)) else None
    if path is None and snapshot is not None:
        path = homes.find(snapshot.agent, row.session)
    if path is None or not path.is_file():
        raise UsageError(f"the file of branch {row.name or row.id} is not found; give the file")
    return path


def _out_of(row: BranchRow) -> str:
    """Return the file that a branch was written to by wish, "" where its agent looks for it."""
    try:
        options = decode(row.options.encode("utf-8", "surrogatepass"))
    except ValueError:
        return ""
    out = options.get("out") if isinstance(options, dict) else None
    return out if isinstance(out, str) else ""


def is_first(history: History, row: SnapshotRow) -> bool:
    """Return True when no older snapshot of the same session is kept."""
    return all(
        (other.created, other.id) >= (row.created, row.id)
        for other in history.snapshots(session=row.session)
    )


def originals(history: History, row: SnapshotRow, id: str) -> list[Original]:
    """Return what a snapshot holds under the id that a stub names.

    Args:
        history: Where it is.
        row: The snapshot.
        id: Of a call, a line or a block; ``sha256:`` and the hash of an id for an odd one.

    Raises:
        UsageError: The snapshot holds nothing under it.
    """
    found = list(_in_lines(_lines(history, row), id)) if row.agent == CLAUDE_CODE else []
    found = found or list(_in_messages(history, row, id))
    if not found:
        raise UsageError(f"snapshot {row.name or row.id} holds nothing under {shown(id)}")
    return found


def _lines(history: History, row: SnapshotRow) -> Iterator[bytes]:
    rest = b""
    for piece in history.read(row):
        *lines, rest = (rest + piece).split(b"\n")
        yield from lines
    yield rest


def _in_lines(lines: Iterator[bytes], id: str) -> Iterator[Original]:
    """Yield the content under an id in a Claude Code log: results before calls, then lines."""
    mark = b"" if id.startswith(HASHED) else id.encode("utf-8", "surrogatepass")
    later: list[Original] = []
    for number, data in enumerate(lines, 1):
        if mark not in data:
            continue
        try:
            line = decode(data)
        except ValueError:
            continue
        if isinstance(line, dict):
            for each in _in_line(line, number, id):
                if each.kind == "result":
                    yield each
                else:
                    later.append(each)
    yield from later


def _in_line(line: dict[str, Json], number: int, id: str) -> Iterator[Original]:
    message = line.get("message")
    content = message.get("content") if isinstance(message, dict) else None
    for block in content if isinstance(content, list) else ():
        if not isinstance(block, dict):
            continue
        if _is_named(block.get("tool_use_id"), id):
            value = block.get("content")
            yield Original(number, "result", flat_text(value), value)
        elif _is_named(block.get("id"), id):
            value = block.get("input")
            yield Original(number, "call", "\n".join(strings(value)), value)
    if _is_named(line.get("uuid"), id):
        value = line.get("attachment", content)
        yield Original(number, "line", flat_text(value), value)


def _is_named(value: Json, id: str) -> bool:
    if not isinstance(value, str) or not value:
        return False
    return value == id or (id.startswith(HASHED) and restorable(value) == id)


def _in_messages(history: History, row: SnapshotRow, id: str) -> Iterator[Original]:
    """Yield the content of parts and blocks under an id, whatever the format."""
    from recap.blocks.segment import segment
    from recap.transcript.formats import read_bytes

    messages = read_bytes(b"".join(history.read(row)), format=row.agent).messages
    for message in messages:
        for part in message.parts:
            if part.kind in ("call", "result") and _is_named(part.call_id, id):
                yield Original(message.line, part.kind, part.text(), part.payload())
    if len(id) < LEAST_BLOCK_ID:
        return
    for block in segment(messages).blocks:
        if block.id.startswith(id):
            parts = [messages[ref.message].parts[ref.part] for ref in block.refs]
            line = messages[block.refs[0].message].line
            value: Json = [part.payload() for part in parts]
            yield Original(line, "block", "\n".join(part.text() for part in parts), value)
