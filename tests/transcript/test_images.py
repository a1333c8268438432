from __future__ import annotations

import base64
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recap.transcript.images import (
    MAX_IMAGE_TOKENS,
    UNKNOWN_IMAGE_TOKENS,
    image_cost_chars,
    image_of,
    image_tokens,
    images_in,
    pixel_size,
)

SIDES = st.integers(1, 0x3FFF)


def base64_of(data: bytes) -> str:
    return base64.b64encode(data).decode()


def png(width: int, height: int) -> bytes:
    return b"\x89PNG\r\n\x1a\n" + struct.pack(">I4sII", 13, b"IHDR", width, height)


def gif(width: int, height: int) -> bytes:
    return b"GIF89a" + struct.pack("<HH", width, height)


def jpeg(width: int, height: int) -> bytes:
    app0 = b"\xff\xe0" + struct.pack(">H", 16) + b"JFIF" + b"\0" * 10
    table = b"\xff\xc4" + struct.pack(">H", 4) + b"\0\0"  # looks like a frame header but is none
    return b"\xff\xd8" + app0 + table + b"\xff\xc0" + struct.pack(">HBHH", 17, 8, height, width)


def webp_lossy(width: int, height: int) -> bytes:
    head = b"RIFF\0\0\0\0WEBPVP8 \0\0\0\0" + b"\x30\x01\0\x9d\x01\x2a"
    return head + struct.pack("<HH", width, height)


def webp_lossless(width: int, height: int) -> bytes:
    bits = (width - 1) | (height - 1) << 14
    return b"RIFF\0\0\0\0WEBPVP8L\0\0\0\0\x2f" + struct.pack("<I", bits)


def webp_extended(width: int, height: int) -> bytes:
    sides = (width - 1).to_bytes(3, "little") + (height - 1).to_bytes(3, "little")
    return b"RIFF\0\0\0\0WEBPVP8X\0\0\0\0\0\0\0\0" + sides


@pytest.mark.parametrize("form", [png, gif, jpeg, webp_lossy, webp_lossless, webp_extended])
@given(width=SIDES, height=SIDES)
def test_the_size_stands_in_the_first_bytes_of_every_kind_of_image(form, width, height):
    assert pixel_size(base64_of(form(width, height))) == (width, height)


@pytest.mark.parametrize(
    "data",
    [
        "",
        "a",
        "%%%",
        "é",
        base64_of(b"\x89PNG"),
        base64_of(b"\xff\xd8"),
        base64_of(b"RIFF"),
        "QUJD",
    ],
)
def test_an_unreadable_image_has_no_size(data):
    assert pixel_size(data) == (0, 0)


@given(
    st.binary(max_size=60), st.sampled_from([b"\x89PNG", b"GIF8", b"\xff\xd8\xff", b"RIFF", b""])
)
def test_no_bytes_make_it_fail(data, head):
    width, height = pixel_size(base64_of(head + data))
    assert width >= 0
    assert height >= 0


@given(st.text(max_size=40))
def test_no_text_makes_it_fail(data):
    assert len(pixel_size(data)) == 2


def test_data_without_padding_or_with_line_ends_is_read():
    data = base64_of(gif(10, 20))
    assert data.endswith("==")
    assert pixel_size(data.rstrip("=")) == (10, 20)
    assert pixel_size(data[:5] + "\r\n" + data[5:]) == (10, 20)
    assert pixel_size(data.rstrip("=") + "ABC") == (10, 20)


def test_tokens_go_by_pixels_and_end_where_the_vendor_scales_down():
    assert image_tokens((750, 2, 0)) == 2
    assert image_tokens((1, 1, 0)) == 1
    assert image_tokens((9_000, 9_000, 0)) == MAX_IMAGE_TOKENS
    assert image_tokens((0, 0, 10)) == UNKNOWN_IMAGE_TOKENS
    assert image_cost_chars((750, 2, 0)) == 8


DATA = base64_of(png(30, 20))


@pytest.mark.parametrize(
    "block",
    [
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": DATA}},
        {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{DATA}"}},
        {"type": "input_image", "image_url": f"data:image/png;base64,{DATA}"},
    ],
)
def test_an_image_has_one_size_in_every_dialect(block):
    assert image_of(block) == (30, 20, len(DATA))
    assert images_in([{"type": "text", "text": "x"}, block, None, 5]) == [(30, 20, len(DATA))]
    assert images_in(block) == [(30, 20, len(DATA))]


@pytest.mark.parametrize(
    "block",
    [
        {"type": "image"},
        {"type": "image", "source": {"type": "url", "url": "https://x/a.png"}},
        {"type": "image", "source": {"data": 5}},
        {"type": "image_url", "image_url": {"url": "https://x/a.png"}},
        {"type": "image_url", "image_url": {"url": None}},
        {"type": "image_url", "image_url": 5},
    ],
)
def test_an_image_without_data_is_of_unknown_size(block):
    assert image_of(block) == (0, 0, 0)


def test_content_without_blocks_holds_no_image():
    assert images_in("text") == images_in(None) == images_in([]) == []
