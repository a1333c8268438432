"""Tokens of a prompt that grows: what the session's last prompt began with is not tokenized again.

A tokenizer cuts a text at its added tokens first and then works on each piece alone. So where two
texts are alike up to such a token and a little beyond, the tokens before it are alike as well, and so
are their characters; the rest is tokenized from that token on. The ids are compared with the served
ones: where they are others the whole text is tokenized after all.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import takewhile
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from recap.sglang.rendering import IntArray, Rendered

STEP = 1 << 12
"""Characters that are compared at once."""


class _Prompt(NamedTuple):
    """A prompt: its text, int64 ``[n]`` ids, and int64 ``[n, 2]`` characters of each token."""

    tokenizer: Any
    text: str
    ids: IntArray
    offsets: IntArray


class GrowingPrompt:
    """The last prompt of a session. For any thread: a prompt is replaced as a whole."""

    def __init__(self) -> None:
        self._last: _Prompt | None = None
        self.reused = 0
        """Tokens of the last prompt that were not tokenized again."""

    def template(self, rendered: Rendered, served: Sequence[int]) -> _Template:
        """Return the template of a request; a ``capture.spans.ChatTemplate``."""
        return _Template(self, rendered, np.asarray(served, np.int64))

    def encode(self, rendered: Rendered, served: IntArray, text: str) -> tuple[IntArray, IntArray]:
        """Return the ids of a request's text and the characters of each token.

        Args:
            rendered: Tokenizer and arguments.
            served: Ids that the server runs.
            text: The prompt.
        """
        last, self.reused = self._last, 0
        found = None
        if last is not None and last.tokenizer is rendered.tokenizer:
            found = self._grown(last, rendered, text)
        if found is None or not np.array_equal(found[0], served):
            self.reused = 0
            found = rendered.encode(text)
        ids, offsets = found
        if np.array_equal(ids, served):
            self._last = _Prompt(rendered.tokenizer, text, ids, offsets)
        return ids, offsets

    def _grown(
        self, last: _Prompt, rendered: Rendered, text: str
    ) -> tuple[IntArray, IntArray] | None:
        cuts, longest = _cutting(rendered.tokenizer)
        alike = _alike(last.text, text)
        is_cut = np.isin(last.ids, cuts) & (last.offsets[:, 0] + longest <= alike)
        places = np.flatnonzero(is_cut)
        if not len(places):
            return None
        cut = int(places[-1])
        start = int(last.offsets[cut, 0])
        options = {**rendered.encode_kwargs, "add_special_tokens": False}
        ids, offsets = rendered.encoded(text[start:], options)
        self.reused = cut
        return (
            np.concatenate([last.ids[:cut], ids]),
            np.concatenate([last.offsets[:cut], offsets + start]),
        )


@dataclass(frozen=True, slots=True, eq=False)
class _Template:
    """A request's template whose tokenizer goes on from the session's last prompt."""

    prompt: GrowingPrompt
    rendered: Rendered
    served: IntArray

    def render(self, messages: Sequence[Mapping[str, Any]]) -> str:
        """Return the prompt of messages."""
        return self.rendered.render(messages)

    def encode(self, text: str) -> Any:
        """Return the ids of a text and the characters of each token."""
        return self.prompt.encode(self.rendered, self.served, text)


def _cutting(tokenizer: Any) -> tuple[IntArray, int]:
    """Return the ids of tokens at which any text is cut, and the characters of the longest one.

    Tokens that take white space before them, or want no letters beside them, are no such ones.
    """
    added = tokenizer.added_tokens_decoder
    clean = [
        number
        for number, token in added.items()
        if token.special and not (token.normalized or token.lstrip or token.single_word)
    ]
    longest = max((len(token.content) for token in added.values()), default=0)
    return np.asarray(clean, np.int64), longest


def _alike(one: str, other: str) -> int:
    """Return how many first characters two texts share."""
    at, end = 0, min(len(one), len(other))
    while at < end and one[at : at + STEP] == other[at : at + STEP]:
        at += STEP
    pairs = zip(one[at : at + STEP], other[at : at + STEP], strict=False)
    return min(at, end) + sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
