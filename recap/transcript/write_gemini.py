"""Writer of Gemini contents."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from recap.transcript.convert import (
    UNCONVERTED_IMAGE,
    arguments_object,
    is_image,
    text_leaf,
)
from recap.transcript.images import image_address
from recap.transcript.limits import IMAGE_MEDIA_TYPES
from recap.transcript.model import (
    Json,
    Part,
    Role,
    block_text,
    flat_text,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from recap.transcript.tree import Tree

_REFUSED_IN_NAMES = re.compile(r"[^a-zA-Z0-9_.:-]")


def write_message(role: Role, parts: Sequence[Part]) -> list[Tree]:
    """Return the content that holds ``parts``; none for system parts and empty ones.

    Results need the name of their call. Thinking must be of this dialect: the caller drops any other.
    """
    if role == "system" or not parts:
        return []
    written = [_part(part) for part in parts]
    if role == "tool":  # responses hold text alone: images of other dialects stand beside them
        written += [_image(b) for part in parts if part.dialect != "gemini" for b in _images(part)]
    return [{"role": "model" if role == "assistant" else "user", "parts": written}]


def system_blocks(parts: Sequence[Part]) -> list[Tree]:
    """Return the parts of the ``systemInstruction`` beside the list."""
    return [_part(part) for part in parts]


def _part(part: Part) -> Tree:
    is_bare = part.kind == "text" and not part.path
    if part.dialect == "gemini" and not is_bare:
        return part.raw
    assert part.kind != "thinking"
    if part.kind == "call":
        name = _usable(part.name)
        arguments = arguments_object(part.payload())
        return {"functionCall": {"id": part.call_id, "name": name, "args": arguments}}
    if part.kind == "result":
        return _written_response(part)
    if part.kind == "image":
        return _image(part.payload())
    return {"text": text_leaf(part) if part.kind == "text" else part.text()}


def _usable(name: str) -> str:
    """Return the name of a tool with the letters the vendor takes, none but a letter or _ first."""
    usable = _REFUSED_IN_NAMES.sub("_", name)
    return usable if usable[:1].isalpha() or usable.startswith("_") else f"_{usable}"


def _written_response(part: Part) -> Tree:
    content = part.payload()
    blocks = content if isinstance(content, list) else [content]
    words = [block_text(block) for block in blocks if not is_image(block)]
    text = "\n".join(words) if isinstance(content, list) else flat_text(content)
    response = {"error" if part.is_error else "output": text}
    name = _usable(part.name)
    return {"functionResponse": {"id": part.call_id, "name": name, "response": response}}


def _images(part: Part) -> list[Json]:
    content = part.payload()
    blocks = content if isinstance(content, list) else [content]
    return [block for block in blocks if is_image(block)]


def _image(block: Json) -> Tree:
    url = image_address(block)
    head, comma, data = url.partition(",")
    media_type, _, encoding = head.removeprefix("data:").partition(";")
    if url.startswith("data:") and comma and encoding.endswith("base64"):
        if media_type in IMAGE_MEDIA_TYPES:
            return {"inlineData": {"mimeType": media_type, "data": data}}
    elif url:
        return {"fileData": {"fileUri": url}}
    return {"text": UNCONVERTED_IMAGE}
