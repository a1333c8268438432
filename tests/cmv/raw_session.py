"""A second reading of Claude Code logs, from the client's observed rules and nothing of ours.

It knows lines as decoded JSON. What it returns of a session and of its trimmed copy has to be equal.
"""

from __future__ import annotations

import json
from typing import Any

Line = dict[str, Any]
LINKS = ("user", "assistant", "system", "progress", "attachment")


def lines_of(data: bytes) -> list[Line]:
    """Return the objects among the lines."""
    found = []
    for raw in data.split(b"\n"):
        try:
            value = json.loads(raw.decode("utf-8", "surrogateescape"), strict=False)
        except ValueError:
            continue
        if isinstance(value, dict):
            found.append(value)
    return found


def blocks_of(line: Line) -> list[Line]:
    """Return the blocks of a line's message; a string is one text."""
    message = line.get("message")
    content = message.get("content") if isinstance(message, dict) else None
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    blocks = content if isinstance(content, list) else []
    return [block for block in blocks if isinstance(block, dict)]


def active_lines(data: bytes) -> list[Line]:
    """Return the lines of the conversation: the walk up from the last leaf, results added."""
    lines = [line for line in lines_of(data) if line.get("type") in LINKS]
    main = [line for line in lines if line.get("isSidechain") is not True] or lines
    by_id = {line["uuid"]: line for line in main if isinstance(line.get("uuid"), str)}
    place = {id(line): at for at, line in enumerate(main)}
    preserved = _preserved(main)
    path: list[Line] = []
    seen: set[int] = set()
    at = _leaf(main)
    while at is not None and id(at) not in seen:
        seen.add(id(at))
        path.append(at)
        if at.get("subtype") == "compact_boundary":
            break
        if at.get("uuid") in preserved:
            uuids = preserved[at["uuid"]]
            kept = [by_id[uuid] for uuid in reversed(uuids) if uuid in by_id]
            path[-1:] = [*(line for line in kept if id(line) not in seen), at]
            seen.update(map(id, kept))
        parent = at.get("parentUuid")
        above = by_id.get(parent) if parent else None
        at = above if above or not parent else _before(main, place[id(at)])
    chain = path[::-1]
    return _with_results(chain, main, by_id)


def _leaf(main: list[Line]) -> Line | None:
    followed = set()
    by_id = {line.get("uuid"): line for line in main}
    for line in main:
        above = line if line.get("type") in ("user", "assistant") else None
        while above is not None:
            parent = above.get("parentUuid")
            above = by_id.get(parent) if parent and parent not in followed else None
            followed.add(parent)
            if above is not None and above.get("type") in ("user", "assistant"):
                break
    spoken = [line for line in main if line.get("type") in ("user", "assistant")]
    leaves = [line for line in spoken if line.get("uuid") not in followed and blocks_of(line)]
    return (leaves or spoken or [None])[-1]


def _preserved(main: list[Line]) -> dict[str, list[str]]:
    found = {}
    for line in main:
        meta = line.get("compactMetadata") or {}
        if line.get("subtype") == "compact_boundary" and meta.get("preservedMessages"):
            found[meta["preservedMessages"]["anchorUuid"]] = meta["preservedMessages"]["uuids"]
    return found


def _before(main: list[Line], place: int) -> Line | None:
    earlier = [line for line in main[:place] if line.get("type") in ("user", "assistant", "system")]
    return earlier[-1] if earlier else None


def _with_results(chain: list[Line], main: list[Line], by_id: dict[str, Line]) -> list[Line]:
    """Add results and further lines of a message that hang beside the chain."""
    inside = {id(line) for line in chain}
    added: dict[int, list[Line]] = {}
    calls = {
        block["id"]: line for line in chain for block in blocks_of(line)
        if block.get("type") == "tool_use" and isinstance(block.get("id"), str)
    }  # fmt: skip
    answered = {
        block.get("tool_use_id") for line in chain for block in blocks_of(line)
        if block.get("type") == "tool_result"
    }  # fmt: skip
    for line in main:
        if id(line) in inside:
            continue
        results = [b["tool_use_id"] for b in blocks_of(line) if b.get("type") == "tool_result"]
        owner = next((calls[one] for one in results if one in calls and one not in answered), None)
        if owner is not None:
            added.setdefault(id(owner), []).append(line)
            answered.update(results)
    return [each for line in chain for each in (line, *added.get(id(line), []))]


def texts(data: bytes, role: str) -> list[str]:
    """Return the texts of a role on the active path, in order."""
    return [
        block["text"] for line in active_lines(data) if line["type"] == role
        for block in blocks_of(line)
        if block.get("type") == "text"
        and isinstance(block.get("text"), str)
        and not block["text"].startswith("[Trimmed: image")
    ]  # fmt: skip


def requests(data: bytes) -> list[str]:
    """Return the tool requests on the active path as JSON."""
    return [
        json.dumps(block, sort_keys=True) for line in active_lines(data) for block in blocks_of(line)
        if block.get("type") == "tool_use"
    ]  # fmt: skip


def dangling(data: bytes) -> set[str]:
    """Return the parents that no line of the file has."""
    lines = lines_of(data)
    known = {line.get("uuid") for line in lines}
    links = [line for line in lines if line.get("type") in LINKS]
    return {line["parentUuid"] for line in links if line.get("parentUuid")} - known
