"""Payloads from one dialect's form to another's, and copies of parts with one thing replaced.

Nothing is invented: what has no counterpart goes over as the text of its JSON.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from recap.transcript.authors import OMISSION_PREFIX
from recap.transcript.images import image_address
from recap.transcript.limits import IMAGE_MEDIA_TYPES
from recap.transcript.model import (
    IMAGE_TYPES,
    Dialect,
    Held,
    Json,
    Part,
    PartKind,
    block_text,
    flat_text,
)
from recap.transcript.parts import parsed_arguments, result_part, text_part
from recap.transcript.tree import Tree, to_bytes

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

ID_KEYS: Mapping[tuple[Dialect | None, PartKind], str] = {
    ("anthropic", "call"): "id",
    ("anthropic", "result"): "tool_use_id",
    ("openai", "call"): "id",
    ("openai", "result"): "tool_call_id",
    ("responses", "call"): "call_id",
    ("responses", "result"): "call_id",
    ("langchain", "call"): "id",
    ("langchain", "result"): "tool_call_id",
}
"""Where a part's raw block holds the call's id."""

APPROVALS = {"mcp_approval_request": "id", "mcp_approval_response": "approval_request_id"}
"""Items of Responses that hold it elsewhere."""

UNCONVERTED_IMAGE = f"{OMISSION_PREFIX}an image the vendor cannot take]"


def arguments_object(payload: Json) -> Json:
    """Return a call's arguments as an object; text that is no JSON object as its ``input``."""
    value = parsed_arguments(payload)
    if isinstance(value, dict):
        return value
    return {"input": payload} if payload else {}


def arguments_text(payload: Json) -> str:
    """Return a call's arguments as the text of a JSON object; text that is one stays as it is."""
    value = arguments_object(payload)
    is_text = isinstance(payload, str) and isinstance(parsed_arguments(payload), dict)
    return payload if is_text else to_bytes(value).decode()


def text_leaf(part: Part) -> Tree:
    """Return the text of a part: the string as it came where the part is nothing else."""
    return part.text() if part.path else part.raw


def text_block(words: Tree) -> Tree:
    """Return a text block, which is the same in every dialect."""
    return {"type": "text", "text": words}


def anthropic_image(block: Json) -> Tree:
    """Return the image of any dialect's block as Anthropic's block."""
    url = image_address(block)
    head, comma, data = url.partition(",")
    if not url.startswith("data:"):
        source = {"type": "url", "url": url}
        return {"type": "image", "source": source} if url else text_block(UNCONVERTED_IMAGE)
    media_type, _, encoding = head.removeprefix("data:").partition(";")
    if not comma or not encoding.endswith("base64") or media_type not in IMAGE_MEDIA_TYPES:
        return text_block(UNCONVERTED_IMAGE)
    return {"type": "image", "source": {"type": "base64", "media_type": media_type, "data": data}}


def openai_image(block: Json) -> Tree:
    """Return the image of any dialect's block as OpenAI's content part."""
    url = image_address(block)
    return (
        {"type": "image_url", "image_url": {"url": url}} if url else text_block(UNCONVERTED_IMAGE)
    )


def anthropic_result(content: Json) -> Tree:
    """Return a result's content as Anthropic's: a string, or text and image blocks."""
    if not isinstance(content, list):
        return flat_text(content)
    return [
        anthropic_image(block) if is_image(block) else text_block(words)
        for block in content
        if is_image(block) or (words := block_text(block)).strip()
    ]


def openai_result(content: Json) -> tuple[str, list[Tree]]:
    """Return a result's content as OpenAI's: the text, and the images that have no place there."""
    blocks = content if isinstance(content, list) else [content]
    images = [openai_image(block) for block in blocks if is_image(block)]
    if not images:
        return flat_text(content), []
    return flat_text([block for block in blocks if not is_image(block)]), images


def is_image(block: Json) -> bool:
    """Return True for an image block of any dialect."""
    return isinstance(block, dict) and block.get("type") in IMAGE_TYPES


def other_as_text(part: Part) -> Tree:
    """Return a part without counterpart as a text block that holds its JSON."""
    return text_block(flat_text(part.payload()))


def with_call_id(part: Part, new_id: str) -> Part:
    """Return a copy of a call or result with another call id, in its raw block as well."""
    if (part.dialect, part.kind) not in ID_KEYS:
        return replace(part, call_id=new_id)
    value = part.raw.load()
    path = _id_path(part, value)
    if not path:  # a legacy call, named by its function alone: it goes out in the new form
        return replace(part, call_id=new_id, dialect=None)
    raw = Held(_with(value, path, new_id), part.raw.is_clean)
    return replace(part, raw=raw, call_id=new_id)


def _id_path(part: Part, value: Json) -> tuple[str, ...]:
    key = ID_KEYS[part.dialect, part.kind]
    if part.dialect == "langchain" and part.kind == "result":  # raw is the message around it
        return (part.path[0], key)
    if part.dialect == "responses":
        return (APPROVALS.get(value["type"], key),)
    return (key,) if key in value else ()


def without_images(part: Part, marker_text: str) -> Part:
    """Return a copy of a part in which each image block gives way to a text block."""
    if part.kind != "result":
        return text_part(Held(marker_text), marker_text, "marker")
    payload = part.payload()
    blocks = payload if isinstance(payload, list) else [payload]
    kind = "input_text" if part.dialect == "responses" else "text"
    content: Json = [
        {"type": kind, "text": marker_text} if is_image(block) else block for block in blocks
    ]
    return result_part(
        Held(_with(part.raw.load(), part.path, content), part.raw.is_clean),
        part.call_id,
        content,
        path=part.path,
        is_error=part.is_error,
        dialect=part.dialect,
    )


def _with(value: Json, path: Sequence[str], payload: Json) -> Json:
    """Return a copy of the value with another payload at the end of the path."""
    if not path:
        return payload
    return {**value, path[0]: _with(value.get(path[0]), path[1:], payload)}
