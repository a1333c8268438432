"""Token counts of one response, kept apart by what they cost, whatever vendor reported them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

CacheLife = Literal["5m", "1h"]
"""How long a written prefix stays in Anthropic's cache; a longer life costs more to write."""

Fields: TypeAlias = Mapping[str, Any]

MAX_TOKENS = 10**12
"""Counts above this are no counts."""


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one response. No token is in two of the fields.

    Attributes:
        uncached: Input tokens that were neither read from the cache nor written to it.
        cache_read: Input tokens read from the cache.
        cache_write_5m: Input tokens written to a cache of 5 minutes (or of the vendor's only kind).
        cache_write_1h: Input tokens written to a cache of an hour.
        output: Tokens the model wrote, thinking included.
    """

    uncached: int = 0
    cache_read: int = 0
    cache_write_5m: int = 0
    cache_write_1h: int = 0
    output: int = 0

    @property
    def input(self) -> int:
        """All tokens of the prompt."""
        return self.uncached + self.cache_read + self.cache_write_5m + self.cache_write_1h

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.uncached + other.uncached,
            self.cache_read + other.cache_read,
            self.cache_write_5m + other.cache_write_5m,
            self.cache_write_1h + other.cache_write_1h,
            self.output + other.output,
        )


def cache_life(usage: Usage) -> float | None:
    """Return how long, in seconds, what a response wrote stays cached; None where it does not say.

    Only Anthropic's cache of an hour says so. What others wrote lives as long as their vendor likes.
    """
    return 3600.0 if usage.cache_write_1h else None


def usage_of(fields: object) -> Usage | None:
    """Return the tokens of a vendor's usage object; None where it is none. Total.

    OpenAI's prompt counts include cached and written tokens, and so does Gemini's; Anthropic's
    ``input_tokens`` are those beside the cache. OpenAI counts reasoning in the output, Gemini beside
    it. What is no count is 0, and no part counts more than the whole that includes it.

    Args:
        fields: ``usage`` of OpenAI chat completions (LiteLLM's and OpenRouter's additions too), of
            OpenAI Responses, of Anthropic Messages, or ``usageMetadata`` of Gemini.
    """
    if not isinstance(fields, Mapping):
        return None
    if "prompt_tokens" in fields:
        return _of_chat(fields)
    if "promptTokenCount" in fields:
        return _of_gemini(fields)
    if "input_tokens" not in fields:
        return None
    if isinstance(fields.get("input_tokens_details"), Mapping):
        return _of_responses(fields)
    return _of_anthropic(fields)


def split_prompt(prompt: int, read: int, written: int, output: int) -> Usage:
    """Return the usage of a prompt whose count includes the tokens read and written."""
    read = min(read, prompt)
    written = min(written, prompt - read)
    return Usage(prompt - read - written, read, written, 0, output)


def count(fields: Fields, *keys: str) -> int:
    """Return the first of the fields that is a token count; 0 where none is."""
    for key in keys:
        value = fields.get(key)
        if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MAX_TOKENS:
            return value
    return 0


def _details(fields: Fields, key: str) -> Fields:
    value = fields.get(key)
    return value if isinstance(value, Mapping) else {}


def _of_chat(fields: Fields) -> Usage:
    details = _details(fields, "prompt_tokens_details")
    read = count(details, "cached_tokens") or count(fields, "cache_read_input_tokens")
    written = count(details, "cache_write_tokens", "cache_creation_tokens")
    written = written or count(fields, "cache_creation_input_tokens")
    return split_prompt(
        count(fields, "prompt_tokens"), read, written, count(fields, "completion_tokens")
    )


def _of_responses(fields: Fields) -> Usage:
    details = _details(fields, "input_tokens_details")
    return split_prompt(
        count(fields, "input_tokens"),
        count(details, "cached_tokens"),
        count(details, "cache_write_tokens"),
        count(fields, "output_tokens"),
    )


def _of_anthropic(fields: Fields) -> Usage:
    lives = _details(fields, "cache_creation")
    short, long = (count(lives, f"ephemeral_{life}_input_tokens") for life in ("5m", "1h"))
    written = count(fields, "cache_creation_input_tokens") or short + long
    long = min(long, written)
    return Usage(
        count(fields, "input_tokens"),
        count(fields, "cache_read_input_tokens"),
        written - long,
        long,
        count(fields, "output_tokens"),
    )


def _of_gemini(fields: Fields) -> Usage:
    prompt = count(fields, "promptTokenCount") + count(fields, "toolUsePromptTokenCount")
    output = count(fields, "candidatesTokenCount") + count(fields, "thoughtsTokenCount")
    return split_prompt(prompt, count(fields, "cachedContentTokenCount"), 0, output)
