"""Programs of other processes: ``python -m tests.store.writers WHAT FOLDER ...``.

What they did they say on standard output, unbuffered, a line an event.
"""

from __future__ import annotations

import dataclasses
import os
import sys
from itertools import count
from pathlib import Path

from recap.errors import ConflictError
from recap.store import SessionRow, Store
from recap.store.repair import repair
from tests.store.factories import TENANT, chosen, fill, key, row, snapshot


def say(*words: object) -> None:
    os.write(1, (" ".join(map(str, words)) + "\n").encode())


def graph_of(number: int, rev: int) -> bytes:
    """Return bytes over many pages that tell which save they are of."""
    return b"%d:%d " % (number, rev) * 5000


def increment(folder: Path, times: int, sessions: int) -> None:
    """Count up in shared sessions: load, add one, save, again after a conflict."""
    with Store.open(folder) as store:
        for step in range(times):
            while True:
                number = step % sessions
                here = key(number)
                old = store.load_session(TENANT, here) or SessionRow(tenant=TENANT, id=here)
                new = dataclasses.replace(old, graph=b"%d" % (int(old.graph or b"0") + 1))
                try:
                    store.save_session(
                        new, selection=chosen(new.rev, number), durable=step % 2 == 0
                    )
                except ConflictError:
                    continue
                break
    say("done", times)


def save_forever(folder: Path) -> None:
    """Say ``begin`` when a transaction has begun and ``saved NUMBER REV`` when it is committed."""
    store = Store.open(folder)
    store._database.write(lambda _: None)
    connection = store._database._written.connection
    assert connection is not None
    connection.set_trace_callback(lambda text: say("begin") if text.startswith("BEGIN") else None)
    for step in count():
        number = step % 5
        old = store.load_session(TENANT, key(number)) or row(number)
        new = dataclasses.replace(old, graph=graph_of(number, old.rev + 1))
        turn = chosen(old.rev, number)
        saved = store.save_session(new, selection=turn, index=new.graph, durable=step % 3 > 0)
        say("saved", number, saved.rev)
        if step % 7 == 6:
            chain = store.history.put_chain(b"%d\n" % number + new.graph * 3)
            id = f"{number}-{saved.rev}"
            store.history.add_snapshot(snapshot(chain, id))
            say("taken", id)


def open_forever(folder: Path) -> None:
    """Make one store after another."""
    for number in count():
        say("begin", number)
        Store.open(folder / str(number)).close()
        say("made", number)


def repair_forever(folder: Path) -> None:
    """Damage and repair a store again and again."""
    with Store.open(folder) as store:
        fill(store)
    for step in count(1):
        with (folder / "recap.db").open("r+b") as file:
            file.seek(4096 * (step * 7 % 20))
            file.write(os.urandom(3000))
        say("begin")
        repair(folder)
        say("repaired")


if __name__ == "__main__":
    what, where, *rest = sys.argv[1:]
    globals()[what](Path(where), *map(int, rest))
