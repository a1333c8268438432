"""Stores, sessions and folders that somebody damaged or made on purpose."""

from __future__ import annotations

import json
import os
import resource
import signal
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from recap.cmv.branch import Wish, branch
from recap.cmv.documents import opencode_branch
from recap.cmv.graphs import GRAPH, graphs_in
from recap.cmv.listing import Counts, Known, sessions
from recap.cmv.names import new_id
from recap.cmv.putting import publish, put, write_new
from recap.cmv.restoring import restore
from recap.cmv.rewriting import Moves, claude_lines, codex_lines
from recap.cmv.side_files import is_safe, read_pieces
from recap.cmv.snapshot import ORIGIN, look, origin_of
from recap.cmv.tree import tree
from recap.errors import InputError, StoreError, UsageError
from recap.store import SideFile, SnapshotRow
from recap.store.rows import seal, to_column
from recap.store.snapshots import _SNAPSHOT, _snapshot_values
from recap.transcript.sources import ByteSource
from tests.cmv.test_branch import SESSION, opencode
from tests.cmv.worlds import PROJECT, dumped, line
from tests.store.factories import execute

if TYPE_CHECKING:
    from pathlib import Path

    from recap.store import Store
    from tests.cmv.worlds import World


def overwrite(store: Store, row: SnapshotRow) -> None:
    """Put a row into the store as its makers would, without their checks."""
    execute(store, "DELETE FROM snapshots WHERE id = ?", to_column(row.id))
    values = _snapshot_values(row)
    marks = ", ".join("?" * (len(values) + 1))
    execute(
        store, f"INSERT INTO snapshots ({_SNAPSHOT}) VALUES ({marks})",
        *map(to_column, values), seal(*values),
    )  # fmt: skip


def with_side(world: World, row: SnapshotRow, name: str, data: bytes) -> SnapshotRow:
    """Store the snapshot with one more side file."""
    chain = world.store.history.put_chain(data)
    side = SideFile(name=name, root=chain.root, sha256=chain.sha256, size=chain.size)
    others = tuple(each for each in row.sides if each.name != name)
    changed = replace(row, sides=(*others, side))
    overwrite(world.store, changed)
    return changed


def test_c23_a_snapshot_that_is_its_own_ancestor_ends_everywhere(world: World) -> None:
    path = world.session(SESSION)
    one, two = world.snap(path, "one"), world.snap(path, "two")
    overwrite(world.store, replace(one, parent=two.id))
    overwrite(world.store, replace(two, parent=one.id))
    history = world.store.history
    assert len(history.lineage(one.id)) == 2
    rows = tree(history.snapshots(), history.branches())
    assert [row.remark for row in rows] == ["its own ancestor", ""]
    with pytest.raises(UsageError, match="its own ancestor"):
        history.add_snapshot(replace(one, id=(id := new_id()), name="x", parent=id))


@pytest.mark.parametrize(
    "name",
    [
        "../x", "tool-results/../../x", "/etc/x", "tool-results//x", "tool-results/.", "x",
        "tool-results", "other/x", "tool-results\\x", "tool-results/a\\b", "tool-results/a\nb",
        "tool-results/1/2/3/4/5", "", ".recap/x", "agents/..",
    ],
)  # fmt: skip
def test_a_name_that_leads_elsewhere_is_not_written(
    world: World, tmp_path: Path, name: str
) -> None:
    assert not is_safe(name)
    row = with_side(world, world.snap(world.session(SESSION), "one"), name, b"bad")
    before = {path for path in tmp_path.rglob("*") if "store" not in path.parts}
    made = branch(world.store, row, Wish(), world.homes)
    restore(world.store, row, tmp_path / "out.jsonl")
    new = {path for path in tmp_path.rglob("*") if "store" not in path.parts} - before
    assert new == {made.path, tmp_path / "out.jsonl"}


def test_side_files_of_the_client_are_safe_names() -> None:
    for name in ("tool-results/a.txt", "subagents/deep/x.jsonl", "agents/agent-1.jsonl"):
        assert is_safe(name)


def test_what_stands_in_the_place_of_a_folder_is_an_error_and_not_followed(
    world: World, tmp_path: Path
) -> None:
    row = world.snap(world.session(SESSION), "one")
    (tmp_path / "home/.claude/projects/-x").parent.mkdir(parents=True, exist_ok=True)
    (world.projects / "-x").symlink_to(tmp_path / "nowhere")
    with pytest.raises(InputError, match="cannot be written"):
        world.branch(row, project=tmp_path.__class__("/x"))
    assert world.store.history.branches() == []


def test_a_disk_that_is_full_leaves_nothing(world: World, tmp_path: Path) -> None:
    path = tmp_path / "large"
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, hard))
    try:
        with pytest.raises(InputError, match="cannot be written"):
            put(path, [b"x" * (1 << 19)] * 8)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, before)
    assert not [each for each in tmp_path.iterdir() if each.name not in ("home", "store")]


def test_without_hard_links_a_name_that_is_taken_is_still_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object, **__: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", refused)
    put(tmp_path / "new", [b"x"])
    assert (tmp_path / "new").read_bytes() == b"x"
    write_new(tmp_path / "mine", [b"mine"])
    (tmp_path / "late").write_bytes(b"another's")
    with pytest.raises(UsageError, match="is there already"):
        publish(tmp_path / "mine", tmp_path / "late")
    assert (tmp_path / "late").read_bytes() == b"another's"
    assert sorted(each.name for each in tmp_path.iterdir()) == ["late", "mine", "new"]


