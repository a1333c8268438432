"""Numbers of the study as people read them, the same on the terminal, in the page and in documents."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

from recap.errors import counted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from recap.study.results import Results
    from recap.study.statistics import Estimate, Share

MEASURE_NAMES = {
    "id_exec": "identifiers, whole turn",
    "id_act": "identifiers, agent's own",
    "line_exec": "lines, whole turn",
    "line_act": "lines, agent's own",
    "judge": "judge, nats a token",
}

MEASURE_HELP = {
    "id_exec": "Share of the identifiers the next turn read or wrote that the context held, by rarity",
    "id_act": "The same of those the agent itself wrote",
    "line_exec": "Share of the lines of 16 and more characters the next turn read or wrote again",
    "line_act": "The same of those the agent itself wrote",
    "judge": "Mean negative log-likelihood of what the agent wrote next under a model; less is better",
}

HALF_NAMES = {"dev": "dev half", "test": "test half", "all": "both halves"}

NOTHING = "-"

USUAL_RETENTION = "0.1"

FIRST_UNREAD = 3
"""Files that are named where all of them would be too many."""


def shown_retention(retentions: Sequence[str]) -> str:
    """Return the retention that tables show: a tenth, or the middle one of those run."""
    return (
        USUAL_RETENTION if USUAL_RETENTION in retentions else retentions[(len(retentions) - 1) // 2]
    )


def extent(transitions: int, sessions: int) -> str:
    """Return over how much something was measured: "226 transitions of 25 sessions"."""
    return f"{counted(transitions, 'transition')} of {counted(sessions, 'session')}"


def percent(retention: str) -> str:
    """Return a retention in percent: "0.025" as "2.5 %"."""
    return f"{float(100 * Fraction(retention)):g} %"


def decimal(value: float) -> str:
    """Return 0.5407 as "0.541"."""
    return f"{value:.3f}"


def signed(value: float) -> str:
    """Return a difference with its sign: "+0.094", "-0.010", "0.000"."""
    text = f"{value:+.3f}"
    return text[1:] if float(text) == 0 else text


def interval(low: float | None, high: float | None) -> str:
    """Return a 95 % interval of differences, "" for none."""
    return "" if low is None or high is None else f"[{signed(low)}, {signed(high)}]"


def difference(estimate: Estimate | None) -> str:
    """Return a paired difference with its interval."""
    if estimate is None:
        return NOTHING
    return f"{signed(estimate.mean)} {interval(estimate.low, estimate.high)}".rstrip()


def share(value: float | None) -> str:
    """Return a share in whole percent."""
    return NOTHING if value is None else f"{100 * value:.0f} %"


def closed(headroom: Share | None) -> str:
    """Return the headroom that was closed."""
    return NOTHING if headroom is None else share(headroom.value)


def corpus_line(results: Results) -> str:
    """Return in one line what was studied and what was not."""
    corpus = results.corpus
    transitions = sum(corpus.sessions.values())
    left = {
        "short": len(corpus.short),
        "of the other half": corpus.other_half,
        "seen twice": len(corpus.duplicates),
        "not read": len(corpus.unread),
        "requests before a later compaction": corpus.compacted,
    }
    told = ", ".join(f"{count} {what}" for what, count in left.items() if count)
    return extent(transitions, len(corpus.sessions)) + (f"; left out: {told}" if told else "")


def unread_line(results: Results) -> str:
    """Return which files were not read and why, the first of them; "" where all were."""
    unread = results.corpus.unread
    told = [f"{name} ({reason})" for name, reason in unread.items()]
    more = f" and {len(told) - FIRST_UNREAD} more" if len(told) > FIRST_UNREAD else ""
    return f"not read: {', '.join(told[:FIRST_UNREAD])}{more}" if told else ""
