"""Snapshots given back: whole, block by block; and bytes that nobody needs."""

from __future__ import annotations

import json
import stat
from typing import TYPE_CHECKING

import pytest

from recap.cmv.options import TrimOptions
from recap.cmv.removing import collect, delete
from recap.cmv.restoring import branch_file, is_first, originals, restore
from recap.errors import InputError, StoreError, UsageError
from tests.cmv.test_branch import CODEX, SESSION, with_output
from tests.cmv.worlds import dumped, line, tool_steps
from tests.store.factories import execute, rows_in

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cmv.worlds import World


def test_a_restored_session_is_the_original_with_its_files(world: World, tmp_path: Path) -> None:
    path = with_output(world)
    row = world.snap(path, "one")
    done = restore(world.store, row, tmp_path / "out" / "s.jsonl")
    assert done.path.read_bytes() == path.read_bytes()
    assert (tmp_path / "out/s/tool-results/a.txt").read_text() == "whole output"
    assert len(done.files) == 2
    assert stat.S_IMODE(done.path.stat().st_mode) == 0o600
    alone = restore(world.store, row, tmp_path / "alone.jsonl", with_files=False)
    assert alone.files == ()


def test_a_file_that_is_there_is_replaced_only_when_told(world: World, tmp_path: Path) -> None:
    row = world.snap(world.session(SESSION), "one")
    out = tmp_path / "s.jsonl"
    out.write_text("mine")
    with pytest.raises(UsageError, match="is there already"):
        restore(world.store, row, out)
    assert out.read_text() == "mine"
    restore(world.store, row, out, replace=True)
    assert out.read_bytes() == SESSION


def test_a_dry_run_proves_and_writes_nothing(world: World, tmp_path: Path) -> None:
    row = world.snap(world.session(SESSION), "one")
    restore(world.store, row, tmp_path / "s.jsonl", dry_run=True)
    assert not (tmp_path / "s.jsonl").exists()
    execute(world.store, "UPDATE objects SET bytes = zeroblob(length(bytes))")
    with pytest.raises(StoreError):
        restore(world.store, row, tmp_path / "s.jsonl", dry_run=True)


def test_what_is_damaged_is_not_restored_in_part(world: World, tmp_path: Path) -> None:
    row = world.snap(world.session(SESSION), "one")
    execute(world.store, "UPDATE objects SET bytes = zeroblob(length(bytes))")
    with pytest.raises(StoreError):
        restore(world.store, row, tmp_path / "s.jsonl")
    assert not [each for each in tmp_path.iterdir() if each.name not in ("home", "store")]


def test_the_first_snapshot_of_a_session_is_known(world: World) -> None:
    path = world.session(SESSION)
    one, two = world.snap(path, "one"), world.snap(path, "two")
    other = world.snap(world.session(SESSION), "other")
    assert [is_first(world.store.history, row) for row in (one, two, other)] == [True, False, True]


def test_every_stub_leads_to_what_it_stands_for(world: World) -> None:
    blocks = [{"type": "text", "text": "x" * 900}, {"type": "text", "text": "y" * 900}]
    lines = tool_steps(["a" * 900, "b" * 900])
    lines[4]["message"]["content"][0]["content"] = blocks
    lines[1]["message"]["content"][1] |= {
        "name": "Write", "input": {"file_path": "/f", "content": "c" * 900}
    }  # fmt: skip
    row = world.snap(world.session(dumped(lines)), "one")
    options = TrimOptions(keep_last=0, requests="writes", yes=True)
    data = world.branch(row, trim=options).path.read_bytes()
    assert data.count(f"restore: recap show {row.id[:12]} t0]".encode()) == 2
    history = world.store.history
    found = {each.kind: each for each in originals(history, row, "t0")}
    assert found["result"].text == "a" * 900
    assert found["call"].value == {"file_path": "/f", "content": "c" * 900}
    assert originals(history, row, "t1")[0].value == blocks
    assert originals(history, row, "t1")[0].text == "x" * 900 + "\n" + "y" * 900


