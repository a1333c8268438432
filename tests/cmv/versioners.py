"""Programs of other processes: ``python -m tests.cmv.versioners WHAT HOME STORE SESSION WORD``.

What they did they say on standard output, unbuffered, a line an event.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from recap.cmv.branch import Wish, branch
from recap.cmv.homes import Homes
from recap.cmv.names import find_snapshot
from recap.cmv.options import TrimOptions
from recap.cmv.removing import collect, delete
from recap.cmv.restoring import restore
from recap.cmv.snapshot import Labels, look, take
from recap.store import Store

if TYPE_CHECKING:
    from recap.store import SnapshotRow


def say(*words: object) -> None:
    os.write(1, (" ".join(map(str, words)) + "\n").encode())


def snapshot(home: Path, store: Path, session: Path, name: str) -> None:
    """Take one snapshot."""
    with Store.open(store) as opened:
        say("taken", take(opened, look(session), Labels(name=name)).id)


def serve(home: Path, store: Path, session: Path, word: str) -> None:
    """For each ``WHAT NAME`` on standard input do it in a child, which says when it begins and ends."""
    for line in sys.stdin:
        what, name = line.split()
        child = os.fork()
        if child == 0:
            with Store.open(store) as opened:
                row = find_snapshot(opened.history, name) if what != "snapshot" else None
                say("begin", os.getpid())
                _do(what, name, row, opened, home, session)
                say("end")
            os._exit(0)
        os.waitpid(child, 0)
        say("gone")


def _do(
    what: str, name: str, row: SnapshotRow | None, store: Store, home: Path, session: Path
) -> None:
    if row is None:
        take(store, look(session), Labels(name=name))
    elif what == "branch":
        wish = Wish(trim=TrimOptions(keep_last=0, yes=True), orientation="go on")
        branch(store, row, wish, Homes(home, {}))
    elif what == "restore":
        restore(store, row, home / "restored" / f"{os.getpid()}.jsonl")
    elif what == "delete":
        delete(store.history, row)
    elif what == "gc":
        collect(store, grace_seconds=0)


if __name__ == "__main__":
    _, what, home, store, session, word = sys.argv
    globals()[what](Path(home), Path(store), Path(session), word)
