"""Plots as SVG text that stands in a page by itself: lines over budgets, intervals, dots. Pure.

Colours and type are the page's (``style``), numbers show on hover as titles. Everything that is drawn
is said in a table of the page as well.
"""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from math import ceil, floor, hypot, log, log10
from typing import TYPE_CHECKING

from recap.study.words import decimal, difference, extent, interval, signed

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from recap.study.statistics import Estimate

WIDTH = 480
TEXT = 11
"""Height of a line of text, in the units of the drawing."""

LEFT, RIGHT, TOP, BOTTOM = 44, 124, 12, 40
NAMES = 128
"""Room for the names of rows."""

NAME_CHARS, NAME_HEAD = 20, 6
"""Characters of a name that are shown, and how many of them are of its head where it is longer."""

PLOT_HEIGHT = 250
ROW, SWARM_ROW = 24, 46
RADIUS = (2.5, 5.0)
"""Of the dots of sessions with least and most transitions."""

LEAST_SPAN = 0.01
"""Of an axis: what differs by less is drawn as one."""

STEPS = (1, 2, 2.5, 5, 10)


@dataclass(frozen=True, slots=True)
class Axis:
    """Values to places on the drawing, linear or logarithmic."""

    low: float
    high: float
    start: float
    end: float
    is_log: bool = False

    def __call__(self, value: float) -> float:
        """Return the place of a value."""
        low, high = self.low, self.high
        if self.is_log:
            value, low, high = log(value), log(low), log(high)
        share = (value - low) / (high - low) if high > low else 0.5
        return self.start + share * (self.end - self.start)


@dataclass(frozen=True, slots=True)
class Curve:
    """A method over retentions.

    Attributes:
        name: What it is called.
        look: Classes of its drawing.
        points: Retention -> estimate, ascending.
    """

    name: str
    look: str
    points: Sequence[tuple[float, Estimate]]


@dataclass(frozen=True, slots=True)
class Mark:
    """An interval in a row: of one half, which says how it is drawn."""

    half: str
    look: str
    estimate: Estimate


@dataclass(frozen=True, slots=True)
class Dot:
    """A session in a row.

    Attributes:
        value: Where it stands.
        weight: Its transitions.
        title: What is said on hover.
        look: Classes of its drawing.
    """

    value: float
    weight: int
    title: str
    look: str


@dataclass(frozen=True, slots=True)
class Line:
    """A row of a plot: a method with its marks, or its dots."""

    name: str
    look: str
    marks: Sequence[Mark] = ()
    dots: Sequence[Dot] = ()


def curves(lines: Sequence[Curve], title: str) -> str:
    """Return a plot of a measure over retentions: a line and an interval's band a method."""
    xs = sorted({x for line in lines for x, _ in line.points})
    ends = [
        v
        for line in lines
        for _, e in line.points
        for v in (e.mean, e.low, e.high)
        if v is not None
    ]
    steps = ticks(min(ends), max(ends))
    across = Axis(xs[0], xs[-1], LEFT, WIDTH - RIGHT, is_log=True)
    up = Axis(steps[0], steps[-1], TOP + PLOT_HEIGHT, TOP)
    base = TOP + PLOT_HEIGHT
    drawn = [_rule(LEFT, up(step), WIDTH - RIGHT, up(step)) for step in steps]
    drawn += [_text(LEFT - 6, up(step) + 4, f"{step:g}", "end") for step in steps]
    drawn += [_text(across(x), base + 16, f"{100 * x:g} %", "middle") for x in xs]
    drawn.append(
        _text((LEFT + WIDTH - RIGHT) / 2, base + 33, "share of the history kept", "middle")
    )
    ends_at = spread([up(line.points[-1][1].mean) for line in lines], TEXT + 1)
    in_front = sorted(zip(lines, ends_at, strict=True), key=lambda pair: "main" in pair[0].look)
    drawn += [_curve(line, across, up, at) for line, at in in_front]
    return _figure(title, base + BOTTOM, drawn)


