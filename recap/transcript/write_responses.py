"""Writer of OpenAI Responses items."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from recap.transcript.convert import (
    UNCONVERTED_IMAGE,
    arguments_text,
    is_image,
    text_leaf,
)
from recap.transcript.images import image_address
from recap.transcript.model import (
    Json,
    Part,
    Role,
    block_text,
    flat_text,
)
from recap.transcript.responses import SUMMARIES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from recap.transcript.tree import Tree

_REFUSED_IN_NAMES = re.compile(r"[^a-zA-Z0-9_-]")


def write_message(role: Role, parts: Sequence[Part]) -> list[Tree]:
    """Return the items that hold ``parts``: one message, or one item for each of the model's parts.

    Thinking must be of this dialect: the caller drops any other.
    """
    if not parts:
        return []
    if role == "assistant":
        return [_answer(part) for part in parts]
    if role == "tool":
        return [_written_output(part) for part in parts]
    items = [part.raw for part in parts if _is_item(part)]
    content = [part for part in parts if not _is_item(part)]
    if not content:
        return list(items)
    name = "developer" if role == "system" else role
    is_string = len(content) == 1 and content[0].kind == "text" and _is_foreign(content[0])
    written = text_leaf(content[0]) if is_string else [_content_part(part) for part in content]
    return [*items, {"role": name, "content": written}]


def system_blocks(parts: Sequence[Part]) -> list[Tree]:
    """Return the texts of the ``instructions`` beside the list."""
    return [text_leaf(part) for part in parts]


def _is_item(part: Part) -> bool:
    return part.kind == "other" and part.dialect == "responses" and part.name in SUMMARIES


def _is_foreign(part: Part) -> bool:
    """Return True for what is no content part of ours: another dialect's, or a bare string."""
    return part.dialect != "responses" or (part.kind == "text" and not part.path)


def _answer(part: Part) -> Tree:
    if part.dialect == "responses":
        return part.raw
    if part.kind == "call":
        return {
            "type": "function_call",
            "call_id": part.call_id,
            "name": _REFUSED_IN_NAMES.sub("_", part.name),
            "arguments": arguments_text(part.payload()),
        }
    assert part.kind != "thinking"
    if part.kind == "image":
        return {"role": "assistant", "content": UNCONVERTED_IMAGE}
    return {"role": "assistant", "content": text_leaf(part) if part.kind == "text" else part.text()}


def _written_output(part: Part) -> Tree:
    if part.dialect == "responses":
        return part.raw
    content = part.payload()
    blocks = content if isinstance(content, list) else [content]
    output: Tree = flat_text(content)
    if any(map(is_image, blocks)):
        output = [
            _image(block) if is_image(block) else _text(block_text(block)) for block in blocks
        ]
    return {"type": "function_call_output", "call_id": part.call_id, "output": output}


def _content_part(part: Part) -> Tree:
    if not _is_foreign(part):
        return part.raw
    if part.kind == "text":
        return _text(text_leaf(part))
    return _image(part.payload()) if part.kind == "image" else _text(part.text())


def _text(words: Tree) -> Tree:
    return {"type": "input_text", "text": words}


def _image(block: Json) -> Tree:
    url = image_address(block)
    if not url:
        return _text(UNCONVERTED_IMAGE)
    return {"type": "input_image", "image_url": url, "detail": "auto"}
