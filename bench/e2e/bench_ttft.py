"""Time to the first token of a whole context against the compacted one, with the same small model.

    python -m bench.e2e.bench_ttft [--model FOLDER] [--sessions 3]     # needs RECAP_CORPUS

The paper's latency experiment in small: SmolLM2-135M (all layers where `recap proxy install --full`
was run) reads a real session up to a request, once whole and once compacted, with nothing cached.
Time to the first token is the prefill up to the logits of the last position, processor time of one
thread, least of several runs, the two contexts in turn. To the compacted one the selection is added:
segmenting, observing, selecting and rendering a session of which nothing is known yet but the names
of its texts, which the process read before. Tokenizing is left out of both. Sessions of the development half, the moment nearest below each length, where at
least half of the context is history.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from dataclasses import asdict, dataclass
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any, NamedTuple

from bench.e2e.bench_spans import is_development
from bench.e2e.revival import moments
from bench.measured import keep, where
from recap.capture.models import layers_of, resolve
from recap.config import Settings
from recap.session.pipeline import compact_transcript
from recap.transcript.formats import open_log

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    import torch

    from recap.session.report import Compaction
    from recap.transcript.model import Transcript

LENGTHS = (1024, 2048, 4096, 8192)
RETENTIONS = ("0.1", "0.2")
RUNS = 2
SHORTEST = 0.6
"""A moment stands for a length when it has at least this share of its tokens."""

MOST_CHARS_PER_TOKEN = 6
"""Above it no text is; so longer sessions need not be tokenized to be passed over."""

LEAST_HISTORY = 0.5
"""Share of a context that has to be history: a first request leaves nothing to compact."""

RESULT = Path(__file__).parents[1] / "results" / "ttft.json"


@dataclass(frozen=True, slots=True)
class Row:
    """One session up to a request, at one retention; seconds are processor time of one thread."""

    session: str
    length: int
    retention: str
    full_tokens: int
    tokens: int
    full_s: float
    prefill_s: float
    selection_s: float

    @property
    def ratio(self) -> float:
        """How many times sooner the first token comes."""
        return self.full_s / (self.prefill_s + self.selection_s)


class Moment(NamedTuple):
    """A session up to a request, and the tokens of its whole context."""

    session: str
    transcript: Transcript
    ids: list[int]


class Model:
    """A causal language model and its tokenizer, in float32 on one thread."""

    def __init__(self, folder: Path) -> None:
        import torch
        from transformers import AutoModelForCausalLM, AutoTokenizer

        torch.set_num_threads(1)
        self._tokenizer: Any = AutoTokenizer.from_pretrained(folder, local_files_only=True)
        loaded: Any = AutoModelForCausalLM
        self._model = loaded.from_pretrained(
            folder, local_files_only=True, dtype=torch.float32
        ).eval()

    def ids_of(self, done: Compaction) -> list[int]:
        """Return the prompt that a message list of OpenAI chat is to the model."""
        shown = [{"role": m["role"], "content": _words(m)} for m in done.messages]
        text = self._tokenizer.apply_chat_template(
            shown, tokenize=False, add_generation_prompt=True
        )
        return self._tokenizer(text, add_special_tokens=False, verbose=False)["input_ids"]

    def first_token(self, ids: list[int]) -> torch.Tensor:
        """Return the logits behind the last position."""
        import torch

        with torch.inference_mode():
            return self._model(torch.tensor([ids]), use_cache=True, logits_to_keep=1).logits


def _words(message: Any) -> str:
    content = message.get("content") or ""
    if not isinstance(content, str):
        content = "\n".join(part.get("text", "") for part in content)
    calls = [json.dumps(call["function"]) for call in message.get("tool_calls") or ()]
    return "\n".join((content, *calls))


def compacted(transcript: Transcript, retention: str) -> Compaction:
    """Return a context for the session's last request."""
    settings = Settings(retention=retention, context_tokens=None, keep_thinking=False)
    return compact_transcript(transcript, settings=settings, to="openai")


def seconds_of(work: Callable[[], object]) -> float:
    """Return the processor time of a call."""
    before = time.process_time()
    work()
    return time.process_time() - before


