"""The study of a folder: which sessions count, in which half, and the rows of each.

Every file is read once to find out what it is, so that a session that lies there twice counts once, in
one half, whatever half is asked for.
"""

from __future__ import annotations

import os
import time
from collections import defaultdict
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal, TypeAlias

from recap.errors import InputError, RecapError, UnknownFormatError, shown_path
from recap.study.catalogue import methods_of
from recap.study.evaluate import Row, evaluate
from recap.study.judge import judge_of
from recap.study.transitions import is_test
from recap.study.workers import Workers
from recap.transcript.formats import open_log
from recap.transcript.model import HUMAN_AUTHORS, digest
from recap.turns import boundaries

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from pathlib import Path

    from recap.config import Settings
    from recap.transcript.model import Message

Half: TypeAlias = Literal["dev", "test", "all"]
HALVES: tuple[Half, ...] = ("dev", "test", "all")

SPEAKERS = HUMAN_AUTHORS | {"agent"}

LEAST_REQUESTS = 2
"""A session of one request has no next turn that a history could have been shortened for."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What is run.

    Attributes:
        methods: Names of the methods, see ``catalogue``.
        retentions: Shares of the history to keep, as text.
        settings: Coefficients of the recipes, and the observer.
        half: Sessions that are run.
        judge: Folder of a model that judges contexts; "" for none.
        judge_cache: Folder of its verdicts, "" for none.
    """

    methods: tuple[str, ...]
    retentions: tuple[str, ...]
    settings: Settings
    half: Half = "all"
    judge: str = ""
    judge_cache: str = ""


@dataclass(frozen=True, slots=True)
class Found:
    """A session that was found.

    Attributes:
        path: Its file.
        name: What it is called: its path below the folder.
        key: Hash of what was said up to its second request: the same for the same session in
            another file or format, where calls and results may be cut in other ways. The name
            where there is no second one.
        requests: How many requests the person made.
        size: Bytes of the file.
        compacted: How many of the requests stand before a later compaction by the client.
    """

    path: Path
    name: str
    key: str
    requests: int
    size: int
    compacted: int = 0

    @property
    def half(self) -> Half:
        """The half it belongs to."""
        return "test" if is_test(self.path) else "dev"


@dataclass(frozen=True, slots=True)
class Unused:
    """What does not count, and why.

    Attributes:
        name: The file, or a folder that cannot be listed.
        reason: Why, in a few words.
        is_failure: It could not be read, whatever it is; otherwise it is no session.
    """

    name: str
    reason: str
    is_failure: bool = False


@dataclass(frozen=True, slots=True)
class SessionRun:
    """Rows of a session; none where its history was too short at every request."""

    name: str
    half: Half
    rows: tuple[Row, ...]


@dataclass(frozen=True, slots=True)
class Study:
    """What was run.

    Attributes:
        plan: As it was asked for.
        sessions: Sessions with rows, by name.
        short: Names of sessions without: one request, or a short history at each.
        other_half: Sessions of the half that was not asked for.
        duplicates: File -> the file of the same session that counts.
        unread: Files that are no sessions, files and folders that cannot be read.
        seconds: Wall clock.
        jobs: Processes.
        compacted: Requests before a later compaction of their log, in sessions of the half.
    """

    plan: Plan
    sessions: tuple[SessionRun, ...]
    short: tuple[str, ...]
    other_half: int
    duplicates: Mapping[str, str]
    unread: tuple[Unused, ...]
    seconds: float
    jobs: int
    compacted: int = 0


