"""Groups that one vendor holds in another division: results with their calls, answers in one turn."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from recap.select.outline import Group


def with_results_inside(groups: list[Group]) -> list[Group]:
    """Return groups in which results stand in the group of their calls (OpenCode)."""
    joined: list[Group] = []
    for group in groups:
        if group.role == "tool" and joined and joined[-1].role == "assistant":
            joined[-1] = _join(joined[-1], group)
        else:
            joined.append(group)
    return joined


def with_answers_joined(groups: list[Group]) -> list[Group]:
    """Return groups in which calls stand right after the person or a result (Gemini).

    Answers right before them, whose results or question were left out, join them.
    """
    joined: list[Group] = []
    for group in groups:
        has_calls = any(part.kind == "call" for part in group.parts)
        while has_calls and joined and joined[-1].role == "assistant":
            group = _join(joined.pop(), group)
        joined.append(group)
    return joined


def _join(first: Group, second: Group) -> Group:
    return first._replace(
        parts=(*first.parts, *second.parts),
        messages=(*first.messages, *second.messages),
        is_current=first.is_current and second.is_current,
    )


def with_names(groups: list[Group]) -> list[Group]:
    """Return groups whose results carry the name of the tool they come from (Gemini).

    The results of a block stand in the order of its calls. A response of the vendor's own names its
    tool itself.
    """
    names: list[str] = []
    named: list[Group] = []
    for group in groups:
        if group.role == "assistant":
            names = [part.name for part in group.parts if part.kind == "call"]
        elif group.role == "tool":
            parts = (
                part if part.dialect == "gemini" else replace(part, name=name)
                for part, name in zip(group.parts, names, strict=False)
            )
            group = group._replace(parts=tuple(parts))
        named.append(group)
    return named
