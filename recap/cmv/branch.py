"""Branches: new sessions that begin where a snapshot stands."""

from __future__ import annotations

import json
import os
import tempfile
import time
import uuid
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from itertools import chain
from typing import TYPE_CHECKING

from recap.cmv import documents, orientation
from recap.cmv.facts import CLAUDE_CODE, CODEX, OPENCODE, SIDE_FOLDERS
from recap.cmv.homes import real_folder, resume_line, resume_words
from recap.cmv.making import making
from recap.cmv.names import check_name, new_id
from recap.cmv.rewriting import Moves, claude_lines, codex_lines
from recap.cmv.side_files import AGENTS, is_safe
from recap.cmv.snapshot import origin_of
from recap.cmv.streams import appended, chunks, source_of
from recap.cmv.trim import trim
from recap.errors import UsageError, shown_path
from recap.store import BranchRow
from recap.transcript.sources import ByteSource

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

    from recap.cmv.homes import Homes
    from recap.cmv.options import TrimOptions
    from recap.cmv.report import TrimReport
    from recap.store import SnapshotRow, Store
    from recap.transcript.model import Json
    from recap.transcript.sources import Sized

STUB_ID_DIGITS = 12
"""Digits of a snapshot's id that stubs name it by."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """How a branch is to be.

    Attributes:
        name: For people.
        trim: How it is trimmed; None leaves everything.
        importance: Of each block by its id, for the trimmer.
        target: Share of the active characters that is to go, for the trimmer.
        orientation: A message to the model that ends it; "" for none.
        project: Folder of the project it is for; None for that of the session.
        out: File it is written to; None where the agent looks for it.
    """

    name: str = ""
    trim: TrimOptions | None = None
    importance: Mapping[str, float] | None = None
    target: float | None = None
    orientation: str = ""
    project: Path | None = None
    out: Path | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Branch:
    """A branch that was made, or would be.

    Attributes:
        row: What the store knows of it.
        path: Its file.
        project: Folder of its project, "" where that is not known.
        files: Number of files written beside it.
        report: What the trim did; None without one.
        resume: Words of the command by which its agent goes on with it; none where not known.
    """

    row: BranchRow
    path: Path
    project: str
    files: int
    report: TrimReport | None
    resume: tuple[str, ...]

    @property
    def resume_line(self) -> str:
        """The command as a person types it."""
        return resume_line(self.resume, self.project)


def branch(
    store: Store,
    snapshot: SnapshotRow,
    wish: Wish,
    homes: Homes,
    *,
    now: float | None = None,
    dry_run: bool = False,
) -> Branch:
    """Make a session of a snapshot under a fresh id, where its agent looks for it.

    Nothing that exists is changed: neither the snapshot nor the session nor any other file. The
    store knows of the branch before its file gets its name; see ``recap.cmv.making`` for what happens
    when the process ends on the way.

    Args:
        store: Where the snapshot is.
        snapshot: What it begins with.
        wish: How it is to be.
        homes: Where agents look for sessions.
        now: Unix time, seconds; None for the clock's.
        dry_run: Do everything but keep the files and the record.

    Raises:
        UsageError: The wish does not fit the session, or a file has the name already.
        InputError: The session holds no conversation, or a file cannot be written.
        StoreError: The snapshot cannot be read, or the branch not be recorded.
        InvalidContextError: A check failed; nothing was written.
    """
    maker = _Maker(store, snapshot, wish, homes, time.time() if now is None else now)
    return maker.make(dry_run=dry_run)


class _Maker:
    """Makes one branch."""

    def __init__(
        self, store: Store, snapshot: SnapshotRow, wish: Wish, homes: Homes, now: float
    ) -> None:
        self.store = store
        self.snapshot = snapshot
        self.wish = wish
        self.now = now
        if wish.name:
            check_name(wish.name)
        self.format = snapshot.agent
        self._demand_fit()
        self.project = real_folder(wish.project) if wish.project else snapshot.project
        self.session = self._new_session()
        if wish.out is not None:
            self.path = wish.out.resolve()
        else:
            place = homes.place(self.format, self.session, self.project, now)
            if place is None:
                raise UsageError(
                    f"a session of {self.format} has no place of its own; name a file with -o"
                )
            self.path = place
        if self.session == "":
            self.session = str(self.path)

    def make(self, *, dry_run: bool) -> Branch:
        """Make the branch."""
        if os.path.lexists(self.path):
            raise UsageError(f"{shown_path(self.path)} is there already; name another")
        with ExitStack() as stack:
            source = stack.enter_context(self._source())
            report = None
            if self.wish.trim is not None:
                options = replace(self.wish.trim, yes=self.wish.trim.yes or dry_run)
                source, report = stack.enter_context(self._trimmed(source, options))
            pieces = self._pieces(source)
            files = self._files()
            if dry_run:
                for _ in pieces:
                    pass
                return self._branch(b"", report, len(files))
            targets = [self.path, *(path for path, _ in files)]
            making_them = stack.enter_context(making(self.store, targets))
            made = self._branch(making_them.write(0, pieces), report, len(files))
            self._demand_delivered(making_them.temporary(0))
            for number, (_, data) in enumerate(files, 1):
                making_them.write(number, data)
            recorded = making_them.commit(made.row)
            assert recorded is not None
            return replace(made, row=recorded)

    def _demand_delivered(self, path: Path) -> None:
        if self.wish.orientation and self.format == CLAUDE_CODE:
            with path.open("rb") as stream, source_of(stream) as written:
                orientation.demand_delivered(written, self.wish.orientation)

    def _demand_fit(self) -> None:
        wish, format = self.wish, self.format
        if wish.trim is not None and format != CLAUDE_CODE:
            raise UsageError(f"sessions of {format} are not trimmed; branch with --no-trim")
        if wish.project is not None and format not in (CLAUDE_CODE, CODEX):
            raise UsageError(f"a session of {format} is of no project folder; name a file with -o")
        if wish.orientation and not wish.orientation.strip():
            raise UsageError("the orientation message is blank")

    def _new_session(self) -> str:
        """Return a fresh id; "" where sessions are known by their file."""
        if self.format in (CLAUDE_CODE, CODEX):
            return str(uuid.uuid4())
        return documents.opencode_session_id(self.now) if self.format == OPENCODE else ""

    @contextmanager
    def _source(self) -> Iterator[Sized]:
        """Yield the snapshot's bytes: in a file without a name, so that memory does not hold them."""
        with tempfile.TemporaryFile(dir=self.store.folder) as stream:
            for piece in self.store.history.read(self.snapshot):
                stream.write(piece)
            with source_of(stream) as source:
                yield source

    @contextmanager
    def _trimmed(self, source: Sized, options: TrimOptions) -> Iterator[tuple[Sized, TrimReport]]:
        with tempfile.TemporaryFile(dir=self.store.folder) as stream:
            report = trim(
                source,
                stream,
                replace(options, snapshot=self.snapshot.id[:STUB_ID_DIGITS]),
                session_id=self.session,
                importance=self.wish.importance,
                target=self.wish.target,
            )
            with source_of(stream) as trimmed:
                yield trimmed, report

    def _pieces(self, source: Sized) -> Iterable[bytes]:
        text, format = self.wish.orientation, self.format
        if format == CLAUDE_CODE:
            moves = self._moves()
            # A trim has written the session's id already: what moves nothing else is as it is to be.
            is_moved = self.wish.trim is None or moves.project or moves.folder
            lines = claude_lines(source, moves) if is_moved else chunks(source)
            if not text:
                return lines
            line = orientation.claude_line(source, text, self.session, self.now)
            return chain(lines, appended(source, claude_lines(ByteSource(line), moves)))
        if format == CODEX:
            lines = codex_lines(source, self._moves())
            if not text:
                return lines
            return chain(lines, appended(source, orientation.codex_lines(text, self.now)))
        if format == OPENCODE:
            return [documents.opencode_branch(source, self.session, text, self.now)]
        return [documents.with_message(source, format, text)] if text else chunks(source)

    def _moves(self) -> Moves:
        old = self.snapshot.project
        moved = bool(old and self.project and self.project != old)
        names = frozenset(
            side.name for side in self.snapshot.sides if side.name.startswith(SIDE_FOLDERS)
        )
        origin = origin_of(self.store.history, self.snapshot) if names else ""
        return Moves(
            session=self.session,
            project=(old, self.project) if moved else None,
            folder=(origin.removesuffix(".jsonl"), str(self._folder)) if origin else None,
            files=names,
        )

    @property
    def _folder(self) -> Path:
        return self.path.with_suffix("")

    def _files(self) -> list[tuple[Path, Iterable[bytes]]]:
        """Return the files beside the branch: where they go, and their bytes."""
        if self.format != CLAUDE_CODE:
            return []
        history = self.store.history
        files: list[tuple[Path, Iterable[bytes]]] = []
        for side in self.snapshot.sides:
            if not is_safe(side.name):
                continue
            folder, _, name = side.name.partition("/")
            path = self.path.parent / name if folder == AGENTS else self._folder / side.name
            if os.path.lexists(path):
                continue
            data: Iterable[bytes] = history.read(side)
            if folder == "subagents" and name.endswith(".jsonl"):
                data = claude_lines(ByteSource(b"".join(data)), self._moves())
            files.append((path, data))
        return files

    def _branch(self, sha256: bytes, report: TrimReport | None, files: int) -> Branch:
        row = BranchRow(
            id=new_id(),
            snapshot=self.snapshot.id,
            session=self.session,
            name=self.wish.name,
            options=_options_text(self.wish, self.path),
            sha256=sha256,
        )
        resume = resume_words(self.format, self.session, self.path)
        return Branch(
            row=row, path=self.path, project=self.project, files=files, report=report, resume=resume
        )


def _options_text(wish: Wish, path: Path) -> str:
    """Return how a branch was made as JSON."""
    said: dict[str, Json] = {"trim": wish.trim is not None}
    if wish.trim is not None:
        names = (
            "threshold", "keep_last", "requests", "stub_errors", "stub_local_output",
            "strip_user_images", "keep_thinking", "drop_inactive",
        )  # fmt: skip
        said |= {name: getattr(wish.trim, name) for name in names}
        said |= {"tools": dict(wish.trim.tools), "target": wish.target}
    said["orientation"] = bool(wish.orientation)
    if wish.out is not None:
        said["out"] = str(path)
    return json.dumps(said)
