"""Distinct values of an integer array, without the import of ``numpy.ma`` that ``np.unique`` costs."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, TypeVar

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

_Scalar = TypeVar("_Scalar", bound=np.generic)


class Distinct(NamedTuple):
    """Distinct values, as ``np.unique`` returns them.

    Attributes:
        values: ``[m]``, ascending.
        first: int64 ``[m]``: where each stands first.
        of: int64 ``[n]``: index of each element's value.
    """

    values: npt.NDArray[np.generic]
    first: npt.NDArray[np.int64]
    of: npt.NDArray[np.int64]


def distinct(array: npt.NDArray[_Scalar]) -> Distinct:
    """Return the distinct values of a one-dimensional array."""
    order = np.argsort(array, kind="stable")
    ascending = array[order]
    is_first = np.ones(len(array), np.bool_)
    is_first[1:] = ascending[1:] != ascending[:-1]
    of = np.empty(len(array), np.int64)
    of[order] = np.cumsum(is_first) - 1
    return Distinct(ascending[is_first], order[is_first], of)
