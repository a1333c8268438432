"""Trees: JSON values whose leaves may be handles on the JSON they came from.

Writers build trees, so that what is kept goes out as the very object or with the very bytes. Only
what JSON forbids is replaced: a lone surrogate by U+FFFD, a number that is not finite by null.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

import msgspec

from recap.transcript.model import Held, Json, Raw, Sent, Slice

Tree: TypeAlias = "Raw | str | int | float | bool | Sequence[Tree] | Mapping[str, Tree] | None"


def to_object(tree: Tree) -> Json:
    """Return the tree as Python objects; a clean handle gives its own object."""
    if type(tree) is Held and tree.is_clean:  # the common case of a long list
        return tree.value
    return _resolved(tree, _object)


def to_bytes(tree: Tree) -> bytes:
    """Return the tree as JSON; a clean handle gives its own bytes."""
    return msgspec.json.encode(_resolved(tree, _encoded))


def strict(value: Json) -> Json:
    """Return a copy of the value that can be written as strict JSON."""
    text = json.dumps(value, ensure_ascii=False, default=str)
    return json.loads(_strict_text(text), parse_constant=lambda _: None)


def _resolved(tree: Tree, leaf: Callable[[Raw], Json]) -> Json:
    if isinstance(tree, Slice | Held | Sent):
        return leaf(tree)
    if isinstance(tree, str):
        return _strict_text(tree)
    if isinstance(tree, Mapping):
        return {_strict_text(key): _resolved(value, leaf) for key, value in tree.items()}
    if isinstance(tree, Sequence):
        return [_resolved(value, leaf) for value in tree]
    if isinstance(tree, float) and not math.isfinite(tree):
        return None
    return tree


def _object(raw: Raw) -> Json:
    return raw.load() if raw.is_clean else strict(raw.load())


def _encoded(raw: Raw) -> msgspec.Raw:
    if raw.is_clean:
        return msgspec.Raw(raw.dump())
    text = json.dumps(strict(raw.load()), ensure_ascii=False, separators=(",", ":"))
    return msgspec.Raw(text.encode())


def _strict_text(text: str) -> str:
    """Return the text with pairs of surrogates joined and lone ones replaced."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text
