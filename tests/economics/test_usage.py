"""Usage objects of every vendor: what includes what, and that no token is counted twice."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recap.economics import Usage, cache_life, usage_of


def test_openai_chat_counts_cached_tokens_in_the_prompt() -> None:
    fields = {
        "prompt_tokens": 5000,
        "completion_tokens": 120,
        "prompt_tokens_details": {"cached_tokens": 4000},
        "completion_tokens_details": {"reasoning_tokens": 100},
    }
    assert usage_of(fields) == Usage(uncached=1000, cache_read=4000, output=120)


def test_openai_chat_without_details_has_nothing_cached() -> None:
    fields = {"prompt_tokens": 10, "completion_tokens": 2, "prompt_tokens_details": None}
    assert usage_of(fields) == Usage(uncached=10, output=2)


def test_litellm_counts_written_tokens_in_the_prompt_too() -> None:
    """As LiteLLM reports Anthropic's: 4,646 = 3,482 read + 1,158 written + 6."""
    fields = {
        "prompt_tokens": 4646,
        "completion_tokens": 177,
        "prompt_tokens_details": {"cached_tokens": 3482},
        "cache_creation_input_tokens": 1158,
        "cache_read_input_tokens": 3482,
    }
    assert usage_of(fields) == Usage(6, 3482, 1158, 0, 177)


def test_openai_responses_counts_cached_tokens_in_the_input() -> None:
    fields = {
        "input_tokens": 5000,
        "input_tokens_details": {"cached_tokens": 4000},
        "output_tokens": 120,
        "output_tokens_details": {"reasoning_tokens": 100},
    }
    assert usage_of(fields) == Usage(uncached=1000, cache_read=4000, output=120)


def test_openai_counts_tokens_written_to_the_cache_in_the_input() -> None:
    fields = {
        "input_tokens": 5000,
        "input_tokens_details": {"cached_tokens": 4000, "cache_write_tokens": 900},
        "output_tokens": 1,
    }
    assert usage_of(fields) == Usage(100, 4000, 900, 0, 1)


def test_anthropic_counts_the_cache_beside_the_input() -> None:
    fields = {
        "input_tokens": 3,
        "cache_creation_input_tokens": 1331,
        "cache_read_input_tokens": 14874,
        "cache_creation": {"ephemeral_5m_input_tokens": 331, "ephemeral_1h_input_tokens": 1000},
        "output_tokens": 7,
    }
    assert usage_of(fields) == Usage(3, 14874, 331, 1000, 7)


def test_anthropic_writes_of_unknown_life_are_of_the_short_one() -> None:
    fields = {"input_tokens": 3, "cache_creation_input_tokens": 50, "output_tokens": 7}
    assert usage_of(fields) == Usage(uncached=3, cache_write_5m=50, output=7)


def test_gemini_counts_cached_tokens_in_the_prompt_and_thoughts_beside_the_answer() -> None:
    fields = {
        "promptTokenCount": 12075,
        "cachedContentTokenCount": 11693,
        "candidatesTokenCount": 19,
        "thoughtsTokenCount": 14,
        "toolUsePromptTokenCount": 10,
        "totalTokenCount": 12118,
    }
    assert usage_of(fields) == Usage(uncached=392, cache_read=11693, output=33)


@pytest.mark.parametrize("value", [None, 7, "input_tokens", [], {}, {"output_tokens": 3}])
def test_what_is_no_usage_gives_none(value: object) -> None:
    assert usage_of(value) is None


COUNTS = st.one_of(
    st.integers(-5, 10**13), st.none(), st.booleans(), st.floats(), st.text(max_size=3)
)
KEYS = (
    "prompt_tokens", "completion_tokens", "input_tokens", "output_tokens", "promptTokenCount",
    "cachedContentTokenCount", "candidatesTokenCount", "cache_read_input_tokens",
    "cache_creation_input_tokens", "cached_tokens", "cache_write_tokens",
    "ephemeral_1h_input_tokens", "ephemeral_5m_input_tokens",
)  # fmt: skip
FLAT = st.dictionaries(st.sampled_from(KEYS), COUNTS)
DETAILS = ("prompt_tokens_details", "input_tokens_details", "cache_creation")


@given(FLAT, st.dictionaries(st.sampled_from(DETAILS), st.one_of(FLAT, COUNTS)))
def test_any_fields_give_counts_and_no_part_exceeds_its_whole(
    flat: dict[str, Any], details: dict[str, Any]
) -> None:
    usage = usage_of(flat | details)
    if usage is None:
        return
    parts = (usage.uncached, usage.cache_read, usage.cache_write_5m, usage.cache_write_1h)
    assert all(isinstance(part, int) and part >= 0 for part in (*parts, usage.output))
    if "prompt_tokens" in flat:
        whole = flat["prompt_tokens"]
        is_count = type(whole) is int and 0 <= whole <= 10**12
        assert usage.input == (whole if is_count else 0)


def test_a_cache_of_an_hour_is_told_by_what_was_written() -> None:
    assert cache_life(Usage(cache_write_1h=1)) == 3600
    assert cache_life(Usage(cache_read=9, cache_write_5m=9)) is None


def test_usages_add_up() -> None:
    assert Usage(1, 2, 3, 4, 5) + Usage(10, 20, 30, 40, 50) == Usage(11, 22, 33, 44, 55)
