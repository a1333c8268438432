"""``recap study``: what it prints and writes, and what it says of folders that hold no sessions."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from tests.study.conftest import write_session as session

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.conftest import Cli

QUICK = ("--policies", "coverage", "--retention", "0.1,0.2", "--half", "all", "--jobs", "1")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Three sessions in a folder."""
    made = tmp_path / "logs"
    made.mkdir()
    for name in ("one", "two", "three"):
        session(made / f"{name}.json")
    return made


def study(cli: Cli, folder: Path, *arguments: str) -> Any:
    return cli("study", "reuse", "--sessions", str(folder), *QUICK, *arguments)


def without_timings(text: str) -> dict[str, Any]:
    content: dict[str, Any] = json.loads(text)
    del content["timings"]
    return content


def test_the_tables_show_every_method_and_the_oracles(cli: Cli, folder: Path) -> None:
    result = study(cli, folder)
    assert result.status == 0, result.err
    for name in ("coverage", "recency", "oracle-id-exec", "oracle-line-act"):
        assert f"\n{name} " in result.out
    assert "of 3 sessions" in result.out


def test_json_says_its_schema_and_has_a_cell_for_all(cli: Cli, folder: Path) -> None:
    content = study(cli, folder, "--json").json()
    assert content["schema"] == "recap.study.reuse/1"
    methods = [method["name"] for method in content["methods"]]
    cells = [(c["half"], c["retention"], c["method"]) for c in content["cells"]]
    assert len(cells) == len(set(cells)) == len(content["halves"]) * 2 * len(methods)
    assert {c["sessions"] for c in content["cells"] if c["half"] == "all"} == {3}


@pytest.mark.slow
def test_the_number_of_processes_changes_nothing(cli: Cli, folder: Path) -> None:
    one, two = folder.parent / "one.json", folder.parent / "two.json"
    assert study(cli, folder, "--json", str(one)).status == 0
    assert study(cli, folder, "--json", str(two), "--jobs", "2").status == 0
    assert without_timings(one.read_text()) == without_timings(two.read_text())


def test_files_are_written_whole_and_named(cli: Cli, folder: Path) -> None:
    result = study(cli, folder, "--json", "s.json", "--html", "s.html", "--rows", "rows.jsonl")
    assert result.status == 0, result.err
    for name in ("s.json", "s.html", "rows.jsonl"):
        assert f"written to {name}" in result.out
        assert (cli.folder / name).stat().st_size
    rows = [json.loads(line) for line in (cli.folder / "rows.jsonl").read_text().splitlines()]
    assert {row["session"] for row in rows} == {"one.json", "two.json", "three.json"}


def test_a_session_that_lies_there_twice_counts_once(cli: Cli, folder: Path) -> None:
    deep = folder / "deep"
    deep.mkdir()
    session(deep / "other.json", first="one")
    content = study(cli, folder, "--json").json()
    assert content["corpus"]["duplicates"] == {"deep/other.json": "one.json"}
    assert len(content["corpus"]["sessions"]) == 3


def test_what_is_no_session_is_counted_with_its_reason(cli: Cli, folder: Path) -> None:
    (folder / "noise.json").write_bytes(b"\x00\x01\x02" * 50)
    (folder / "list.json").write_text("[1, 2, 3]")
    (folder / "empty.jsonl").write_text("")
    (folder / "folder.md").mkdir()
    session(folder / "short.json", turns=1)
    corpus = study(cli, folder, "--json").json()["corpus"]
    assert corpus["unread"] == {
        "empty.jsonl": "is empty",
        "list.json": "no known format",
        "noise.json": "is a binary file, not a session",
    }
    assert set(corpus["short"]) == {"short.json"}
    assert len(corpus["sessions"]) == 3


def test_what_is_not_read_is_named_in_the_report_and_the_page(cli: Cli, folder: Path) -> None:
    for at in range(5):
        (folder / f"empty{at}.jsonl").write_text("\n" * at)
    result = study(cli, folder, "--html", "s.html")
    assert result.status == 0, result.err
    words = "not read: empty0.jsonl (is empty), empty1.jsonl (no message in it), "
    assert "5 not read" in result.out
    for told in (result.out, (cli.folder / "s.html").read_text()):
        assert words in told
        assert "and 2 more" in told


