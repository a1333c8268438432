"""Programs of other processes: ``python -m tests.cmv.versioners WHAT HOME STORE SESSION ...``.

What they did they say on standard output, unbuffered, a line an event.
"""

from __future__ import annotations

import os
import sys
from itertools import count
from pathlib import Path

from recap.cmv.branch import Wish
from recap.cmv.fork import fork
from recap.cmv.homes import Homes
from recap.cmv.options import TrimOptions
from recap.cmv.removing import collect, delete
from recap.cmv.restoring import restore
from recap.cmv.snapshot import Labels, look, take
from recap.store import Store


def say(*words: object) -> None:
    os.write(1, (" ".join(map(str, words)) + "\n").encode())


def snapshot(home: Path, store: Path, session: Path, name: str) -> None:
    """Take one snapshot."""
    with Store.open(store) as opened:
        say("taken", take(opened, look(session), Labels(name=name)).id)


def versions_forever(home: Path, store: Path, session: Path, begin: str) -> None:
    """Fork, restore, delete and collect without end; a writer begins after ``begin``."""
    homes = Homes(home, {})
    options = TrimOptions(keep_last=0, yes=True)
    with Store.open(store) as opened:
        history = opened.history
        for step in count(int(begin)):
            name = f"s{step}"
            say("begin", "fork", name)
            wish = Wish(trim=options if step % 2 else None, orientation="go on")
            row, made = fork(opened, look(session), Labels(name=name), wish, homes)
            say("forked", row.id, made.path)
            say("begin", "restore", name)
            restore(opened, row, home / f"{name}.jsonl")
            say("restored", home / f"{name}.jsonl")
            if step % 3 == 0:
                say("begin", "delete", name)
                delete(history, row)
                collect(opened)
                say("deleted", row.id)


if __name__ == "__main__":
    _, what, home, store, session, word = sys.argv
    globals()[what](Path(home), Path(store), Path(session), word)
