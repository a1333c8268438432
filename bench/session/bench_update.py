"""What a turn costs a session that goes on, by the length of its history.

    python -m bench.session.bench_update [--blocks 100 1000 10000]

Milliseconds of processor time after one more turn of a made-up coding session, the best of several.
The messages are new objects, as a client sends them, and are read already:

- ``extend``: the table from the one before; ``fold``: repeats, observation, graph and stale marks;
  ``encode``: the graph as bytes. ``update`` is their sum: what a process that knows the session does.
- ``restart``: index cache and graph from bytes, blocks, table and fold: what another process does.
- ``segment``, ``cache``: all blocks anew, and the index cache as bytes.

A busy computer is slower by any factor: ``json`` is what the standard library decodes in the same
process, in MB/s.
"""

from __future__ import annotations

import argparse
import json
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from bench.ingest.documents import anthropic
from bench.ingest.turns import turns
from bench.measured import keep, least_ms, where
from recap.blocks.index_codec import decode_index, encode_index
from recap.blocks.segment import segment
from recap.blocks.table import build_table
from recap.capture.reuse import build_graph, turn_count
from recap.config import Settings
from recap.graph.codec import decode, encode
from recap.graph.repeats import find_repeats
from recap.transcript.lists import read_messages

if TYPE_CHECKING:
    from recap.blocks.table import BlockTable
    from recap.graph.state import ContextGraph
    from recap.transcript.model import Message

SIZES = (100, 300, 1_000, 3_000, 10_000)
BLOCKS_A_TURN = 8
LIMIT_MS, LIMIT_BLOCKS = 20, 1_000
SETTINGS = Settings()
RESULT = Path(__file__).parents[1] / "results" / "update.json"
COLUMNS = (
    "blocks", "update", "extend", "fold", "encode", "restart", "segment", "cache",
    "graph_bytes", "cache_bytes", "json",
)  # fmt: skip

Row: TypeAlias = dict[str, float]


def measure(blocks: int, runs: int) -> Row:
    """Return the row of a history of about so many blocks."""
    said = [list(anthropic(turn)) for turn in islice(turns(), blocks // BLOCKS_A_TURN + 1)]
    sent = json.dumps([message for turn in said for message in turn])
    messages = _read(sent)
    known = build_table(_read(json.dumps([m for turn in said[:-1] for m in turn])))
    graph = build_graph(known, SETTINGS)
    repeats = find_repeats(known, SETTINGS.stale_overlap)
    cache, kept = encode_index(known), encode(graph)
    table = build_table(messages)
    after = build_graph(table, SETTINGS)
    row: Row = {"blocks": len(table), "turns": turn_count(table)}
    row["extend"] = least_ms(lambda: known.extend(messages), runs)
    row["fold"] = least_ms(lambda: build_graph(table, SETTINGS, graph=graph, repeats=repeats), runs)
    row["encode"] = least_ms(lambda: encode(after), runs)
    row["update"] = row["extend"] + row["fold"] + row["encode"]
    row["restart"] = least_ms(lambda: _restart(messages, cache, kept), runs)
    row["segment"] = least_ms(lambda: segment(messages), runs)
    row["cache"] = least_ms(lambda: encode_index(table), runs)
    row["graph_bytes"], row["cache_bytes"] = len(encode(after)), len(encode_index(table))
    row["json"] = len(sent) / 1e3 / least_ms(lambda: json.loads(sent), runs)
    assert _restart(messages, cache, kept) == after
    return {name: round(value, 2) for name, value in row.items()}


def _restart(messages: tuple[Message, ...], cache: bytes, kept: bytes) -> ContextGraph:
    table: BlockTable = build_table(messages, cached=decode_index(cache))
    return build_graph(table, SETTINGS, graph=decode(kept))


def _read(sent: str) -> tuple[Message, ...]:
    return read_messages(json.loads(sent), "anthropic").messages


def main() -> None:
    """Print a row for each length, and write them to the results."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--blocks", type=int, nargs="+", default=SIZES)
    parser.add_argument("--runs", type=int, default=5)
    args = parser.parse_args()
    print("".join(f"{column:>12}" for column in COLUMNS))
    rows = []
    for blocks in args.blocks:
        row = measure(blocks, args.runs)
        rows.append(row)
        is_slow = row["blocks"] <= LIMIT_BLOCKS + BLOCKS_A_TURN and row["update"] > LIMIT_MS
        misses = f"  misses {LIMIT_MS} ms" if is_slow else ""
        print("".join(f"{row[column]:>12}" for column in COLUMNS) + misses, flush=True)
    keep(RESULT, rows, where("numpy"))


if __name__ == "__main__":
    main()
