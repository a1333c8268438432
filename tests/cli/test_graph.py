"""``recap graph`` and ``recap observe``: the context graph, shown and stored."""

from __future__ import annotations

import re
import stat
from typing import TYPE_CHECKING

import pytest

from recap.graph.codec import decode, encode

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.conftest import Cli


def test_json_holds_every_node_and_edge(cli: Cli, demo: Path) -> None:
    answer = cli("graph", str(demo), "--json").json()
    nodes, edges = answer["nodes"], answer["edges"]
    assert answer["schema"] == "recap.graph/1"
    assert len(nodes) == cli("inspect", str(demo), "--json").json()["blocks"]
    assert [node["index"] for node in nodes] == list(range(len(nodes)))
    assert all(0 <= node["importance"] <= 1 for node in nodes)
    assert edges
    assert all(edge["source"] < edge["target"] < len(nodes) for edge in edges)
    assert all(0 < edge["mass"] <= 1 for edge in edges)


def test_dot_is_a_graph_of_the_same_size(cli: Cli, demo: Path) -> None:
    answer = cli("graph", str(demo), "--json").json()
    source = cli("graph", str(demo), "--dot").out
    assert source.startswith("digraph recap {\n")
    assert source.endswith("}\n")
    assert len(re.findall(r"^  b\d+ \[", source, re.M)) == len(answer["nodes"])
    assert len(re.findall(r"^  b\d+ -> b\d+ ", source, re.M)) == len(answer["edges"])


def test_dot_escapes_what_blocks_say(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "list.json").write_text('[{"role": "user", "content": "say \\"hi\\" \\\\ [x]"}]')
    assert r'label="#0 say \"hi\" \\ [x]"' in cli("graph", "list.json", "--dot").out


def test_json_and_dot_are_one_too_many(cli: Cli, demo: Path) -> None:
    assert cli("graph", str(demo), "--json", "--dot").status == 2


def test_the_report_names_used_blocks_and_strong_edges(cli: Cli, demo: Path) -> None:
    out = cli("graph", str(demo)).out
    assert "support edges, 12 turns observed by reuse" in out
    assert "most used" in out
    assert "strongest edges" in out


def test_observe_writes_a_graph_that_graph_shows(cli: Cli, demo: Path, tmp_path: Path) -> None:
    result = cli("observe", str(demo), "-o", "session.graph")
    path = tmp_path / "session.graph"
    assert result.status == 0
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert encode(decode(path.read_bytes())) == path.read_bytes()
    built = cli("graph", str(demo), "--json").out
    assert cli("graph", str(demo), "--graph", "session.graph", "--json").out == built


def test_a_graph_holds_no_text_of_the_session(cli: Cli, demo: Path, tmp_path: Path) -> None:
    cli("observe", str(demo), "-o", "g")
    data = (tmp_path / "g").read_bytes()
    assert not any(word in data for word in (b"Northwind", b"orderimport", b"retry", b"/home"))


def test_observe_into_nothing_is_wrong_use(cli: Cli, demo: Path) -> None:
    assert cli("observe", str(demo), "--no-store").status == 2
    assert cli("observe", str(demo), str(demo), "-o", "g").status == 2


def test_observe_dry_run_writes_nothing(cli: Cli, demo: Path, tmp_path: Path) -> None:
    answer = cli("observe", str(demo), "-o", "g", "--dry-run", "--json").json()
    assert (answer["schema"], answer["written"]) == ("recap.observe/2", False)
    assert answer["sessions"][0]["bytes"] > 0
    assert list(tmp_path.iterdir()) == []


def test_observe_never_overwrites_the_session(cli: Cli, demo: Path, tmp_path: Path) -> None:
    (tmp_path / "s.jsonl").write_bytes(demo.read_bytes())
    assert cli("observe", "s.jsonl", "-o", "s.jsonl").status == 2
    assert (tmp_path / "s.jsonl").read_bytes() == demo.read_bytes()


@pytest.mark.parametrize("name", ["graph", "compact", "explain"])
def test_a_graph_of_another_kind_of_file_is_refused(cli: Cli, demo: Path, name: str) -> None:
    result = cli(name, str(demo), "--graph", str(demo))
    assert result.status == 1
    assert result.err.count("\n") == 1


def test_a_graph_that_is_not_there_is_named(cli: Cli, demo: Path) -> None:
    assert "gone.graph" in cli("graph", str(demo), "--graph", "gone.graph").err
