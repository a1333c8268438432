"""What a study comes to: one typed value for table, page, JSON and documents, and its JSON form."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec

from recap.errors import InputError, shown_path
from recap.study.evaluate import METRICS, ORACLES
from recap.study.runs import Half  # noqa: TC001 - msgspec reads the types of fields
from recap.study.statistics import Estimate, Share  # noqa: TC001

if TYPE_CHECKING:
    from pathlib import Path

    from recap.study.runs import Study

SCHEMA = "recap.study.reuse/1"

JUDGE = "judge"
"""The measure of a model that judges; less is better."""

MEASURES = (*METRICS, JUDGE)

ORACLE_OF: dict[str, str] = {**ORACLES, JUDGE: ORACLES["id_exec"]}
"""Measure -> the one oracle whose distance to the reference is its headroom."""

DIGITS = 6
"""Decimals of the numbers in JSON: what differs behind them differs by the order of sums."""


@dataclass(frozen=True, slots=True)
class Score:
    """One measure of one method.

    Attributes:
        level: The measure itself.
        difference: To the reference at the same transitions.
        headroom: Share of the oracle's distance to the reference; see ``ORACLE_OF``.
    """

    level: Estimate
    difference: Estimate | None
    headroom: Share | None


@dataclass(frozen=True, slots=True)
class Cell:
    """One method at one retention over one half; plain numbers are means over transitions.

    Attributes:
        half, retention, method: Which.
        transitions, sessions: Over how many.
        scores: Measure -> score, for measures that say something.
        chars: What the context costs.
        of_budget: That as a share of B.
        tokens: About how many tokens it is.
        kept_blocks, blocks: Blocks kept whole, and those of the history.
        revived_blocks: Of the kept ones, left out at the session's transition before.
        reviving: Share of transitions, with one before, that revive a block; None without any.
        memory_bytes: What the method keeps between turns.
        model_calls, input_tokens, output_tokens: Of models it asked.
    """

    half: Half
    retention: str
    method: str
    transitions: int
    sessions: int
    scores: dict[str, Score]
    chars: float
    of_budget: float
    tokens: float
    kept_blocks: float
    blocks: float
    revived_blocks: float
    reviving: float | None
    memory_bytes: float
    model_calls: float
    input_tokens: float
    output_tokens: float


@dataclass(frozen=True, slots=True)
class Given:
    """What every method is given, at one retention over one half.

    Attributes:
        half, retention: Which.
        transitions, sessions: Over how many.
        history_chars, budget_chars: Medians of c(V) and B.
        protected: Median of cost(P) / B.
        over: Share of transitions where P costs more than B.
    """

    half: Half
    retention: str
    transitions: int
    sessions: int
    history_chars: float
    budget_chars: float
    protected: float
    over: float


@dataclass(frozen=True, slots=True)
class SessionScore:
    """Mean differences of one method to the reference in one session, by measure."""

    session: str
    half: Half
    retention: str
    method: str
    transitions: int
    differences: dict[str, float]


@dataclass(frozen=True, slots=True)
class MethodInfo:
    """A method that was run."""

    name: str
    help: str
    is_oracle: bool


@dataclass(frozen=True, slots=True)
class Corpus:
    """What lay in the folder.

    Attributes:
        sessions: Session -> transitions.
        short: Sessions whose history was short at every request.
        other_half: Sessions of the half that was not asked for.
        duplicates: File -> file of the same session that counts.
        unread: File or folder -> why it is no session, or cannot be read; the latter come first.
        compacted: Requests before a later compaction of their log.
    """

    sessions: dict[str, int]
    short: list[str]
    other_half: int
    duplicates: dict[str, str]
    unread: dict[str, str]
    compacted: int = 0


@dataclass(frozen=True, slots=True)
class Latency:
    """Processor time a method took at one retention, over all transitions."""

    method: str
    retention: str
    median_ms: float
    p95_ms: float


@dataclass(frozen=True, slots=True)
class Timings:
    """What differs from run to run.

    Attributes:
        seconds: Wall clock of the study.
        jobs: Processes.
        where: Computer and versions.
        latencies: Of each method.
    """

    seconds: float
    jobs: int
    where: dict[str, str]
    latencies: list[Latency]


@dataclass(frozen=True, slots=True)
class Results:
    """A study in numbers.

    Attributes:
        observer: What measured the turns.
        settings: Settings that are not the default.
        reference: Method that differences are to.
        oracles: Measure -> oracle of its headroom.
        draws, seed: Of the bootstrap over sessions.
        methods: In the order they are shown.
        halves, retentions: For which there are cells.
        corpus: What lay in the folder.
        given: What every method was given.
        cells: Every half, retention and method.
        per_session: At every retention, without oracles and reference.
        timings: Everything that differs from run to run, and nothing else.
    """

    observer: str
    settings: dict[str, str]
    reference: str
    oracles: dict[str, str]
    draws: int
    seed: int
    methods: list[MethodInfo]
    halves: list[Half]
    retentions: list[str]
    corpus: Corpus
    given: list[Given]
    cells: list[Cell]
    per_session: list[SessionScore]
    timings: Timings

    def cell(self, half: Half, retention: str, method: str) -> Cell | None:
        """Return a cell; None where the method was not run."""
        return next(
            (
                cell
                for cell in self.cells
                if (cell.half, cell.retention, cell.method) == (half, retention, method)
            ),
            None,
        )

    def measures(self) -> list[str]:
        """Return the measures that were taken."""
        return [name for name in MEASURES if any(name in cell.scores for cell in self.cells)]


def to_json(results: Results) -> dict[str, Any]:
    """Return the results as a JSON object, the schema first, numbers to ``DIGITS`` decimals."""
    return {"schema": SCHEMA, **_rounded(msgspec.to_builtins(results))}


def written(content: dict[str, Any]) -> str:
    """Return the JSON text of an object, each element of its lists on a line of its own."""
    fields = (f"{json.dumps(name)}: {_written(value)}" for name, value in content.items())
    return "{\n" + ",\n".join(fields) + "\n}\n"


def row_lines(study: Study) -> str:
    """Return every row of a study as JSON Lines."""
    rows = (row for session in study.sessions for row in session.rows)
    return "".join(msgspec.json.encode(row).decode() + "\n" for row in rows)


def read_results(path: Path) -> Results:
    """Return the results a file holds.

    Raises:
        InputError: It holds none, or those of another version.
    """
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(content, dict) or content.pop("schema", None) != SCHEMA:
            raise InputError(f"{shown_path(path)} holds no results of the schema {SCHEMA}")
        return msgspec.convert(content, Results)
    except ValueError as err:
        raise InputError(f"{shown_path(path)} holds no results of the study: {err}") from err


def _written(value: Any) -> str:
    if not isinstance(value, list) or not value or not isinstance(value[0], dict):
        return json.dumps(value, allow_nan=False)
    return "[\n" + ",\n".join(json.dumps(each, allow_nan=False) for each in value) + "\n]"


def _rounded(value: Any) -> Any:
    if isinstance(value, float):
        return round(value, DIGITS)
    if isinstance(value, dict):
        return {name: _rounded(each) for name, each in value.items()}
    return [_rounded(each) for each in value] if isinstance(value, list) else value
