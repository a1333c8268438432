"""Snapshots: a session as it stands at one instant, kept for good."""

from __future__ import annotations

import os
import stat
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from recap.cmv.facts import facts_of
from recap.cmv.live import open_live
from recap.cmv.snapshot import Labels, free_name, look, take
from recap.errors import InputError, UsageError
from recap.transcript.formats import UnknownFormatError
from recap.transcript.sources import ByteSource
from tests.cmv.worlds import PROJECT, dumped, line, tool_steps
from tests.store.factories import rows_in

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.cmv.worlds import World

TWO = dumped([line("user", 0, "hi"), line("assistant", 1, [{"type": "text", "text": "ho"}])])


def age(path: Path, seconds: float = 1000) -> Path:
    """Let a session be old: no client holds it."""
    then = time.time() - seconds
    os.utime(path, (then, then))
    return path


def test_a_snapshot_gives_back_the_bytes_and_says_what_they_are(world: World) -> None:
    path = age(world.session(TWO))
    row = world.snap(path, "one", description="first", tags=("a", "b"))
    assert world.bytes_of(row) == TWO
    assert (row.name, row.description, row.tags) == ("one", "first", ("a", "b"))
    assert (row.agent, row.session, row.project) == ("claude-code", path.stem, PROJECT)
    assert (row.versions, row.messages) == (("2.1.197",), (("assistant", 1), ("user", 1)))
    assert (row.lines, row.size, row.parent, row.is_active) == (2, len(TWO), None, False)


def test_the_same_bytes_twice_are_two_snapshots_and_kept_once(world: World) -> None:
    path = world.session(TWO)
    one = world.snap(path, "one")
    before = rows_in(world.store, "objects")
    two = world.snap(path, "two")
    assert one.id != two.id
    assert one.root == two.root
    assert rows_in(world.store, "objects") == before


def test_the_session_is_not_touched(world: World) -> None:
    path = age(world.session(TWO))
    before = path.stat()
    world.snap(path, "one")
    after = path.stat()
    assert (before.st_mtime_ns, before.st_mode) == (after.st_mtime_ns, after.st_mode)


@pytest.mark.parametrize("tail", [b'{"type":"us', b'{"type":"user"', b"12"])
def test_of_a_live_session_the_last_line_that_is_not_whole_is_left(
    world: World, tail: bytes
) -> None:
    row = world.snap(world.session(TWO + tail), "one")
    assert world.bytes_of(row) == TWO
    assert row.is_active


def test_a_last_line_that_is_whole_but_has_no_end_is_kept(world: World) -> None:
    row = world.snap(world.session(TWO + b'{"type":"mode"}'), "one")
    assert world.bytes_of(row) == TWO + b'{"type":"mode"}'
    assert row.lines == 3


def test_of_a_session_at_rest_every_byte_is_kept(world: World) -> None:
    row = world.snap(age(world.session(TWO + b'{"type":"us')), "one")
    assert world.bytes_of(row) == TWO + b'{"type":"us'


def test_what_is_appended_meanwhile_belongs_to_the_next_snapshot(world: World) -> None:
    path = world.session(TWO)
    seen = look(path)
    with path.open("ab") as stream:
        stream.write(TWO)
    assert world.bytes_of(take(world.store, seen, Labels(name="one"))) == TWO


def test_a_session_that_is_rewritten_meanwhile_is_refused(world: World) -> None:
    path = world.session(TWO * 2)
    live = open_live(path, time.time())
    with path.open("r+b") as stream:
        stream.write(b" " * 10)
    age(path)
    with pytest.raises(InputError, match="rewritten"):
        live.demand_same(b"another")


def test_a_session_that_is_replaced_or_gone_is_refused(world: World) -> None:
    path = world.session(TWO)
    seen = look(path)
    other = path.with_name("other")
    other.write_bytes(TWO)
    other.replace(path)
    with pytest.raises(InputError, match="replaced"):
        take(world.store, seen, Labels(name="one"))
    path.unlink()
    with pytest.raises(InputError, match="gone"):
        take(world.store, seen, Labels(name="one"))
    assert world.store.history.snapshots() == []


def test_a_session_that_lost_bytes_is_refused(world: World) -> None:
    path = world.session(TWO * 200_000)
    seen = look(path)
    os.truncate(path, 10)
    with pytest.raises(InputError, match="lost bytes"):
        take(world.store, seen, Labels(name="one"))


@pytest.mark.parametrize("name", ["", "a b", "../x", "a" * 101, "é", "a\n", "a/b"])
def test_a_name_is_letters_digits_and_dashes(name: str) -> None:
    with pytest.raises(UsageError, match="a name is"):
        Labels(name=name)
    with pytest.raises(UsageError, match="a name is"):
        Labels(name="good", tags=(name,))