def chars_of(transcript: Transcript) -> int:
    """Return the characters of a session."""
    return sum(part.cost_chars for message in transcript.messages for part in message.parts)


def chosen(corpus: Path, model: Model, most: int) -> Iterable[tuple[int, Moment]]:
    """Yield for each length the moments nearest below it, at most one of a session."""
    found: list[Moment] = []
    for path in sorted([*corpus.glob("sessions/*/*"), *corpus.glob("swe-together/*.json")]):
        if not is_development(path):
            continue
        for transcript in moments(open_log(path)):
            if chars_of(transcript) > MOST_CHARS_PER_TOKEN * LENGTHS[-1]:
                break
            whole = compacted(transcript, "1")
            ids = model.ids_of(whole)
            if len(ids) > LENGTHS[-1]:
                break
            if whole.report.history_chars >= LEAST_HISTORY * whole.report.prompt_chars:
                found.append(Moment(path.name, transcript, ids))
    for length in LENGTHS:
        near = {
            moment.session: moment  # the last of a session is its longest
            for moment in found
            if SHORTEST * length <= len(moment.ids) <= length
        }
        for moment in sorted(near.values(), key=lambda m: (-len(m.ids), m.session))[:most]:
            yield length, moment


def measured(model: Model, length: int, moment: Moment) -> list[Row]:
    """Return a row for each retention."""
    short = {r: model.ids_of(compacted(moment.transcript, r)) for r in RETENTIONS}
    full_s: list[float] = []
    prefill_s: dict[str, list[float]] = {r: [] for r in RETENTIONS}
    selection_s: dict[str, list[float]] = {r: [] for r in RETENTIONS}
    for _ in range(RUNS):
        full_s.append(seconds_of(lambda: model.first_token(moment.ids)))
        for retention, ids in short.items():
            prefill_s[retention].append(seconds_of(lambda ids=ids: model.first_token(ids)))
            selection_s[retention].append(
                seconds_of(lambda retention=retention: compacted(moment.transcript, retention))
            )
    return [
        Row(
            moment.session, length, r, len(moment.ids), len(short[r]),
            min(full_s), min(prefill_s[r]), min(selection_s[r]),
        )
        for r in RETENTIONS
    ]  # fmt: skip


def main() -> None:
    """Print a row for each length and retention, and write all of them to the results."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--model", default="", help="folder of a model; else the installed one")
    parser.add_argument("--sessions", type=int, default=3, help="sessions of each length")
    args = parser.parse_args()
    folder = resolve(args.model, os.environ)
    model = Model(folder)
    corpus = Path(os.environ.get("RECAP_CORPUS") or "../shared/corpus")
    print(f"{folder.name}, {layers_of(folder)} layers, float32, one thread; medians, in seconds")
    print("  length retention sessions   tokens -> compacted    full  compacted  selection  ratio")
    rows: list[Row] = []
    for length, near in groupby(chosen(corpus, model, args.sessions), itemgetter(0)):
        here = [row for _, moment in near for row in measured(model, length, moment)]
        rows += here
        for retention in RETENTIONS:
            print(line(length, retention, [r for r in here if r.retention == retention]))
        write(folder, rows)


def write(folder: Path, rows: list[Row]) -> None:
    """Write what is measured so far to the results."""
    shown = [asdict(row) | {"ratio": round(row.ratio, 2)} for row in rows]
    keep(RESULT, shown, where("torch", "transformers", model=folder.name, layers=layers_of(folder)))


def line(length: int, retention: str, rows: list[Row]) -> str:
    """Return a line of the table: medians of the rows."""

    def middle(name: str) -> float:
        return float(median(getattr(row, name) for row in rows))

    return (
        f"{length:8} {retention:>9} {len(rows):8} {middle('full_tokens'):8.0f} -> "
        f"{middle('tokens'):<9.0f} {middle('full_s'):7.2f} {middle('prefill_s'):10.2f} "
        f"{middle('selection_s'):10.3f} {middle('ratio'):6.1f}"
    )


if __name__ == "__main__":
    main()
