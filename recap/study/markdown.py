"""Tables of the committed results for documents; ``cog`` prints what these functions return."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from recap.config import Settings
from recap.study.words import (
    HALF_NAMES,
    NOTHING,
    closed,
    decimal,
    difference,
    extent,
    interval,
    percent,
    share,
    shown_retention,
    signed,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from recap.study.results import Cell, Given, Results
    from recap.study.runs import Half

WITHOUT_EDGES = ":expansion=0"
"""Makes the default a policy that stays inside B, as recency does."""

HEADLINE_MEASURES = ("id_exec", "line_exec")

PAPER_COVERAGE, PAPER_ORACLE, PAPER_REVIVING, PAPER_GRAPH = ".68", ".71", "70 %", "19 KB"
"""ReCAP's own figures: identifier coverage, that of its oracle, transitions that revive a block, and
the size of a graph of 60 to 130 blocks."""

VARIANT_COLUMNS = (
    "what", "variant", "half", "observer", "id_exec", "line_exec", "judge", "of_budget", "note",
)  # fmt: skip


def headline(results: Results) -> str:
    """Return the README's table: recency, the paper's policy, the default without edges and with."""
    halves = _halves(results)
    retention = shown_retention(results.retentions)
    default, oracle = Settings().policy, results.oracles["id_exec"]
    head = ["policy", "half", "of budget"]
    head += ["identifiers", f"to {results.reference}", "closed"]
    head += ["lines", f"to {results.reference}", "closed"]
    rows = [
        [_name(name), half, share(cell.of_budget), *_scores(cell, HEADLINE_MEASURES)]
        for name in (results.reference, "paper", f"{default}{WITHOUT_EDGES}", default, oracle)
        for half in halves
        if (cell := results.cell(half, retention, name))
    ]
    counts = ", ".join(_count(_given(results, half, retention)) for half in halves)
    return f"{percent(retention)} of the history kept; {counts}:\n\n{_table(head, rows)}"


def quality(results: Results, half: Half, retention: str, measures: Sequence[str]) -> str:
    """Return every method's means over a half at a retention, its differences and headroom."""
    head = ["method"]
    for measure in measures:
        head += [measure, f"to {results.reference}, 95 %", "closed"]
    rows = [
        [_name(method.name), *_scores(results.cell(half, retention, method.name), measures)]
        for method in results.methods
    ]
    given = _given(results, half, retention)
    told = (
        f"{_count(given)}. Protected blocks take {share(given.protected)} of the budget (median), and "
        f"more than all of it in {share(given.over)} of the transitions:"
    )
    return f"{told}\n\n{_table(head, rows)}"


def budgets(results: Results, half: Half, measure: str) -> str:
    """Return the difference to the reference of every method at every retention."""
    head = ["method", *map(percent, results.retentions)]
    rows = []
    for method in results.methods:
        if method.name == results.reference:
            continue
        cells = [results.cell(half, kept, method.name) for kept in results.retentions]
        scores = [cell.scores.get(measure) if cell else None for cell in cells]
        rows.append(
            [_name(method.name), *(difference(s.difference if s else None) for s in scores)]
        )
    return _table(head, rows)


def costs(results: Results, half: Half, retention: str) -> str:
    """Return what each method costs: means over transitions, and processor time."""
    head = [
        "method", "of budget", "tokens", "revive", "blocks revived", "ms (median)", "kept between turns",
        "model calls", "tokens read", "tokens written",
    ]  # fmt: skip
    latencies = {(each.method, each.retention): each for each in results.timings.latencies}
    rows = []
    for method in results.methods:
        cell = results.cell(half, retention, method.name)
        if cell is not None:
            rows.append(
                [
                    _name(method.name),
                    share(cell.of_budget),
                    f"{cell.tokens:,.0f}",
                    share(cell.reviving),
                    f"{cell.revived_blocks:.1f}",
                    f"{latencies[method.name, retention].median_ms:.1f}",
                    f"{cell.memory_bytes / 1000:.1f} KB" if cell.memory_bytes else NOTHING,
                    *_model_costs(cell),
                ]
            )
    return _table(head, rows)


