"""Axes and labels of the plots, and that what is drawn is well-formed."""

from __future__ import annotations

from itertools import pairwise
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recap.study.statistics import Estimate
from recap.study.svg import Axis, Curve, Dot, Line, Mark, curves, intervals, spread, swarms, ticks

NUMBERS = st.floats(-5, 5)
HOSTILE = 'a <b> & "c" \u202e'


def estimate(mean: float, half: float | None = 0.1) -> Estimate:
    low, high = (None, None) if half is None else (mean - half, mean + half)
    return Estimate(9, 3, mean, mean, low, high)


@given(NUMBERS, NUMBERS)
def test_ticks_are_even_and_hold_both_ends(one: float, two: float) -> None:
    low, high = min(one, two), max(one, two)
    found = ticks(low, high)
    steps = [b - a for a, b in pairwise(found)]
    assert found[0] <= low + 1e-6
    assert found[-1] >= high - 1e-6
    assert 2 <= len(found) <= 13
    assert max(steps) - min(steps) < 1e-6


@given(st.lists(st.floats(0, 300), max_size=14), st.floats(1, 15))
def test_labels_are_moved_apart_and_keep_their_order(places: list[float], least: float) -> None:
    moved = spread(places, least)
    assert len(moved) == len(places)
    assert all(b - a >= least - 1e-6 for a, b in pairwise(sorted(moved)))
    for (a, b), (c, d) in pairwise(sorted(zip(places, moved, strict=True))):
        assert a == c or b < d


def test_labels_that_are_apart_stay() -> None:
    assert spread([10, 50, 30], 12) == [10, 50, 30]


def test_an_axis_leads_from_end_to_end() -> None:
    axis = Axis(0.01, 1, 40, 400, is_log=True)
    assert (axis(0.01), axis(1)) == (40, 400)
    assert axis(0.1) == pytest.approx(220)
    assert Axis(2, 2, 0, 100)(2) == 50


@pytest.mark.parametrize("half", [0.1, None])
def test_drawings_are_well_formed_and_say_their_numbers(half: float | None) -> None:
    rows = [
        Line(
            HOSTILE,
            "m0",
            [Mark("dev half", "hollow", estimate(0.2, half))],
            [Dot(0.1 * at, 1 + at, HOSTILE, "filled") for at in range(5)] * 3,
        ),
        Line("nothing", "m1"),
    ]
    lines = [Curve(HOSTILE, "m0 main", [(0.01, estimate(0.4, half)), (0.2, estimate(0.6, half))])]
    for drawn in (curves(lines, HOSTILE), intervals(rows, HOSTILE), swarms(rows, HOSTILE)):
        figure = ET.fromstring(drawn)
        titles = [each.text for each in figure.iter("title")]
        assert titles
        assert all(HOSTILE in (text or "") for text in titles)
        assert figure.find("svg").get("aria-label") == HOSTILE  # type: ignore[union-attr]
    said = [e.text or "" for e in ET.fromstring(intervals(rows, "t")).iter("title")]
    assert "+0.200" in said[0]


def test_a_long_name_keeps_its_end_and_is_said_whole() -> None:
    name = "coverage:expansion=0;line_share=0.3"
    figure = ET.fromstring(intervals([Line(name, "m0")], "t"))
    shown = [text.text or "" for text in figure.iter("text") if text.get("class") == "name m0"]
    assert len(shown) == 1
    assert len(shown[0]) == 20
    assert shown[0].startswith("covera")
    assert shown[0].endswith("line_share=0.3"[-13:])
    assert [title.text for title in figure.iter("title")] == [name]


def test_dots_do_not_hide_one_another() -> None:
    dots = [Dot(0.1, 4, f"s{at}", "filled") for at in range(6)]
    figure = ET.fromstring(swarms([Line("m", "m0", dots=dots)], "t"))
    circles = [(float(c.get("cx", 0)), float(c.get("cy", 0))) for c in figure.iter("circle")]
    assert len(set(circles)) == 6
