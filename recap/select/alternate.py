"""Strict alternation: adjacent messages of one role joined, for templates that refuse them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from recap.transcript.model import Json

SEPARATOR = "\n\n"
"""Stands between two joined texts; blocks of content lists stay apart as they are."""


def alternate(messages: Sequence[Json]) -> tuple[list[Json], list[int]]:
    """Return the messages with runs of one role joined, and how many messages each one holds.

    Tool messages and assistant messages that carry calls end a run of their own: joining past them
    would part a call from its results. Joined messages are new objects; the others stay the same.
    """
    joined: list[Json] = []
    sizes: list[int] = []
    for message in messages:
        if joined and _may_join(joined[-1], message):
            joined[-1] = _join(joined[-1], message)
            sizes[-1] += 1
        else:
            joined.append(message)
            sizes.append(1)
    return joined, sizes


def _may_join(first: Json, second: Json) -> bool:
    if not isinstance(first, dict) or not isinstance(second, dict):
        return False
    role = first.get("role")
    return (
        role in ("user", "assistant")
        and role == second.get("role")
        and not (first.get("tool_calls") or first.get("function_call"))
    )


def _join(first: dict[str, Json], second: dict[str, Json]) -> dict[str, Json]:
    return {
        **first,
        **second,
        "content": _joined_content(first.get("content"), second.get("content")),
    }


def _joined_content(first: Json, second: Json) -> Json:
    if not first or not second:
        return first or second
    if isinstance(first, str) and isinstance(second, str):
        return first + SEPARATOR + second
    return [*_blocks(first), *_blocks(second)]


def _blocks(content: Json) -> list[Json]:
    return [{"type": "text", "text": content}] if isinstance(content, str) else list(content)
