"""Where the words of each message stand in a rendered prompt: proved, or refused.

1. The list is rendered once more with a mark before and after every string of every message. They
   count when the text without them is the plain text, character by character.
2. Where a template answers marks with another text, it is rendered once for each string, with one
   strange word in its place. It counts when it is the only difference, and what stood there is of
   that string.

The usual way is no proof, and costs a render for each message: that the prompts of the list's
prefixes begin alike leaves open where the words of a message stand in what it added, and a template
that trims its last line moves them into the next one.
"""

from __future__ import annotations

import re
from functools import partial
from itertools import accumulate, count
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol, TypeAlias

import numpy as np

from recap.errors import RecapError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import numpy.typing as npt

IntArray: TypeAlias = "npt.NDArray[np.int64]"

STRANGE_LETTERS = range(0x250, 0x2B0)
"""Phonetic letters: no template takes them for its own signs, and few texts hold all of them."""

MOST_RENDERS = 256
"""Strings of a list that are tried one by one: the cost grows with their number squared."""

DEEPEST = 16
"""Levels of a call's arguments that are looked through."""

WORDS: Mapping[str, frozenset[str] | None] = {
    "content": frozenset(("text",)),
    "reasoning_content": frozenset(),
    "tool_calls": frozenset(("function", "name", "arguments")),
}
"""Keys of a message that hold words, and the keys within them that do."""


class Place(NamedTuple):
    """Characters ``[start, end)`` of the plain text that one string of a message became."""

    message: int
    start: int
    end: int


SpanReason = Literal[
    "refused",  # the template or the tokenizer raises an error
    "no-offsets",  # the tokenizer does not say which characters a token stands for
    "bad-offsets",  # what it says contradicts itself or leaves words out
    "ids-differ",  # the server runs other tokens
    "unproved",  # nothing proves where a message's words stand
]


class SpanError(RecapError):
    """Tokens cannot be attributed to messages beyond doubt: the turn is not observed.

    Attributes:
        reason: See ``SpanReason``.
    """

    def __init__(self, reason: SpanReason, detail: str) -> None:
        super().__init__(f"{reason}: {detail}")
        self.reason: SpanReason = reason


class ChatTemplate(Protocol):
    """A tokenizer with its chat template."""

    def render(self, messages: Sequence[Mapping[str, Any]]) -> str:
        """Return the prompt of a list of messages; raises anything for a list it refuses."""
        ...

    def encode(self, text: str) -> tuple[Sequence[int], Sequence[tuple[int, int]]]:
        """Return token ids and the characters ``[start, end)`` of each, start = end for none.

        No offsets where the tokenizer has none, or NotImplementedError.
        """
        ...


def rendered(template: ChatTemplate, messages: Sequence[Mapping[str, Any]]) -> str:
    """Return the prompt of a list of messages; raises SpanError, ``refused``."""
    try:
        return template.render(messages)
    except Exception as err:  # a template is a program of whoever made the model
        raise SpanError("refused", f"the chat template raised {type(err).__name__}") from err


def find_words(
    messages: Sequence[Mapping[str, Any]], template: ChatTemplate, text: str
) -> IntArray:
    """Return the characters from the first to the last word of each message in the plain text.

    Args:
        messages: Messages as the template takes them.
        template: Template and tokenizer.
        text: The rendered messages.

    Returns:
        int64 ``[m, 2]``: ``[start, end)``, ascending and disjoint; -1, -1 for a message without
        words, or whose words the template leaves out.

    Raises:
        SpanError: ``unproved`` or ``refused``.
    """
    prompt = _Prompt.of(messages, template, text)
    found = _by_marks(prompt)
    if found is None:
        found = _by_strange_words(prompt)
    return _hulls(found, len(messages))