def same_room(results: Results, retention: str, room: str) -> str:
    """Return the default beside methods whose budget is all that its support edges may use.

    Args:
        results: Of both retentions.
        retention: What the default is given.
        room: (1 + delta) times as much, which the others are given.
    """
    default = Settings().policy
    rows = [
        [_name(name), half, percent(kept), f"{cell.tokens:,.0f}", *_levels(cell)]
        for half in _halves(results)
        for name, kept in (
            (default, retention),
            (results.reference, room),
            (f"{default}{WITHOUT_EDGES}", room),
        )
        if (cell := results.cell(half, kept, name))
    ]
    return _table(["method", "half", "budget", "tokens", *HEADLINE_MEASURES], rows)


def edit_caps(path: Path) -> str:
    """Return what is kept by the size up to which an edit is protected; of rows as the bench writes them."""
    methods = (Settings().policy, "recency")
    table = []
    for row in json.loads(path.read_text(encoding="utf-8"))["rows"]:
        cap = "none" if row["edit_cap"] is None else f"{row['edit_cap']:,}"
        told = [cap, share(row["protected"]), share(row["over"])]
        for method in methods:
            kept = row[method]
            told += [f"{kept['tokens']:,}", *(decimal(kept[name]) for name in HEADLINE_MEASURES)]
        table.append(told)
    head = ["`edit_cap`", "protected, of B", "more than B"]
    for method in methods:
        head += [f"`{method}`: tokens", *HEADLINE_MEASURES]
    return _table(head, table)


def papers(results: Results) -> str:
    """Return ours beside ReCAP's own figures, which are of other sessions and another model."""
    retention = shown_retention(results.retentions)
    half = _halves(results)[0]
    mine = [results.cell(half, retention, name) for name in ("paper", Settings().policy)]
    oracle = results.cell(half, retention, results.oracles["id_exec"])
    rows = [
        ["identifier coverage (id_exec), mean", *map(_coverage, mine), PAPER_COVERAGE],
        ["of an oracle of it", _coverage(oracle), _coverage(oracle), PAPER_ORACLE],
        [
            "transitions that revive a block",
            *(share(cell.reviving) if cell else NOTHING for cell in mine),
            PAPER_REVIVING,
        ],
        [
            "graph kept for a session, mean",
            *(f"{cell.memory_bytes / 1000:.1f} KB" if cell else NOTHING for cell in mine),
            PAPER_GRAPH,
        ],
    ]
    head = ["", f"`paper`, {HALF_NAMES[half]}", f"`{Settings().policy}`, {HALF_NAMES[half]}", "ReCAP (theirs)"]  # fmt: skip
    return _table(head, rows)


def judged(path: Path, references: Sequence[str] = ("recency", "none")) -> str:
    """Return the judge's means from rows of a transition and a method, with paired differences.

    Args:
        path: Rows as ``bench.study.bench_judge`` keeps them.
        references: Methods that differences are to, at the transitions both were judged at.
    """
    import numpy as np

    from recap.study.statistics import drawn, estimate

    rows = json.loads(path.read_text(encoding="utf-8"))["rows"]
    nll: dict[str, dict[str, float]] = {}
    session: dict[str, str] = {}
    for row in rows:
        nll.setdefault(row["method"], {})[row["key"]] = row["nll"]
        session[row["key"]] = row["session"]
    sessions = sorted(set(session.values()))
    draws = drawn(len(sessions))
    table = []
    for method, mine in nll.items():
        told = [f"`{method}`", str(len(mine)), decimal(sum(mine.values()) / len(mine))]
        for reference in references:
            both = [key for key in mine if key in nll.get(reference, {})]
            values = np.array([mine[key] - nll[reference][key] for key in both])
            of = np.array([sessions.index(session[key]) for key in both], np.int64)
            told.append(difference(estimate(values, of, draws)))
        table.append(told)
    head = ["method", "n", "nats a token", *(f"to `{name}`, 95 %" for name in references)]
    return f"{extent(len(session), len(sessions))}:\n\n{_table(head, table)}"


