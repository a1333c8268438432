"""Stubs in the place of results: a string stays a string, a list stays a list."""

from __future__ import annotations

from typing import TYPE_CHECKING

from recap.cmv.contents import is_image, texts_in
from recap.cmv.records import raw_elements, text_of
from recap.cmv.stubs import (
    KEPT_CHARS,
    Call,
    as_json,
    image_stub,
    is_stub,
    shortened,
    text_block,
    text_stub,
)  # fmt: skip
from recap.transcript.model import decode

if TYPE_CHECKING:
    from recap.cmv.options import TrimOptions


def stubbed_result(raw: bytes, call: Call, options: TrimOptions, *, is_error: bool) -> bytes | None:
    """Return what stands in place of a result's content; None where it stays as it is.

    Args:
        raw: The content as JSON.
        call: The call it answers.
        options: How the session is trimmed.
        is_error: It reports an error.
    """
    if options.threshold_of(call.tool) is None:
        return None
    new = None
    if raw[:1] == b'"':
        text = _stub(text_of(raw) or "", call, options, is_error=is_error)
        new = as_json(text) if text is not None else None
    elif raw[:1] == b"[":
        new = _stubbed_list(raw, call, options, is_error=is_error)
    return new if new is not None and len(new) < len(raw) else None


def stubbed_text(chars: int, size: int, call: Call, options: TrimOptions) -> bytes | None:
    """Return what stands in place of a result that is one text and no error; None where it stays.

    Args:
        chars: Its characters.
        size: Its bytes as JSON.
        call: The call it answers.
        options: How the session is trimmed.
    """
    threshold = options.threshold_of(call.tool)
    if threshold is None or chars <= threshold:
        return None
    new = as_json(text_stub(chars, call, options.snapshot))
    return new if len(new) < size else None


def _stub(text: str, call: Call, options: TrimOptions, *, is_error: bool) -> str | None:
    threshold = options.threshold_of(call.tool)
    if threshold is None or len(text) <= threshold or is_stub(text):
        return None
    if not is_error:
        return text_stub(len(text), call, options.snapshot)
    if options.stub_errors and len(text) > 2 * KEPT_CHARS:
        return shortened(text, call, options.snapshot)
    return None


def _stubbed_list(raw: bytes, call: Call, options: TrimOptions, *, is_error: bool) -> bytes | None:
    """Return a list with one stub for its texts and one for each image; what else it holds stays."""
    raws = raw_elements(raw)
    blocks = list(map(decode, raws))
    texts = texts_in(blocks)
    stub = None
    if len(texts) == 1 or not is_error:
        stub = _stub("".join(texts), call, options, is_error=is_error)
    if stub is None and not any(map(is_image, blocks)):
        return None
    pieces = []
    for each, block in zip(raws, blocks, strict=True):
        if is_image(block):
            pieces.append(text_block(image_stub(block, call, options.snapshot)))
        elif stub is None or not texts_in([block]):
            pieces.append(each)
        elif stub:
            pieces.append(text_block(stub))
            stub = ""
    return b"[" + b",".join(pieces) + b"]"


def images_in(raw: bytes) -> int:
    """Return the number of images in a result's content."""
    return sum(map(is_image, decode(raw))) if raw[:1] == b"[" else 0