def test_what_cannot_be_read_fails_a_study_that_is_told_all_the_same(
    cli: Cli, folder: Path
) -> None:
    loop = folder / "loop.json"
    loop.symlink_to(loop)
    result = study(cli, folder, "--sessions", str(loop), "--json", "s.json")
    assert result.status == 1
    assert "1 file or folder could not be read" in result.err
    assert "loop.json (Too many levels of symbolic links)" in result.out
    assert json.loads((cli.folder / "s.json").read_text())["corpus"]["unread"]
    assert result.err.count("\n") == 1


def test_a_folder_that_cannot_be_listed_is_named(cli: Cli, folder: Path) -> None:
    locked = folder / "locked"
    locked.mkdir()
    session(locked / "hidden.json")
    locked.chmod(0)
    if os.access(locked, os.R_OK):
        pytest.skip("this user may read everything")
    result, alone = study(cli, folder), study(cli, locked)
    locked.chmod(0o700)
    assert result.status == alone.status == 1
    assert "locked (Permission denied)" in result.out
    assert "locked: Permission denied" in alone.err


def test_a_file_that_is_reached_twice_counts_once(cli: Cli, folder: Path) -> None:
    (folder / "empty.jsonl").write_text("")
    (folder / "link.json").symlink_to("one.json")
    again = ("--sessions", f"{folder}/../logs", "--sessions", str(folder / "empty.jsonl"))
    corpus = study(cli, folder, *again, "--json").json()["corpus"]
    assert len(corpus["sessions"]) == 3
    assert not corpus["duplicates"]
    assert set(corpus["unread"]) == {"empty.jsonl"}


def test_files_of_one_name_in_two_folders_all_count(cli: Cli, tmp_path: Path) -> None:
    for at, place in enumerate(("a", "b", "a/b")):
        (tmp_path / place).mkdir()
        session(tmp_path / place / "x.json", first=f"number {at}")
    corpus = study(cli, tmp_path / "a", "--sessions", "b", "--json").json()["corpus"]
    assert len(corpus["sessions"]) == 3


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--policies", "nothing"), "unknown policy 'nothing'; policies: coverage"),
        (("--policies", ""), "--policies names no method"),
        (("--policies", " , "), "--policies names no method"),
        (("--sessions", ""), "--sessions names nothing"),
        (("--json", ""), "--json names nothing"),
        (("--html", ""), "--html names nothing"),
        (("--rows", ""), "--rows names nothing"),
        (("--judge", ""), "--judge names nothing"),
        (("--retention", "0"), "retention"),
        (("--retention", "1.5"), "retention"),
        (("--retention", ","), "--retention takes shares"),
        (("--set", "retention=0.1"), "--retention"),
        (("--set", "policy=paper"), "--policies"),
        (("--set", "nothing=1"), "unknown setting"),
        (("--observer", "engine"), "reuse or proxy"),
        (("--html", "nowhere/s.html"), "--html nowhere/s.html: name a file in a folder"),
        (("--rows", "."), "--rows .: name a file"),
        (("--html", "/proc/s.html"), "--html: no file can be made in /proc"),
        (("--half", "some"), "--half"),
        (("--jobs", "0"), "--jobs"),
    ],
)
def test_wrong_use_is_one_line(
    cli: Cli, folder: Path, arguments: tuple[str, ...], words: str
) -> None:
    result = cli("study", "reuse", "--sessions", str(folder), *arguments)
    assert (result.status, result.out) == (2, "")
    assert words in result.err
    assert result.err.count("\n") == 1


def test_a_result_never_replaces_a_session(cli: Cli, folder: Path) -> None:
    before = (folder / "one.json").read_bytes()
    (folder / "link").symlink_to("one.json")
    for target in ("one.json", "link"):
        result = study(cli, folder, "--html", str(folder / target))
        assert result.status == 2
        assert result.err.endswith("give --html another file\n")
        assert " -o" not in result.err
    assert (folder / "one.json").read_bytes() == before


