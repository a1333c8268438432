"""Methods of the study by name: the product's recipes, and the foreign ones of ``baselines``."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from recap.errors import MethodError, UsageError, shown
from recap.select.policies import RECIPES
from recap.study.methods import recipe_methods

if TYPE_CHECKING:
    from collections.abc import Sequence

    from recap.baselines.method import Method

DEFAULT = tuple(RECIPES)
"""Methods compared where none are named: all that need nothing but the product."""

REFERENCE = "recency"
"""What all others are compared with: it is always among them."""


@lru_cache(maxsize=4)
def methods_of(names: tuple[str, ...]) -> tuple[Method, ...]:
    """Return the methods of these names; made once a process, so that a model is loaded once.

    Raises:
        UsageError: A name is unknown; the text lists the names.
    """
    known = {method.name: method for method in recipe_methods()}
    if unknown := [name for name in names if name not in known]:
        raise UsageError(f"unknown policy {shown(unknown[0])}; policies: {', '.join(known)}")
    return tuple(known[name] for name in names)


def chosen(names: Sequence[str]) -> tuple[str, ...]:
    """Return the names to run, each once, the reference among them.

    Raises:
        UsageError: A name is unknown.
        MethodError: A method cannot run here; the text says what is missing.
    """
    wanted = tuple(dict.fromkeys(names or DEFAULT))
    if REFERENCE not in wanted:
        wanted += (REFERENCE,)
    for method in methods_of(wanted):
        if missing := method.missing():
            raise MethodError(f"policy {method.name} cannot run here: {missing}")
    return wanted
