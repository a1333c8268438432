"""What a store says on a full disk: ``python -m tests.store.full_disk FOLDER``, a JSON line a step.

The folder is a file system of its own of a megabyte.
"""

from __future__ import annotations

import json
import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from recap.errors import StoreError
from recap.store import Store
from recap.store.repair import repair
from recap.store.verify import verify
from tests.store.factories import fill, row

if TYPE_CHECKING:
    from collections.abc import Callable


def tell(step: str, work: Callable[[], Any]) -> None:
    try:
        said = repr(work())
    except StoreError as err:
        said = str(err)
    sys.stdout.write(json.dumps([step, said]) + "\n")


def use(folder: Path) -> None:
    with Store.open(folder) as store:
        store.save_session(row(500, graph=os.urandom(100_000)))


def main(disk: Path) -> None:
    folder = disk / "store"
    with Store.open(folder) as store:
        fill(store, 2)
    before = (folder / "recap.db").read_bytes()
    with suppress(OSError), (disk / "filler").open("wb", buffering=0) as filler:
        while True:
            filler.write(bytes(4096))
    tell("use", lambda: use(folder))
    tell("verify", lambda: verify(folder))
    tell("repair", lambda: repair(folder))
    damaged = b"x" * 500 + before[500:]
    (folder / "recap.db").write_bytes(damaged)
    tell("repair damaged", lambda: repair(folder))
    tell("kept", lambda: (folder / "recap.db").read_bytes() == damaged)
    tell("left", lambda: sorted(path.name for path in folder.iterdir() if path.is_dir()))
    (folder / "recap.db").write_bytes(before)
    (disk / "filler").unlink()
    tell("whole", lambda: verify(folder))
    tell("used", lambda: use(folder))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
