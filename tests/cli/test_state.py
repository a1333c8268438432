"""What commands keep between runs, and how it is shown, used again and left alone."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from recap.store import Store
from tests.cli.conftest import REQUEST, Cli
from tests.testing import conversation

HOME = "kept"


def kept(cli: Cli, *arguments: str) -> Any:
    return cli(*arguments, RECAP_HOME=str(cli.folder / HOME))


def session(path: Path, turns: int = 6) -> str:
    path.write_text(json.dumps(conversation(turns)), encoding="utf-8")
    return str(path)


def files(folder: Path) -> dict[str, bytes]:
    return {str(p): p.read_bytes() for p in sorted(folder.rglob("*.db*")) if p.is_file()}


def test_a_compaction_keeps_the_graph_and_the_selection(cli: Cli, demo: Path) -> None:
    assert kept(cli, "compact", str(demo), "--request", REQUEST, "-o", "c.json").status == 0
    (graph,) = kept(cli, "graph", "--json").json()["graphs"]
    assert graph["session"] == str(demo)
    assert graph["turns"] > 0
    (selection,) = kept(cli, "explain", str(demo), "--selections", "--json").json()["selections"]
    assert selection["kept"] > 0
    assert str(demo) in kept(cli, "graph").out or "..." in kept(cli, "graph").out


def test_the_same_turn_is_served_the_same(cli: Cli, tmp_path: Path) -> None:
    path = session(tmp_path / "s.json")
    first = kept(cli, "compact", path, "--policy", "paper", "--json").json()
    again = kept(cli, "compact", path, "--policy", "paper", "--json").json()
    assert (first["action"], again["action"]) == ("select", "reuse")
    assert first["kept_blocks"] == again["kept_blocks"]


def test_an_earlier_selection_is_rendered_again(cli: Cli, tmp_path: Path) -> None:
    path = session(tmp_path / "s.json")
    for number, name in enumerate(("a.json", "b.json")):
        kept(cli, "compact", path, "--request", f"request {number}", "-o", name)
    asked = ("compact", path, "--selection", "-2", "-o", "c.json")
    assert kept(cli, *asked).status == 2
    assert kept(cli, *asked, "--request", "request 0").status == 0
    assert (tmp_path / "c.json").read_bytes() == (tmp_path / "a.json").read_bytes()
    shown = kept(cli, "explain", path, "--selection", "-2", "--request", "request 0", "--json")
    assert shown.json()["report"]["reason"] == "undo"
    listed = kept(cli, "explain", path, "--selections").out
    assert listed.count("given apart") == 2


@pytest.mark.parametrize(
    "arguments",
    [
        ("explain", "{}"),
        ("graph", "{}"),
        ("graph",),
        ("compact", "{}", "--dry-run"),
        ("compact", "{}", "--no-store"),
        ("observe", "{}", "--dry-run"),
        ("explain", "{}", "--selections"),
    ],
)
def test_looking_makes_no_store(cli: Cli, tmp_path: Path, arguments: tuple[str, ...]) -> None:
    path = session(tmp_path / "s.json")
    assert kept(cli, *(word.format(path) for word in arguments)).status == 0
    assert not (tmp_path / HOME).exists()


@pytest.mark.parametrize(
    "arguments", [("explain", "{}"), ("graph", "{}"), ("compact", "{}", "--dry-run")]
)
def test_looking_changes_no_store(cli: Cli, tmp_path: Path, arguments: tuple[str, ...]) -> None:
    path = session(tmp_path / "s.json")
    kept(cli, "observe", path)
    before = kept(cli, "graph", "--json").json()
    assert kept(cli, *(word.format(path) for word in arguments)).status == 0
    assert kept(cli, "graph", "--json").json() == before
    assert kept(cli, "explain", path, "--selections", "--json").json()["selections"] == []


def test_no_word_of_a_conversation_is_kept(cli: Cli, tmp_path: Path) -> None:
    messages = conversation(4)
    messages[0]["content"] = "the canary sang twice in the morning"
    (tmp_path / "s.json").write_text(json.dumps(messages), encoding="utf-8")
    kept(cli, "compact", str(tmp_path / "s.json"), "--request", "the request sings as well")
    stored = b"".join(files(tmp_path / HOME).values())
    for words in (b"canary sang", b"in the morning", b"request sings"):
        assert words not in stored


def test_observe_takes_folders_and_many_processes(cli: Cli, tmp_path: Path) -> None:
    for number in range(3):
        path = tmp_path / "logs" / f"project {number}" / "s.json"
        path.parent.mkdir(parents=True)
        session(path, 3 + number)
        (path.parent / "notes.txt").write_text("no session", encoding="utf-8")
    one = kept(cli, "observe", "logs", "--json").json()
    shutil.rmtree(tmp_path / HOME)
    two = kept(cli, "observe", "logs", "--jobs", "2", "--json").json()
    assert [row["session"] for row in one["sessions"]] == [
        row["session"] for row in two["sessions"]
    ]
    assert [row["turns"] for row in two["sessions"]] == [3, 4, 5]
    assert two["skipped"] == 3
    assert len(kept(cli, "graph", "--json").json()["graphs"]) >= 1


def test_observe_says_which_sessions_failed(cli: Cli, tmp_path: Path) -> None:
    session(tmp_path / "a.json")
    (tmp_path / "b.json").write_text("no session", encoding="utf-8")
    result = kept(cli, "observe", "a.json", "b.json", "absent.json")
    assert result.status == 1
    assert "1 graph kept, 2 failed" in result.out


def test_observe_passes_over_what_is_no_log_in_a_folder(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    session(tmp_path / "logs" / "a.json")
    (tmp_path / "logs" / "b.png").write_bytes(bytes(range(256)))
    (tmp_path / "logs" / "c").symlink_to("nowhere")
    os.mkfifo(tmp_path / "logs" / "d")
    done = kept(cli, "observe", "logs")
    assert done.status == 0
    assert "1 graph kept, 0 failed" in done.out


@pytest.mark.parametrize("home", ["taken", "~nobody9/recap"])
def test_observe_fails_where_nothing_can_be_kept(cli: Cli, tmp_path: Path, home: str) -> None:
    (tmp_path / "taken").write_bytes(b"x")
    done = cli("observe", session(tmp_path / "s.json"), RECAP_HOME=home)
    assert done.status == 1
    assert "internal error" not in done.err
    assert "1 graph kept" not in done.out


def test_observe_of_a_folder_without_sessions_says_so(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    result = kept(cli, "observe", "empty")
    assert (result.status, result.err.count("\n")) == (1, 1)


def test_a_damaged_store_stops_no_compaction(cli: Cli, tmp_path: Path) -> None:
    path = session(tmp_path / "s.json")
    kept(cli, "observe", path)
    database = tmp_path / HOME / "recap.db"
    database.write_bytes(b"scribbled" * 100)
    result = kept(cli, "compact", path, "--request", "go on", "-o", "c.json")
    assert result.status == 0
    assert "nothing is kept" in result.err
    assert database.read_bytes() == b"scribbled" * 100
    named = cli("compact", path, "--request", "go on", "--store", str(tmp_path / HOME))
    assert named.status == 1


def test_store_and_no_store_exclude_each_other(cli: Cli, demo: Path) -> None:
    assert cli("compact", str(demo), "--store", "x", "--no-store").status == 2


def test_tenants_of_a_gateway_are_not_listed(cli: Cli, tmp_path: Path) -> None:
    from recap.session import Session

    with Store.open(tmp_path / HOME) as store, Session("a", store=store, tenant="t") as other:
        other.compact(conversation(4))
    assert kept(cli, "graph", "--json").json()["graphs"] == []


def test_verify_judges_and_repairs_a_damaged_store(cli: Cli, tmp_path: Path) -> None:
    assert kept(cli, "verify").status == 1  # there is none
    path = session(tmp_path / "s.json", 40)
    kept(cli, "compact", path, "--request", "go on", "-o", "c.json")
    assert kept(cli, "verify").status == 0
    database = tmp_path / HOME / "recap.db"
    data = bytearray(database.read_bytes())
    graph = data.index(b"RCPG")
    data[graph : graph + 64] = b"x" * 64
    database.write_bytes(data)
    assert kept(cli, "verify").status == 1
    assert kept(cli, "verify", "--repair", "--dry-run").status == 1
    assert database.read_bytes() == data
    report = kept(cli, "verify", "--repair", "--json").json()
    assert report["faults"]
    assert (Path(report["repair"]["copy"]) / "recap.db").read_bytes() == data
    assert kept(cli, "verify").status == 0
    assert "nothing is wrong" in kept(cli, "verify").out


def test_a_store_whose_database_is_gone_is_repaired_and_not_taken_for_none(
    cli: Cli, tmp_path: Path
) -> None:
    kept(cli, "observe", session(tmp_path / "s.json"))
    with Store.open(tmp_path / HOME) as store:
        (tmp_path / HOME / "backups").mkdir(exist_ok=True)
        store.backup(tmp_path / HOME / "backups" / "recap-20260101.db")
    for left in (tmp_path / HOME).glob("recap.db*"):
        left.unlink()
    for command in (("graph",), ("verify",), ("doctor",)):
        result = kept(cli, *command)
        assert result.status == 1
        assert "recap verify --repair" in result.out + result.err
    result = kept(cli, "verify", "--repair")
    assert result.status == 1  # what was stored since the backup is gone
    assert "from backup 1 of sessions" in result.out
    assert kept(cli, "verify").status == 0
    assert len(kept(cli, "graph", "--json").json()["graphs"]) == 1


@pytest.mark.parametrize("left", [0, 4096])
def test_a_store_of_which_nothing_is_left_is_not_said_to_have_lost_nothing(
    cli: Cli, tmp_path: Path, left: int
) -> None:
    kept(cli, "observe", session(tmp_path / "s.json"))
    database = tmp_path / HOME / "recap.db"
    database.write_bytes(database.read_bytes()[:left])
    result = kept(cli, "verify", "--repair")
    assert result.status == 1
    assert "lost        nothing\n" not in result.out
    assert "lost        what nothing names any more of sessions, selections" in result.out
    assert "repaired, not all of it" in result.out
    assert kept(cli, "verify").status == 0


def test_a_damaged_backup_is_told_and_moved_away(cli: Cli, tmp_path: Path) -> None:
    kept(cli, "observe", session(tmp_path / "s.json"))
    kept(cli, "graph")
    (backup,) = (tmp_path / HOME / "backups").glob("*.db")
    backup.write_bytes(backup.read_bytes()[:-5000])
    result = kept(cli, "verify")
    assert result.status == 1
    assert f"the backup {backup} is damaged" in result.out
    result = kept(cli, "verify", "--repair")
    assert result.status == 0
    assert "backups     1 damaged, moved away" in result.out
    assert "lost" not in result.out
    assert kept(cli, "verify").status == 0


def test_prices_of_the_settings_file_are_used_and_checked(cli: Cli, demo: Path) -> None:
    compact = ("compact", str(demo), "--request", "go on", "--dry-run")
    row = '[prices."demo-*"]\ninput = 2\ncache_read = 0.2\noutput = 9\nas_of = "2026-11-30"\n'
    (cli.folder / "recap.toml").write_text(row, encoding="utf-8")
    assert "prices of 2026-11-30" in " ".join(kept(cli, *compact).out.split())
    (cli.folder / "recap.toml").write_text(row.replace("output", "speed"), encoding="utf-8")
    for command in (compact, ("config",)):
        result = kept(cli, *command)
        assert (result.status, result.err.count("\n")) == (2, 1)
        assert "recap.toml: prices.'demo-*': unknown key 'speed'" in result.err


@pytest.mark.parametrize("name", ["recap.db", "secret"])
def test_the_store_is_no_output(cli: Cli, demo: Path, name: str) -> None:
    kept(cli, "observe", str(demo))
    before = (cli.folder / HOME / name).read_bytes()
    result = kept(cli, "compact", str(demo), "--request", "go on", "-o", f"{HOME}/{name}")
    assert (result.status, result.err.count("\n")) == (2, 1)
    assert (cli.folder / HOME / name).read_bytes() == before


def test_doctor_names_the_store(cli: Cli, tmp_path: Path) -> None:
    assert str(tmp_path / HOME) in kept(cli, "doctor", "--json").json()["store"]["folder"]
    (tmp_path / HOME).mkdir()
    (tmp_path / HOME / "recap.db").write_bytes(b"scribbled")
    assert kept(cli, "doctor").status == 1


@pytest.mark.parametrize(
    "extra", [("--retention", "0.5"), ("--policy", "paper"), ("--pin", "0"), ("--graph", "g")]
)
def test_what_an_earlier_selection_cannot_change_is_refused(
    cli: Cli, tmp_path: Path, extra: tuple[str, str]
) -> None:
    path = session(tmp_path / "s.json")
    kept(cli, "compact", path)
    assert kept(cli, "compact", path, "--selection=-1", *extra).status == 2


def test_a_folder_that_is_no_store_is_named(cli: Cli, tmp_path: Path) -> None:
    assert cli("graph", "--store", "typo").status == 1
    assert cli("verify", "--store", "").status == 2
    assert list(tmp_path.iterdir()) == []
