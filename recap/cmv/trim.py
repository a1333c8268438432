"""A session trimmed into a new file: every word of the conversation stays, dead weight goes.

Two passes over the session, each line proved before it is written, and what was written read again
before it gets its name. The session itself is never changed.
"""

from __future__ import annotations

import hashlib
import os
import stat
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING, BinaryIO

from recap.cmv.contents import ASSISTANT, TEXT, USER
from recap.cmv.index import Index
from recap.cmv.options import TrimOptions
from recap.cmv.plan import DROPPED, Plan
from recap.cmv.report import COUNTS, TrimReport
from recap.cmv.stubs import is_stub
from recap.cmv.writing import Writer, Written
from recap.errors import InputError, InvalidContextError, UsageError, shown_path
from recap.transcript.sources import CHUNK_BYTES, ByteSource, open_source

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from recap.transcript.sources import Sized

READ_BYTES = 8_000_000
"""Bytes of a session up to which both are read again: above, it would double the time."""

DEFAULTS = TrimOptions()
PRIVATE = 0o600


def trim(
    source: Path | Sized,
    out: Path | BinaryIO | None,
    options: TrimOptions = DEFAULTS,
    *,
    session_id: str | None = None,
    importance: Mapping[str, float] | None = None,
    target: float | None = None,
) -> TrimReport:
    """Write a trimmed copy of a Claude Code session, and return what was done.

    Args:
        source: The session: its file, or a handle on its bytes.
        out: The new file, which appears whole or not at all; or a stream; None writes nothing.
        options: How it is trimmed.
        session_id: Id that the lines carry instead of the session's; None leaves them.
        importance: Of each block of ``recap.blocks`` by its id, support edges folded in. Results of
            blocks that are not in it count as 0.
        target: Share of the active characters that is to go, above 0 and below 1: results become
            stubs in ascending importance per character until it is reached. None: all that are
            longer than the threshold do.

    Raises:
        UsageError: ``out`` is the session itself or no place for a file, the target is out of its
            range, or more than 95 % would go and ``options.yes`` is not set; not where nothing is
            written.
        InputError: The session cannot be read, or holds no conversation of Claude Code.
        InvalidContextError: The copy failed its check; nothing was written.
    """
    if target is not None and not 0 < target < 1:
        raise UsageError(f"target takes a share above 0 and below 1; got {target}")
    mode = PRIVATE
    if isinstance(source, Path):
        if isinstance(out, Path):
            mode = _check_out(source, out)
        source = open_source(source)
    plan = _plan(source, options)
    if target is not None:
        from recap.cmv.importance import by_node

        known = by_node(source, plan, importance) if importance else None
        plan.spare_results(known, target)
    plan.secure()
    with _target(out, mode) as stream:
        writer = Writer(plan, session_id)
        written = writer.write(stream.write)
        _prove_bytes(written, stream)
        if plan.index.unreadable or source.size <= READ_BYTES:
            _prove_reading(source, stream, options)
        report = _report(plan, writer, written)
        if out is not None and report.is_drastic and not options.yes:
            raise UsageError(
                f"this would remove {100 * report.reduction:.1f} % of what is sent; confirm with --yes"
            )
    return report


def _plan(source: Sized, options: TrimOptions) -> Plan:
    index = Index(source, options).read()
    links = index.links
    if not links.is_queued and not any(map(links.is_spoken, range(len(links)))):
        index = Index(source, options, of_side_chains=True).read()
    plan = Plan(index)
    if not plan.chain.live:
        if not source.size:
            raise InputError(f"{source.name} is empty: there is nothing to trim")
        raise InputError(
            f"{source.name}: holds no conversation of Claude Code; trim reads its logs"
        )
    return plan


def _prove_bytes(written: Written, stream: IO[bytes]) -> None:
    """Raise InvalidContextError unless the bytes that can be read are those that were proved."""
    whole = hashlib.sha256()
    stream.flush()
    stream.seek(0)
    while piece := stream.read(CHUNK_BYTES):
        whole.update(piece)
    if whole.digest() != written.sha256:
        raise InvalidContextError("the disk holds other bytes than were written; nothing was kept")