def run(
    files: Mapping[str, Path],
    plan: Plan,
    jobs: int = 1,
    tell: Callable[[str], None] = lambda _: None,
    closed: Mapping[str, str] = MappingProxyType({}),
) -> Study:
    """Return the rows of all sessions among the files; the same whatever ``jobs``.

    Args:
        files: Name -> file.
        plan: What to run.
        jobs: Processes.
        tell: Is told how far the work is.
        closed: Folder -> why it cannot be listed.

    Raises:
        InputError: No file counts.
        MethodError: A method cannot run here.
    """
    started = time.perf_counter()
    with Workers(min(jobs, max(len(files), 1))) as workers:
        seen = list(workers.each(looked_at, list(files.items())))
        found = [one for one in seen if isinstance(one, Found)]
        unread = [one for one in seen if isinstance(one, Unused)]
        unread += [Unused(name, reason, is_failure=True) for name, reason in closed.items()]
        unread.sort(key=lambda one: (not one.is_failure, one.name))
        counted, duplicates = distinct(found)
        mine = [one for one in counted if plan.half in ("all", one.half)]
        wanted = [one for one in mine if one.requests >= LEAST_REQUESTS]
        if not wanted:
            raise InputError(_nothing(found, unread, plan.half))
        # The longest first, so that no process ends up alone with it.
        wanted.sort(key=lambda one: (-one.size, one.name))
        runs = []
        for done in workers.each(_run, [(one, plan) for one in wanted]):
            runs.append(done)
            tell(_progress(len(runs), len(wanted), time.perf_counter() - started))
    runs.sort(key=lambda one: one.name)
    if not any(one.rows for one in runs):
        raise InputError(
            f"none of {len(mine)} sessions has a history long enough to shorten when a request came"
        )
    return Study(
        plan=plan,
        sessions=tuple(one for one in runs if one.rows),
        short=tuple(sorted({one.name for one in mine} - {one.name for one in runs if one.rows})),
        other_half=len(counted) - len(mine),
        duplicates=duplicates,
        unread=tuple(unread),
        seconds=time.perf_counter() - started,
        jobs=jobs,
        compacted=sum(one.compacted for one in mine),
    )


def distinct(found: Iterable[Found]) -> tuple[list[Found], dict[str, str]]:
    """Return the sessions that count, by name, and for each other file the one that does.

    Of the files of one session the one with most requests counts, of those the one that lies least
    deep, of those the first by name.
    """
    same: defaultdict[str, list[Found]] = defaultdict(list)
    for one in sorted(found, key=lambda one: (-one.requests, one.name.count(os.sep), one.name)):
        same[one.key].append(one)
    counted = sorted((first for first, *_ in same.values()), key=lambda one: one.name)
    others = {one.name: first.name for first, *rest in same.values() for one in rest}
    return counted, dict(sorted(others.items()))


def looked_at(named: tuple[str, Path]) -> Found | Unused:
    """Return what a file is, by its name."""
    name, path = named
    try:
        messages = open_log(path).messages
        size = path.stat().st_size
    except UnknownFormatError as err:
        told = str(err).removeprefix(f"{shown_path(path)}: ")
        return Unused(name, told.partition(" (tried")[0])
    except RecapError as err:
        told = str(err).removeprefix(f"{shown_path(path)}: ")
        return Unused(name, told, is_failure=isinstance(err.__cause__, OSError))
    except OSError as err:
        return Unused(name, err.strerror or type(err).__name__, is_failure=True)
    if not messages:
        return Unused(name, "no message in it" if size else "is empty")
    opened = [each.message for each in boundaries(messages) if not each.is_steering]
    key = _said(messages[: opened[1] + 1]) if len(opened) > 1 else name
    replaced = max((at for at, each in enumerate(messages) if not each.is_active), default=-1)
    compacted = sum(at <= replaced for at in opened[1:])
    return Found(path, name, key, len(opened), size, compacted)


def _said(messages: Sequence[Message]) -> str:
    """Return a hash of the words of person and agent."""
    parts = (part for message in messages for part in message.parts)
    said = (p.text().strip() for p in parts if p.kind == "text" and p.author in SPEAKERS)
    return digest(*said).hex()


def _run(task: tuple[Found, Plan]) -> SessionRun:
    """Return the rows of a session."""
    found, plan = task
    judge = judge_of(plan.judge, plan.judge_cache) if plan.judge else None
    methods = methods_of(plan.methods)
    rows = evaluate(found.path, methods, plan.retentions, plan.settings, judge)
    return SessionRun(found.name, found.half, tuple(replace(r, session=found.name) for r in rows))


def _progress(done: int, total: int, seconds: float) -> str:
    left = seconds / done * (total - done)
    return f"{done} of {total} sessions, {seconds:.0f} s, about {left:.0f} s to go"


def _nothing(found: Sequence[Found], unread: Sequence[Unused], half: Half) -> str:
    if found:
        which = "" if half == "all" else f" of the {half} half"
        return f"no session{which} with two requests among {len(found)}: nothing to compare"
    why = f": {unread[0].name}: {unread[0].reason}" if unread else ""
    return f"no session to study among {len(unread)} files{why}"
