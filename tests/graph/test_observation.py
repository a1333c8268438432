from __future__ import annotations

import numpy as np
import pytest

from recap.graph.observation import TurnObservation


def test_lists_become_arrays_of_the_documented_types():
    seen = TurnObservation.of(3, ["a", "b"], [0, 2], [1], [0], [0.5])
    assert (seen.turn, seen.ids) == (3, ("a", "b"))
    assert [seen.use.dtype, seen.mass.dtype] == [np.float64, np.float64]
    assert [seen.later.dtype, seen.earlier.dtype] == [np.int32, np.int32]


def test_a_turn_may_have_measured_nothing():
    assert TurnObservation.of(0, (), ()).use.shape == (0,)


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ((-1, "ab", [1, 1]), "turn"),
        ((0, "aa", [1, 1]), "stands twice"),
        ((0, "ab", [1]), "one number per block"),
        ((0, "ab", [[1, 1]]), "one number per block"),
        ((0, "ab", [1, -0.1]), "use must be finite"),
        ((0, "ab", [1, np.inf]), "use must be finite"),
        ((0, "ab", [1, np.nan]), "use must be finite"),
        ((0, "ab", [1, 1], [1], [0], [0.1, 0.2]), "one length"),
        ((0, "ab", [1, 1], [1, 1], [0], [0.1, 0.2]), "one length"),
        ((0, "ab", [1, 1], [[1]], [[0]], [[0.5]]), "one length"),
        ((0, "ab", [1, 1], [1], [0], [1.1]), "mass must lie"),
        ((0, "ab", [1, 1], [1], [0], [-0.1]), "mass must lie"),
        ((0, "ab", [1, 1], [1], [0], [np.nan]), "mass must lie"),
        ((0, "ab", [1, 1], [2], [0], [0.5]), "later must index"),
        ((0, "ab", [1, 1], [1], [-1], [0.5]), "earlier must index"),
        ((0, "ab", [1, 1], [1.0], [0], [0.5]), "whole numbers"),
        ((0, "ab", [1, 1], [1], [1], [0.5]), "to an earlier one"),
        ((0, "ab", [1, 1], [0], [1], [0.5]), "to an earlier one"),
    ],
)
def test_what_is_no_observation_is_refused(arguments, complaint):
    with pytest.raises(ValueError, match=complaint):
        TurnObservation.of(*arguments)
