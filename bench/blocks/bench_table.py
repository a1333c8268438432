"""Identifiers and the block table on real sessions: megabytes a second, size, growth, prefixes.

Processor time, so that other work on the computer counts less; the minimum is the figure. ``cold``
forgets everything read before, as in a new process; ``warm`` knows each token, as within a session.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, NamedTuple

import pytest

from recap.blocks import identifiers as reading
from recap.blocks import names, part_terms
from recap.blocks.identifiers import identifiers
from recap.blocks.segment import segment
from recap.blocks.table import BlockTable, build_table
from recap.transcript.formats import open_log
from tests.conftest import corpus_path

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_benchmark.fixture import BenchmarkFixture

    from recap.transcript.model import Message

pytestmark = pytest.mark.benchmark(timer=time.process_time)

BLOCKS = 10_000


class Corpus(NamedTuple):
    """Sessions of the corpus: their messages, and the texts that feed the index."""

    messages: Sequence[Message]
    texts: list[str]
    megabytes: float


@pytest.fixture(scope="module")
def sessions() -> Corpus:
    folder = corpus_path()
    paths = [
        *sorted(folder.glob("sessions/claude-code/entire-*.jsonl")),
        *sorted(folder.glob("swe-together/*.json")),
    ]
    if not paths:
        pytest.skip(f"corpus not found at {folder} (set RECAP_CORPUS)")
    messages = [message for path in paths for message in open_log(path).messages]
    parts = [part for message in messages for part in message.parts]
    texts = [part.text() for part in parts if part.kind in ("text", "call", "result")]
    size = sum(len(text.encode("utf-8", "replace")) for text in texts)
    return Corpus(messages, texts, size / 1e6)


@pytest.fixture(scope="module")
def long_table(sessions: Corpus) -> BlockTable:
    """A table of ``BLOCKS`` real blocks: the sessions in a row, over again as often as needed."""
    messages = list(sessions.messages)
    table = build_table(messages)
    while len(table) < BLOCKS:
        messages += sessions.messages
        table = build_table(messages)
    return table.prefix(BLOCKS)


def forget() -> None:
    """Bring the process to where a new one begins."""
    for memo in (reading._NAMES, reading._QUOTED):
        memo.clear()
        memo.nameless.clear()
    names._step.cache_clear()
    names._known_name.cache_clear()
    part_terms._MEMORY.entries.clear()
    part_terms._MEMORY.size = 0


def bench_identifiers_warm(benchmark: BenchmarkFixture, sessions: Corpus) -> None:
    for text in sessions.texts:
        identifiers(text)
    benchmark.pedantic(lambda: [identifiers(text) for text in sessions.texts], rounds=5)
    rate(benchmark, sessions.megabytes)


def bench_identifiers_cold(benchmark: BenchmarkFixture, sessions: Corpus) -> None:
    benchmark.pedantic(
        lambda: [identifiers(text) for text in sessions.texts], setup=forget, rounds=5
    )
    rate(benchmark, sessions.megabytes)


def bench_build_cold(benchmark: BenchmarkFixture, sessions: Corpus) -> None:
    found = segment(sessions.messages)
    table = benchmark.pedantic(
        lambda: build_table(sessions.messages, found), setup=forget, rounds=3
    )
    rate(benchmark, sessions.megabytes)
    sizes(benchmark, table)


def bench_build_warm(benchmark: BenchmarkFixture, sessions: Corpus) -> None:
    found = segment(sessions.messages)
    build_table(sessions.messages, found)
    benchmark.pedantic(lambda: build_table(sessions.messages, found), rounds=5)


def bench_prefix(benchmark: BenchmarkFixture, long_table: BlockTable) -> None:
    benchmark.pedantic(lambda: long_table.prefix(BLOCKS - 1), rounds=20)
    sizes(benchmark, long_table)


def bench_extend_by_a_turn(benchmark: BenchmarkFixture, long_table: BlockTable) -> None:
    messages = long_table.messages
    found = segment(messages)
    shorter = build_table(messages[:-20])
    table = benchmark.pedantic(lambda: shorter.extend(messages, found), rounds=5)
    sizes(benchmark, table)


def rate(benchmark: BenchmarkFixture, megabytes: float) -> None:
    """Add megabytes of text a second, of the fastest round."""
    benchmark.extra_info["mb_per_s"] = round(megabytes / benchmark.stats.stats.min, 2)


def sizes(benchmark: BenchmarkFixture, table: BlockTable) -> None:
    """Add what the table holds, and the bytes of its arrays for each block."""
    index = table.index
    arrays = (index.starts, index.terms, index.wrote, index.document_frequency)
    held = sum(array.nbytes for array in (*arrays, index.last_use, index.acts))
    benchmark.extra_info.update(
        blocks=len(table),
        vocabulary=index.size,
        entries=len(index.terms),
        bytes_per_block=round(held / len(table)),
    )