def _prove_reading(source: Sized, stream: IO[bytes], options: TrimOptions) -> None:
    """Raise InvalidContextError unless the reader finds the same conversation in both.

    Each line and the chain of lines are proved already. The reader goes further: it mends torn lines,
    whatever that makes of the lines around them, so sessions with such lines are always read.
    """
    stream.seek(0)
    if _conversation(ByteSource(stream.read()), options) != _conversation(source, options):
        raise InvalidContextError(
            "the session is damaged so that a trim would change what is read of it; nothing was "
            "written. `recap check SESSION --repair FIXED` mends it first"
        )


def _conversation(source: Sized, options: TrimOptions) -> list[tuple[str, str, bytes]]:
    """Return texts and requests of the live context, in order, but for those that may change."""
    from recap.transcript import claude_code

    kinds = ("text", "call") if options.requests == "keep" else ("text",)
    changing = "local" if options.stub_local_output else None
    has_stubs = options.strip_user_images  # they are texts among the person's own
    return [
        (message.role, part.kind, part.digest)
        for message in claude_code.read(source).messages
        if message.is_active
        for part in message.parts
        if part.kind in kinds
        and part.author != changing
        and not (has_stubs and part.kind == "text" and is_stub(part.text()))
    ]


def _report(plan: Plan, writer: Writer, written: Written) -> TrimReport:
    index, counts = plan.index, plan.counts + writer.counts
    counts["boundaries_found"] = bool(plan.boundary)
    counts["open_calls"] = plan.pairs.open_calls
    counts["unreadable_lines"] = index.unreadable
    for at in plan.chain.live:
        flags = index.flags[at]
        if plan.state[at] & DROPPED:
            continue
        if flags & USER:
            counts["user_texts"] += flags // TEXT
        elif flags & ASSISTANT:
            counts["assistant_texts"] += flags // TEXT
            counts["tool_requests"] += plan.links.first_tool[at + 1] - plan.links.first_tool[at]
    return TrimReport(
        bytes_in=index.source.size,
        bytes_out=written.size,
        lines_in=len(index.fates),
        lines_out=written.lines,
        active_chars_before=sum(index.cost[at] for at in plan.chain.live),
        active_chars_after=written.active_chars,
        sha256=written.sha256,
        versions=tuple(index.versions),
        agents=tuple(index.agents),
        counts={name: int(counts[name]) for name in COUNTS},
    )


def _check_out(source: Path, out: Path) -> int:
    """Return the mode of a copy; UsageError when it would replace the session."""
    with suppress(OSError):
        status = source.stat()
        if out.exists() and os.path.samestat(status, out.stat()):
            raise UsageError(f"{shown_path(out)} is the session itself, which is never changed")
        if stat.S_ISREG(status.st_mode):
            return stat.S_IMODE(status.st_mode) & 0o777
    return PRIVATE


@contextmanager
def _target(out: Path | BinaryIO | None, mode: int) -> Iterator[IO[bytes]]:
    """Yield a temporary file; without an error it becomes ``out`` when it is left."""
    if not isinstance(out, Path):
        import tempfile

        with tempfile.TemporaryFile() as stream:
            yield stream
            stream.seek(0)
            while out is not None and (piece := stream.read(CHUNK_BYTES)):
                out.write(piece)
        return
    target = out.resolve()
    if target.is_dir():
        raise UsageError(f"{shown_path(out)} is a folder; name a file")
    if not target.parent.is_dir():
        raise UsageError(f"there is no folder {shown_path(target.parent)}; make it first")
    temporary = target.with_name(f".recap-{os.urandom(8).hex()}")
    try:
        with open(
            temporary, "x+b", opener=lambda name, flags: os.open(name, flags, mode)
        ) as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        temporary.replace(target)
    except BaseException as err:
        if isinstance(err, OSError) and err.filename == str(temporary):
            err.filename = str(out)
        temporary.unlink(missing_ok=True)
        raise
    folder = os.open(target.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
