"""Sizes of images inside content blocks, read from the first bytes of their data.

Token estimate: width x height / 750, the vendor's published rule of thumb; base64 length would
overstate it about a hundred times.
"""

from __future__ import annotations

import base64
import binascii
import struct
from typing import TypeAlias

from recap.transcript.model import IMAGE_TYPES, Json

Image: TypeAlias = tuple[int, int, int]
"""(width, height, base64 characters); width and height are 0 where the header is unreadable."""

PIXELS_PER_TOKEN = 750
CHARS_PER_TOKEN = 4
HOLDERS = ("source", "image_url", "inlineData", "inline_data", "fileData", "file_data")
DATA_KEYS = ("data", "base64")
MEDIA_KEYS = ("media_type", "mimeType", "mime_type")
URL_KEYS = ("url", "image_url", "fileUri", "file_uri")
"""Keys by which the dialects hold an image: an inner object, and in it the data or an address."""

FIRST_CHARS = 128
HEADER_CHARS = 64 * 1024
"""Base64 characters looked at, of a JPEG; an image whose size comes later is of unknown size."""

UNKNOWN_IMAGE_TOKENS = 1600
MAX_IMAGE_TOKENS = 1600
"""Vendors scale larger images down before they read them: about 1,600 tokens at most."""


def image_tokens(image: Image) -> int:
    """Return the estimated tokens of an image; a stated guess where its size is unknown."""
    width, height, _ = image
    if not width or not height:
        return UNKNOWN_IMAGE_TOKENS
    return min(MAX_IMAGE_TOKENS, max(1, -(-width * height // PIXELS_PER_TOKEN)))


def image_cost_chars(image: Image) -> int:
    """Return the cost of an image in characters."""
    return CHARS_PER_TOKEN * image_tokens(image)


def images_in(content: Json) -> list[Image]:
    """Return the images that stand in a content value, in order."""
    blocks = content if isinstance(content, list) else [content]
    return [image_of(b) for b in blocks if isinstance(b, dict) and b.get("type") in IMAGE_TYPES]


def image_of(block: dict[str, Json]) -> Image:
    """Return the size of the image a block of any dialect holds."""
    data = _base64_data(block)
    width, height = pixel_size(data)
    return width, height, len(data)


def image_address(block: dict[str, Json]) -> str:
    """Return where the image of a block of any dialect is: a data URL where the block holds it.

    "" where the block names it in another way.
    """
    holders = [block, *(block[key] for key in HOLDERS if isinstance(block.get(key), dict))]
    for holder in holders:
        data = next((holder[key] for key in DATA_KEYS if isinstance(holder.get(key), str)), None)
        if data is not None:
            media_type = next((holder[key] for key in MEDIA_KEYS if key in holder), None)
            return f"data:{media_type};base64,{data}"
    urls = (holder[key] for holder in holders for key in URL_KEYS if key in holder)
    return next((url for url in urls if isinstance(url, str)), "")


def _base64_data(block: dict[str, Json]) -> str:
    address = image_address(block)
    return address.partition(",")[2] if address.startswith("data:") else ""


def pixel_size(data: str) -> tuple[int, int]:
    """Return (width, height) of base64 PNG, GIF, JPEG or WebP data; (0, 0) where unreadable."""
    head = _decoded(data[:FIRST_CHARS])
    if head.startswith(b"\xff\xd8"):
        head = _decoded(data[:HEADER_CHARS])
    try:
        if head.startswith(b"\x89PNG"):
            width, height = struct.unpack(">II", head[16:24])
        elif head.startswith(b"GIF8"):
            width, height = struct.unpack("<HH", head[6:10])
        elif head.startswith(b"RIFF") and head[8:12] == b"WEBP":
            width, height = _webp_size(head)
        elif head.startswith(b"\xff\xd8"):
            width, height = _jpeg_size(head)
        else:
            return 0, 0
    except (struct.error, IndexError):
        return 0, 0
    return width, height


def _decoded(data: str) -> bytes:
    """Return the bytes of base64 that may be cut anywhere; none where it is none."""
    text = "".join(data.split())  # some encoders break lines and leave padding out
    text = text[: len(text) - (len(text) % 4 == 1)]
    try:
        return base64.b64decode(text + "=" * (-len(text) % 4))
    except (binascii.Error, ValueError):
        return b""


def _webp_size(head: bytes) -> tuple[int, int]:
    kind = head[12:16]
    if kind == b"VP8X":
        return 1 + int.from_bytes(head[24:27], "little"), 1 + int.from_bytes(head[27:30], "little")
    if kind == b"VP8L":
        bits = int.from_bytes(head[21:25], "little")
        return 1 + (bits & 0x3FFF), 1 + (bits >> 14 & 0x3FFF)
    width, height = struct.unpack("<HH", head[26:30])
    return width & 0x3FFF, height & 0x3FFF


def _jpeg_size(head: bytes) -> tuple[int, int]:
    at = 2
    while head[at] == 0xFF:
        marker = head[at + 1]
        if 0xC0 <= marker <= 0xCF and marker not in (0xC4, 0xC8, 0xCC):
            height, width = struct.unpack(">HH", head[at + 5 : at + 9])
            return width, height
        at += 2 + struct.unpack(">H", head[at + 2 : at + 4])[0]
    return 0, 0
