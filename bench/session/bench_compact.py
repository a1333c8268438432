"""What a request costs, by the length of its session and by what made the graph.

    python -m bench.session.bench_compact [--blocks 100 1000 10000]

Milliseconds of processor time of ``Session.compact`` for a new request of a made-up coding session,
the best of several; nothing is kept, so that each run does the same. No model is called in any row:

- ``reuse``: the graph of text reuse, which the request itself brings up to date by one turn.
- ``proxy``: the graph of a proxy model that has seen every turn but the last.
- ``lagging``: one that has seen half of the turns. The rest counts as never observed.

``here`` is a process that saw the session before, ``anew`` one that begins from the store.
"""

from __future__ import annotations

import argparse
import tempfile
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from bench.ingest.documents import anthropic
from bench.ingest.turns import turns
from bench.measured import keep, least_ms, where
from recap.config import Settings
from recap.graph.observation import TurnObservation
from recap.session import Session
from recap.store import Store

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from recap.blocks.table import BlockTable

SIZES = (100, 300, 1_000, 3_000, 10_000)
BLOCKS_A_TURN = 8
REUSE, PROXY = Settings(), Settings(observer="proxy")
RESULT = Path(__file__).parents[1] / "results" / "compact.json"
COLUMNS = (
    "blocks", "reuse_here", "reuse_anew", "proxy_here", "proxy_anew", "lagging_here", "lagging_anew",
    "unseen",
)  # fmt: skip

Row: TypeAlias = dict[str, float]


class Seen:
    """What became of a turn: every block of it was used, and leaned on the one before."""

    reason = ""

    def __init__(self, table: BlockTable, turn: int) -> None:
        ids = [id for id, of in zip(table.ids, table.turn.tolist(), strict=True) if of == turn]
        pairs = range(1, len(ids))
        self.turn = turn
        self.observation = TurnObservation.of(
            turn, ids, [1.0] * len(ids), [*pairs], [at - 1 for at in pairs], [0.5] * len(pairs)
        )


class Instant:
    """An observer that stands for a model: a graph is needed, not what a model would say."""

    fingerprint = "instant"

    def observe(
        self, table: BlockTable, turns: range, seeds: Sequence[int], served: Any
    ) -> Iterator[Seen]:
        """Yield what became of each turn."""
        return (Seen(table, turn) for turn in turns)


def measure(blocks: int, runs: int) -> Row:
    """Return the row of a session of about so many blocks."""
    said = [list(anthropic(turn)) for turn in islice(turns(), blocks // BLOCKS_A_TURN + 1)]
    messages = [message for turn in said for message in turn]
    half = [message for turn in said[: len(said) // 2] for message in turn]
    row: Row = {}
    for name, settings, seen in (
        ("reuse", REUSE, messages), ("proxy", PROXY, messages), ("lagging", PROXY, half),
    ):  # fmt: skip
        with tempfile.TemporaryDirectory() as folder, Store.open(Path(folder)) as store:
            opened = Session("s", store=store, settings=settings, observer=Instant())
            opened.observe(seen, open_turn=False)
            opened.compact(messages)
            row[f"{name}_here"] = least_ms(lambda s=opened: _asked(s, messages), runs)
            row[f"{name}_anew"] = least_ms(
                lambda s=store, c=settings: _asked(
                    Session("s", store=s, settings=c, observer=Instant()), messages
                ),
                runs,
            )
            done = _asked(opened, messages)
            row["blocks"], row["unseen"] = len(done.table), done.report.turns_not_observed
    return {name: round(value, 2) for name, value in row.items()}


def _asked(session: Session, messages: list[Any]) -> Any:
    return session.compact(messages, "add a retry to module_3.py", is_cold=True, keep=False)


def main() -> None:
    """Print a row for each length, and write them to the results."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--blocks", type=int, nargs="+", default=SIZES)
    parser.add_argument("--runs", type=int, default=5)
    args = parser.parse_args()
    print("".join(f"{column:>14}" for column in COLUMNS))
    rows = []
    for blocks in args.blocks:
        rows.append(row := measure(blocks, args.runs))
        print("".join(f"{row[column]:>14}" for column in COLUMNS), flush=True)
    keep(RESULT, rows, where("numpy"))


if __name__ == "__main__":
    main()
