"""What a text holds that a later turn may need again: identifiers and whole lines."""

from __future__ import annotations

import re

MIN_LINE_CHARS = 16
MIN_NAME_CHARS = 3
MAX_NAME_CHARS = 200

_TOKEN = re.compile(r"[A-Za-z_$][\w$]*(?:(?:::|->|[./\\:@-])[\w$]+)*", re.ASCII)
_STEPS = re.compile(r"::|->|[./\\:@-]")
_HUMP = re.compile(r"[a-z0-9][A-Z]|[A-Za-z]\d|\d[A-Za-z]|[A-Z]{2,}[a-z]")
_QUOTED = re.compile(r"""(["'`])([\w$./:@-]{3,64})\1""", re.ASCII)


def identifiers(text: str) -> frozenset[str]:
    """Return the names in a text, as they are written (ours).

    A name is a run of word characters that is compound: paths, dotted and scoped names, snake_case,
    camelCase, names with digits; with its steps of at least three characters. A word in quotes or
    backticks is one, too, and so is a word of capitals (``ENOENT``). Other plain words are none.
    """
    found: set[str] = set()
    for token in set(_TOKEN.findall(text)):
        if len(token) > MAX_NAME_CHARS:
            continue
        steps = _STEPS.split(token)
        if len(steps) > 1:
            if _is_compound(token):
                found.add(token)
                found.update(step for step in steps if len(step) >= MIN_NAME_CHARS)
        elif _is_name(token):
            found.add(token)
    found.update(match[1] for match in _QUOTED.findall(text))
    return frozenset(found)


def _is_compound(token: str) -> bool:
    """Return False for prose that is joined: ``well-known``, ``e.g``, ``and/or``."""
    if "-" in token and token.replace("-", "").isalpha() and token.islower():
        return False
    return len(token) > 2 * MIN_NAME_CHARS


def _is_name(token: str) -> bool:
    if len(token) < MIN_NAME_CHARS:
        return False
    return (
        "_" in token.strip("_")
        or "$" in token
        or _HUMP.search(token) is not None
        or (token.isupper() and len(token) > MIN_NAME_CHARS)
    )


def lines(text: str) -> frozenset[str]:
    """Return the lines of at least 16 characters, without white space around them (ours)."""
    stripped = (line.strip() for line in text.splitlines())
    return frozenset(line for line in stripped if len(line) >= MIN_LINE_CHARS)
