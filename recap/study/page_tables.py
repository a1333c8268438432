"""The numbers of the study as tables of its page, and how its methods are drawn."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from recap.config import Settings
from recap.study.style import LOOKS
from recap.study.words import (
    HALF_NAMES,
    MEASURE_NAMES,
    NOTHING,
    closed,
    decimal,
    difference,
    extent,
    interval,
    percent,
    share,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from recap.study.results import Cell, Results, Score
    from recap.study.runs import Half
    from recap.study.statistics import Estimate

RECENCY_LOOK = 3
"""The colour of ink: what all others are compared with."""

COSTS = (
    "method", "of the budget", "characters", "tokens", "blocks kept", "transitions that revive",
    "blocks revived", "bytes kept", "model calls", "tokens in", "tokens out", "ms", "ms, 95 %",
)  # fmt: skip


def look(results: Results, name: str) -> str:
    """Return the classes of a method's drawing."""
    if name in results.oracles.values():
        return "oracle"
    main = " main" if name in (Settings().policy, results.reference) else ""
    if name == results.reference:
        return f"m{RECENCY_LOOK}{main}"
    others = [m.name for m in results.methods if m.name != results.reference and not m.is_oracle]
    colours = [colour for colour in range(LOOKS) if colour != RECENCY_LOOK]
    turn, at = divmod(others.index(name), len(colours))
    return f"m{colours[at]}{main}{' broken' if turn else ''}"


def shown_methods(results: Results, measure: str) -> list[str]:
    """Return the methods to draw for a measure: of the oracles its own."""
    own = results.oracles[measure]
    return [m.name for m in results.methods if not m.is_oracle or m.name == own]


def numbers(results: Results, half: Half, retention: str) -> str:
    """Return the tables of a half: two measures each, with medians, differences and headroom."""
    given = next(g for g in results.given if (g.half, g.retention) == (half, retention))
    title = (
        f"<h3>{HALF_NAMES[half].capitalize()}, {percent(retention)} kept: "
        f"{extent(given.transitions, given.sessions)}</h3>"
    )
    measures = results.measures()
    pairs = [measures[at : at + 2] for at in range(0, len(measures), 2)]
    return title + "".join(_pair_table(results, half, retention, pair) for pair in pairs)


def costs(results: Results, half: Half, retention: str) -> str:
    """Return the table of what each method costs."""
    latencies = {(each.method, each.retention): each for each in results.timings.latencies}
    rows = []
    for method in results.methods:
        cell = results.cell(half, retention, method.name)
        if cell is not None:
            latency = latencies[method.name, retention]
            rows.append(
                _row(
                    results,
                    method.name,
                    [*_cost_cells(cell), f"{latency.median_ms:.1f}", f"{latency.p95_ms:.1f}"],
                )
            )
    return _table(
        COSTS,
        rows,
        f"{HALF_NAMES[half]}, {percent(retention)} kept: means a transition. A context is above the "
        "budget where protected blocks alone are, or support edges pulled something in",
    )


def curve_tables(results: Results, half: Half) -> str:
    """Return the numbers of the plots over retentions, folded."""
    tables = []
    for measure in results.measures():
        rows = []
        for name in shown_methods(results, measure):
            cells = [results.cell(half, kept, name) for kept in results.retentions]
            scores = [cell.scores.get(measure) if cell else None for cell in cells]
            means = [
                f"{decimal(s.level.mean)} <small>{_plain(s.level.low, s.level.high)}</small>"
                if s
                else NOTHING
                for s in scores
            ]
            rows.append(_row(results, name, means))
        head = ["method", *(percent(kept) for kept in results.retentions)]
        tables.append(_table(head, rows, MEASURE_NAMES[measure]))
    return f"<details><summary>These curves in numbers</summary>{''.join(tables)}</details>"


def _pair_table(results: Results, half: Half, retention: str, pair: Sequence[str]) -> str:
    head = ["method"]
    for measure in pair:
        head += [MEASURE_NAMES[measure], "median", f"to {results.reference}", "closed"]
    rows = []
    for method in results.methods:
        cell = results.cell(half, retention, method.name)
        scores = [cell.scores.get(measure) if cell else None for measure in pair]
        rows.append(_row(results, method.name, [text for s in scores for text in _score_cells(s)]))
    return _table(head, rows)


def _score_cells(score: Score | None) -> list[str]:
    if score is None:
        return [NOTHING] * 4
    level = score.level
    return [
        decimal(level.mean),
        decimal(level.median),
        _difference(score.difference),
        closed(score.headroom),
    ]


def _difference(estimate: Estimate | None) -> str:
    mean, _, spans = difference(estimate).partition(" ")
    return f"{mean} <small>{spans}</small>" if spans else mean


def _cost_cells(cell: Cell) -> list[str]:
    return [
        share(cell.of_budget),
        f"{cell.chars:,.0f}",
        f"{cell.tokens:,.0f}",
        f"{cell.kept_blocks:.0f} of {cell.blocks:.0f}",
        share(cell.reviving),
        f"{cell.revived_blocks:.1f}",
        f"{cell.memory_bytes:,.0f}",
        f"{cell.model_calls:.1f}",
        f"{cell.input_tokens:,.0f}",
        f"{cell.output_tokens:,.0f}",
    ]


def _plain(low: float | None, high: float | None) -> str:
    return interval(low, high).replace("+", "")


def _row(results: Results, name: str, cells: Sequence[str]) -> str:
    """Return a row of a table; cells are HTML."""
    shade = " ".join(each for each in look(results, name).split() if each in ("main", "oracle"))
    return (
        f'<tr class="{shade}"><th scope="row">{escape(name)}</th>'
        + "".join(f"<td>{cell}</td>" for cell in cells)
        + "</tr>"
    )


def _table(head: Sequence[str], rows: Sequence[str], caption: str = "") -> str:
    title = f"<caption>{escape(caption)}</caption>" if caption else ""
    cells = "".join(f'<th scope="col">{escape(each)}</th>' for each in head)
    return (
        f'<div class="scroll"><table>{title}'
        f"<thead><tr>{cells}</tr></thead><tbody>{''.join(rows)}</tbody></table></div>"
    )
