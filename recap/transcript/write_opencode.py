"""Writer of OpenCode messages: info and parts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from recap.transcript.convert import (
    UNCONVERTED_IMAGE,
    arguments_object,
    is_image,
    text_leaf,
)
from recap.transcript.images import image_address
from recap.transcript.model import (
    HUMAN_AUTHORS,
    Json,
    Part,
    Raw,
    Role,
    Sent,
    block_text,
    flat_text,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from recap.transcript.tree import Tree


def write_message(role: Role, parts: Sequence[Part]) -> list[Tree]:
    """Return the message that holds ``parts``; none for system parts and results alone.

    An assistant's results stand among its parts, in the order of its calls. Thinking must be of this
    dialect: the caller drops any other.
    """
    written = _written_parts(parts)
    if role in ("system", "tool") or not written:
        return []
    return [{"info": {"role": role}, "parts": written}]


def system_blocks(parts: Sequence[Part]) -> list[Tree]:
    """Return the system parts as texts, to stand beside the list."""
    return [_text_part(part) for part in parts]


def _written_parts(parts: Sequence[Part]) -> list[Tree]:
    results = iter([part for part in parts if part.kind == "result"])
    written: list[Tree] = []
    for part in parts:
        if part.kind == "call":
            written.append(_tool(part, next(results, None)))
        elif part.kind != "result":
            written.append(_part(part))
    return written


def _part(part: Part) -> Tree:
    if part.dialect == "opencode" and isinstance(part.raw, Sent):
        return part.raw.block
    if part.dialect == "opencode" and part.kind != "text":
        return part.raw
    if part.dialect == "opencode" and part.path:
        return part.raw
    assert part.kind != "thinking"
    if part.kind == "image" and part.author != "agent":
        return _file(part.payload())
    return _text_part(part)


def _text_part(part: Part) -> Tree:
    words = text_leaf(part) if part.kind == "text" else part.text()
    if part.kind == "image":
        words = UNCONVERTED_IMAGE
    made: dict[str, Tree] = {"type": "text", "text": words}
    is_machine = part.author not in (*HUMAN_AUTHORS, "agent", "system")
    return {**made, "synthetic": True} if is_machine else made


def _file(block: Json) -> Tree:
    url = image_address(block)
    if not url:
        return {"type": "text", "text": UNCONVERTED_IMAGE}
    media_type = url.removeprefix("data:").partition(";")[0] if url.startswith("data:") else ""
    return {"type": "file", "mime": media_type or "image/*", "url": url}


def _tool(call: Part, result: Part | None) -> Tree:
    """Return the tool part of a call and its result: the original where both are unchanged."""
    if call.dialect == "opencode" and (result is None or _stands_in(result, call.raw)):
        return call.raw
    state: dict[str, Tree] = {"status": "pending", "input": arguments_object(call.payload())}
    if result is None:
        state["raw"] = ""
    else:
        state.update(_result_state(result))
    return {"type": "tool", "callID": call.call_id, "tool": call.name, "state": state}


def _stands_in(result: Part, part: Raw) -> bool:
    """Return True for the result that the tool part holds, unchanged."""
    raw = result.raw
    return raw is part or (isinstance(raw, Sent) and raw.block is part)


def _result_state(result: Part) -> dict[str, Tree]:
    """Return the fields of a finished call; OpenCode needs a time and a title, neutral here."""
    content = result.payload()
    blocks = content if isinstance(content, list) else [content]
    texts = [block_text(block) for block in blocks if not is_image(block)]
    text = "\n".join(texts) if isinstance(content, list) else flat_text(content)
    time = {"start": 0, "end": 0}
    if result.is_error:
        return {"status": "error", "error": text, "time": time}
    files = [_file(block) for block in blocks if is_image(block)]
    return {
        "status": "completed",
        "output": text,
        "title": "",
        "metadata": {},
        "time": time,
        **({"attachments": files} if files else {}),
    }
