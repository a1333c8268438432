"""What the rows come to: against the rows themselves, through JSON and back, in the page."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from itertools import pairwise
from statistics import fmean
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

import pytest

from recap.config import Settings
from recap.errors import InputError
from recap.study.evaluate import METRICS, ORACLES, Row
from recap.study.markdown import provenance
from recap.study.page import page
from recap.study.results import (
    JUDGE,
    SCHEMA,
    Results,
    read_results,
    row_lines,
    to_json,
    written,
)
from recap.study.runs import Plan, Study, run
from recap.study.summary import results_of
from recap.study.words import corpus_line
from tests.study.conftest import METHODS, RETENTIONS

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

SLACK = 1e-9


@pytest.fixture(scope="module")
def results(study: Study) -> Results:
    return results_of(study, {"python": "3"})


def rows_of(study: Study, half: str, retention: str, method: str) -> list[Row]:
    return [
        row
        for session in study.sessions
        if half in ("all", session.half)
        for row in session.rows
        if (row.retention, row.method) == (retention, method)
    ]


@pytest.mark.parametrize("metric", METRICS)
def test_a_cell_is_the_mean_of_its_rows(study: Study, results: Results, metric: str) -> None:
    for cell in results.cells:
        rows = rows_of(study, cell.half, cell.retention, cell.method)
        base = rows_of(study, cell.half, cell.retention, "recency")
        oracle = rows_of(study, cell.half, cell.retention, ORACLES[metric])
        assert cell.transitions == len(rows)
        scores = [row.scores[metric] for row in rows if row.scores[metric] is not None]
        if not scores:
            assert metric not in cell.scores
            continue
        score = cell.scores[metric]
        assert score.level.n == len(scores)
        assert score.level.mean == pytest.approx(fmean(scores), abs=SLACK)
        pairs = [
            (mine, theirs, best)
            for a, b, c in zip(rows, base, oracle, strict=True)
            if None not in (mine := a.scores[metric], theirs := b.scores[metric], best := c.scores[metric])
        ]  # fmt: skip
        gain = fmean(mine - theirs for mine, theirs, _ in pairs)
        room = fmean(best - theirs for _, theirs, best in pairs)
        assert score.difference is not None
        assert score.difference.mean == pytest.approx(gain, abs=SLACK)
        if room > 1e-6:
            assert score.headroom is not None
            assert score.headroom.value == pytest.approx(gain / room, abs=SLACK)
        assert cell.chars == pytest.approx(fmean(row.cost_chars for row in rows))


def test_revival_counts_transitions_that_have_one_before(study: Study, results: Results) -> None:
    for cell in results.cells:
        told = []
        for session in study.sessions:
            if cell.half in ("all", session.half):
                rows = rows_of(
                    replace(study, sessions=(session,)), "all", cell.retention, cell.method
                )
                told += [later.revived > 0 for _, later in pairwise(rows)]
        assert cell.reviving == (pytest.approx(fmean(told)) if told else None)


def test_every_half_retention_and_method_has_a_cell(results: Results) -> None:
    named = {(cell.half, cell.retention, cell.method) for cell in results.cells}
    assert named == {
        (half, retention, method)
        for half in results.halves
        for retention in RETENTIONS
        for method in (*METHODS, *ORACLES.values())
    }


def test_the_reference_differs_from_itself_by_nothing(results: Results) -> None:
    for cell in results.cells:
        if cell.method == results.reference:
            for score in cell.scores.values():
                assert score.difference is not None
                assert (score.difference.mean, score.difference.low or 0) == (0, 0)


def test_the_order_of_files_changes_nothing(files: Mapping[str, Path], results: Results) -> None:
    turned = dict(reversed(files.items()))
    again = results_of(run(turned, Plan(METHODS, RETENTIONS, Settings())), {"python": "3"})
    assert replace(again, timings=results.timings) == results


def test_json_can_be_read_again(results: Results, tmp_path: Path) -> None:
    path = tmp_path / "study.json"
    text = written(to_json(results))
    path.write_text(text)
    again = read_results(path)
    assert written(to_json(again)) == text
    assert json.loads(text)["schema"] == SCHEMA
    assert page(again) == page(read_results(path))


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"schema": "recap.study.reuse/0"}', '{"schema": 1}']
)
def test_other_json_is_refused_in_one_line(tmp_path: Path, text: str) -> None:
    path = tmp_path / "other.json"
    path.write_text(text)
    with pytest.raises(InputError, match=r"other\.json"):
        read_results(path)


def test_requests_before_a_compaction_are_told(results: Results) -> None:
    assert "compaction" not in corpus_line(results) + provenance(results) + page(results)
    told = replace(results, corpus=replace(results.corpus, compacted=7))
    for words in (corpus_line(told), provenance(told), page(told)):
        assert "7 before a later compaction" in words or "7 requests before a later" in words


def test_rows_go_out_one_a_line(study: Study) -> None:
    lines = row_lines(study).splitlines()
    assert len(lines) == sum(len(session.rows) for session in study.sessions)
    assert json.loads(lines[0])["session"] == study.sessions[0].name


def test_a_judge_is_a_measure_of_which_less_is_better(study: Study) -> None:
    """Where it is asked for some transitions of some methods, the others say nothing."""

    def judged(row: Row) -> Row:
        if row.retention != "0.2" or row.turn % 2 or row.method == "random":
            return row
        value = {"recency": 2.0, "coverage": 1.9, ORACLES["id_exec"]: 1.8}.get(row.method, 2.2)
        return replace(row, judge=value)

    sessions = tuple(
        replace(session, rows=tuple(map(judged, session.rows))) for session in study.sessions
    )
    results = results_of(replace(study, sessions=sessions), {})
    cell = results.cell("all", "0.2", "coverage")
    assert cell is not None
    score = cell.scores[JUDGE]
    assert 0 < score.level.n < cell.transitions
    assert score.difference is not None
    assert score.difference.mean == pytest.approx(-0.1)
    assert score.headroom is not None
    assert score.headroom.value == pytest.approx(0.5)
    random = results.cell("all", "0.2", "random")
    assert random is not None
    assert JUDGE not in random.scores
    assert "judge, nats a token" in page(results)


def test_the_page_stands_by_itself(results: Results) -> None:
    text = page(results)
    assert not re.search(r"https?:|<script|<link|url\(|@import|src=", text)
    assert "prefers-color-scheme: dark" in text
    for figure in re.findall(r"<figure>.*?</figure>", text, re.DOTALL):
        ET.fromstring(figure)
    body = ET.fromstring("<b>" + text.partition("<body>")[2].partition("</body>")[0] + "</b>")
    words = " ".join(body.itertext())
    assert all(name in words for name in (*METHODS, *ORACLES.values(), "a<b>&.json"))


@pytest.mark.parametrize("half", ["dev", "test"])
def test_a_page_of_one_retention_and_half_says_so(files: Mapping[str, Path], half: str) -> None:
    plan = Plan(("recency", "paper"), ("0.2",), Settings(), half)  # type: ignore[arg-type]
    text = page(results_of(run(files, plan), {}))
    assert "One retention was run" in text
    assert "Hollow" not in text
    assert f"{half} half" in text.lower()


def test_a_page_of_one_session_has_no_intervals(files: Mapping[str, Path]) -> None:
    one = {"epsilon.json": files["epsilon.json"]}
    results = results_of(run(one, Plan(("recency", "paper"), RETENTIONS, Settings())), {})
    (cell,) = (
        c for c in results.cells if (c.half, c.retention, c.method) == ("all", "0.2", "paper")
    )
    assert cell.scores["id_exec"].level.low is None
    assert "whisker" not in page(results).partition("<body>")[2]
