"""A folder that refuses files is told by the name wanted: nobody knows the one a file has until then."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from recap.cli.writing import write_whole
from recap.cmv.restoring import restore
from recap.cmv.trim import trim
from recap.errors import InputError
from tests.cmv.worlds import dumped, tool_steps

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.cmv.worlds import World

WANTED = Path("/proc/wanted.jsonl")  # refuses files, whoever asks
DATA = dumped(tool_steps(["a" * 2000]))

pytestmark = pytest.mark.skipif(not Path("/proc/self").exists(), reason="there is no /proc here")


def test_a_branch_and_a_restored_session(world: World) -> None:
    row = world.snap(world.session(DATA), "one")
    makers: tuple[Callable[[], object], ...] = (
        lambda: world.branch(row, out=WANTED),
        lambda: restore(world.store, row, WANTED),
    )
    for make in makers:
        with pytest.raises(InputError, match=r"^/proc/wanted\.jsonl: cannot be written: No such"):
            make()
    assert world.store.history.unfinished() == []


def test_a_trimmed_session_and_a_result(tmp_path: Path) -> None:
    source = tmp_path / "s.jsonl"
    source.write_bytes(DATA)
    makers: tuple[Callable[[], object], ...] = (
        lambda: trim(source, WANTED),
        lambda: write_whole(WANTED, b"data"),
    )
    for make in makers:
        with pytest.raises(OSError, match="No such file") as caught:
            make()
        assert caught.value.filename == str(WANTED)