@pytest.mark.parametrize("content", [None, "noise", "short"])
def test_a_folder_without_sessions_fails_in_one_line(
    cli: Cli, tmp_path: Path, content: str | None
) -> None:
    folder = tmp_path / "logs"
    folder.mkdir()
    if content == "noise":
        (folder / "a.json").write_text("[1]")
    if content == "short":
        session(folder / "a.json", turns=1)
    result = study(cli, folder)
    assert (result.status, result.out) == (1, "")
    assert result.err.count("\n") == 1


def test_a_folder_that_is_missing_is_named(cli: Cli, tmp_path: Path) -> None:
    result = study(cli, tmp_path / "gone")
    assert result.status == 1
    assert "gone" in result.err


def test_a_half_without_sessions_is_said(cli: Cli, tmp_path: Path) -> None:
    from recap.study.transitions import is_test

    folder = tmp_path / "logs"
    folder.mkdir()
    path = session(folder / "only.json")
    other = "dev" if is_test(path) else "test"
    result = cli("study", "reuse", "--sessions", str(folder), "--half", other)
    assert result.status == 1
    assert f"of the {other} half" in result.err


def test_help_loads_neither_numpy_nor_the_study(cli: Cli) -> None:
    code = (
        "import sys\nfrom recap.cli import run\nrun(['study', 'reuse', '--help'])\n"
        "sys.exit(sum(m in sys.modules for m in ('numpy', 'rich', 'recap.study')))"
    )
    assert (
        subprocess.run([sys.executable, "-c", code], capture_output=True, check=False).returncode
        == 0
    )


def test_methods_are_listed_with_what_is_missing(cli: Cli) -> None:
    listed = cli("study", "methods", "--json").json()["methods"]
    names = [method["name"] for method in listed]
    assert len(set(names)) == len(names)
    assert {"coverage", "recency", "full-history"} <= set(names)
    shown = cli("study", "methods").out
    assert all(method["name"] in shown and method["help"][:20] in shown for method in listed)
    assert shown.count("missing: ") == sum(bool(method["missing"]) for method in listed)
    options = {method["name"]: method["options"] for method in listed}
    assert [option["name"] for option in options["litellm-compress"]] == ["form", "model"]
    assert "form=openai: form of the messages" in shown
    assert options["coverage"] == options["full-history"] == []


def test_variants_and_foreign_methods_stand_beside_the_recipes(cli: Cli, folder: Path) -> None:
    asked = "full-history,coverage-lines,coverage:expansion=0;recency_share=1"
    result = study(cli, folder, "--policies", asked, "--json")
    assert result.status == 0, result.err
    content = result.json()
    cells = {
        c["method"]: c for c in content["cells"] if (c["half"], c["retention"]) == ("all", "0.2")
    }
    assert set(asked.split(",")) < set(cells)
    assert cells["full-history"]["kept_blocks"] == cells["full-history"]["blocks"]
    assert cells["full-history"]["scores"]["id_exec"]["level"]["mean"] == 1
    assert (
        cells["coverage:expansion=0;recency_share=1"]["of_budget"] <= cells["recency"]["of_budget"]
    )


@pytest.mark.parametrize(
    ("policy", "status", "words"),
    [
        ("coverage:nothing=1", 2, "unknown setting"),
        ("coverage:expansion", 2, "KEY=VALUE"),
        ("full-history:a=1", 2, "no option 'a'"),
        ("full-history:", 2, "KEY=VALUE"),
        ("coverage:", 2, "KEY=VALUE"),
        ("none:a=1", 2, "none has no options"),
        ("summary:key=secret", 2, "no option 'key'"),
        ("llmlingua2", 1, "cannot run here"),
    ],
)
def test_a_method_that_cannot_be_made_is_one_line(
    cli: Cli, folder: Path, policy: str, status: int, words: str
) -> None:
    result = cli("study", "reuse", "--sessions", str(folder), "--policies", policy)
    assert result.status == status
    assert words in result.err
    assert result.err.count("\n") == 1