def test_an_odd_id_is_found_by_its_hash_and_a_line_by_its_uuid(world: World) -> None:
    lines = tool_steps(["a" * 900])
    odd = "an odd [id]"
    lines[1]["message"]["content"][1]["id"] = odd
    lines[2]["message"]["content"][0]["tool_use_id"] = odd
    row = world.snap(world.session(dumped(lines)), "one")
    data = world.branch(row, trim=TrimOptions(keep_last=0, yes=True)).path.read_bytes()
    name = data.split(f"recap show {row.id[:12]} ".encode())[1].split(b"]")[0].decode()
    assert name.startswith("sha256:")
    assert originals(world.store.history, row, name)[0].text == "a" * 900
    assert originals(world.store.history, row, "u0")[0].text == "please look"


def test_a_block_is_found_by_the_beginning_of_its_id(world: World) -> None:
    from recap.blocks.segment import segment
    from recap.transcript.formats import read_bytes

    row = world.snap(world.session(SESSION), "one")
    block = segment(read_bytes(SESSION).messages).blocks[0]
    (found,) = originals(world.store.history, row, block.id[:10])
    assert (found.kind, found.text) == ("block", "please look")
    for id in ("nothing", block.id[:7], ""):
        with pytest.raises(UsageError, match="holds nothing"):
            originals(world.store.history, row, id)


def test_calls_of_other_agents_are_found_too(world: World, tmp_path: Path) -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    path = tmp_path / "list.json"
    path.write_text(json.dumps([
        {"role": "user", "content": "hi"}, {"role": "assistant", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": "out"},
    ]))  # fmt: skip
    kinds = {each.kind: each.text for each in originals(
        world.store.history, world.snap(path, "one"), "c1"
    )}  # fmt: skip
    assert kinds["result"] == "out"


def test_the_file_of_a_branch_is_found_while_it_is_there(world: World, tmp_path: Path) -> None:
    row = world.snap(world.session(SESSION), "one")
    made = world.branch(row)
    assert branch_file(world.store.history, made.row, world.homes) == made.path
    path = tmp_path / "rollout.jsonl"
    path.write_bytes(CODEX)
    codex = world.branch(world.snap(path, "two"))
    assert branch_file(world.store.history, codex.row, world.homes) == codex.path
    out = tmp_path / "list"
    plain = tmp_path / "plain.json"
    plain.write_text('[{"role": "user", "content": "hi"}]')
    listed = world.branch(world.snap(plain, "three"), out=out)
    assert branch_file(world.store.history, listed.row, world.homes) == out
    made.path.unlink()
    with pytest.raises(UsageError, match="is not found"):
        branch_file(world.store.history, made.row, world.homes)


def test_bytes_nobody_needs_go_after_the_grace(world: World) -> None:
    path = world.session(dumped([line("user", 0, "x" * 9000)]))
    row = world.snap(path, "one")
    world.snap(world.session(SESSION), "two")
    delete(world.store.history, row)
    objects = rows_in(world.store, "objects")
    assert collect(world.store).objects == 0
    assert collect(world.store, grace_seconds=0, dry_run=True).objects > 0
    assert rows_in(world.store, "objects") == objects
    assert collect(world.store, grace_seconds=0).objects > 0
    assert rows_in(world.store, "objects") < objects
    assert world.store.verify() == ()
    assert [world.bytes_of(each) for each in world.store.history.snapshots()] == [SESSION]
    with pytest.raises(UsageError, match="grace"):
        collect(world.store, grace_seconds=-1)


def test_with_a_short_grace_nobody_else_may_have_the_store_open(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    from recap.store import Store

    monkeypatch.setattr("recap.store.files.LOCK_SECONDS", 0.05)
    world.snap(world.session(SESSION), "one")
    monkeypatch.setattr(
        "recap.store.files.Lock.change.__kwdefaults__", {"seconds": 0.05}, raising=False
    )
    with Store.open(world.store.folder):
        with pytest.raises(StoreError, match="in use"):
            collect(world.store, grace_seconds=0)
        assert collect(world.store).objects == 0
    collect(world.store, grace_seconds=0)


def test_a_restore_into_a_place_that_is_no_folder_is_an_error(world: World, tmp_path: Path) -> None:
    row = world.snap(world.session(SESSION), "one")
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="cannot be written"):
        restore(world.store, row, tmp_path / "file" / "x")
