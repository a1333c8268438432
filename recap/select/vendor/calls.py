"""Calls a provider would refuse: bad names leave with their results, bad ids are replaced on both."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Literal

from recap.transcript.convert import with_call_id
from recap.transcript.limits import exceeded
from recap.transcript.model import Dialect, Part, PartKind, digest

if TYPE_CHECKING:
    from collections.abc import Container, Mapping, Sequence

    from recap.select.outline import Group
    from recap.select.vendor.notes import Notes

WORD = re.compile(r"[A-Za-z0-9_-]+")
"""Anthropic's call ids and OpenAI's function names."""

NAMES: Mapping[Dialect, re.Pattern[str]] = {
    "openai": WORD,
    "responses": WORD,
    "gemini": re.compile(r"[A-Za-z_][A-Za-z0-9_.:-]*"),
}
"""Names of tools the vendor takes; any other vendor takes what is not empty."""

OLD_CALL_PATH = ("arguments",)
"""Path of OpenAI's old ``function_call``, whose results are messages of the role ``function``."""

UNIQUE_IN: Mapping[Dialect, Literal["list", "message", "nothing"]] = {
    "anthropic": "list",
    "openai": "message",
    "responses": "list",
    "gemini": "nothing",  # calls and responses pair by their order
    "langchain": "message",
    "opencode": "nothing",  # a call and its result are one part
}
"""Where a call's id may stand only once."""


def without_refused_calls(groups: list[Group], dialect: Dialect, notes: Notes) -> list[Group]:
    """Return groups without the calls whose tool name the vendor refuses, and their results.

    The results of a block stand in the order of its calls, so the k-th of each belong together.
    """
    names = {
        (part.name, part.dialect) for group in groups for part in group.parts if part.kind == "call"
    }
    if all(is_call_name(name, form, dialect) for name, form in names):
        return groups
    adapted: list[Group] = []
    refused: list[bool] = []
    for group in groups:
        if group.role == "assistant":
            calls = [part for part in group.parts if part.kind == "call"]
            refused = [not is_call_name(call.name, call.dialect, dialect) for call in calls]
            notes["call-name"] += sum(refused)
            group = _kept(group, refused, "call")
        elif group.role == "tool":
            group = _kept(group, refused, "result")
        adapted.append(group)
    return adapted


def _kept(group: Group, refused: Sequence[bool], kind: PartKind) -> Group:
    """Return the group without its k-th part of a kind where ``refused[k]``."""
    if not any(refused):
        return group
    verdicts = iter(refused)
    return group.with_parts(
        [
            (part, at)
            for part, at in zip(group.parts, group.messages, strict=True)
            if not (part.kind == kind and next(verdicts, False))
        ]
    )


def is_call_name(name: str, form: Dialect | None, dialect: Dialect) -> bool:
    """Return True when the provider accepts the name of a tool in a call of a dialect's form.

    Calls of another form are written anew, with the letters the provider takes.
    """
    if form == dialect and dialect in NAMES:
        return NAMES[dialect].fullmatch(name) is not None
    return bool(name) and not exceeded(len(name), dialect, "name_chars")


def in_matching_forms(groups: list[Group]) -> list[Group]:
    """Return groups in which no call of OpenAI's old form has a result of the new one, or vice versa.

    A ``function_call`` has no id that a tool message could answer: where one of the two cannot go out
    as it is, both go out anew. The k-th call and result of a block belong together, as above.
    """
    adapted: list[Group] = []
    for group in groups:
        if group.role == "tool" and adapted:
            calls = [part for part in adapted[-1].parts if part.kind == "call"]
            pairs = zip(calls, group.parts, strict=False)
            mixed = {id(part) for pair in pairs if _is_mixed(*pair) for part in pair}
            if mixed:
                adapted[-1] = _anew(adapted[-1], mixed)
                group = _anew(group, mixed)
        adapted.append(group)
    return adapted


def _is_mixed(call: Part, result: Part) -> bool:
    if call.path != OLD_CALL_PATH:
        return False
    is_old = result.dialect == "openai" and result.raw.load().get("role") == "function"
    return is_old != (call.dialect == "openai")


def _anew(group: Group, mixed: Container[int]) -> Group:
    return group.with_parts(
        [
            (replace(part, dialect=None) if id(part) in mixed else part, at)
            for part, at in zip(group.parts, group.messages, strict=True)
        ]
    )


def usable_ids(groups: list[Group], dialect: Dialect, notes: Notes) -> list[Group]:
    """Return groups in which every call id is legal, and unique where the vendor asks for it."""
    ids = [part.call_id for group in groups for part in group.parts if part.kind == "call"]
    if len(set(ids)) == len(ids) and all(_is_call_id(call_id, dialect) for call_id in ids):
        return groups
    taken: set[str] = set()
    adapted: list[Group] = []
    renamed: dict[str, list[str]] = {}
    for group in groups:
        if group.role == "assistant":
            if UNIQUE_IN[dialect] != "list":
                taken = set()
            renamed = {}
            parts = [_unique_id(part, taken, renamed, dialect, notes) for part in group.parts]
        elif group.role == "tool":
            parts = [_answering(part, renamed) for part in group.parts]
        else:
            adapted.append(group)
            continue
        changed = any(new is not old for new, old in zip(parts, group.parts, strict=True))
        adapted.append(
            group.with_parts(list(zip(parts, group.messages, strict=True))) if changed else group
        )
    return adapted


def _unique_id(
    part: Part, taken: set[str], renamed: dict[str, list[str]], dialect: Dialect, notes: Notes
) -> Part:
    if part.kind != "call":
        return part
    new_id = part.call_id
    if not _is_call_id(new_id, dialect):
        new_id = f"call_{digest(part.call_id, part.digest).hex()[:16]}"
    base, copy = new_id, 1
    while new_id in taken and UNIQUE_IN[dialect] != "nothing":
        copy += 1
        new_id = f"{base}_{copy}"
    taken.add(new_id)
    renamed.setdefault(part.call_id, []).append(new_id)
    if new_id == part.call_id:
        return part
    notes["call-id-replaced"] += 1
    return with_call_id(part, new_id)


def _is_call_id(call_id: str, dialect: Dialect) -> bool:
    return WORD.fullmatch(call_id) is not None if dialect == "anthropic" else bool(call_id)


def _answering(part: Part, renamed: dict[str, list[str]]) -> Part:
    new_ids = renamed.get(part.call_id)
    if not new_ids:
        return part
    new_id = new_ids.pop(0) if len(new_ids) > 1 else new_ids[0]
    if new_id == part.call_id:
        return part
    return with_call_id(part, new_id)