@pytest.mark.slow
def test_the_study_runs_with_a_proxy_model(cli: Cli, tmp_path: Path) -> None:
    from tests.capture.tiny_models import make_model

    model = make_model(tmp_path / "model", "llama")
    (tmp_path / "logs").mkdir()
    session(tmp_path / "logs" / "s.json", turns=4)
    asked = ("--half", "all", "--policies", "paper", "--retention", "0.2", "--json", "--jobs", "1")
    where = ("study", "reuse", "--sessions", str(tmp_path / "logs"))
    proxy = cli(*where, *asked, "--observer", "proxy", "--set", f"proxy_model={model}")
    assert proxy.status == 0, proxy.err
    assert proxy.json()["observer"] == "proxy"
    assert cli(*where, *asked, "--observer", "proxy", RECAP_HOME=str(tmp_path)).status == 1
    observed = ("--observer", "proxy", "--set", f"proxy_model={model}")
    both = cli(*where, *asked, *observed, "--judge", str(model))
    assert both.status == 0, both.err
    judged = [cell["scores"].get("judge") for cell in both.json()["cells"]]
    assert any(judged)


def test_a_judge_without_a_model_is_one_line(cli: Cli, folder: Path) -> None:
    result = study(cli, folder, "--judge", "nowhere")
    assert result.status == 1
    assert "nowhere holds no model" in result.err
    assert result.err.count("\n") == 1


@pytest.mark.slow
def test_a_judge_says_what_each_method_is_worth(cli: Cli, tmp_path: Path) -> None:
    from tests.capture.tiny_models import make_model

    model = make_model(tmp_path / "model", "llama")
    (tmp_path / "logs").mkdir()
    session(tmp_path / "logs" / "s.json", turns=3)
    asked = ("--policies", "coverage,none", "--retention", "0.3", "--half", "all", "--jobs", "1")
    result = cli(
        *("study", "reuse", "--sessions", str(tmp_path / "logs"), *asked, "--json"),
        *("--judge", str(model), "--judge-cache", str(tmp_path / "said")),
    )
    assert result.status == 0, result.err
    said = {c["method"]: c["scores"].get("judge") for c in result.json()["cells"]}
    assert said["coverage"]["level"]["mean"] > 0
    assert said["none"]["difference"] is not None
    assert said["oracle-line-exec"] is None  # one oracle is enough
    assert len(list((tmp_path / "said").iterdir())) > 1


def test_a_file_name_that_is_no_utf8_is_a_session_like_others(cli: Cli, folder: Path) -> None:
    (folder / "one.json").rename(os.fsdecode(os.fsencode(folder) + b"/caf\xe9.json"))
    result = study(cli, folder, "--json", str(folder / "s.out"), "--html", str(folder / "s.html"))
    assert result.status == 0, result.err
    content = json.loads((folder / "s.out").read_text(encoding="utf-8"))
    assert "caf\\udce9.json" in content["corpus"]["sessions"]


@pytest.mark.parametrize(
    ("policies", "words"),
    [
        ("coverage:retention=0.5", "use --retention"),
        ("coverage:policy=paper", "name the policy itself"),
        ("coverage:observer=engine", "use --observer"),
        ("paper:smoothing=0.9", "use --set"),
        ("coverage:layers=2", "use --set"),
        ("coverage:expansion=0;expansion=1", "given twice"),
    ],
)
def test_a_variant_has_no_budget_of_its_own(
    cli: Cli, folder: Path, policies: str, words: str
) -> None:
    result = cli("study", "reuse", "--sessions", str(folder), "--policies", policies)
    assert (result.status, result.out) == (2, "")
    assert words in result.err


def test_two_results_never_share_a_file(cli: Cli, folder: Path) -> None:
    (folder / "y").symlink_to("x")
    for other in ("x", "y"):
        result = study(cli, folder, "--json", str(folder / "x"), "--html", str(folder / other))
        assert result.status == 2
        assert "one file" in result.err
        assert not (folder / "x").exists()


def test_verdicts_are_kept_of_a_judge_alone(cli: Cli, folder: Path) -> None:
    assert study(cli, folder, "--judge-cache", str(folder / "said")).status == 2
