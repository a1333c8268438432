"""Characters to tokens, calibrated by what the vendor reported. No tokenizer."""

from __future__ import annotations

import math

DEFAULT_CHARS = 2.5
"""Characters per token where nothing was reported yet (ours): 14 real sessions had 2.0 to 2.8, since
code is dense and messages have envelopes. The usual 4 would see a full window too late."""

LOWEST, HIGHEST = 1.0, 12.0
"""Ratios outside are no ratios of text: a count of something else, or text of another request."""

MIN_TOKENS = 200
"""Fewer tokens say nothing: a few words of envelope are a large share of them."""

WEIGHT = 0.3
"""Of the newest report in the moving average (ours)."""


def calibrated(chars: float, tokens: float, before: float | None = None) -> float | None:
    """Return characters per token after one more report.

    Exponential average; a report that is too small, or gives a ratio no text has, changes nothing.
    Both numbers must be of the same text: the whole request with tools and system text, or what one
    request added to the one before.

    Args:
        chars: Characters.
        tokens: Input tokens the vendor reported for them.
        before: The ratio so far, None for none.
    """
    kept = before if before is not None and LOWEST <= before <= HIGHEST else None
    if not (math.isfinite(chars) and math.isfinite(tokens) and tokens >= MIN_TOKENS):
        return kept
    ratio = chars / tokens
    if not LOWEST <= ratio <= HIGHEST:
        return kept
    return ratio if kept is None else (1 - WEIGHT) * kept + WEIGHT * ratio


def tokens_of(chars: int, chars_per_token: float | None = None) -> int:
    """Return about how many tokens ``chars`` characters are, rounded up.

    A ratio that is none, or out of bounds, is replaced by ``DEFAULT_CHARS``.
    """
    ratio = DEFAULT_CHARS
    if chars_per_token is not None and LOWEST <= chars_per_token <= HIGHEST:
        ratio = chars_per_token
    return math.ceil(max(chars, 0) / ratio)
