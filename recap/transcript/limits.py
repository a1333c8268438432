"""Size limits of the vendors' APIs: one table, with what each bounds, who says so and when.

The validator judges by it, the renderer keeps below it. A limit that only some models or hosts have
is listed apart and leads to a warning. Origins: ``vendor`` was read in the vendor's documents,
``measured`` in refusals that users of the API reported; none was probed by us.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from recap.transcript.model import Dialect

Origin = Literal["vendor", "measured"]
LimitName = Literal[
    "request_bytes",
    "messages",
    "images",
    "images_small_window",
    "many_images",
    "image_side",
    "image_side_many",
    "image_bytes",
    "image_bytes_hosted",
    "cache_markers",
    "calls",
    "content_chars",
    "name_chars",
    "name_chars_documented",
    "id_chars",
]

MIB = 1024 * 1024
"""Refusals count megabytes as 1,048,576 bytes ("5 MB maximum: ... > 5242880 bytes")."""

IMAGE_MEDIA_TYPES = ("image/jpeg", "image/png", "image/gif", "image/webp")
"""Media types both vendors document for images."""


@dataclass(frozen=True, slots=True)
class Limit:
    """The largest value a vendor accepts.

    Attributes:
        dialect: Whose limit it is.
        name: Stable name.
        value: The largest accepted value, in the unit ``bounds`` names.
        bounds: What is counted.
        origin: Where the number comes from.
        read: Year and month of the source's text.
    """

    dialect: Dialect
    name: LimitName
    value: int
    bounds: str
    origin: Origin
    read: str


# fmt: off
LIMITS: tuple[Limit, ...] = (
    Limit("anthropic", "request_bytes", 32 * MIB, "bytes of the request body", "vendor", "2026-09"),
    Limit("anthropic", "messages", 100_000, "messages of a request", "vendor", "2026-09"),
    Limit("anthropic", "images", 600, "images of a request", "vendor", "2026-09"),
    Limit("anthropic", "images_small_window", 100, "images of a request to a model with a window of 200,000 tokens", "vendor", "2026-09"),
    Limit("anthropic", "image_side", 8_000, "pixels of either side of an image", "vendor", "2026-09"),
    Limit("anthropic", "many_images", 20, "images of a request above which image_side_many holds", "vendor", "2026-09"),
    Limit("anthropic", "image_side_many", 2_000, "pixels of either side where there are many images", "vendor", "2026-09"),
    Limit("anthropic", "image_bytes", 10 * MIB, "base64 characters of an image", "measured", "2026-09"),
    Limit("anthropic", "image_bytes_hosted", 5 * MIB, "base64 characters of an image on cloud hosts, and everywhere until 2026", "measured", "2026-05"),
    Limit("anthropic", "cache_markers", 4, "blocks with cache_control, tools and system included", "vendor", "2026-09"),
    Limit("anthropic", "name_chars", 200, "characters of the tool's name in a call", "measured", "2026-09"),
    Limit("anthropic", "name_chars_documented", 128, "characters of a tool's name", "vendor", "2026-09"),
    Limit("anthropic", "id_chars", 64, "characters of a call's id on Amazon Bedrock", "vendor", "2026-09"),
    Limit("openai", "request_bytes", 512 * MIB, "bytes of a request body with images", "vendor", "2026-09"),
    Limit("openai", "images", 1_500, "images of a request", "vendor", "2026-09"),
    Limit("openai", "calls", 128, "tool calls of one message", "measured", "2025-11"),
    Limit("openai", "content_chars", 10 * MIB, "characters of one content string", "measured", "2025-11"),
    Limit("openai", "name_chars_documented", 64, "characters of a function's name", "vendor", "2026-09"),
    Limit("openai", "id_chars", 64, "characters of a call's id; 40 on older models", "measured", "2026-01"),
    Limit("responses", "request_bytes", 512 * MIB, "bytes of a request body with images", "vendor", "2026-09"),
    Limit("responses", "images", 1_500, "images of a request", "vendor", "2026-09"),
    Limit("responses", "content_chars", 10 * MIB, "characters of one content string", "measured", "2025-11"),
    Limit("responses", "name_chars_documented", 64, "characters of a function's name", "vendor", "2026-09"),
    Limit("responses", "id_chars", 64, "characters of a call_id", "measured", "2026-01"),
    Limit("gemini", "images", 3_600, "images of a request", "vendor", "2026-09"),
    Limit("gemini", "name_chars_documented", 64, "characters of a function's name", "vendor", "2026-09"),
)
# fmt: on

_VALUES = {(limit.dialect, limit.name): limit.value for limit in LIMITS}


def limit(dialect: Dialect, name: LimitName) -> int | None:
    """Return the largest accepted value, or None where the vendor states no such limit."""
    return _VALUES.get((dialect, name))


def exceeded(value: int, dialect: Dialect, name: LimitName) -> int | None:
    """Return the limit that ``value`` goes over; None where it keeps to it or there is none."""
    most = limit(dialect, name)
    return most if most is not None and value > most else None
