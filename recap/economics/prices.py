"""Prices of models: the one dated table, and what the user puts over it.

A price is never guessed. A model that neither the table nor the user names has none, and what is
computed for it stays in tokens. Models whose price depends on the length of the prompt have no row.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from types import MappingProxyType
from typing import cast

from recap.errors import SettingsError

ANTHROPIC = "platform.claude.com/docs/en/about-claude/pricing"
CLAUDE_CUT = f"{ANTHROPIC}; cache reads as cut on 2026-10-07"
OPENAI = "developers.openai.com/api/docs/pricing"
USER = "recap.toml"


@dataclass(frozen=True, slots=True)
class Prices:
    """Prices of one model in USD per million tokens, of its vendor's own standard service.

    Attributes:
        input: Input that is neither read from the cache nor written to it.
        cache_write_5m: Input written to a cache of 5 minutes; the input price where writing is free.
        cache_write_1h: Input written to a cache of an hour.
        cache_read: Input read from the cache.
        output: Output, thinking included.
        as_of: Day (ISO) on which the price was known to hold; "" where the user gave none.
        source: Where it is published.
    """

    input: float
    cache_write_5m: float
    cache_write_1h: float
    cache_read: float
    output: float
    as_of: str = ""
    source: str = ""


def _claude(input: float, read: float, output: float, source: str = ANTHROPIC) -> Prices:
    """Return Anthropic's prices; all its models: 1.25 and 2 times the input price for writing."""
    return Prices(input, 1.25 * input, 2 * input, read, output, "2026-10-24", source)


def _openai(input: float, read: float, output: float, as_of: str) -> Prices:
    """Return OpenAI's prices of models that charge nothing for writing to the cache."""
    return Prices(input, input, input, read, output, as_of, OPENAI)


_OPUS_4 = _claude(15, 1.5, 75)
_OPUS_45 = _claude(5, 0.5, 25)
_SONNET_4 = _claude(3, 0.3, 15)
_GPT_5 = _openai(1.25, 0.125, 10, "2026-05-05")

PRICES: Mapping[str, Prices] = MappingProxyType(
    {
        "claude-fable-5-1": _claude(10, 0.25, 50),
        "claude-fable-5": _claude(10, 1, 50),
        "claude-opus-5-5": _claude(4, 0.2, 20),
        "claude-opus-5": _OPUS_45,
        "claude-opus-4-8": _OPUS_45,
        "claude-opus-4-7": _OPUS_45,
        "claude-opus-4-6": _OPUS_45,
        "claude-opus-4-5": _OPUS_45,
        "claude-opus-4-1": _OPUS_4,
        "claude-opus-4": _OPUS_4,
        "claude-sonnet-5-5": _claude(2, 0.1, 10, CLAUDE_CUT),
        "claude-sonnet-5": _claude(2, 0.2, 10),
        "claude-sonnet-4-6": _SONNET_4,
        "claude-sonnet-4-5": _SONNET_4,
        "claude-sonnet-4": _SONNET_4,
        "claude-haiku-4-5": _claude(1, 0.1, 5),
        "gpt-5-codex": _GPT_5,
        "gpt-5.1-codex": _GPT_5,
        "gpt-5.1-codex-max": _GPT_5,
        "gpt-5.2-codex": _openai(1.75, 0.175, 14, "2026-05-05"),
        "gpt-5.3-codex": _openai(1.75, 0.175, 14, "2026-05-13"),
    }
)
"""Model name, without date and variant -> prices."""

_VARIANT = re.compile(r"(\[\w+\]|-latest|-20\d{6}|-20\d\d-\d\d-\d\d)+$")
"""What a name may end in without changing the price."""

_NEEDED = ("input", "cache_read", "output")
_OPTIONAL = ("cache_write_5m", "cache_write_1h")


def prices_of(model: str, table: Mapping[str, Prices] = PRICES) -> Prices | None:
    """Return the prices of a model, None where none is known.

    The longest pattern of ``table`` that matches counts; ``*`` and ``?`` are wildcards. A pattern may
    match the name as it is, or without its date and variant (``-20251101``, ``[1m]``).
    """
    name = model.strip().lower()
    base = _VARIANT.sub("", name)
    found = [p for p in table if fnmatchcase(name, p) or fnmatchcase(base, p)]
    return table[max(found, key=lambda pattern: (len(pattern), pattern))] if found else None


def price_table(
    overrides: Mapping[str, object], known: Mapping[str, Prices] = PRICES
) -> Mapping[str, Prices]:
    """Return the table with the user's prices before those of the same models in ``known``.

    Args:
        overrides: The table ``[prices]`` of ``recap.toml``: model pattern -> prices by name; of the
            writes the one not given costs what the other does, else the input price.
        known: The table below them.

    Raises:
        SettingsError: A row is no table, lacks a price, has one that is no number from 0 on, or
            another key.
    """
    users = {pattern.strip().lower(): _row(pattern, row) for pattern, row in overrides.items()}
    hidden = {name for name in known if any(fnmatchcase(name, pattern) for pattern in users)}
    return users | {name: row for name, row in known.items() if name not in hidden}


def _row(pattern: str, row: object) -> Prices:
    where = f"prices.{pattern!r}"
    if not isinstance(row, Mapping):
        raise SettingsError(f"{where} must be a table of prices per million tokens")
    unknown = row.keys() - {*_NEEDED, *_OPTIONAL, "as_of"}
    if unknown:
        names = ", ".join((*_NEEDED, *_OPTIONAL, "as_of"))
        raise SettingsError(f"{where}: unknown key {min(map(str, unknown))!r}; use {names}")
    missing = [key for key in _NEEDED if key not in row]
    if missing:
        raise SettingsError(f"{where}: {missing[0]} is missing")
    price = {key: _price(f"{where}: {key}", row[key]) for key in row if key != "as_of"}
    first, second = (price.get(key) for key in _OPTIONAL)
    short = next((each for each in (first, second) if each is not None), price["input"])
    long = next((each for each in (second, first) if each is not None), price["input"])
    as_of = str(row.get("as_of", ""))
    return Prices(price["input"], short, long, price["cache_read"], price["output"], as_of, USER)


def _price(where: str, value: object) -> float:
    if isinstance(value, int | float) and not isinstance(value, bool):
        number = cast("float", value)
        if math.isfinite(number) and 0 <= number < 1e9:
            return float(number)
    raise SettingsError(f"{where} must be a number from 0 on, in USD per million tokens")
