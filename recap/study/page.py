"""The study as one page: no network, no script. Plots, and every number of them in a table."""

from __future__ import annotations

from fractions import Fraction
from html import escape
from typing import TYPE_CHECKING

from recap.study.page_tables import costs, curve_tables, look, numbers, shown_methods
from recap.study.style import STYLE
from recap.study.svg import Curve, Dot, Line, Mark, curves, intervals, swarms
from recap.study.words import (
    HALF_NAMES,
    MEASURE_HELP,
    MEASURE_NAMES,
    corpus_line,
    percent,
    share,
    shown_retention,
    signed,
    unread_line,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from recap.study.results import Results
    from recap.study.runs import Half


def page(results: Results) -> str:
    """Return the page of a study."""
    retention = shown_retention(results.retentions)
    halves = [half for half in results.halves if half != "all"]
    judged: Half = "test" if "test" in halves else halves[0]
    body = [
        "<h1>Does it keep what the next turn needs?</h1>",
        f"<p>{escape(corpus_line(results))}. Each request was taken as the moment to shorten the "
        "history; what the following turn read and wrote again was looked up in what each method "
        "kept. All methods get the same protected blocks inside the same budget.</p>",
        f'<p class="soft">{escape(unread_line(results))}</p>' if results.corpus.unread else "",
        f'<p class="soft">{_protected(results, retention, halves)}</p>',
        f"<h2>Difference to {results.reference}, {percent(retention)} kept</h2>",
        f'<p class="soft">{_marks_note(halves)} Bars are 95 % intervals: {results.draws:,} draws of '
        "sessions. An oracle knows the next turn.</p>",
        _plots(
            _interval_plot(results, measure, retention, halves) for measure in results.measures()
        ),
        f"<h2>Over budgets, {HALF_NAMES[judged]}</h2>",
        '<p class="soft">Means; bands are 95 % intervals. Point at a line to see it alone.</p>',
        _curves(results, judged),
        *(
            f"<details><summary>The {HALF_NAMES[half]}</summary>{_curves(results, half)}</details>"
            for half in halves
            if half != judged
        ),
        f"<h2>Session by session, {percent(retention)} kept</h2>",
        f'<p class="soft">A dot is a session: its mean difference to {results.reference}, larger '
        f"with more transitions. {_marks_note(halves)}</p>",
        _plots(_swarm_plot(results, measure, retention) for measure in results.measures()),
        "<h2>Numbers</h2>",
        *(numbers(results, half, retention) for half in results.halves),
        "<h2>Costs</h2>",
        costs(results, judged, retention),
        "<h2>How it was measured</h2>",
        _method_notes(results),
    ]
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>Recap: reuse study</title>\n<style>{STYLE}</style>\n</head>\n<body>\n"
        + "\n".join(part for part in body if part)
        + "\n</body>\n</html>\n"
    )


def _protected(results: Results, retention: str, halves: Sequence[Half]) -> str:
    told = [
        f"{share(given.protected)} of the budget in the {HALF_NAMES[given.half]} (median), and more "
        f"than all of it in {share(given.over)} of its transitions"
        for given in results.given
        if given.retention == retention and given.half in halves
    ]
    return f"With {percent(retention)} kept, protected blocks take {'; '.join(told)}."


def _marks_note(halves: Sequence[Half]) -> str:
    if len(halves) < 2:
        return ""
    return "Filled: the test half. Hollow: the dev half, which policies were tuned on."


def _hollow(half: str, halves: Sequence[str]) -> str:
    return "hollow" if half == "dev" and len(halves) > 1 else "filled"


def _plots(plots: Iterable[str]) -> str:
    return f'<div class="plots">{"".join(plots)}</div>'


def _interval_plot(results: Results, measure: str, retention: str, halves: Sequence[Half]) -> str:
    rows = []
    for name in shown_methods(results, measure):
        cells = [results.cell(half, retention, name) for half in reversed(halves)]
        marks = [
            Mark(HALF_NAMES[cell.half], _hollow(cell.half, halves), score.difference)
            for cell in cells
            if cell and (score := cell.scores.get(measure)) and score.difference
        ]
        if name != results.reference:
            rows.append(Line(name, look(results, name), marks))
    return intervals(rows, MEASURE_NAMES[measure])


def _swarm_plot(results: Results, measure: str, retention: str) -> str:
    rows = []
    for name in shown_methods(results, measure):
        dots = [
            Dot(
                each.differences[measure],
                each.transitions,
                f"{each.session}: {signed(each.differences[measure])}, {each.transitions} transitions",
                _hollow(each.half, results.halves),
            )
            for each in results.per_session
            if (each.method, each.retention) == (name, retention) and measure in each.differences
        ]
        if dots:
            rows.append(Line(name, look(results, name), dots=dots))
    return swarms(rows, MEASURE_NAMES[measure]) if rows else ""


def _curves(results: Results, half: Half) -> str:
    """Return the plots over retentions with their table; "" for a single retention."""
    if len(results.retentions) < 2:
        return '<p class="soft">One retention was run.</p>'
    plots = []
    for measure in results.measures():
        lines = []
        for name in shown_methods(results, measure):
            cells = [(kept, results.cell(half, kept, name)) for kept in results.retentions]
            points = [
                (float(Fraction(kept)), cell.scores[measure].level)
                for kept, cell in cells
                if cell and measure in cell.scores
            ]
            if points:
                lines.append(Curve(name, look(results, name), points))
        plots.append(curves(lines, MEASURE_NAMES[measure]) if lines else "")
    return _plots(plots) + curve_tables(results, half)


def _method_notes(results: Results) -> str:
    """Return what the measures and methods are, with what they ran, and the files left out."""
    measures = [(MEASURE_NAMES[name], MEASURE_HELP[name]) for name in results.measures()]
    measures.append(
        (
            "closed",
            f"(method - {results.reference}) / (oracle - {results.reference}), of the means, with the oracle "
            "of the measure: "
            + ", ".join(f"{MEASURE_NAMES[m]} {results.oracles[m]}" for m in results.measures()),
        )
    )
    methods = [(method.name, method.help) for method in results.methods]
    facts = [
        ("observer", results.observer),
        *results.settings.items(),
        *results.timings.where.items(),
    ]
    facts.append(("time", f"{results.timings.seconds:.0f} s with {results.timings.jobs} processes"))
    corpus = results.corpus
    left = [(name, f"the same session as {other}") for name, other in corpus.duplicates.items()]
    left += [(name, reason) for name, reason in corpus.unread.items()]
    left += [(name, "one request, or a short history at each") for name in corpus.short]
    sections = (
        ("Measures", measures), ("Methods", methods), ("Settings", facts),
        ("Sessions", [(n, f"{count} transitions") for n, count in corpus.sessions.items()]),
        ("Files left out", left),
    )  # fmt: skip
    opened = ' open=""'
    return "".join(
        f"<details{opened if at < 2 else ''}><summary>{title}</summary><ul>"
        + "".join(f"<li>{escape(name)}: {escape(words)}</li>" for name, words in rows)
        + "</ul></details>"
        for at, (title, rows) in enumerate(sections)
        if rows
    )
