"""Constructors of parts: the one place where cost, digest and blankness are decided.

Readers hand over the raw handle and the decoded payload; every dialect therefore counts and
identifies equal content equally.
"""

from __future__ import annotations

import json

import msgspec

from recap.transcript.authors import result_author
from recap.transcript.images import Image, image_address, image_cost_chars, images_in
from recap.transcript.model import (
    IMAGE_TYPES,
    Author,
    Dialect,
    Json,
    Part,
    Raw,
    canonical_json,
    digest,
    encode,
    flat_text,
)


def is_blank(text: str) -> bool:
    """Return True for white space only; the text is not copied."""
    return not text or text.isspace()


def text_part(
    raw: Raw,
    text: str,
    author: Author,
    *,
    path: tuple[str, ...] = (),
    dialect: Dialect | None = None,
) -> Part:
    """Return a text part. Cost: its characters."""
    return Part(
        "text", raw, path, author, len(text), digest("text", text),
        is_blank=is_blank(text), dialect=dialect,
    )  # fmt: skip


def thinking_part(
    raw: Raw,
    text: str,
    *,
    path: tuple[str, ...] = (),
    has_signature: bool = False,
    dialect: Dialect | None = None,
) -> Part:
    """Return a thinking part (redacted thinking: ``text`` is its opaque data).

    Cost: the characters of the text. It has no digest: thinking is no part of identity.
    """
    return Part(
        "thinking", raw, path, "agent", len(text), b"",
        is_blank=is_blank(text) and not has_signature,
        has_signature=has_signature, dialect=dialect,
    )  # fmt: skip


def call_part(
    raw: Raw,
    name: str,
    call_id: str,
    arguments: Json,
    *,
    path: tuple[str, ...],
    dialect: Dialect | None = None,
    sent: Json = None,
) -> Part:
    """Return a tool-call part.

    Cost: the call's block as compact JSON, so that a pretty-printed file and the list it decodes
    to cost the same; where the block holds more than the call, ``sent`` is what counts of it.
    ``arguments`` may be an object or a string of any content.
    """
    cost = len(encode(raw.load() if sent is None else sent).decode("utf-8", "replace"))
    identity = digest("call", call_id, name, canonical_json(parsed_arguments(arguments)))
    return Part("call", raw, path, "agent", cost, identity, call_id, name, dialect=dialect)


def result_part(
    raw: Raw,
    call_id: str,
    content: Json,
    *,
    path: tuple[str, ...],
    is_error: bool = False,
    dialect: Dialect | None = None,
) -> Part:
    """Return a tool-result part. Cost: characters of its text, plus its images."""
    text = flat_text(content)
    images = images_in(content)
    cost = len(text) + sum(image_cost_chars(image) for image in images)
    return Part(
        "result", raw, path, result_author(text), cost, digest("result", call_id, _content_identity(content)),
        call_id, is_blank=is_blank(text) and not images, is_error=is_error, dialect=dialect,
        images=tuple(images),
    )  # fmt: skip


def image_part(raw: Raw, author: Author, image: Image, *, dialect: Dialect | None = None) -> Part:
    """Return an image part. Cost: four times its pixel token estimate."""
    return Part(
        "image", raw, (), author, image_cost_chars(image),
        digest("other", "image", _block_identity(raw.load())), dialect=dialect, images=(image,),
    )  # fmt: skip


def other_part(
    raw: Raw,
    block_type: str,
    author: Author,
    *,
    call_id: str = "",
    dialect: Dialect | None = None,
) -> Part:
    """Return a part of an unknown type, kept as it is. Cost: its compact JSON."""
    value = raw.load()
    return Part(
        "other", raw, (), author, len(encode(value).decode("utf-8", "replace")),
        digest("other", block_type, _block_identity(value)), call_id, block_type, dialect=dialect,
    )  # fmt: skip


def parsed_arguments(arguments: Json) -> Json:
    """Return the object an argument string holds; the string itself when it is no JSON."""
    if not isinstance(arguments, str):
        return arguments
    try:
        return msgspec.json.decode(arguments)
    except (ValueError, RecursionError):
        try:
            return json.loads(arguments)
        except (ValueError, RecursionError):
            return arguments


def _content_identity(content: Json) -> bytes | str:
    """Return what identifies a result's content: a string equals a list with one text block."""
    if isinstance(content, str) or content is None:
        return content or ""
    if isinstance(content, list) and all(
        isinstance(block, dict) and block.get("type") in ("text", "input_text", "output_text")
        for block in content
    ):
        return flat_text(content)
    blocks = content if isinstance(content, list) else [content]
    return digest(*(_block_identity(block) for block in blocks))


def _block_identity(block: Json) -> bytes:
    """Return what identifies a block: an image's address, else its JSON without the cache mark.

    Clients move the cache mark from block to block between requests.
    """
    if not isinstance(block, dict):
        return canonical_json(block)
    if block.get("type") in IMAGE_TYPES and (address := image_address(block)):
        return digest("image", address)
    return canonical_json({key: block[key] for key in block if key != "cache_control"})
