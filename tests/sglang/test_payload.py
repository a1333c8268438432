"""Payloads and results cross process borders and are checked on arrival."""

from __future__ import annotations

import json
import pickle

import numpy as np
import pytest

from recap.capture.spans import Segments
from recap.graph.observation import TurnObservation
from recap.sglang.payload import Payload, PayloadError, Result

SEGMENTS = Segments(("a", "b"), np.array([0, 4, 10, 12], np.int64), np.array([0, -1, 1], np.int32))
PAYLOAD = Payload("session", 2**64 - 1, 3, 4, SEGMENTS, tail="answer")


def parsed(params: dict[str, object], tokens: int = 12, most: int = 8) -> Payload | None:
    return Payload.parse(params, tokens, most)


def test_a_payload_survives_its_way_to_the_scheduler() -> None:
    back = parsed(json.loads(json.dumps(PAYLOAD.params())))
    assert back is not None
    assert back.params() == PAYLOAD.params()


def test_its_values_are_scalars_and_flat_lists_as_sampling_parameters_take_them() -> None:
    for value in PAYLOAD.params().values():
        values = value if isinstance(value, list) else [value]
        assert all(isinstance(v, int | str) for v in values)


def test_parameters_of_others_carry_no_payload() -> None:
    assert parsed({"other": [1, 2]}) is None


@pytest.mark.parametrize(
    "change",
    [
        {"recap.offsets": None},
        {"recap.offsets": [0, 4, 10]},
        {"recap.offsets": [0, 4, 4, 12]},
        {"recap.offsets": [1, 4, 10, 12]},
        {"recap.offsets": [0, 4, 10, 13]},
        {"recap.offsets": [0, 4, 10.0, 12]},
        {"recap.offsets": [False, 4, 10, 12]},
        {"recap.offsets": [[0], 4, 10, 12]},
        {"recap.owner": [0, -2, 1]},
        {"recap.owner": [0, -1, 2]},
        {"recap.owner": "012"},
        {"recap.ids": ["a", "a"]},
        {"recap.ids": ["a", ""]},
        {"recap.ids": ["a", "b\n"]},
        {"recap.ids": ["a", "x" * 129]},
        {"recap.ids": [1, 2]},
        {"recap.tail": "a"},
        {"recap.session": "no spaces"},
        {"recap.session": "ü"},
        {"recap.seed": -1},
        {"recap.seed": 2**64},
        {"recap.seed": True},
        {"recap.turn": None},
        {"recap.start": 13},
    ],
)
def test_a_malformed_payload_is_refused(change: dict[str, object]) -> None:
    with pytest.raises(PayloadError):
        parsed(PAYLOAD.params() | change)


def test_more_segments_than_allowed_are_refused() -> None:
    with pytest.raises(PayloadError):
        parsed(PAYLOAD.params(), most=2)


def test_generated_tokens_belong_to_the_tail() -> None:
    whole = PAYLOAD.segments_to(20)
    assert whole.ids == ("a", "b", "answer")
    assert whole.offsets.tolist() == [0, 4, 10, 12, 20]
    assert whole.owner.tolist() == [0, -1, 1, 2]


def test_without_a_tail_generated_tokens_belong_to_no_block() -> None:
    whole = Payload("", 1, 0, 0, SEGMENTS).segments_to(20)
    assert whole.ids == SEGMENTS.ids
    assert whole.owner.tolist() == [0, -1, 1, -1]


def result(dropped: str = "") -> Result:
    seen = TurnObservation.of(3, ["a", "b"], [0.5, 0.25], [1], [0], [0.125])
    return Result(
        "rid", "session", None if dropped else seen, dropped, 8, (0, 2), 4, 12, "torch_native"
    )


@pytest.mark.parametrize("dropped", ["", "aborted"])
def test_a_result_survives_its_way_to_the_main_process(dropped: str) -> None:
    wire = pickle.loads(pickle.dumps(result(dropped).wire()))
    assert Result.parse(json.loads(json.dumps(wire))).wire() == wire


@pytest.mark.parametrize(
    "change",
    [
        {"use": [0.5]},
        {"use": [0.5, float("nan")]},
        {"mass": [2.0]},
        {"later": [0], "earlier": [1]},
        {"ids": ["a", "a"]},
        {"rows": -1},
        {"layers": ["x"]},
        {"turn": -1},
        {"session": "two words"},
    ],
)
def test_a_result_that_contradicts_itself_is_refused(change: dict[str, object]) -> None:
    with pytest.raises(PayloadError):
        Result.parse(result().wire() | change)


def test_something_else_is_no_result() -> None:
    for other in (None, 3, "text", [], {}):
        with pytest.raises(PayloadError):
            Result.parse(other)
