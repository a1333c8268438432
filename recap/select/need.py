"""How likely the next turn needs a term, by when and by whom it was used before.

The odds that something is needed again fall as a power of the time since it was used, and add up over
its uses: so it is for words in a newspaper, for mail, and for what people remember (Anderson and
Schooler 1991, equation 2, with time counted in blocks here). That an agent wrote a term itself says
more than that it read it (ours).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from recap.select.relevance import UNIT, idf

if TYPE_CHECKING:
    from recap.blocks.table import FloatArray, TermIndex
    from recap.config import Settings

FINER = 2**12
"""Units of a need in one of a level: old uses in a long session are far below one."""


def need(index: TermIndex, settings: Settings) -> FloatArray:
    """Return idf(w) * o(w) of every term in whole units: float64 ``[m]``.

    o(w) = A(w) * W(w)^eta, the odds that the next turn needs w up to a factor; A(w) is the sum of
    age^-d over the blocks that hold w, W(w) that over the blocks in which the agent wrote w, and one
    more at the age of the session; the newest block has age 1. d is ``use_decay``, eta ``act_power``.
    """
    blocks = len(index.starts) - 1
    level = use_levels(blocks, settings.use_decay)
    of_entry = np.repeat(level, np.diff(index.starts))
    used = np.bincount(index.terms, of_entry, minlength=index.size)
    wrote = np.flatnonzero(index.wrote)
    acted = np.bincount(index.terms[wrote], of_entry[wrote], minlength=index.size)
    oldest = level[0] if blocks else 0.0
    weight = idf(index) * used * ((acted + oldest) / UNIT) ** settings.act_power
    return np.rint(weight * FINER)


def use_levels(blocks: int, decay: float) -> FloatArray:
    """Return age^-d of each block in whole units of 1 / UNIT: float64 ``[blocks]``, ascending."""
    age = np.arange(blocks, 0, -1, dtype=np.float64)
    return np.rint(age**-decay * UNIT)
