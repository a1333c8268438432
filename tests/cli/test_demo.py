"""``recap demo``: at most 30 lines, each number recomputed here in another way."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import pytest

from recap.cli.demo import RETENTION
from recap.config import Settings
from recap.session import Compaction, compact_transcript
from recap.transcript.check import check
from recap.transcript.formats import open_log

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.conftest import Cli


@pytest.fixture
def compaction(demo: Path, request_text: str) -> Compaction:
    """What the demo shows, from the library."""
    return compact_transcript(open_log(demo), request_text, settings=Settings(retention=RETENTION))


def rows(out: str, first: str) -> list[str]:
    return [line for line in out.splitlines() if line.startswith(first + " ")]


def test_it_fits_on_a_screen(cli: Cli) -> None:
    result = cli("demo")
    assert (result.status, result.err) == (0, "")
    assert len(result.out.splitlines()) <= 30


def test_the_numbers_are_those_of_the_compaction(cli: Cli, compaction: Compaction) -> None:
    out = cli("demo").out
    report = compaction.report
    assert re.search(
        rf"{report.kept_chars:,} of {report.history_chars:,} characters kept in [\d.,]+ ms, "
        "no model call, valid for Anthropic",
        out,
    )
    assert f"12 turns, {report.blocks} blocks" in out
    assert check(compaction.messages, "anthropic") == []


def test_it_shows_five_kept_and_three_dropped_blocks_with_reasons(cli: Cli) -> None:
    out = cli("demo").out
    assert len(rows(out, "kept")) == 5
    assert len(rows(out, "dropped")) == 3


def test_one_kept_block_is_revived_from_an_early_turn_by_an_edge(
    cli: Cli, compaction: Compaction
) -> None:
    (row,) = [row for row in rows(cli("demo").out, "kept") if "revived" in row]
    page = next(d for d in compaction.selection.decisions() if d.rule == "expanded" and d.turn == 1)
    assert page.pulled_by is not None
    assert "partner-northwind.md" in row
    assert row.split()[1] == "2"
    assert page.turn < compaction.table.blocks[page.pulled_by].turn
    assert f"{page.edge_mass:.2f}" in row


def test_the_count_of_kept_names_is_that_of_the_rendered_text(
    cli: Cli, compaction: Compaction, demo: Path, request_text: str
) -> None:
    answer = cli("demo", "--json").json()
    newest = compact_transcript(
        open_log(demo),
        request_text,
        settings=Settings(
            policy="recency",
            retention=f"{compaction.report.kept_chars}/{compaction.report.history_chars}",
        ),
    )
    assert newest.report.kept_chars <= compaction.report.kept_chars
    for context, kept in (
        (compaction, answer["kept_by_recap"]),
        (newest, answer["kept_by_newest_first"]),
    ):
        text = json.dumps(context.messages, ensure_ascii=False)
        codes = [name for name in answer["needed"] if re.fullmatch(r"E\d{4}_[A-Z_]+", name)]
        assert codes
        assert [name in kept for name in codes] == [name in text for name in codes]


def test_needed_names_are_written_by_the_agent_and_shown_by_nothing_before(
    cli: Cli, demo: Path, request_text: str
) -> None:
    needed = cli("demo", "--json").json()["needed"]
    agent = ""
    for message in open_log(demo.with_name("next_turn.jsonl")).messages:
        for part in message.parts:
            agent += part.text() + "\n" if part.author == "agent" else ""
    assert len(needed) > 12
    assert all(name in agent for name in needed)
    assert not any(name in request_text for name in needed)


def test_recap_keeps_more_of_them_than_newest_first(cli: Cli) -> None:
    answer = cli("demo", "--json").json()
    assert len(answer["kept_by_recap"]) > len(answer["kept_by_newest_first"])
    assert set(answer["kept_by_recap"]) <= set(answer["needed"])
    out = cli("demo").out
    assert f"Recap kept         {len(answer['kept_by_recap'])}, " in out
    assert f"newest first kept  {len(answer['kept_by_newest_first'])} " in out


def test_it_says_that_the_session_was_written_for_the_demo(cli: Cli) -> None:
    assert "written for this demo" in cli("demo").out
    assert cli("demo", "--json").json()["written_for_demo"] is True


def test_the_two_next_commands_work(cli: Cli, tmp_path: Path) -> None:
    lines = cli("demo").out.splitlines()[-2:]
    for line in lines:
        words = line.removeprefix("Next:").split()
        assert words[0] == "recap"
        assert cli(*words[1:]).status == 0
    assert json.loads((tmp_path / "context.json").read_bytes())


def test_next_commands_name_the_users_own_session_when_there_is_one(
    cli: Cli, demo: Path, tmp_path: Path
) -> None:
    folder = tmp_path / ".claude" / "projects" / "p"
    folder.mkdir(parents=True)
    (folder / "s.jsonl").write_bytes(demo.read_bytes())
    assert all("--latest" in line for line in cli("demo").out.splitlines()[-2:])


def test_other_settings_do_not_change_the_demo(cli: Cli) -> None:
    plain = cli("demo", "--json").json()
    changed = cli("demo", "--json", RECAP_RETENTION="0.9", RECAP_POLICY="random").json()
    assert plain["kept_by_recap"] == changed["kept_by_recap"]