def intervals(rows: Sequence[Line], title: str) -> str:
    """Return a plot of differences: a row a method, a dot with its interval for each half."""
    ends = [
        v
        for row in rows
        for mark in row.marks
        for v in (mark.estimate.mean, mark.estimate.low, mark.estimate.high)
        if v is not None
    ]
    across, drawn, base = _rows_frame(rows, ends, ROW)
    for at, row in enumerate(rows):
        middle = TOP + ROW * (at + 0.5)
        apart = ROW / 3.4 if len(row.marks) > 1 else 0
        marks = [
            _mark(mark, row.name, across, middle + apart * (which - (len(row.marks) - 1) / 2))
            for which, mark in enumerate(row.marks)
        ]
        drawn.append(_group(f"series {row.look}", marks))
    return _figure(title, base + BOTTOM, drawn)


def swarms(rows: Sequence[Line], title: str) -> str:
    """Return a plot of differences: a row a method, a dot a session, larger with more transitions."""
    ends = [dot.value for row in rows for dot in row.dots]
    across, drawn, base = _rows_frame(rows, ends, SWARM_ROW)
    most = max((dot.weight for row in rows for dot in row.dots), default=1)
    for at, row in enumerate(rows):
        middle = TOP + SWARM_ROW * (at + 0.5)
        drawn.append(_group(f"series {row.look}", _swarm(row.dots, across, middle, most)))
    return _figure(title, base + BOTTOM, drawn)


def ticks(low: float, high: float, count: int = 6) -> list[float]:
    """Return round numbers, about ``count`` of them, that hold both ends between them."""
    if high - low < LEAST_SPAN:
        low, high = low - LEAST_SPAN / 2, high + LEAST_SPAN / 2
    rough = (high - low) / count
    scale = 10 ** floor(log10(rough))
    step = scale * next(step for step in STEPS if step * scale >= rough * 0.999)
    first = floor(low / step + 1e-9)
    last = ceil(high / step - 1e-9)
    return [round(at * step, 10) for at in range(first, last + 1)]


def spread(places: Sequence[float], least: float) -> list[float]:
    """Return the places moved apart, both ways alike, until neighbours are ``least`` apart."""
    order = sorted(range(len(places)), key=places.__getitem__)
    down = [places[index] for index in order]
    up = list(down)
    for at in range(1, len(order)):
        down[at] = max(down[at], down[at - 1] + least)
        up[-1 - at] = min(up[-1 - at], up[-at] - least)
    found = [0.0] * len(places)
    for index, low, high in zip(order, up, down, strict=True):
        found[index] = (low + high) / 2
    return found


def _rows_frame(
    rows: Sequence[Line], ends: Iterable[float], height: float
) -> tuple[Axis, list[str], float]:
    """Return the axis, the grid with names and zero line, and the lower end of a plot of rows."""
    values = [0.0, *ends]
    steps = ticks(min(values), max(values))
    across = Axis(steps[0], steps[-1], NAMES + 8, WIDTH - 20)
    base = TOP + height * len(rows)
    drawn = [
        _rule(across(step), TOP, across(step), base, "zero" if step == 0 else "grid")
        for step in steps
    ]
    drawn += [
        _text(across(step), base + 16, signed(step).rstrip("0").rstrip("."), "middle")
        for step in steps
    ]
    drawn += [
        _name(NAMES, TOP + height * (at + 0.5) + 4, row.name, "end", f"name {row.look}")
        for at, row in enumerate(rows)
    ]
    drawn.append(_text((NAMES + WIDTH) / 2, base + 33, "difference to recency", "middle"))
    return across, drawn, base


def _curve(line: Curve, across: Axis, up: Axis, label_at: float) -> str:
    banded = [(x, e) for x, e in line.points if e.low is not None and e.high is not None]
    around = [(across(x), up(e.high or 0)) for x, e in banded]
    around += [(across(x), up(e.low or 0)) for x, e in reversed(banded)]
    path = _points((across(x), up(e.mean)) for x, e in line.points)
    last_x, last = line.points[-1]
    drawn = [f'<polygon class="band" points="{_points(around)}"/>'] if len(banded) > 1 else []
    drawn.append(
        f'<polyline class="reach" points="{path}"/><polyline class="line" points="{path}"/>'
    )
    drawn += [
        f'<circle cx="{across(x):.1f}" cy="{up(e.mean):.1f}" r="3">'
        f"<title>{escape(_said(line.name, f'{100 * x:g} % kept', e))}</title></circle>"
        for x, e in line.points
    ]
    end = across(last_x) + 8
    drawn.append(
        f'<line class="lead" x1="{end - 4:.1f}" y1="{up(last.mean):.1f}" x2="{end:.1f}" y2="{label_at:.1f}"/>'
    )
    drawn.append(_name(end + 3, label_at + 4, line.name, "start", "name"))
    return _group(f"series {line.look}", drawn)


