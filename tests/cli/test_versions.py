"""``recap snapshot``, ``branch``, ``tree``, ``show``, ``diff``, ``restore``, ``delete``, ``gc``."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from recap.store import Store
from recap.store.unfinished import Unfinished
from tests.cmv.worlds import PROJECT, dumped, line, tool_steps
from tests.store.factories import execute

if TYPE_CHECKING:
    from tests.cli.conftest import Cli, Result

ID = "0a0a0a0a-0000-4000-8000-00000000000a"
LONG = "output " * 300
SESSION = dumped(tool_steps([LONG, "short"]))


@pytest.fixture
def session(tmp_path: Path) -> Path:
    """A session of Claude Code, where its client keeps it."""
    path = tmp_path / f".claude/projects/-srv-demo-app/{ID}.jsonl"
    path.parent.mkdir(parents=True)
    path.write_bytes(SESSION)
    return path


@pytest.fixture
def versions(cli: Cli, session: Path, tmp_path: Path) -> Any:
    """Return a function that runs a command with a store of its own."""

    def run(*arguments: str, **more: Any) -> Result:
        return cli(*arguments, "--store", str(tmp_path / "store"), **more)

    return run


def branch_of(result: Result) -> dict[str, Any]:
    found = result.json()
    assert found["schema"] == "recap.branch/1"
    return found


def test_a_session_is_snapshotted_by_id_path_or_as_the_newest(versions: Any, session: Path) -> None:
    for at, words in enumerate((("--session", ID), ("--session", ID[:6]), ("--latest",),
                                ("--session", str(session)))):  # fmt: skip
        found = versions("snapshot", f"s{at}", *words, "-t", "a, b", "-d", "about", "--json").json()
        row = found["snapshot"]
        assert (row["session"], row["tags"], row["description"]) == (ID, ["a", "b"], "about")
        assert (row["bytes"], row["project"]) == (len(SESSION), PROJECT)
    assert "s0" in versions("tree").out


def test_a_dry_run_makes_no_store(versions: Any, tmp_path: Path) -> None:
    result = versions("snapshot", "one", "--latest", "--dry-run")
    assert result.status == 0
    assert result.out.startswith("would keep ")
    assert versions("snapshot", "one", "--latest", "--dry-run", "--json").json()["taken"] is False
    assert not (tmp_path / "store").exists()


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        (("snapshot", "one"), 2, "give one of --session"),
        (("snapshot", "one", "--latest", "--session", "x"), 2, "give one of --session"),
        (("snapshot", "a b", "--latest"), 2, "a name is"),
        (("snapshot", "one", "--session", "nope"), 1, "there is no session or file nope"),
        (("branch", "one"), 1, "there is no store"),
        (("show", "one"), 1, "there is no store"),
        (("diff", "one", "two"), 1, "no file 'one'"),
        (("restore", "one", "--to", "x"), 1, "there is no store"),
        (("delete", "one"), 1, "there is no store"),
        (("gc",), 1, "there is no store"),
        (("gc", "--grace", "soon"), 2, "--grace takes a time"),
        (("sessions", "--all", "--project", "."), 2, "give one of"),
    ],
)
def test_wrong_use_is_told_in_one_line(
    versions: Any, words: tuple[str, ...], status: int, said: str
) -> None:
    result = versions(*words)
    assert result.status == status
    assert said in result.err
    assert result.err.count("\n") == 1


def test_without_a_store_the_tree_is_empty(versions: Any, tmp_path: Path) -> None:
    assert versions("tree").out.startswith("no snapshots")
    assert versions("tree", "--flat").out.startswith("no snapshots")
    assert versions("tree", "--json").json() == {"schema": "recap.tree/1", "nodes": []}
    assert not (tmp_path / "store").exists()


def test_a_branch_names_its_file_and_how_to_go_on(versions: Any, session: Path) -> None:
    versions("snapshot", "one", "--latest")
    result = versions("branch", "one", "-n", "b", "--keep-last", "0", "--yes", "--orient", "go on")
    assert result.status == 0
    (made,) = (path for path in session.parent.glob("*.jsonl") if path != session)
    assert f"branch  {made}\n" in result.out
    assert f"claude --resume {made.stem}" in result.out
    assert b"go on" in made.read_bytes()
    assert "[Trimmed: ~2100 chars" in made.read_text()
    raw = branch_of(versions("branch", "one", "--no-trim", "--json"))
    assert raw["trim"] is None
    assert Path(raw["path"]).read_bytes().count(b"\n") == SESSION.count(b"\n")
    assert raw["branch"]["options"] == {"trim": False, "orientation": False}


def test_a_dry_branch_writes_nothing(versions: Any, session: Path) -> None:
    versions("snapshot", "one", "--latest")
    found = branch_of(versions("branch", "one", "--dry-run", "--json"))
    assert (found["written"], found["branch"]) == (False, None)
    assert found["trim"]["tool_requests"] == 2
    assert versions("branch", "one", "--dry-run").out.startswith("would write")
    assert list(session.parent.iterdir()) == [session]


def test_launch_starts_the_client_in_the_project(
    versions: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = tmp_path / "bin" / "claude"
    client.parent.mkdir()
    client.write_text('#!/bin/sh\necho "$@" > "$HOME/started"; pwd >> "$HOME/started"; exit 3\n')
    client.chmod(0o755)
    project = tmp_path / "project"
    project.mkdir()
    versions("snapshot", "one", "--latest")
    path = f"{client.parent}:/usr/bin:/bin"
    result = versions("branch", "one", "--launch", "--to-project", str(project), PATH=path)
    assert result.status == 3
    words, folder = (tmp_path / "started").read_text().splitlines()
    assert re.fullmatch(r"--resume [0-9a-f-]{36}", words)
    assert folder == str(project)
    result = versions("branch", "one", "--launch", PATH=str(tmp_path / "empty"))
    assert result.status == 1
    assert "cannot start claude" in result.err


def test_other_agents_are_branched_whole_into_a_file(versions: Any, tmp_path: Path) -> None:
    (tmp_path / "list.json").write_text('[{"role": "user", "content": "hi"}]')
    versions("snapshot", "one", "--session", "list.json")
    result = versions("branch", "one")
    assert result.status == 2
    assert "name a file with -o" in result.err
    result = versions("branch", "one", "-o", "out.json")
    assert "are not trimmed" in result.err
    assert (tmp_path / "out.json").read_bytes() == (tmp_path / "list.json").read_bytes()
    assert versions("branch", "one", "-o", "two.json", "--threshold", "60").status == 2
    assert versions("branch", "one", "--no-trim", "-o", "3", "--launch").status == 1


def test_the_tree_shows_what_came_of_what(versions: Any, session: Path) -> None:
    versions("snapshot", "root", "--latest", "-t", "x")
    made = branch_of(versions("branch", "root", "-n", "b", "--json"))
    versions("snapshot", "child", "--session", made["branch"]["session"])
    lines = versions("tree").out.splitlines()
    assert [re.split(r"\s{2,}(?=[0-9a-f]{8})", each)[0] for each in lines] == [
        "root", "└─ -> b", "   └─ child"
    ]  # fmt: skip
    assert versions("tree", "--ascii").out.isascii()
    nodes = versions("tree", "--json").json()["nodes"]
    assert [(each["kind"], each["depth"], each["name"]) for each in nodes] == [
        ("snapshot", 0, "root"), ("branch", 1, "b"), ("snapshot", 2, "child")
    ]  # fmt: skip
    assert len(versions("tree", "--depth", "1").out.splitlines()) == 1
    assert len(versions("tree", "--flat").out.splitlines()) == 3
    flat = versions("tree", "--flat", "--json", "--tag", "x").json()["snapshots"]
    assert [each["name"] for each in flat] == ["root"]
    listed = versions("sessions", "--project", PROJECT, "--json").json()["sessions"]
    assert {each["id"]: (each["snapshots"], each["branches"]) for each in listed} == {
        ID: (1, 1), made["branch"]["session"]: (1, 0)
    }  # fmt: skip


def test_show_tells_lineage_and_deleted_parents(versions: Any, session: Path) -> None:
    versions("snapshot", "root", "--latest", "-d", "about", "-t", "x")
    made = branch_of(versions("branch", "root", "-n", "b", "--json"))
    versions("snapshot", "child", "--session", made["branch"]["session"])
    assert "about      about" in versions("show", "root").out
    assert "came of    root" in versions("show", "child").out
    assert "options    {" in versions("show", "b").out
    assert versions("delete", "root", "-f").status == 0
    assert "came of    parent deleted" in versions("show", "child").out
    assert versions("show", "child", "--json").json()["lineage_end"] == "parent deleted"
    assert versions("show", "b", "--json").json()["lineage_end"] == "snapshot deleted"
    assert "(snapshot deleted)" in versions("tree").out


def test_show_gives_the_content_a_stub_stands_for(versions: Any, tmp_path: Path) -> None:
    found = versions("snapshot", "one", "--latest", "--json").json()["snapshot"]["id"][:12]
    assert versions("show", found, "t0").out == LONG
    assert versions("show", found, "t0", "--request").out == "/f0"
    versions("show", found, "t0", "--out", "t0.txt")
    assert (tmp_path / "t0.txt").read_text() == LONG
    (original,) = versions("show", found, "t0", "--json").json()["originals"]
    assert (original["line"], original["kind"], original["content"]) == (3, "result", LONG)
    assert versions("show", found, "t9").status == 2
    assert versions("show", found, "u0", "--request").status == 2


def test_what_stands_twice_under_an_id_is_said(versions: Any, session: Path) -> None:
    lines = tool_steps(["first", "second"])
    for at in (1, 3):
        lines[at]["message"]["content"][1]["id"] = "REDACTED"
        lines[at + 1]["message"]["content"][0]["tool_use_id"] = "REDACTED"
    session.write_bytes(dumped(lines))
    versions("snapshot", "one", "--latest")
    result = versions("show", "one", "REDACTED")
    assert result.out == "first"
    assert "2 blocks have this id, in lines 3, 5" in result.err


def test_diff_proves_that_texts_are_equal(versions: Any, tmp_path: Path) -> None:
    versions("snapshot", "one", "--latest")
    made = branch_of(versions("branch", "one", "-n", "b", "--keep-last", "0", "--yes", "--json"))
    for other in ("b", made["path"]):
        result = versions("diff", "one", other, "--texts")
        assert result.status == 0
        assert "all equal" in result.out
    found = versions("diff", "one", "b", "--json").json()
    assert found["texts_equal"] is True
    assert found["counts"]["stubbed"] == 1
    assert len(versions("diff", "one", "b", "--stat").out.splitlines()) == 5
    assert len(versions("diff", "one", "b").out.splitlines()) == 7
    assert len(versions("diff", "one", "b", "--blocks").out.splitlines()) == 10
    (tmp_path / "other.jsonl").write_bytes(dumped([line("user", 0, "else")]))
    result = versions("diff", "one", "other.jsonl", "--texts")
    assert result.status == 1
    assert "not equal" in result.out


def test_restore_gives_the_original_bytes_and_says_if_they_are_the_first(
    versions: Any, session: Path, tmp_path: Path
) -> None:
    versions("snapshot", "one", "--latest")
    session.write_bytes(SESSION * 2)
    versions("snapshot", "two", "--latest")
    result = versions("restore", "one", "--to", "back.jsonl")
    assert (tmp_path / "back.jsonl").read_bytes() == SESSION
    assert "it is the first snapshot of its session" in result.out
    assert "older snapshots" in versions("restore", "two", "--dry-run").out
    assert versions("restore", "two", "--to", "back.jsonl").status == 2
    assert versions("restore", "two", "--to", "back.jsonl", "--replace").status == 0
    assert versions("restore", "one", "--to", "x", "--json").json()["is_first"] is True
    assert versions("restore").status == 2
    listed = versions("restore", "--list", "--json").json()["snapshots"]
    assert {each["name"]: each["is_first"] for each in listed} == {"one": True, "two": False}
    assert len(versions("restore", "--list").out.splitlines()) == 3
    store = versions("restore", "one", "--to", str(tmp_path / "store/recap.db"), "--replace")
    assert store.status == 2


def test_delete_asks_and_gc_takes_the_bytes(versions: Any, session: Path) -> None:
    versions("snapshot", "one", "--latest")
    versions("branch", "one")
    result = versions("delete", "one")
    assert result.status == 2
    assert "1 branch and 0 snapshots came of it; they stay" in result.err
    assert versions("delete", "one", "--dry-run", "--json").json()["deleted"] is False
    assert versions("delete", "one", "-f", "--json").json()["deleted"] is True
    kept = versions("gc", "--json").json()
    assert kept["objects"] == 0
    told = versions("gc", "--grace", "7d").out
    assert f"{kept['waiting']} objects that no snapshot needs came less than 7d ago" in told
    dry = versions("gc", "--grace", "0", "--dry-run")
    assert dry.out.startswith(f"would remove {kept['waiting']} objects")
    assert "--grace 0 removes" not in dry.out
    removed = versions("gc", "--grace", "0", "--json").json()
    assert (removed["objects"], removed["waiting"]) == (kept["waiting"], 0)
    assert versions("verify").status == 0
    assert session.read_bytes() == SESSION


def test_a_trim_without_a_file_is_a_snapshot_and_a_branch(versions: Any, session: Path) -> None:
    found = versions("trim", "--latest", "--keep-last", "0", "--yes", "--json").json()
    assert re.fullmatch(r"trim_\d{8}_\d{6}", found["snapshot"]["name"])
    assert found["branch"]["snapshot"] == found["snapshot"]["id"]
    assert Path(found["out"]).is_file()
    assert found["results_stubbed"] == 1
    result = versions("trim", str(session), "-n", "mine", "--target", "0.1", "--keep-last", "0")
    assert result.out.startswith("snapshot mine")
    again = [versions("trim", str(session)) for _ in range(2)]
    assert [each.status for each in again] == [0, 0]
    assert versions("trim", str(session), "-n", "mine").status == 2
    assert versions("trim", str(session), "-o", "x", "-n", "n").status == 2
    assert versions("tree", "--json").json()["nodes"][0]["depth"] == 0


def test_a_trim_that_needs_a_word_keeps_the_snapshot_and_says_so(
    versions: Any, session: Path
) -> None:
    session.write_bytes(dumped(tool_steps([LONG * 20])))
    result = versions("trim", "--latest", "-n", "one", "--keep-last", "0")
    assert result.status == 2
    assert "confirm with --yes (snapshot one was kept)" in result.err


def test_sessions_are_listed_for_the_folder_or_all(
    versions: Any, session: Path, tmp_path: Path
) -> None:
    other = session.with_name("b.jsonl")
    other.write_bytes(dumped([line("user", 0, "x" * 9000, cwd=str(tmp_path))]))
    assert ID not in versions("sessions").out
    assert "b " in versions("sessions").out
    sizes = versions("sessions", "--all", "--sort", "size", "--json").json()["sessions"]
    assert [each["id"] for each in sizes] == ["b", ID]
    longest = versions("sessions", "--all", "--sort", "messages", "--json").json()["sessions"]
    assert [(each["id"], each["messages"]) for each in longest] == [(ID, 6), ("b", 1)]
    assert versions("sessions", "--project", "/nowhere").out.startswith("no sessions of /nowhere")
    assert versions("sessions", "--all", "--agent", "codex").out == "no sessions\n"


def test_counts_are_kept_and_a_changed_session_is_counted_again(
    versions: Any, session: Path, tmp_path: Path
) -> None:
    versions("snapshot", "one", "--latest")
    for _ in range(2):
        (one,) = versions("sessions", "--all", "--json").json()["sessions"]
        assert (one["messages"], one["snapshots"]) == (6, 1)
    kept = (tmp_path / "store/sessions.counts").read_bytes()
    assert list(json.loads(kept).values()) == [6]
    session.write_bytes(SESSION * 2)
    (one,) = versions("sessions", "--all", "--json").json()["sessions"]
    assert one["messages"] == 12
    (tmp_path / "store/sessions.counts").write_bytes(b"not json")
    assert versions("sessions", "--all").status == 0


def test_text_of_a_log_is_made_harmless(versions: Any, session: Path) -> None:
    bad = "\x1b[31m"
    session.write_bytes(dumped([line("user", 0, "x", cwd=f"/p{bad}", version=f"2{bad}")]))
    versions("snapshot", "one", "--latest", "-d", bad)
    for words in (("show", "one"), ("tree", "--flat"), ("sessions", "--all"), ("branch", "one")):
        result = versions(*words)
        assert result.status == 0
        assert "\x1b" not in result.out


def test_a_session_is_listed_with_its_title(versions: Any, session: Path) -> None:
    def title() -> object:
        (one,) = versions("sessions", "--all", "--json").json()["sessions"]
        return one["title"]

    assert title() is None
    for added, expected in (
        ({"type": "summary", "summary": "another's", "leafUuid": "elsewhere"}, None),
        ({"type": "summary", "summary": "of old clients", "leafUuid": "u2"}, "of old clients"),
        ({"type": "ai-title", "aiTitle": "made up"}, "made up"),
        ({"type": "custom-title", "customTitle": "mine", "sessionId": "s"}, "mine"),
        ({"type": "ai-title", "aiTitle": "made up again"}, "mine"),
        ({"type": "custom-title", "customTitle": "renamed"}, "renamed"),
        ({"type": "custom-title", "customTitle": 7}, "renamed"),
    ):
        with session.open("ab") as stream:
            stream.write(dumped([added]))
        assert title() == expected
    assert "renamed" in versions("sessions", "--all", COLUMNS="300").out


def test_a_title_is_found_at_both_ends_of_a_long_session_and_not_in_its_text(
    versions: Any, session: Path
) -> None:
    line_of_title = dumped([{"type": "ai-title", "aiTitle": "a title " * 40}])
    quoted = dumped(tool_steps([line_of_title.decode() * 2, "x" * 200_000]))
    for data in (line_of_title + quoted, quoted + line_of_title):
        session.write_bytes(data)
        (one,) = versions("sessions", "--all", "--json").json()["sessions"]
        assert one["title"] == ("a title " * 40)[:200]
    session.write_bytes(quoted)
    (one,) = versions("sessions", "--all", "--json").json()["sessions"]
    assert one["title"] is None


def test_show_says_what_is_known_of_a_session_in_use(versions: Any, session: Path) -> None:
    versions("snapshot", "lately", "--latest")
    os.utime(session, (1_700_000_000, 1_700_000_000))
    versions("snapshot", "long-ago", "--latest")
    said = "less than two minutes after its file was written to"
    assert said in versions("show", "lately").out
    assert said not in versions("show", "long-ago").out


def test_verify_proves_one_snapshot_or_branch(versions: Any, session: Path, tmp_path: Path) -> None:
    versions("snapshot", "one", "--latest")
    made = branch_of(versions("branch", "one", "-n", "b", "--json"))
    versions("branch", "one", "-n", "c", "--no-trim", "-o", "c.jsonl")
    assert "snapshot one is whole" in versions("verify", "one").out
    for name, path in (("b", Path(made["path"])), ("c", tmp_path / "c.jsonl")):
        assert versions("verify", name, "--json").json()["state"] == "as made"
        with path.open("ab") as stream:
            stream.write(dumped([line("user", 9, "more")]))
        result = versions("verify", name)
        assert (result.status, str(path) in result.out) == (0, True)
        assert "its client went on with it" in result.out
        path.unlink()
        result = versions("verify", name)
        assert (result.status, "has no file any more" in result.out) == (1, True)
    execute_in(tmp_path / "store", "UPDATE objects SET bytes = zeroblob(length(bytes))")
    result = versions("verify", "one", "--json")
    assert (result.status, result.json()["state"]) == (1, "damaged")
    assert "cannot be read whole" in versions("verify", "one").out
    assert versions("verify", "nobody").status == 2
    assert versions("verify", "one", "--repair").status == 2


def test_what_a_killed_command_left_is_told_and_settled(
    versions: Any, session: Path, tmp_path: Path
) -> None:
    """Every command that writes versions does it; verify finds it, and settles with --repair."""
    versions("snapshot", "one", "--latest")
    commands = (("branch", "one"), ("gc",), ("restore", "one", "--to"), ("trim", "--latest"))
    for at, words in enumerate((("verify", "--repair"), *commands)):
        for is_ready in (False, True):
            target = tmp_path / f"left-{at}-{is_ready}.jsonl"
            left_behind(tmp_path / "store", target, is_ready=is_ready)
            found = versions("verify")
            assert (found.status, found.out.startswith("unfinished: ")) == (1, True)
            assert not target.exists()
            out = (str(tmp_path / f"out-{at}-{is_ready}"),) if words[0] == "restore" else ()
            result = versions(*words, *out)
            assert result.status == 0, result
            outcome = "completed" if is_ready else "undone"
            assert f"{outcome} {target}, which an earlier command left unfinished" in result.err
            assert target.exists() == is_ready
            assert versions("verify").status == 0
    left_behind(tmp_path / "store", tmp_path / "last.jsonl", is_ready=True)
    (settled,) = versions("gc", "--json").json()["settled"]
    assert settled == {"path": str(tmp_path / "last.jsonl"), "outcome": "completed"}
    assert not list(tmp_path.glob(".recap-*"))


def left_behind(folder: Path, target: Path, *, is_ready: bool) -> None:
    """Leave what a process leaves that is killed while it makes a file."""
    with Store.open(folder) as store:
        note = Unfinished(id=f"{target.stem}", folder=str(target.parent), targets=(str(target),))
        store.history.begin(note)
        target.with_name(f".recap-{note.id}-0").write_bytes(b"whole")
        if is_ready:
            store.history.commit(note)


def execute_in(folder: Path, statement: str) -> None:
    with Store.open(folder) as store:
        execute(store, statement)


def test_a_session_whose_name_is_no_utf8_is_kept_and_comes_back(
    versions: Any, tmp_path: Path
) -> None:
    path = Path(os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9.jsonl"))
    path.write_bytes(SESSION)
    assert versions("snapshot", "kept", "--session", str(path)).status == 0
    assert versions("restore", "kept", "--to", str(tmp_path / "back.jsonl")).status == 0
    assert (tmp_path / "back.jsonl").read_bytes() == SESSION


@pytest.mark.corpus
def test_what_cannot_be_trimmed_is_refused_before_anything_is_kept(
    versions: Any, corpus: Path
) -> None:
    path = corpus / "sessions/codex/agentv-2turns-open.jsonl"
    refused = versions("trim", str(path))
    assert refused.status == 2
    assert "nothing was kept" in refused.err
    assert versions("tree", "--json").json()["nodes"] == []
