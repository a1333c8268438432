"""KV eviction before the judge: the model reads the whole history, then each head forgets most of it.

It has no text. P's tokens stay, as for every method, and count among those kept; B is a share of the
history's tokens, the retention. Judged where the window holds history, request and turn.
"""

from __future__ import annotations

from functools import lru_cache
from math import floor
from typing import TYPE_CHECKING

from recap.baselines.kv_eviction import KvEviction
from recap.baselines.method import of_blocks
from recap.study.judge import prompt_of, shown, strict
from recap.study.verdicts import Verdict

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from recap.baselines.method import Context, Task
    from recap.study.judge import Judge, Prompt
    from recap.transcript.model import Part


def forgotten(judge: Judge, task: Task, acts: Sequence[Part]) -> Verdict | None:
    """Return the verdict where most keys were dropped; None where the window does not hold all of it.

    Its tokens of the context are those that each head kept; none are clipped.

    Args:
        judge: Its model runs with a shortened cache.
        task: The history; its retention is the share of tokens that is kept.
        acts: What the agent wrote next.
    """
    whole = of_blocks(task, range(len(task.table)))
    prompt = prompt_of(whole, task, acts)
    if not prompt.target or not judge.fits(prompt):
        return None
    spans = list(protected_spans(whole, task))
    key = (judge.name, "kv-eviction", str(task.settings.beta), repr(spans), *prompt)
    return judge.remembered(key, lambda: _verdict(judge, prompt, spans, task))


def protected_spans(whole: Context, task: Task) -> Iterator[tuple[int, int]]:
    """Yield from where to where P's pieces reach in the text of the whole history."""
    at = 0
    for piece in whole.pieces:
        end = at + len(strict(shown(piece)))
        if task.is_protected[piece.block]:
            yield at, end
        at = end


def _verdict(judge: Judge, prompt: Prompt, spans: Sequence[tuple[int, int]], task: Task) -> Verdict:
    import torch

    context, places = judge.tokens(prompt.context)
    pinned = torch.zeros(len(context), dtype=torch.bool)
    for start, end in spans:
        inside = [at for at, (first, last) in enumerate(places) if first < end and last > start]
        pinned[inside] = True
    request, target = (torch.tensor(judge.tokens(text)[0]) for text in prompt[1:])
    keep = floor(task.settings.beta * len(context))
    model = _evictor(judge.folder)
    evicted = model.read(torch.tensor(context), request, keep, pinned)
    nll = float(model.losses(evicted, target).mean())
    return Verdict(nll, len(target), evicted.kept[0].shape[1], 0)


@lru_cache(maxsize=1)
def _evictor(folder: Path) -> KvEviction:
    return KvEviction(folder)
