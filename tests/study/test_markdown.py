"""Tables for documents: whole rows, the numbers of the results, text that cannot break a table."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from recap.config import Settings
from recap.study import markdown
from recap.study.catalogue import methods_of
from recap.study.evaluate import ORACLES
from recap.study.runs import Plan, Study, run
from recap.study.summary import results_of
from recap.study.words import difference, percent

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from recap.study.results import Results

METHODS = ("coverage", "coverage:expansion=0", "paper", "recency")


@pytest.fixture(scope="module")
def results(files: Mapping[str, Path]) -> Results:
    study: Study = run(files, Plan(METHODS, ("0.1", "0.3"), Settings()))
    return results_of(study, {"python": "3.0", "cores": "2"})


def rows(table: str) -> list[list[str]]:
    """Return the cells of the rows of a table, its head first, without the rule below it."""
    lines = [line for line in table.splitlines() if line.startswith("|")]
    cells = [[cell.strip() for cell in line[2:-2].split(" | ")] for line in lines]
    assert len({len(row) for row in cells}) == 1, table
    return [cells[0], *cells[2:]]


def test_every_method_has_a_row_with_its_numbers(results: Results) -> None:
    head, *found = rows(markdown.quality(results, "test", "0.1", ("id_exec", "line_exec")))
    assert len(head) == 7
    assert [row[0].strip("`") for row in found] == [*METHODS, *ORACLES.values()]
    for row in found:
        cell = results.cell("test", "0.1", row[0].strip("`"))
        assert cell is not None
        assert row[2] == difference(cell.scores["id_exec"].difference)


def test_the_headline_shows_both_halves_and_what_was_spent(results: Results) -> None:
    head, *found = rows(markdown.headline(results))
    assert head[:3] == ["policy", "half", "of budget"]
    names = [row[0].strip("`") for row in found]
    assert names[::2] == ["recency", "paper", "coverage:expansion=0", "coverage", "oracle-id-exec"]
    assert [row[1] for row in found] == ["test", "dev"] * 5
    assert all(method.name in names for method in methods_of(METHODS))


def test_every_retention_has_a_column(results: Results) -> None:
    head, *found = rows(markdown.budgets(results, "dev", "line_exec"))
    assert head == ["method", "10 %", "30 %"]
    assert "`recency`" not in [row[0] for row in found]


def test_the_default_stands_beside_what_others_keep_of_all_its_room(results: Results) -> None:
    head, *found = rows(markdown.same_room(results, "0.1", "0.3"))
    assert head == ["method", "half", "budget", "tokens", "id_exec", "line_exec"]
    assert [row[0].strip("`") for row in found[:3]] == [
        "coverage",
        "recency",
        "coverage:expansion=0",
    ]
    assert [row[1] for row in found] == ["test"] * 3 + ["dev"] * 3
    for row, kept in zip(found, ["0.1", "0.3", "0.3"] * 2, strict=True):
        cell = results.cell(row[1], kept, row[0].strip("`"))  # type: ignore[arg-type]
        assert cell is not None
        assert row[2:5] == [
            percent(kept),
            f"{cell.tokens:,.0f}",
            f"{cell.scores['id_exec'].level.mean:.3f}",
        ]


def test_caps_of_edits_are_told_in_the_order_they_were_tried(tmp_path: Path) -> None:
    kept = {"id_exec": 0.5, "line_exec": 0.25, "tokens": 1234}
    row = {"edit_cap": 2000, "protected": 0.27, "over": 0.15, "coverage": kept, "recency": kept}
    path = tmp_path / "caps.json"
    path.write_text(json.dumps({"rows": [row, row | {"edit_cap": None}]}))
    head, *found = rows(markdown.edit_caps(path))
    assert head[3::3] == ["`coverage`: tokens", "`recency`: tokens"]
    assert found[0] == ["2,000", "27 %", "15 %"] + ["1,234", "0.500", "0.250"] * 2
    assert found[1][0] == "none"


def test_costs_and_the_papers_figures_stand_apart(results: Results) -> None:
    assert len(rows(markdown.costs(results, "test", "0.1"))) == 1 + len(METHODS) + len(ORACLES)
    head, *found = rows(markdown.papers(results))
    assert head[-1] == "ReCAP (theirs)"
    assert [row[-1] for row in found] == [".68", ".71", "70 %", "19 KB"]
    assert "2 cores" in markdown.provenance(results)


def test_variants_are_read_as_they_were_written(tmp_path: Path) -> None:
    path = tmp_path / "variants.json"
    path.write_text("{}")
    assert markdown.variants(path) == "Nothing is listed yet."
    listed = [
        {
            "variant": "a;b",
            "half": "dev",
            "what": "one | two\nthree",
            "id_exec": [0.01, -0.02, 0.03],
        },
        {"what": "outside", "id_exec": [0.026], "line_exec": -0.0101, "of_budget": 1.2},
    ]
    path.write_text(json.dumps({"where_reuse": {"python": "3"}, "reuse": listed}))
    head, *found = rows(markdown.variants(path))
    assert head == ["what", "variant", "half", "id_exec", "line_exec", "of_budget"]
    assert found == [
        [r"one \| two three", "a;b", "dev", "+0.010 [-0.020, +0.030]", "-", "-"],
        ["outside", "-", "-", "+0.026", "-0.010", "120 %"],
    ]


def test_the_judge_is_told_with_paired_differences(tmp_path: Path) -> None:
    said = {"recency": [2.0, 3.0, 4.0], "none": [3.0, 4.0, 5.0], "full-history": [1.0, 2.5]}
    told = [
        {"session": f"s{i % 2}", "key": str(i), "method": method, "nll": nll}
        for method, values in said.items()
        for i, nll in enumerate(values)
    ]
    path = tmp_path / "judge.json"
    path.write_text(json.dumps({"rows": told}), encoding="utf-8")
    text = markdown.judged(path)
    table = {row[0]: row[1:] for row in rows(text)[1:]}
    assert text.startswith("3 transitions of 2 sessions:")
    assert [row[0] for row in table.values()] == ["3", "3", "2"]
    assert table["`none`"][2].startswith("+1.000 [+1.000, +1.000]")
    assert table["`full-history`"][2].startswith("-0.750")  # at the two it was judged at
    assert table["`full-history`"][3].startswith("-1.750")


def test_costs_are_means_over_sessions(tmp_path: Path) -> None:
    one = {"context_tokens": 1000, "compaction_ms": 1.0, "prefill_s": 2.0, "model_calls": 0}
    two = one | {"context_tokens": 3000, "compaction_ms": None}
    told = [row | {"method": "paper", "memory_bytes": 500} for row in (one, two)]
    path = tmp_path / "costs.json"
    path.write_text(json.dumps({"rows": told}), encoding="utf-8")
    assert rows(markdown.first_tokens(path))[1:] == [["`paper`", "2,000", "0.5", "2.0", "0", "0.5"]]
