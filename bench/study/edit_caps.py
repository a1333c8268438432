"""What the setting ``edit_cap`` is worth: the latest edit of a file is protected up to that size.

    python -m bench.study.edit_caps [--jobs N]     # needs RECAP_CORPUS

The development half, a tenth kept. Every method protects the same blocks, so the cap changes them all;
what is kept is told for the default and for recency. Results go to bench/results/study_edit_caps.json.
"""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path
from typing import Any

from bench.measured import where
from recap.config import Settings
from recap.study.files import listed
from recap.study.runs import Plan, run
from recap.study.summary import results_of

RESULT = Path(__file__).parents[1] / "results" / "study_edit_caps.json"
CAPS = (0, 1_000, 2_000, 4_000, 8_000, 16_000, None)
METHODS = ("coverage", "recency")


def measured(cap: int | None, files: dict[str, Path], jobs: int | None) -> dict[str, Any]:
    """Return what a cap protects, and what the methods then keep of what the next turn needs."""
    plan = Plan(METHODS, ("0.1",), Settings(edit_cap=cap), "dev")
    results = results_of(run(files, plan, jobs, lambda *_: None), {})
    (given,) = results.given
    row: dict[str, Any] = {"edit_cap": cap}
    row |= {"protected": round(given.protected, 3), "over": round(given.over, 3)}
    for method in METHODS:
        cell = results.cell("dev", "0.1", method)
        assert cell is not None
        levels = {name: round(cell.scores[name].level.mean, 4) for name in ("id_exec", "line_exec")}
        row[method] = levels | {"tokens": round(cell.tokens)}
    return row


def main() -> None:
    """Run every cap and write the results."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    args = parser.parse_args()
    files = listed([Path(os.environ["RECAP_CORPUS"])]).files
    rows = []
    for cap in CAPS:
        rows.append(measured(cap, files, args.jobs))
        print(rows[-1])
    RESULT.write_text(json.dumps({"rows": rows, "where": where()}, indent=1) + "\n")


if __name__ == "__main__":
    main()