class _Prompt(NamedTuple):
    """A rendered list, and what the proofs need.

    Attributes:
        strings: (message, words) of each string, in order.
        letter: Stands in no string and not in the text, so what is marked with it is unmistakable.
    """

    messages: Sequence[Mapping[str, Any]]
    template: ChatTemplate
    text: str
    strings: list[tuple[int, str]]
    letter: str

    @classmethod
    def of(
        cls, messages: Sequence[Mapping[str, Any]], template: ChatTemplate, text: str
    ) -> _Prompt:
        strings: list[tuple[int, str]] = []

        def noted(message: int, words: str) -> str:
            strings.append((message, words))
            return words

        _changed(messages, noted)
        for letter in map(chr, STRANGE_LETTERS):
            if letter not in text and not any(letter in words for _, words in strings):
                return cls(messages, template, text, strings, letter)
        raise SpanError("unproved", "the text holds every letter that could mark a place")

    def with_marks(self) -> str:
        """Return the list rendered with the number of each string before and after it."""
        numbers = count()

        def marked(_: int, words: str) -> str:
            mark = f"{self.letter}{next(numbers)}{self.letter}"
            return f"{mark}{words}{mark}"

        return rendered(self.template, _changed(self.messages, marked))

    def with_word(self, number: int, word: str) -> str:
        """Return the list rendered with a word in place of one string."""
        numbers = count()

        def replaced(_: int, words: str) -> str:
            return word if next(numbers) == number else words

        return rendered(self.template, _changed(self.messages, replaced))


def _by_marks(prompt: _Prompt) -> list[Place] | None:
    """Return where each string stands in the text, None where marks do not prove it."""
    try:
        marked = prompt.with_marks()
    except SpanError:
        return None
    pieces = re.split(f"{prompt.letter}([0-9]+){prompt.letter}", marked)
    if "".join(pieces[::2]) != prompt.text:
        return None
    found: dict[int, list[int]] = {}
    for number, place in zip(pieces[1::2], accumulate(map(len, pieces[::2])), strict=False):
        found.setdefault(int(number), []).append(place)
    if any(len(places) != 2 for places in found.values()):
        return None
    return [Place(prompt.strings[number][0], *places) for number, places in found.items()]


def _by_strange_words(prompt: _Prompt) -> list[Place]:
    """Return the same from one render for each string; raises SpanError."""
    if len(prompt.strings) > MOST_RENDERS:
        raise SpanError("unproved", f"{len(prompt.strings)} strings are too many for one by one")
    word, text = prompt.letter * 3, prompt.text
    found = []
    for number, (message, words) in enumerate(prompt.strings):
        changed = prompt.with_word(number, word)
        if changed == text:
            continue  # the template leaves this string out
        before, _, after = changed.partition(word)
        place = Place(message, len(before), len(text) - len(after))
        shown = text[place.start : place.end]
        if before + shown + after != text or shown not in words:
            raise SpanError("unproved", "the template changes more than the words of a message")
        found.append(_trimmed(place, shown))
    return found


def _trimmed(place: Place, shown: str) -> Place:
    """Return the place without the white space around what is shown there."""
    start = place.start + len(shown) - len(shown.lstrip())
    return Place(place.message, start, start + len(shown.strip()))


def _changed(
    messages: Sequence[Mapping[str, Any]], change: Callable[[int, str], str]
) -> list[dict[str, Any]]:
    """Return the messages with ``change(message, words)`` for the words of each string."""
    changed = []
    for number, message in enumerate(messages):
        new = dict(message)
        for key, keys in WORDS.items():
            if key in new:
                new[key] = _changed_value(new[key], keys, partial(change, number))
        changed.append(new)
    return changed


def _changed_value(
    value: Any, keys: frozenset[str] | None, change: Callable[[str], str], depth: int = 0
) -> Any:
    """Return a value with its strings changed; in objects, those under ``keys`` (None: any)."""
    if isinstance(value, str):
        words = value.strip()
        if not words:
            return value
        at = value.index(words)
        return f"{value[:at]}{change(words)}{value[at + len(words) :]}"
    if depth == DEEPEST:
        return value
    if isinstance(value, list | tuple):
        return [_changed_value(item, keys, change, depth + 1) for item in value]
    if isinstance(value, dict):
        return {
            key: _changed_value(item, None if key == "arguments" else keys, change, depth + 1)
            if keys is None or key in keys
            else item
            for key, item in value.items()
        }
    return value


def _hulls(places: Sequence[Place], messages: int) -> IntArray:
    """Return int64 ``[messages, 2]``: characters from the first to the last word of each message."""
    bounds = np.full((messages, 2), -1, np.int64)
    for message, start, end in places:
        first, last = bounds[message]
        bounds[message] = (start if first < 0 else min(first, start), max(last, end))
    known = bounds[bounds[:, 0] >= 0].ravel()
    if (np.diff(known) < 0).any():
        raise SpanError("unproved", "the template does not keep the order of the messages")
    return bounds
