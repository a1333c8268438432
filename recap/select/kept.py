"""What is remembered of a selection: enough to serve it again, to extend it and to show it.

A kept set is small (9 bytes a kept block) and holds no text. It names blocks by id, so it can be
applied to a history that was re-sent, re-read or has grown.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from recap.config import parse_retention
from recap.errors import InputError, UsageError
from recap.graph.state import align
from recap.select.policies import recipe_of
from recap.select.relevance import known_terms, relevance
from recap.select.selection import CODE, FIRST_KEPT, RULES, Selection, limit_of

if TYPE_CHECKING:
    from recap.blocks.table import BlockTable, BoolArray
    from recap.config import Settings
    from recap.graph.state import ContextGraph
    from recap.select.selection import Request

VERSION = 1
ID_BYTES = 8
SINCE = "since"
"""Rule of a block that came after the selection it is served with."""

_ID = re.compile(r"[0-9a-f]{16}")
_MOST = 1 << 53
"""Counts above this are none."""


@dataclass(frozen=True, slots=True)
class Kept:
    """The kept set of one selection.

    Attributes:
        settings_key: Fingerprint of everything that shaped it (settings, policy, pins): a kept set
            is served again only under the same.
        policy: Name of the recipe.
        retention: beta, as its exact text.
        blocks: Blocks of the history it was made from.
        budget_chars: B of that history. Markers depend on it: with the same one they stay.
        ids: Ids of the kept blocks, chronological.
        rules: For each the rule that kept it.
        last_id: Id of the last block of that history, "" for none: what follows it came since.
        prompt_chars: Characters of the whole prompt then, uncompacted.
        is_whole: Nothing was left out: the whole live context is kept, whatever joins it.
    """

    settings_key: bytes
    policy: str
    retention: str
    blocks: int
    budget_chars: int
    ids: tuple[str, ...]
    rules: tuple[str, ...]
    last_id: str = ""
    prompt_chars: int = 0
    is_whole: bool = False


class _Stored(msgspec.Struct, array_like=True, frozen=True):
    version: int
    settings_key: bytes
    policy: str
    retention: str
    blocks: int
    budget_chars: int
    ids: bytes
    names: list[str]
    codes: bytes
    last_id: str
    prompt_chars: int
    is_whole: bool


def whole(policy: str, settings_key: bytes) -> Kept:
    """Return the kept set of a turn that nothing is left out of."""
    return Kept(settings_key, policy, "1", 0, 0, (), (), is_whole=True)


def kept_of(selection: Selection, settings_key: bytes, prompt_chars: int = 0) -> Kept:
    """Return what is remembered of a selection."""
    chosen = np.flatnonzero(selection.is_kept).tolist()
    ids = selection.table.ids
    return Kept(
        settings_key=settings_key,
        policy=selection.policy,
        retention=str(selection.retention),
        blocks=len(ids),
        budget_chars=selection.budget_chars,
        ids=tuple(ids[index] for index in chosen),
        rules=tuple(RULES[selection.rule[index]] for index in chosen),
        last_id=ids[-1] if ids else "",
        prompt_chars=prompt_chars,
    )


def encode(kept: Kept) -> bytes:
    """Return the kept set as bytes."""
    names = sorted(set(kept.rules))
    return msgspec.msgpack.encode(
        _Stored(
            VERSION,
            kept.settings_key,
            kept.policy,
            kept.retention,
            kept.blocks,
            kept.budget_chars,
            bytes.fromhex("".join(kept.ids)),
            names,
            bytes(map(names.index, kept.rules)),
            kept.last_id,
            kept.prompt_chars,
            kept.is_whole,
        )
    )


def decode(data: bytes) -> Kept:
    """Return the kept set that ``encode`` wrote; bytes from anyone are safe to pass.

    Raises:
        InputError: Not such bytes, or of another release.
    """
    try:
        stored = msgspec.msgpack.decode(data, type=_Stored)
        ids = tuple(stored.ids.hex(" ", ID_BYTES).split())
        rules = tuple(stored.names[code] for code in stored.codes)
        recipe_of(stored.policy)
        parse_retention(stored.retention)
    except (msgspec.MsgspecError, UsageError, ValueError, TypeError, IndexError) as err:
        raise InputError("not a kept set this release can read; it is selected anew") from err
    is_sound = (
        stored.version == VERSION
        and len(ids) == len(rules) <= stored.blocks
        and all(map(_ID.fullmatch, ids))
        and set(rules) <= set(RULES[FIRST_KEPT:])
        and (not stored.last_id or _ID.fullmatch(stored.last_id))
        and all(0 <= n < _MOST for n in (stored.blocks, stored.budget_chars, stored.prompt_chars))
    )
    if not is_sound:
        raise InputError("not a kept set this release can read; it is selected anew")
    return Kept(
        stored.settings_key, stored.policy, stored.retention, stored.blocks,
        stored.budget_chars, ids, rules, stored.last_id, stored.prompt_chars, stored.is_whole,
    )  # fmt: skip


def again(
    kept: Kept,
    graph: ContextGraph,
    table: BlockTable,
    request: Request,
    settings: Settings,
    *,
    extend: bool = False,
) -> Selection:
    """Return the selection of a kept set over a history, with the same blocks kept.

    Blocks that the history no longer holds are missing from it. With ``extend`` everything that came
    after the history the kept set was made from is kept as well, under the rule ``since``: the
    served prefix then only grows, and a provider's cache of it stays good.

    Scores are not remembered: importance and relevance are those of the graph and request given, and
    ``score`` is 0.
    """
    recipe = recipe_of(kept.policy)
    settings = settings.replace(retention=kept.retention)
    seen = align(graph, table.ids)
    terms = known_terms(recipe.terms(request.text), table.index)
    rule = np.zeros(len(table), np.int8)
    position = {block_id: index for index, block_id in enumerate(table.ids)}
    for block_id, name in zip(kept.ids, kept.rules, strict=True):
        if block_id in position:
            rule[position[block_id]] = CODE[name]
    if kept.is_whole:
        rule[table.is_active] = CODE[SINCE]
    elif extend:
        is_since = np.arange(len(table)) > _end(kept, position)
        rule[is_since & (rule == 0)] = CODE[SINCE]
    # A history that was rewritten holds words the kept set never saw; a person's are never left out.
    rule[table.is_user & table.is_active & (rule < FIRST_KEPT)] = FIRST_KEPT
    is_kept = rule >= FIRST_KEPT
    budget = table.active_chars if kept.is_whole else kept.budget_chars
    cost = int(table.cost_chars[is_kept].sum())
    return Selection(
        table=table,
        policy=recipe.name,
        retention=settings.beta,
        active_chars=table.active_chars,
        budget_chars=budget,
        limit_chars=limit_of(recipe, settings, budget),
        protected_chars=_chars(table, _is_protected(rule)),
        core_chars=cost - _chars(table, rule == CODE["expanded"]),
        cost_chars=cost,
        is_kept=is_kept,
        rule=rule,
        score=np.zeros(len(table)),
        importance=seen.importance,
        relevance=relevance(table.index, terms),
        is_stale=seen.is_stale,
        pulled_by=np.full(len(table), -1, np.int32),
        edge_mass=np.zeros(len(table)),
    )


def _end(kept: Kept, position: dict[str, int]) -> int:
    """Return the index of the last block of the history the kept set was made from.

    Where that block is gone the history was rewritten from somewhere on: what follows the last kept
    block that is still there counts as new.
    """
    if kept.last_id in position:
        return position[kept.last_id]
    return max((position[id] for id in kept.ids if id in position), default=-1)


def _is_protected(rule: np.ndarray[tuple[int], np.dtype[np.int8]]) -> BoolArray:
    codes = [code for code, name in enumerate(RULES) if name.startswith("protected:")]
    return np.isin(rule, codes)


def _chars(table: BlockTable, which: BoolArray) -> int:
    return int(table.cost_chars[which].sum())
