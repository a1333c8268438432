"""From the rows of a study to its results: means, differences to the reference, headroom, costs."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from recap.config import Settings, setting_rows
from recap.economics.tokens import tokens_of
from recap.study.catalogue import REFERENCE, methods_of
from recap.study.evaluate import ORACLES, Row
from recap.study.results import (
    JUDGE,
    MEASURES,
    ORACLE_OF,
    Cell,
    Corpus,
    Given,
    Latency,
    MethodInfo,
    Results,
    Score,
    SessionScore,
    Timings,
)
from recap.study.runs import HALVES
from recap.study.statistics import DRAWS, SEED, drawn, estimate, headroom, session_means

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from recap.blocks.table import FloatArray, IntArray
    from recap.study.runs import Half, SessionRun, Study

SHAPED = ("retention", "policy", "observer")
"""Settings that the results name elsewhere."""


@dataclass(frozen=True, slots=True)
class Panel:
    """The rows of one half at one retention, method by method at the same transitions.

    Attributes:
        half, retention: Which.
        names: Sessions.
        session: int64 ``[n]``: session of each transition.
        has_before: bool ``[n]``: the session had a transition before it.
        rows: Method -> its n rows.
        draws: Sessions drawn, see ``statistics.drawn``.
    """

    half: Half
    retention: str
    names: tuple[str, ...]
    session: IntArray
    has_before: FloatArray
    rows: dict[str, list[Row]]
    draws: IntArray

    def of(self, method: str, value: Callable[[Row], float | None]) -> FloatArray:
        """Return a value of each transition, NaN for None: float64 ``[n]``."""
        return np.array([value(row) for row in self.rows[method]], np.float64)

    def measure(self, method: str, name: str) -> FloatArray:
        """Return a measure of each transition, as ``of``."""
        if name == JUDGE:
            return self.of(method, lambda row: row.judge)
        return self.of(method, lambda row: row.scores[name])

    def mean(self, method: str, value: Callable[[Row], float]) -> float:
        """Return the mean over transitions."""
        return float(self.of(method, value).mean())


def results_of(study: Study, where: Mapping[str, str]) -> Results:
    """Return what a study comes to, with the computer and versions it ran with."""
    plan = study.plan
    panels = _panels(study)
    methods = [MethodInfo(m.name, m.help, is_oracle=False) for m in methods_of(plan.methods)]
    methods += [
        MethodInfo(name, f"knows the next turn and keeps greedily what {metric} counts", True)
        for metric, name in ORACLES.items()
    ]
    names = [method.name for method in methods]
    return Results(
        observer=plan.settings.observer,
        settings=_changed(plan.settings),
        reference=REFERENCE,
        oracles=dict(ORACLE_OF),
        draws=DRAWS,
        seed=SEED,
        methods=methods,
        halves=list(dict.fromkeys(panel.half for panel in panels)),
        retentions=list(plan.retentions),
        corpus=Corpus(
            {one.name: len({row.turn for row in one.rows}) for one in study.sessions},
            list(study.short),
            study.other_half,
            dict(study.duplicates),
            {one.name: one.reason for one in study.unread},
            study.compacted,
        ),
        given=[_given(panel) for panel in panels],
        cells=[_cell(panel, name) for panel in panels for name in names],
        per_session=[
            score
            for panel in panels
            if panel.half != "all"  # which is the other two together
            for method in plan.methods
            if method != REFERENCE
            for score in _session_scores(panel, method)
        ],
        timings=Timings(round(study.seconds, 3), study.jobs, dict(where), _latencies(study, names)),
    )


def _panels(study: Study) -> list[Panel]:
    """Return the panels of halves with sessions: those asked for, and both together."""
    halves = {half: [one for one in study.sessions if half in ("all", one.half)] for half in HALVES}
    if study.plan.half != "all":
        halves = {study.plan.half: list(study.sessions)}
    return [
        _panel(half, retention, sessions)
        for half, sessions in halves.items()
        if sessions
        for retention in study.plan.retentions
    ]


def _panel(half: Half, retention: str, sessions: Sequence[SessionRun]) -> Panel:
    rows: defaultdict[str, list[Row]] = defaultdict(list)
    of: list[int] = []
    has_before: list[bool] = []
    for index, session in enumerate(sessions):
        here = [row for row in session.rows if row.retention == retention]
        first = here[0].turn
        for row in here:
            rows[row.method].append(row)
            if row.method == REFERENCE:
                of.append(index)
                has_before.append(row.turn != first)
    assert all(len(each) == len(of) for each in rows.values())
    return Panel(
        half,
        retention,
        tuple(session.name for session in sessions),
        np.array(of, np.int64),
        np.array(has_before),
        dict(rows),
        drawn(len(sessions)),
    )


def _cell(panel: Panel, method: str) -> Cell:
    revived = panel.of(method, lambda row: row.revived > 0)[panel.has_before]
    return Cell(
        half=panel.half,
        retention=panel.retention,
        method=method,
        transitions=len(panel.session),
        sessions=len(panel.names),
        scores=_scores(panel, method),
        chars=panel.mean(method, lambda row: row.cost_chars),
        of_budget=panel.mean(method, lambda row: row.cost_chars / max(row.budget_chars, 1)),
        tokens=panel.mean(method, lambda row: tokens_of(row.cost_chars)),
        kept_blocks=panel.mean(method, lambda row: row.kept),
        blocks=panel.mean(method, lambda row: row.blocks),
        revived_blocks=panel.mean(method, lambda row: row.revived),
        reviving=float(revived.mean()) if len(revived) else None,
        memory_bytes=panel.mean(method, lambda row: row.memory_bytes),
        model_calls=panel.mean(method, lambda row: row.model_calls),
        input_tokens=panel.mean(method, lambda row: row.input_tokens),
        output_tokens=panel.mean(method, lambda row: row.output_tokens),
    )


def _scores(panel: Panel, method: str) -> dict[str, Score]:
    """Return each measure that says something of a method."""
    scores = {}
    for name in MEASURES:
        values, base = panel.measure(method, name), panel.measure(REFERENCE, name)
        level = estimate(values, panel.session, panel.draws)
        if level is not None:
            oracle = panel.measure(ORACLE_OF[name], name)
            better = -1.0 if name == JUDGE else 1.0
            scores[name] = Score(
                level,
                estimate(values - base, panel.session, panel.draws),
                headroom(
                    better * (values - base), better * (oracle - base), panel.session, panel.draws
                ),
            )
    return scores


def _given(panel: Panel) -> Given:
    def median(value: Callable[[Row], float]) -> float:
        return float(np.median(panel.of(REFERENCE, value)))

    return Given(
        panel.half,
        panel.retention,
        len(panel.session),
        len(panel.names),
        history_chars=median(lambda row: row.history_chars),
        budget_chars=median(lambda row: row.budget_chars),
        protected=median(lambda row: row.protected_chars / max(row.budget_chars, 1)),
        over=panel.mean(REFERENCE, lambda row: row.protected_chars > row.budget_chars),
    )


def _session_scores(panel: Panel, method: str) -> list[SessionScore]:
    """Return the mean differences to the reference of each session."""
    size = len(panel.names)
    means = {
        name: session_means(
            panel.measure(method, name) - panel.measure(REFERENCE, name), panel.session, size
        ).tolist()
        for name in MEASURES
    }
    counts = np.bincount(panel.session, minlength=size).tolist()
    return [
        SessionScore(
            session,
            panel.half,
            panel.retention,
            method,
            counts[at],
            {name: values[at] for name, values in means.items() if values[at] == values[at]},
        )
        for at, session in enumerate(panel.names)
    ]


def _latencies(study: Study, names: Sequence[str]) -> list[Latency]:
    """Return the processor time of each method at each retention."""
    taken: defaultdict[tuple[str, str], list[float]] = defaultdict(list)
    for session in study.sessions:
        for row in session.rows:
            taken[row.method, row.retention].append(1000 * row.seconds)
    return [
        Latency(
            name,
            retention,
            round(float(np.median(taken[name, retention])), 3),
            round(float(np.quantile(taken[name, retention], 0.95)), 3),
        )
        for name in names
        for retention in study.plan.retentions
    ]


def _changed(settings: Settings) -> dict[str, str]:
    """Return the settings that are not the default, as text."""
    usual = Settings()
    return {
        row.name: str(getattr(settings, row.name))
        for row in setting_rows()
        if row.name not in SHAPED and getattr(settings, row.name) != getattr(usual, row.name)
    }
