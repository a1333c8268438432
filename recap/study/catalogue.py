"""Methods of the study by name: the product's recipes, and the foreign ones of ``baselines``."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from recap.baselines.full import NO_HISTORY
from recap.baselines.method import options_of
from recap.baselines.table import BASELINES, baseline
from recap.config import load_settings
from recap.errors import MethodError, UsageError, shown
from recap.select.policies import RECIPES
from recap.session.known import GRAPH_SETTINGS, MODEL_SETTINGS
from recap.study.methods import RecipeMethod, recipe_methods

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from recap.baselines.method import Context, Method, Option, Task

DEFAULT = tuple(RECIPES)
"""Methods compared where none are named: all that need nothing but the product."""

REFERENCE = "recency"
"""What all others are compared with: it is always among them."""


SHARED = {
    "policy": "name the policy itself",
    "retention": "use --retention",
    "observer": "use --observer",
    **dict.fromkeys(("edit_cap", "proxy_model", *GRAPH_SETTINGS, *MODEL_SETTINGS), "use --set"),
}
"""Settings that a variant may not have: they make the budget, what is protected, or the graph."""


@dataclass(frozen=True, slots=True)
class Variant:
    """A foreign method with options, under the name that says them."""

    name: str
    method: Method

    @property
    def help(self) -> str:
        """One line for the user."""
        return self.method.help

    def missing(self) -> str:
        """Return what is missing to run it here."""
        return self.method.missing()

    def shorten(self, task: Task) -> Context:
        """Return the shortened history."""
        return self.method.shorten(task)


def all_methods() -> list[Method]:
    """Return every method, also those that cannot run here: recipes, none at all, foreign ones."""
    return [*recipe_methods(), NO_HISTORY, *BASELINES.values()]


def told_options(method: Method) -> tuple[Option, ...]:
    """Return the options a name may go on with; a recipe has none but settings."""
    return () if isinstance(method, RecipeMethod) else options_of(method)


@lru_cache(maxsize=4)
def methods_of(names: tuple[str, ...]) -> tuple[Method, ...]:
    """Return the methods of these names; made once a process, so that a model is loaded once.

    A name may go on with options: ``coverage:expansion=0;recency_share=1`` is a recipe with settings
    of its own, ``llmlingua2:model=DIR`` a foreign method with its options.

    Raises:
        UsageError: A name or an option is unknown; the text lists the known ones.
    """
    return tuple(_method(name) for name in names)


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


def _method(name: str) -> Method:
    base, colon, options = name.partition(":")
    given = _options(name, options) if colon else {}
    recipes = {method.name: method for method in recipe_methods()}
    if base in recipes:
        _demand_own(name, given)
        load_settings(given, None, {})  # says what is wrong with them
        return replace(recipes[base], name=name, overrides=given)
    if base == NO_HISTORY.name:
        if given:
            raise UsageError(f"{base} has no options; got {shown(name)}")
        return NO_HISTORY
    if base not in BASELINES:
        known = ", ".join((*recipes, NO_HISTORY.name, *BASELINES))
        raise UsageError(f"unknown policy {shown(base)}; policies: {known}")
    made = baseline(base, **given)
    return Variant(name, made) if given else made


def _demand_own(name: str, given: Mapping[str, Any]) -> None:
    """Raise UsageError for a setting that is not the method's own: all share budget and evidence."""
    for setting, instead in SHARED.items():
        if setting in given:
            raise UsageError(
                f"{setting} holds for all methods of a study, not for {shown(name)}: {instead}"
            )


def _options(name: str, text: str) -> dict[str, Any]:
    options: dict[str, Any] = {}
    for pair in text.split(";"):
        key, equals, value = pair.partition("=")
        if not equals or not key.strip():
            raise UsageError(f"a policy's options are KEY=VALUE;KEY=VALUE; got {shown(name)}")
        if key.strip() in options:
            raise UsageError(f"option {shown(key.strip())} is given twice in {shown(name)}")
        options[key.strip()] = value.strip()
    return options
