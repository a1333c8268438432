"""Contexts of a session before the judge: a row for each judged transition and method."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from recap.baselines.full import FULL_HISTORY
from recap.study.catalogue import methods_of
from recap.study.evaluate import ORACLES, held_for, needs_of, task_of
from recap.study.forgetting import forgotten
from recap.study.judge import is_judged
from recap.study.methods import greedy_oracle
from recap.study.transitions import Reader, transitions

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from recap.baselines.method import Context, Task
    from recap.config import Settings
    from recap.study.judge import Judge
    from recap.study.transitions import Transition
    from recap.study.verdicts import Verdict
    from recap.transcript.model import Part

KV_EVICTION = "kv-eviction"
"""All of it is read, a share of its keys kept, where the window holds it: see ``forgetting``."""


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
        methods: Names of ``catalogue``, of an oracle, or ``kv-eviction``.
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
            verdict = _verdict(name, context, task, transition.acts, judge)
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
    name: str, context: Context, task: Task, acts: Sequence[Part], judge: Judge
) -> Verdict | None:
    if name == KV_EVICTION:
        return forgotten(judge, task, acts)
    return judge.says(context, task, acts, is_whole=name == FULL_HISTORY.name)


def _context(name: str, task: Task, transition: Transition, reader: Reader) -> Context:
    if name == KV_EVICTION:  # which reads all of it
        return FULL_HISTORY.shorten(task)
    metric = {oracle: metric for metric, oracle in ORACLES.items()}.get(name)
    if metric is None:
        (method,) = methods_of((name,))
        return method.shorten(task)
    held = [reader.parts(task.parts(block)) for block in range(len(task.table))]
    needed = needs_of(transition, held, reader)[metric]
    return greedy_oracle(task, needed, held_for(metric, held))
