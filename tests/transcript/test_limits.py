from __future__ import annotations

import re

import pytest

from recap.transcript.limits import LIMITS, Limit, exceeded, limit


def test_each_limit_stands_once() -> None:
    keys = [(row.dialect, row.name) for row in LIMITS]
    assert len(set(keys)) == len(keys)


@pytest.mark.parametrize("row", LIMITS, ids=lambda row: f"{row.dialect}-{row.name}")
def test_each_limit_says_what_it_bounds_and_when_it_was_read(row: Limit) -> None:
    assert row.value > 0
    assert row.bounds.split()[0] in (
        "bytes", "messages", "images", "pixels", "base64", "blocks", "characters", "tool",
    )  # fmt: skip
    assert re.fullmatch(r"20\d\d-(0[1-9]|1[0-2])", row.read)


def test_limit_is_none_where_the_vendor_states_none() -> None:
    assert limit("openai", "image_side") is None
    assert exceeded(10**9, "openai", "image_side") is None


def test_exceeded_gives_the_limit_only_above_it() -> None:
    assert limit("anthropic", "images") == 600
    assert exceeded(600, "anthropic", "images") is None
    assert exceeded(601, "anthropic", "images") == 600


@pytest.mark.parametrize(
    ("lower", "higher"),
    [
        ("images_small_window", "images"),
        ("image_side_many", "image_side"),
        ("image_bytes_hosted", "image_bytes"),
        ("name_chars_documented", "name_chars"),
    ],
)
def test_limits_of_some_models_are_below_those_of_all(lower: str, higher: str) -> None:
    assert limit("anthropic", lower) < limit("anthropic", higher)  # type: ignore[arg-type, operator]
