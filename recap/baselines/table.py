"""The table of foreign methods: their names, and how one is made from its options."""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from recap.baselines.ablations import CUTTERS, FinerBlocks
from recap.baselines.full import FULL_HISTORY
from recap.baselines.langchain import LangChainEditing
from recap.baselines.litellm import LitellmCompress
from recap.baselines.llmlingua import LLMLingua2, LongLLMLingua
from recap.baselines.method import options_of
from recap.baselines.summarise import Summary
from recap.errors import UsageError, shown

if TYPE_CHECKING:
    from collections.abc import Mapping

    from recap.baselines.method import Method


def _table() -> Mapping[str, Method]:
    methods: list[Method] = [
        FULL_HISTORY,
        LitellmCompress(),
        LitellmCompress(
            form="anthropic",
            name="litellm-exchanges",
            help="litellm.compress that keeps or drops calls with their results",
        ),
        LangChainEditing(),
        LongLLMLingua(),
        LLMLingua2(),
        Summary(),
        *(FinerBlocks(unit, policy) for policy in ("coverage", "paper") for unit in CUTTERS),
    ]
    return MappingProxyType({method.name: method for method in methods})


BASELINES = _table()
"""Name -> the method with its default options."""


def baseline_names() -> tuple[str, ...]:
    """Return the names of all foreign methods, also of those that cannot run here."""
    return tuple(BASELINES)


def baseline(name: str, /, **options: object) -> Method:
    """Return the method of that name.

    Args:
        name: One of ``baseline_names()``.
        options: Its options in their own type or as text; what is not given has its default.

    Raises:
        UsageError: No method has that name, or it has no such option or value.
    """
    default = BASELINES.get(name)
    if default is None:
        raise UsageError(f"unknown method {shown(name)}; methods: {', '.join(BASELINES)}")
    known = {option.name: option.default for option in options_of(default)}
    for option in options:
        if option not in known:
            listed = ", ".join(sorted(known)) or "none"
            raise UsageError(f"{name} has no option {shown(option)}; its options: {listed}")
    values = {option: _parsed(option, value, known[option]) for option, value in options.items()}
    changed: Any = default
    made: Method = replace(changed, **values)
    return made


def _parsed(option: str, value: object, default: object) -> object:
    """Return the value in the type of the default: text or a whole number."""
    if isinstance(default, int):
        try:
            return int(str(value))
        except ValueError:
            raise UsageError(f"{option} must be a whole number; got {shown(value)}") from None
    return str(value)
