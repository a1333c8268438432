"""Every variant of the default policy that was tried, on the development half.

    python -m bench.study.variants [--jobs N] [--observer reuse|proxy] [--half test]     # needs RECAP_CORPUS

Differences to recency at retention 0.1. Without expansion every method costs the same, so variants are
compared without it. With the proxy as observer (1,024 tokens of each turn are replayed) importance is
attention. Results go to bench/results/study_variants.json, one list for each observer, and one for
what was run on the test half; what no setting
can say is in OUTSIDE, measured by a program that is not kept.
"""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench.measured import where
from recap.config import Settings
from recap.study.files import listed
from recap.study.runs import Plan, run
from recap.study.summary import results_of

if TYPE_CHECKING:
    from recap.study.results import Cell

RESULT = Path(__file__).parents[1] / "results" / "study_variants.json"
BASE = "coverage:expansion=0"

VARIANTS = {
    "coverage": "the default, support edges on: it may cost 1.2 B",
    "coverage:edge_share=0": "support edges only say what may come, what it adds decides",
    "coverage:edge_share=1": "the strongest support edges decide alone, as in the paper",
    BASE: "the default without support edges",
    f"{BASE};line_share=0": "identifiers alone",
    f"{BASE};line_share=0.3": "fewer lines",
    f"{BASE};line_share=1": "lines alone",
    f"{BASE};recency_share=0.25": "a quarter of the room by recency",
    f"{BASE};recency_share=0.5": "half of the room by recency, as in the policy before",
    f"{BASE};use_decay=0.5": "uses fade as the root of time, as in human memory",
    f"{BASE};use_decay=1.2": "uses fade faster",
    f"{BASE};act_power=0": "who wrote a term does not matter",
    f"{BASE};act_power=1": "it matters twice as much",
    f"{BASE};request_factor=1": "the request says nothing",
    f"{BASE};request_factor=16": "the request says much",
    f"{BASE};importance_gain=1": "importance scales what a block adds",
    f"{BASE};importance_gain=4": "importance scales it more",
}
PROXY = (
    "paper",
    "coverage",
    BASE,
    f"{BASE};importance_gain=1",
    f"{BASE};importance_gain=4",
)

TESTED = ("coverage", "coverage:edge_share=0", "coverage:edge_share=1")
"""What was run on the test half before the default was settled."""

OUTSIDE = [
    ("logistic regression of need, 15 features of a term, cross-validated", 0.026, 0.020),
    ("the same with 38 features (BM25, importance, sizes, kinds)", 0.022, 0.012),
    ("gradient boosting of the 38 features", 0.021, 0.012),
    ("no lines; every character counts by the age of its block", 0.023, 0.013),
    ("superseded blocks count a tenth", 0.025, 0.014),
    ("blocks count by their own age as well (power 0.5)", 0.012, 0.009),
    ("blocks whose file the agent still works on count more", 0.013, 0.005),
    ("blocks that edit count twice", 0.024, 0.030),
    ("edges: predecessors by what each still adds", 0.039, 0.042),
    ("edges: blocks that lean on kept ones as well", 0.041, 0.047),
    ("edges: the same over up to five hops", 0.040, 0.040),
    ("edges: not asked, any block that is not superseded fills their room", 0.040, 0.041),
    ("edges: not asked, any block", 0.042, 0.041),
    ("B packed from the best of 1.2 B, then predecessors", 0.037, 0.058),
    ("the same, blocks that lean on kept ones as well", 0.038, 0.061),
    ("the same, any block that is not superseded", 0.042, 0.053),
    ("the same, any block", 0.045, 0.054),
    ("B packed from the best of 1.2 B in order, filled, then predecessors", 0.039, 0.042),
    ("the same, not filled", 0.044, 0.044),
    ("B packed from the best of 1.2 B, not filled, then predecessors", 0.042, 0.051),
    ("no edges: price characters to the power 0.9", 0.029, 0.026),
    ("no edges: to the power 0.8", 0.021, 0.001),
    ("no edges: to the power 0.6", 0.019, -0.004),
    ("no edges: to the power 0.4", 0.019, -0.009),
    ("no edges: price 50 characters more a block", 0.027, 0.025),
    ("no edges: 200 characters more", 0.028, 0.011),
]
"""What, and the mean differences to recency in id_exec and line_exec."""


def row(cell: Cell, what: str, observer: str) -> dict[str, Any]:
    """Return what a variant came to."""
    shown: dict[str, Any] = {"variant": cell.method, "what": what, "half": cell.half}
    shown |= {"observer": observer, "transitions": cell.transitions}
    for measure in ("id_exec", "line_exec", "id_act", "line_act"):
        difference = cell.scores[measure].difference
        if difference is not None:
            low, high = difference.low, difference.high
            shown[measure] = [round(x, 4) for x in (difference.mean, low, high) if x is not None]
    return shown | {"of_budget": round(cell.of_budget, 3)}


def main() -> None:
    """Run the variants and replace their part of the results."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--observer", choices=("reuse", "proxy"), default="reuse")
    parser.add_argument("--half", choices=("dev", "test"), default="dev")
    args = parser.parse_args()
    is_proxy = args.observer == "proxy"
    settings = Settings(observer="proxy", replay_tokens=1024) if is_proxy else Settings()
    names = PROXY if is_proxy else TESTED if args.half == "test" else tuple(VARIANTS)
    plan = Plan(("recency", *names), ("0.1",), settings, args.half)
    files = listed([Path(os.environ["RECAP_CORPUS"])]).files
    study = run(files, plan, args.jobs, lambda *_: None)
    cells = {cell.method: cell for cell in results_of(study, {}).cells}
    rows = [
        row(cells[name], VARIANTS.get(name, "ReCAP's policy with attention"), args.observer)
        for name in names
    ]
    kept = json.loads(RESULT.read_text()) if RESULT.exists() else {}
    kind = args.observer if args.half == "dev" else args.half
    kept |= {kind: rows, f"where_{kind}": where()}
    kept["outside"] = [
        {"variant": "", "what": what, "half": "dev", "id_exec": [ids], "line_exec": [lines]}
        for what, ids, lines in OUTSIDE
    ]
    RESULT.write_text(json.dumps(kept, indent=1) + "\n")
    for each in rows:
        print(each["variant"], each["id_exec"], each["line_exec"], each["of_budget"])


if __name__ == "__main__":
    main()
