"""A session seen turn by turn, in any number of processes, knows what one run over the whole knows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import recap
from recap.blocks.table import build_table
from recap.capture.reuse import build_graph
from recap.config import Settings
from recap.session import Session, compact_transcript
from recap.transcript.formats import open_log
from recap.transcript.model import Transcript
from recap.turns import boundaries
from tests.testing import conversation

if TYPE_CHECKING:
    from pathlib import Path

SETTINGS = Settings(retention="0.3")
LONGEST = 12


def prefixes(transcript: Transcript) -> list[Transcript]:
    """Return the session as it was when each of its first requests had arrived."""
    found = [each for each in boundaries(transcript.messages) if not each.is_steering]
    ends = [each.message + 1 for each in found[:LONGEST]]
    return [cut(transcript, end) for end in ends]


def cut(transcript: Transcript, end: int) -> Transcript:
    return Transcript(
        transcript.format, transcript.dialect, transcript.messages[:end], session_id="s"
    )


def chosen(done: recap.Compaction) -> tuple[Any, ...]:
    rules = [decision.rule for decision in done.selection.decisions()]
    return done.graph, done.table.ids, rules, done.to_json()


@pytest.mark.parametrize("policy", ["coverage", "paper"])
def test_a_new_process_for_each_turn_equals_one_run(tmp_path: Path, policy: str) -> None:
    messages = conversation(8)
    ends = [at + 1 for at, m in enumerate(messages) if isinstance(m["content"], str)]
    for end in ends:
        with Session("s", store=tmp_path, settings=SETTINGS) as session:
            grown = session.compact(messages[:end], policy=policy)
        with Session("s", settings=SETTINGS) as fresh:
            whole = fresh.compact(messages[:end], policy=policy)
        assert chosen(grown) == chosen(whole)


@pytest.mark.corpus
@pytest.mark.parametrize(
    "name",
    ["entire-61a4-19turns.jsonl", "entire-fc99-compact-image.jsonl", "swarm-9turns-queue.jsonl"],
)
def test_real_sessions_turn_by_turn_equal_one_run(corpus: Path, tmp_path: Path, name: str) -> None:
    transcript = open_log(corpus / "sessions" / "claude-code" / name)
    with Session("s", settings=SETTINGS) as kept:
        for prefix in prefixes(transcript):
            with Session("s", store=tmp_path, settings=SETTINGS) as session:
                stored = session.compact(prefix)
            here = kept.compact(prefix)
            with Session("s", settings=SETTINGS) as fresh:
                whole = fresh.compact(prefix)
            assert chosen(stored) == chosen(whole) == chosen(here)


def test_a_session_without_an_id_selects_as_without_a_session(tmp_path: Path) -> None:
    messages = conversation(6)
    with Session(store=tmp_path, settings=SETTINGS) as session:
        done = session.compact(messages, "now the tests", policy="paper")
    alone = recap.compact(messages, "now the tests", settings=SETTINGS, policy="paper")
    assert chosen(done) == chosen(alone)


def test_a_request_that_was_never_sent_leaves_no_trace_in_the_graph(tmp_path: Path) -> None:
    messages = conversation(6)
    with Session("s", store=tmp_path, settings=SETTINGS) as session:
        session.compact(messages[:-3], "a question that is not asked in the end")
    with Session("s", store=tmp_path, settings=SETTINGS) as session:
        done = session.compact([*messages, {"role": "user", "content": "go on"}])
    table = build_table(done.known.moment.messages).prefix(len(done.table))
    assert done.graph == build_graph(table, SETTINGS)


def test_other_coefficients_make_the_graph_anew(tmp_path: Path) -> None:
    messages = conversation(6)
    with Session("s", store=tmp_path) as session:
        session.compact(messages)
    other = Settings(smoothing=0.9)
    with Session("s", store=tmp_path, settings=other) as session:
        done = session.compact(messages)
    assert done.graph == recap.compact(messages, settings=other).graph


def test_a_second_run_reads_no_identifiers_of_old_blocks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    messages = conversation(6)
    with Session("s", store=tmp_path) as session:
        session.compact(messages[:-4])
    read: list[object] = []
    from recap.blocks import table as tables

    original = tables.part_terms
    monkeypatch.setattr(tables, "part_terms", lambda part: read.append(part) or original(part))
    with Session("s", store=tmp_path) as session:
        done = session.compact(messages, "next")
    new = [block for block in done.table.blocks if block.refs[0].message >= len(messages) - 8]
    assert 0 < len(read) <= sum(len(block.refs) for block in new)


def test_a_rewound_session_forgets_what_was_taken_back(tmp_path: Path) -> None:
    messages = conversation(6)
    other = [*messages[: len(messages) // 2], *conversation(9)[-7:]]
    with Session("s", store=tmp_path) as session:
        session.compact(messages, "next")
        done = session.compact(other, "next")
    alone = recap.compact(other, "next")
    assert done.table.ids == alone.table.ids
    assert done.graph == alone.graph


def test_an_older_view_of_a_session_takes_nothing_from_the_newer(tmp_path: Path) -> None:
    messages = conversation(8)
    with Session("s", store=tmp_path) as session:
        session.compact(messages)
        newest = session.row
    with Session("s", store=tmp_path) as session:
        done = session.compact(messages[: len(messages) // 2])
        assert session.row is not None
        assert newest is not None
        assert session.row.graph == newest.graph
    assert done.graph == recap.compact(messages[: len(messages) // 2]).graph


def test_sessions_of_other_ids_agents_and_tenants_are_apart(tmp_path: Path) -> None:
    messages = conversation(4)
    names = [("a", "", ""), ("b", "", ""), ("a", "sub", ""), ("a", "", "t")]
    rows = set()
    for id, agent, tenant in names:
        with Session(id, store=tmp_path, agent=agent, tenant=tenant) as session:
            session.compact(messages)
            assert session.row is not None
            rows.add((session.row.tenant, session.row.id))
    assert len(rows) == len(names)


def test_the_pipeline_without_a_memory_is_the_session_without_a_past() -> None:
    transcript = recap.read_messages(conversation(5))
    with Session() as session:
        assert chosen(session.compact(transcript)) == chosen(compact_transcript(transcript))