def test_a_name_is_given_once(world: World) -> None:
    path = world.session(TWO)
    world.snap(path, "one")
    with pytest.raises(UsageError, match="taken"):
        world.snap(path, "one")
    assert free_name(world.store.history, "one") == "one_2"
    assert free_name(world.store.history, "two") == "two"


def test_what_is_no_session_is_refused(world: World, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="empty"):
        look(world.session(b"\n\n"))
    with pytest.raises(UnknownFormatError):
        look(world.session(b"hello\n"))
    with pytest.raises(InputError, match="no such file"):
        look(tmp_path / "missing")
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(InputError, match="pipe"):
        look(tmp_path / "pipe")


def test_files_beside_the_session_are_kept_and_missing_ones_named(world: World) -> None:
    path = world.session(TWO)
    folder = path.with_suffix("")
    (folder / "tool-results").mkdir(parents=True)
    (folder / "subagents/deep").mkdir(parents=True)
    (folder / "tool-results/a.txt").write_text("output")
    (folder / "subagents/deep/x.jsonl").write_text("{}\n")
    (folder / "tool-results/link").symlink_to("/etc/passwd")
    (folder / "other.txt").write_text("not the client's")
    named = [f"{folder}/tool-results/{name}.txt" for name in ("a", "b")]
    path.write_bytes(TWO + dumped([line("user", 2, f"see {' and '.join(named)}")]))
    seen = look(path)
    assert [each.name for each in seen.beside] == ["subagents/deep/x.jsonl", "tool-results/a.txt"]
    assert seen.missing == ("tool-results/b.txt",)
    row = take(world.store, seen, Labels(name="one"))
    kept = {side.name: b"".join(world.store.history.read(side)) for side in row.sides}
    assert kept["tool-results/a.txt"] == b"output"
    assert kept["subagents/deep/x.jsonl"] == b"{}\n"


def test_logs_of_sub_agents_that_stand_beside_it_are_kept(world: World) -> None:
    told = {"toolUseResult": {"agentId": "abc123"}}
    path = world.session(TWO + dumped([line("user", 2, "x", **told)]))
    path.with_name("agent-abc123.jsonl").write_bytes(TWO)
    path.with_name("agent-fff.jsonl").write_bytes(TWO)
    assert [each.name for each in look(path).beside] == ["agents/agent-abc123.jsonl"]


def test_a_snapshot_of_a_branch_has_the_snapshot_it_came_of_as_parent(world: World) -> None:
    root = world.snap(world.session(TWO), "root")
    made = world.branch(root)
    child = world.snap(made.path, "child")
    assert child.parent == root.id
    assert world.snap(world.session(TWO), "stranger").parent is None


def test_c27_client_versions_come_from_all_lines(case: Callable[[str], dict[str, Any]]) -> None:
    found = case("c27")
    facts = facts_of(ByteSource(found["data"]), Path("s.jsonl"))
    assert list(facts.versions) == found["expect"]["client_versions"]


def test_c19_what_is_kept_and_made_is_for_its_owner_alone(
    world: World, case: Callable[[str], dict[str, Any]]
) -> None:
    found = case("c19")
    for mode in found["modes"]:
        path = world.session(found["data"])
        path.chmod(int(mode["source"], 8))
        before = os.umask(int(found["umask"], 8))
        try:
            made = world.branch(world.snap(path, f"m{mode['source']}"))
        finally:
            os.umask(before)
        allowed = int(mode["branch"], 8)
        assert stat.S_IMODE(made.path.stat().st_mode) & ~allowed == 0
    for path in world.store.folder.rglob("*"):
        most = 0o700 if path.is_dir() else 0o600
        assert stat.S_IMODE(path.stat().st_mode) & ~most == 0


@pytest.mark.corpus
def test_every_session_of_the_corpus_comes_back_byte_for_byte(world: World, corpus: Path) -> None:
    files = [path for path in sorted(corpus.rglob("*")) if path.is_file()]
    taken = 0
    for path in files:
        try:
            seen = look(path)
        except UnknownFormatError:
            continue
        row = take(world.store, seen, Labels(name=f"s{taken}"))
        assert world.bytes_of(row) == path.read_bytes()
        taken += 1
    assert taken >= 80
    assert world.store.verify() == ()


def test_sides_of_a_large_session_are_bounded(world: World, monkeypatch: Any) -> None:
    path = world.session(TWO)
    folder = path.with_suffix("") / "tool-results"
    folder.mkdir(parents=True)
    for number in range(4):
        (folder / f"{number}.txt").write_text("x")
    monkeypatch.setattr("recap.cmv.side_files.MOST", 3)
    with pytest.raises(InputError, match="more than 3 files"):
        look(path)


def test_a_tool_session_counts_its_messages(world: World) -> None:
    row = world.snap(world.session(dumped(tool_steps(["x", "y"]))), "one")
    assert dict(row.messages) == {"assistant": 3, "user": 3}