def test_notes_of_a_snapshot_that_cannot_be_read_are_errors(world: World) -> None:
    row = world.snap(world.session(SESSION), "one")
    bad = with_side(world, row, ORIGIN, b"no json")
    with pytest.raises(InputError, match="does not say where its file was"):
        origin_of(world.store.history, bad)
    bad = with_side(world, row, f"{GRAPH}0", b"\xc1")
    with pytest.raises(StoreError, match="cannot be read"):
        graphs_in(world.store.history, bad)
    assert origin_of(world.store.history, replace(row, sides=())) == ""


def test_a_side_file_that_turned_into_something_else_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("/etc/passwd")
    os.mkfifo(tmp_path / "pipe")
    for name in ("link", "pipe", "missing"):
        with pytest.raises(InputError):
            list(read_pieces(tmp_path / name))


MOVES = Moves(session="new", project=(PROJECT, "/other"))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('{"a":{"sessionId":"s","cwd":"/srv/demo/app"}}', None),
        ('{"a":{"sessionId":"s"},"sessionId":"s"}', '{"a":{"sessionId":"s"},"sessionId":"new"}'),
        ('{"a":{},"cwd":"/srv/demo/app"}', '{"a":{},"cwd":"/other"}'),
        (r'{"\u0063wd":"/srv/demo/app"}', r'{"\u0063wd":"/other"}'),
        (r'{"cwd":"\/srv\/demo\/app\/x"}', '{"cwd":"/other/x"}'),
        ('{"cwd":"/srv/demo/apps"}', None),
        ('{"cwd":7,"sessionId":null}', '{"cwd":7,"sessionId":"new"}'),
        (r'{"m":"\"sessionId\":\"s\"","n":1}', None),
        ('["sessionId","cwd"]', None),
        ('"sessionId"', None),
        ('{"sessionId":"s","sessionId":"t"}', None),
    ],
)
def test_only_the_fields_of_the_line_itself_change(old: str, new: str | None) -> None:
    data = b"\xef\xbb\xbf" + old.encode() + b"\r\n" + old.encode()
    (bom, first, second) = claude_lines(ByteSource(data), MOVES)
    if new is None and '"sessionId":"t"' in old:
        assert json.loads(first)["sessionId"] in ("new", "t")
        return
    assert (bom, second.decode()) == (b"\xef\xbb\xbf", new or old)
    assert first == second + b"\r\n"


def test_a_rollout_with_odd_lines_branches(world: World) -> None:
    odd = (
        b'{"type":"session_meta"}\n{"type":"session_meta","payload":[]}\nnull "session_meta"\n'
        b'{"type":"event_msg","payload":{"m":"\\"session_meta\\""}}\n'
        b'{"type":"turn_context","payload":{"cwd":"/srv/demo/app"}}\n'
        b'{"payload":{"id":"x","cwd":"/srv/demo/app"},"type":"session_meta"}'
    )
    lines = list(codex_lines(ByteSource(odd), MOVES))
    assert b"".join(lines) == odd.replace(b'"x"', b'"new"').replace(b"/srv/demo/app", b"/other")


def test_ids_of_another_shape_stay(tmp_path: Path) -> None:
    document = opencode()
    document["messages"][0]["parts"][0]["id"] = "REDACTED"
    document["messages"][0]["parts"].append({"type": "text", "text": "x", "id": "prt_short"})
    document["messages"][0]["info"]["parentID"] = "msg_zzz"
    data = opencode_branch(ByteSource(json.dumps(document).encode()), "ses_new", "", 1.8e9)
    made = json.loads(data)["messages"][0]
    assert [part["id"] for part in made["parts"]] == ["REDACTED", "prt_short"]
    assert made["info"]["parentID"] == "msg_zzz"


@pytest.mark.parametrize("document", ["[]", '{"messages": []}'])
def test_an_empty_list_takes_no_orientation(document: str) -> None:
    from recap.cmv.documents import with_message

    with pytest.raises(UsageError):
        with_message(ByteSource(document.encode()), "openai-chat", "hi")
    with pytest.raises(UsageError, match="cannot be added to a session of aider"):
        with_message(ByteSource(document.encode()), "aider", "hi")


def test_sessions_that_cannot_be_read_are_listed_with_what_is_known(world: World) -> None:
    path = world.session(dumped([line("user", 0, "x")]), id="ok")
    world.session(b'{"cwd":"\\ud800"}\n\xff\xfe', id="bad")
    counts = Counts(None)
    listed = {each.id: each for each in sessions(world.homes, counts, Known())}
    assert (listed["ok"].messages, listed["ok"].path) == (1, path)
    assert listed["bad"].messages == 0
    counts.save()
    assert Counts(world.home / "none").of(world.home / "missing") == 0


def test_a_million_lines_of_nothing_are_a_snapshot(world: World) -> None:
    data = dumped([line("user", 0, "x")]) + b"\n" * 1_000_000
    seen = look(world.session(data))
    assert seen.live.source.size == len(data)


def test_odd_versions_and_folders_are_bounded(world: World) -> None:
    odd: list[dict[str, Any]] = [line("user", 0, "x", version=7, cwd=None, sessionId=[])]
    row = world.snap(world.session(dumped(odd)), "one")
    assert (row.versions, row.project) == ((), "")