def first_tokens(path: Path) -> str:
    """Return what methods cost, means over sessions, from rows as ``bench.study.bench_costs`` keeps."""
    rows = json.loads(path.read_text(encoding="utf-8"))["rows"]
    of: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        of.setdefault(row["method"], []).append(row)

    def mean(method: str, name: str) -> float:
        return sum(row[name] or 0 for row in of[method]) / len(of[method])

    table = [
        [
            f"`{method}`",
            f"{mean(method, 'context_tokens'):,.0f}",
            f"{mean(method, 'compaction_ms'):.1f}",
            f"{mean(method, 'prefill_s'):.1f}",
            f"{mean(method, 'model_calls'):.0f}",
            f"{mean(method, 'memory_bytes') / 1000:,.1f}",
        ]
        for method in of
    ]
    head = ["method", "tokens", "compaction, ms", "to first token, s", "model calls", "kept, KB"]
    return _table(head, table)


def variants(path: Path) -> str:
    """Return what was tried, from an object of lists of objects; see ``VARIANT_COLUMNS``.

    A measure is a difference to recency: a number, or a list of it and its interval. Columns without
    any value are left out.
    """
    lists = json.loads(path.read_text(encoding="utf-8"))
    tried: list[dict[str, Any]] = [
        one for rows in lists.values() if isinstance(rows, list) for one in rows
    ]
    columns = [name for name in VARIANT_COLUMNS if any(one.get(name) for one in tried)]
    if not columns:
        return "Nothing is listed yet."
    return _table(columns, [[_value(name, one.get(name)) for name in columns] for one in tried])


def provenance(results: Results) -> str:
    """Return in one sentence what was run, where, and how long it took."""
    corpus, where = results.corpus, results.timings.where
    left = {
        "with one request or a short history": len(corpus.short),
        "seen in another file": len(corpus.duplicates),
        "that are no sessions": len(corpus.unread),
    }
    out = ", ".join(f"{count} {what}" for what, count in left.items() if count)
    before = f"; requests left out: {corpus.compacted} before a later compaction"
    return (
        f"{extent(sum(corpus.sessions.values()), len(corpus.sessions))} (files left "
        f"out: {out or 'none'}{before if corpus.compacted else ''}), observer `{results.observer}`, "
        f"Recap {where.get('recap', '?')}, Python {where.get('python', '?')}, numpy "
        f"{where.get('numpy', '?')}; {results.timings.seconds:.0f} s with {results.timings.jobs} "
        f"processes on {where.get('cores', '?')} cores."
    )


def _halves(results: Results) -> list[Half]:
    """Return the halves that are apart, the one to judge by first."""
    return sorted((half for half in results.halves if half != "all"), reverse=True)


def _given(results: Results, half: Half, retention: str) -> Given:
    return next(g for g in results.given if (g.half, g.retention) == (half, retention))


def _count(given: Given) -> str:
    name = HALF_NAMES[given.half]
    return f"{name}: {extent(given.transitions, given.sessions)}"


def _scores(cell: Cell | None, measures: Iterable[str]) -> list[str]:
    found = []
    for measure in measures:
        score = cell.scores.get(measure) if cell else None
        if score is None:
            found += [NOTHING] * 3
        else:
            found += [
                decimal(score.level.mean),
                difference(score.difference),
                closed(score.headroom),
            ]
    return found


def _levels(cell: Cell) -> list[str]:
    scores = (cell.scores.get(measure) for measure in HEADLINE_MEASURES)
    return [decimal(score.level.mean) if score else NOTHING for score in scores]


def _model_costs(cell: Cell) -> list[str]:
    if not cell.model_calls:
        return [NOTHING] * 3
    return [f"{cell.model_calls:.1f}", f"{cell.input_tokens:,.0f}", f"{cell.output_tokens:,.0f}"]


def _coverage(cell: Cell | None) -> str:
    score = cell.scores.get("id_exec") if cell else None
    return decimal(score.level.mean).removeprefix("0") if score else NOTHING


def _name(name: str) -> str:
    return f"`{name}`"


def _value(column: str, value: Any) -> str:
    if value is None or value in ("", []):
        return NOTHING
    if column == "of_budget":
        return share(value)
    if isinstance(value, list):
        mean, *ends = value
        return f"{signed(mean)} {interval(*ends) if len(ends) == 2 else ''}".rstrip()
    text = signed(value) if isinstance(value, float) else str(value)
    return " ".join(text.replace("|", "\\|").split())


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
