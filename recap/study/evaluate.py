"""One session through all methods: a row for each turn transition, method and retention."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from fractions import Fraction
from math import floor
from typing import TYPE_CHECKING

from recap.baselines.full import FULL_HISTORY
from recap.baselines.method import Task, protected_mask
from recap.errors import MethodError
from recap.session.model import ProxyObserver
from recap.study.judge import is_judged
from recap.study.methods import greedy_oracle
from recap.study.metrics.coverage import coverage, need
from recap.study.metrics.extract import identifiers, lines
from recap.study.transitions import Held, Reader, transitions

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from recap.baselines.method import Context, Method
    from recap.config import Settings
    from recap.study.judge import Judge
    from recap.study.transitions import Transition

METRICS = ("id_exec", "id_act", "line_exec", "line_act")
"""Coverage of identifiers and of lines: of the turn's whole execution, of what the agent wrote."""

ORACLES = {metric: f"oracle-{metric.replace('_', '-')}" for metric in METRICS}
"""Metric -> the oracle that bounds it: it keeps greedily what this metric counts."""


@dataclass(frozen=True, slots=True)
class Row:
    """What one method did at one transition.

    Attributes:
        session, turn, method, retention: Where.
        scores: Metric -> coverage in [0, 1]; None where the turn needed nothing.
        budget_chars: B.
        protected_chars: cost(P).
        cost_chars: What the context costs.
        history_chars: c(V).
        blocks, kept: Blocks of the history, and those kept whole.
        revived: Of these, left out by the same method at the session's transition before.
        model_calls, input_tokens, output_tokens: Of models the method asked.
        memory_bytes: What it keeps between turns.
        seconds: Processor time of this thread, and what the method waited for others.
        judge: Mean negative log-likelihood per token of what came next under a model; None where it
            was not asked.
    """

    session: str
    turn: int
    method: str
    retention: str
    scores: Mapping[str, float | None]
    budget_chars: int
    protected_chars: int
    cost_chars: int
    history_chars: int
    blocks: int
    kept: int
    revived: int
    model_calls: int
    input_tokens: int
    output_tokens: int
    memory_bytes: int
    seconds: float
    judge: float | None = None


def evaluate(
    path: Path,
    methods: Sequence[Method],
    retentions: Sequence[str],
    settings: Settings,
    judge: Judge | None = None,
) -> Iterator[Row]:
    """Yield the rows of a session, transition by transition.

    Args:
        path: The session.
        methods: What is run, oracles aside.
        retentions: Shares of the history to keep.
        settings: Coefficients, and the observer.
        judge: A model that is asked as well, of the oracles about that of ``id_exec`` alone.

    Raises:
        InputError: The file is no session.
        MethodError: A method cannot run here.
        UsageError: The model of the observer is missing.
    """
    reader = Reader()
    dropped: dict[tuple[str, str], set[str]] = {}
    observer = ProxyObserver(settings) if settings.observer == "proxy" else None
    for transition in transitions(path, settings, observer):
        try:
            yield from _rows(transition, reader, dropped, methods, retentions, settings, judge)
        except MethodError as err:
            raise MethodError(f"{transition.session}, turn {transition.turn}: {err}") from err


def _rows(
    transition: Transition,
    reader: Reader,
    dropped: dict[tuple[str, str], set[str]],
    methods: Sequence[Method],
    retentions: Sequence[str],
    settings: Settings,
    judge: Judge | None,
) -> Iterator[Row]:
    task = task_of(transition, settings)
    held = [reader.parts(task.parts(block)) for block in range(len(task.table))]
    needs = needs_of(transition, held, reader)
    judged = frozenset(
        (*(method.name for method in methods), ORACLES["id_exec"])
    )  # dear: one oracle
    for retention in retentions:
        budget = floor(Fraction(retention) * task.table.active_chars)
        given = replace(task, budget_chars=budget, settings=replace(settings, retention=retention))
        for name, context, seconds in _contexts(given, methods, needs, held):
            ids = {task.table.ids[block] for block in context.kept}
            before = dropped.get((name, retention), set())
            dropped[name, retention] = set(task.table.ids) - ids
            verdict = None
            if judge is not None and name in judged and is_judged(given):
                is_whole = name == FULL_HISTORY.name
                verdict = judge.says(context, given, transition.acts, is_whole=is_whole)
            yield Row(
                session=transition.session,
                turn=transition.turn,
                method=name,
                retention=retention,
                scores=scores_of(context, needs, held),
                budget_chars=budget,
                protected_chars=task.protected_chars,
                cost_chars=context.cost_chars,
                history_chars=task.table.active_chars,
                blocks=len(task.table),
                kept=len(context.kept),
                revived=len(ids & before),
                model_calls=context.model_calls,
                input_tokens=context.input_tokens,
                output_tokens=context.output_tokens,
                memory_bytes=context.memory_bytes,
                seconds=seconds,
                judge=None if verdict is None else round(verdict.nll, 6),
            )


def task_of(transition: Transition, settings: Settings) -> Task:
    """Return what every method is given at a transition, at the retention of the settings."""
    known = transition.known
    return Task(
        table=known.table,
        is_protected=protected_mask(known.table, settings),
        request=known.moment.request_text,
        budget_chars=floor(settings.beta * known.table.active_chars),
        seed=known.moment.seed,
        graph=known.graph,
        settings=settings,
    )


def needs_of(
    transition: Transition, held: Sequence[Held], reader: Reader
) -> dict[str, dict[str, float]]:
    """Return for each metric what the next turn needs of the history, with weights."""
    execution, acts = reader.parts(transition.execution), reader.parts(transition.acts)
    ids, whole_lines = [each.ids for each in held], [each.lines for each in held]
    return {
        "id_exec": need(ids, execution.ids),
        "id_act": need(ids, acts.ids),
        "line_exec": need(whole_lines, execution.lines),
        "line_act": need(whole_lines, acts.lines),
    }


def held_for(metric: str, held: Sequence[Held]) -> list[frozenset[str]]:
    """Return what a metric counts of each block: identifiers, or lines."""
    return [each.ids if metric.startswith("id") else each.lines for each in held]


def scores_of(
    context: Context, needs: Mapping[str, Mapping[str, float]], held: Sequence[Held]
) -> dict[str, float | None]:
    """Return the coverage of each need by a context."""
    texts = [piece.text for piece in context.pieces if piece.block not in context.kept]
    ids = [held[block].ids for block in context.kept] + [identifiers(text) for text in texts]
    whole = [held[block].lines for block in context.kept] + [lines(text) for text in texts]
    return {
        metric: coverage(needed, ids if metric.startswith("id") else whole)
        for metric, needed in needs.items()
    }


def _contexts(
    task: Task,
    methods: Sequence[Method],
    needs: Mapping[str, Mapping[str, float]],
    held: Sequence[Held],
) -> Iterator[tuple[str, Context, float]]:
    """Yield what each method makes of the task, then the oracles, with processor seconds."""
    for method in methods:
        before = time.thread_time()
        try:
            context = method.shorten(task)
        except MethodError as err:
            raise MethodError(f"policy {method.name}: {err}") from err
        seconds = time.thread_time() - before + context.other_seconds
        yield method.name, context, seconds
    for metric, name in ORACLES.items():
        before = time.thread_time()
        context = greedy_oracle(task, needs[metric], held_for(metric, held))
        yield name, context, time.thread_time() - before
