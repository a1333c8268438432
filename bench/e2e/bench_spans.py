"""How many turns of real sessions a proxy can observe: replay, fit, attribute tokens, detokenise.

    python -m bench.e2e.bench_spans [--model FOLDER] [--limit 1024]     # needs RECAP_CORPUS

The first turns of every session of the development half (md5 of the file's stem is even). A turn is
verified when the tokens of every block, detokenised, are the block's words in the rendered prompt,
character by character. Where the words' first or last character shares a token with the template's
own, that token is nobody's: such turns are counted apart. Processor time of one thread.
"""

from __future__ import annotations

import argparse
import os
import time
from collections import Counter
from dataclasses import dataclass
from hashlib import md5
from pathlib import Path
from statistics import median, quantiles
from typing import Any

from bench.measured import keep, where
from recap.blocks.table import BlockTable, build_table
from recap.capture.models import resolve
from recap.capture.replay import Replay, ReplayError, fitting
from recap.capture.spans import Segments, SpanError, message_spans
from recap.transcript.formats import open_log

TURNS = 3
EDGE_CHARS = 16
"""Characters that the token across an end of the words may hold."""

RESULT = Path(__file__).parents[1] / "results" / "spans.json"


@dataclass(frozen=True, slots=True)
class Template:
    """A tokenizer of transformers with its chat template."""

    tokenizer: Any

    def render(self, messages: Any) -> str:
        return self.tokenizer.apply_chat_template(list(messages), tokenize=False)

    def encode(self, text: str) -> tuple[list[int], list[tuple[int, int]]]:
        made = self.tokenizer(
            text, add_special_tokens=False, return_offsets_mapping=True, verbose=False
        )
        return made["input_ids"], made["offset_mapping"]

    def count(self, replay: Replay) -> int:
        return len(self.encode(self.render(replay.messages))[0])

    def decode(self, ids: Any) -> str:
        return self.tokenizer.decode(ids, clean_up_tokenization_spaces=False)


@dataclass(slots=True)
class Turn:
    """What became of one turn: ``verified``, ``edge``, ``differs`` or a reason to drop it."""

    outcome: str
    blocks: int = 0
    tokens: int = 0
    clip: int = 0
    left_out: int = 0
    fit_ms: float = 0.0
    span_ms: float = 0.0


def is_development(path: Path) -> bool:
    """Return True for the half of the corpus that may be looked at while building."""
    return int(md5(path.stem.encode()).hexdigest(), 16) % 2 == 0


def sessions(corpus: Path) -> list[tuple[str, BlockTable]]:
    """Return the development sessions, each content once."""
    found: dict[tuple[str, ...], tuple[str, BlockTable]] = {}
    for path in sorted([*corpus.glob("sessions/*/*"), *corpus.glob("swe-together/*.json")]):
        if is_development(path):
            table = build_table(open_log(path).messages)
            found.setdefault(table.ids[:4], (path.name, table))
    return list(found.values())


def outcome_of(template: Template, replay: Replay, segments: Segments, ids: Any) -> str:
    """Return what comparing each block's detokenised tokens with its words says."""
    outcome = "verified"
    for at, block in enumerate(replay.ids):
        owned = [m for m, owner in zip(replay.messages, replay.owner, strict=True) if owner == at]
        words = [m["content"].strip() for m in owned]
        known = segments.ids.index(block) if block in segments.ids else -2
        runs = [
            template.decode(ids[start:end])
            for start, end, owner in zip(
                segments.offsets, segments.offsets[1:], segments.owner, strict=False
            )
            if owner == known
        ]
        if runs == words:
            continue
        near = len(runs) == len(words) and all(
            run in word and len(word) - len(run) <= 2 * EDGE_CHARS
            for run, word in zip(runs, words, strict=True)
        )
        if not near:
            return "differs"
        outcome = "edge"
    return outcome


def observe(template: Template, table: BlockTable, turn: int, limit: int) -> Turn:
    """Replay one turn and judge its spans."""
    begun = time.process_time()
    try:
        replay = fitting(table, turn, limit, template.count)
    except ReplayError:
        return Turn("replay")
    fitted = time.process_time()
    try:
        spans = message_spans(replay.messages, template)
        segments = Segments.of(replay.ids, replay.owner, spans)
    except SpanError as err:
        return Turn(err.reason)
    done = time.process_time()
    return Turn(
        outcome_of(template, replay, segments, spans.ids),
        len(replay.ids),
        len(spans.ids),
        replay.clip,
        int((table.turn <= turn).sum()) - len(replay.ids),
        1000 * (fitted - begun),
        1000 * (done - fitted),
    )


def spread(values: list[float]) -> dict[str, float]:
    """Return median, 95 % quantile and largest."""
    return {
        "median": round(median(values), 2),
        "p95": round(quantiles(values, n=20)[-1], 2),
        "max": round(max(values), 2),
    }


def main() -> None:
    """Print the figures and write them to the results."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--model", default="", help="folder of a model; else the installed one")
    parser.add_argument("--limit", type=int, default=1024)
    args = parser.parse_args()
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(
        args.model or resolve("", os.environ), local_files_only=True
    )
    template = Template(tokenizer)
    template.encode(template.render([{"role": "user", "content": "once"}]))  # compiles the template
    tables = sessions(Path(os.environ.get("RECAP_CORPUS") or "../shared/corpus"))
    turns = [
        observe(template, table, turn, args.limit)
        for _, table in tables
        for turn in range(min(TURNS, int(table.turn[-1]) + 1))
    ]
    outcomes = Counter(turn.outcome for turn in turns)
    judged = [turn for turn in turns if turn.tokens]
    rows = {
        "limit": args.limit,
        "sessions": len(tables),
        "turns": len(turns),
        "verified": outcomes["verified"],
        "edge_token_of_nobody": outcomes["edge"],
        "differs": outcomes["differs"],
        "dropped": {k: n for k, n in outcomes.items() if k not in ("verified", "edge", "differs")},
        "blocks": sum(turn.blocks for turn in judged),
        "turns_with_blocks_left_out": sum(turn.left_out > 0 for turn in judged),
        "clips": dict(sorted(Counter(turn.clip for turn in judged).items())),
        "tokens": spread([turn.tokens for turn in judged]),
        "fit_ms": spread([turn.fit_ms for turn in judged]),
        "spans_ms": spread([turn.span_ms for turn in judged]),
    }
    for name, value in rows.items():
        print(f"{name:28} {value}")
    keep(RESULT, rows, where("transformers", tokenizer=type(tokenizer).__name__))


if __name__ == "__main__":
    main()
