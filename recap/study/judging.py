"""Contexts of a session before the judge: a row for each judged transition and method."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from recap.baselines.method import Context, of_blocks
from recap.study.catalogue import methods_of
from recap.study.evaluate import ORACLES, held_for, needs_of, task_of
from recap.study.judge import Judge, is_judged, prompt_of
from recap.study.methods import greedy_oracle
from recap.study.transitions import Reader, transitions

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from recap.baselines.method import Task
    from recap.config import Settings
    from recap.study.transitions import Transition
    from recap.study.verdicts import Verdict

FULL = frozenset(("full", "full-history"))
"""All of it, judged where the window holds it."""

KV_EVICTION = "kv-eviction"
"""All of it is read, a share of its keys kept, where the window holds it: see ``forgetting``."""


@lru_cache(maxsize=1)
def judge_of(folder: str, cache: str) -> Judge:
    """Return the judge of a folder, loaded once a process, on one thread."""
    import torch

    torch.set_num_threads(1)
    return Judge(Path(folder), Path(cache) if cache else None)


class Judged(NamedTuple):
    """What the judge says of one method at one transition.

    Attributes:
        session: Name of the file.
        key: The same for the same moment of a session in another file.
        turn, method: Where.
        nll, tokens, context_tokens, clipped_tokens: See ``judge.Verdict``.
        cost_chars: What the context costs.
        budget_chars: B.
    """

    session: str
    key: str
    turn: int
    method: str
    nll: float
    tokens: int
    context_tokens: int
    clipped_tokens: int
    cost_chars: int
    budget_chars: int


def judged(
    path: Path, methods: Sequence[str], settings: Settings, judge: Judge
) -> Iterator[Judged]:
    """Yield the rows of a session.

    Args:
        path: The session.
        methods: Names of ``catalogue``, of an oracle, ``none``, ``full`` or ``kv-eviction``.
        settings: Coefficients, and the retention.
        judge: The model.

    Raises:
        InputError: The file is no session.
        UsageError: A method is unknown.
    """
    reader = Reader()
    for transition in transitions(path, settings):
        task = task_of(transition, settings)
        if not is_judged(task):
            continue
        for name in methods:
            context = _context(name, task, transition, reader)
            verdict = _verdict(name, context, task, transition, judge)
            if verdict is None:
                continue
            yield Judged(
                transition.session,
                transition.known.moment.turn_key,
                transition.turn,
                name,
                round(verdict.nll, 6),
                verdict.tokens,
                verdict.context_tokens,
                verdict.clipped_tokens,
                context.cost_chars,
                task.budget_chars,
            )


def _verdict(
    name: str, context: Context, task: Task, transition: Transition, judge: Judge
) -> Verdict | None:
    """Return what the judge says, None where it is not asked."""
    prompt = prompt_of(context, task, transition.acts)
    if not prompt.target or not judge.fits(prompt._replace(context="")):
        return None
    if name == KV_EVICTION:
        from recap.study.forgetting import forgotten

        return forgotten(judge, task, transition.acts)
    if name in FULL and not judge.fits(prompt):
        return None
    return judge.verdict(prompt)


def _context(name: str, task: Task, transition: Transition, reader: Reader) -> Context:
    if name in FULL or name == KV_EVICTION:  # which reads all of it
        return of_blocks(task, range(len(task.table)))
    metric = {oracle: metric for metric, oracle in ORACLES.items()}.get(name)
    if metric is None:
        (method,) = methods_of((name,))
        return method.shorten(task)
    held = [reader.parts(task.parts(block)) for block in range(len(task.table))]
    needed = needs_of(transition, held, reader)[metric]
    return greedy_oracle(task, needed, held_for(metric, held))
