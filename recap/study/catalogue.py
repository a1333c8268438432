"""Methods of the study by name: the product's recipes, and the foreign ones of ``baselines``."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING

from recap.config import load_settings
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
    return tuple(_method(name) for name in names)


def _method(name: str) -> Method:
    """Return the method of a name; ``coverage:expansion=0;line_share=0`` is a recipe with settings."""
    known = {method.name: method for method in recipe_methods()}
    base, _, variant = name.partition(":")
    if base not in known:
        raise UsageError(f"unknown policy {shown(base)}; policies: {', '.join(known)}")
    if not variant:
        return known[base]
    overrides = {name: value for name, _, value in (p.partition("=") for p in variant.split(";"))}
    load_settings(overrides, None, {})  # says what is wrong with them
    return replace(known[base], name=name, overrides=overrides)


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