def _said(name: str, where: str, estimate: Estimate) -> str:
    spans = interval(estimate.low, estimate.high).replace("+", "")
    return f"{name}, {where}: {decimal(estimate.mean)} {spans}, {estimate.n} transitions"


def _mark(mark: Mark, name: str, across: Axis, at: float) -> str:
    estimate = mark.estimate
    x = across(estimate.mean)
    title = f"{name}, {mark.half}: {difference(estimate)}, {extent(estimate.n, estimate.sessions)}"
    whisker = ""
    if estimate.low is not None and estimate.high is not None:
        low, high = across(estimate.low), across(estimate.high)
        whisker = (
            f'<line class="whisker" x1="{low:.1f}" y1="{at:.1f}" x2="{high:.1f}" y2="{at:.1f}"/>'
        )
    return (
        f'<g class="{mark.look}"><title>{escape(title)}</title>{whisker}'
        f'<circle cx="{x:.1f}" cy="{at:.1f}" r="4"/></g>'
    )


def _swarm(dots: Sequence[Dot], across: Axis, middle: float, most: int) -> list[str]:
    """Return the dots, moved up and down until they do not lie on one another."""
    placed: list[tuple[float, float, float]] = []
    drawn = []
    small, large = RADIUS
    for dot in sorted(dots, key=lambda dot: (dot.value, dot.title)):
        x, radius = across(dot.value), small + (large - small) * (dot.weight / most) ** 0.5
        shift = _free_shift(placed, x, radius)
        placed.append((x, shift, radius))
        drawn.append(
            f'<circle class="dot {dot.look}" cx="{x:.1f}" cy="{middle + shift:.1f}" r="{radius:.1f}">'
            f"<title>{escape(dot.title)}</title></circle>"
        )
    return drawn


def _free_shift(placed: Sequence[tuple[float, float, float]], x: float, radius: float) -> float:
    """Return how far to move a dot off its row: the least that is free, else where most room is."""
    reach = int(SWARM_ROW / 2 - RADIUS[0])
    shifts = sorted((float(s) for s in range(-reach, reach + 1)), key=lambda s: (abs(s), s))
    near = [(a - x, b, r) for a, b, r in placed if abs(a - x) < radius + r]

    def room(shift: float) -> float:
        return min((hypot(a, b - shift) - radius - r for a, b, r in near), default=0.0)

    return next((shift for shift in shifts if room(shift) >= 0), max(shifts, key=room))


def _figure(title: str, height: float, drawn: Iterable[str]) -> str:
    return (
        f'<figure><figcaption>{escape(title)}</figcaption><svg viewBox="0 0 {WIDTH} {height:.0f}" '
        f'role="img" aria-label="{escape(title)}">{"".join(drawn)}</svg></figure>'
    )


def _group(look: str, drawn: Iterable[str]) -> str:
    return f'<g class="{look}">{"".join(drawn)}</g>'


def _points(places: Iterable[tuple[float, float]]) -> str:
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in places)


def _rule(x1: float, y1: float, x2: float, y2: float, look: str = "grid") -> str:
    return f'<line class="{look}" x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"/>'


def _name(x: float, y: float, name: str, anchor: str, look: str) -> str:
    """Return the name of a method; of a long one its head and its end, which tell variants apart."""
    if len(name) <= NAME_CHARS:
        return _text(x, y, name, anchor, look)
    short = f"{name[:NAME_HEAD]}\u2026{name[NAME_HEAD + 1 - NAME_CHARS :]}"
    return _group("", [f"<title>{escape(name)}</title>", _text(x, y, short, anchor, look)])


def _text(x: float, y: float, words: str, anchor: str, look: str = "") -> str:
    return (
        f'<text class="{look}" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">'
        f"{escape(words)}</text>"
    )
