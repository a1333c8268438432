"""Which tokens of a rendered prompt are whose: messages to tokens to blocks, for any tokenizer.

The tokens of a message are those that lie wholly between the first and the last character of its
own words in the rendered text. What the template writes around them (role headers, end marks) is
nobody's, and so is white space around the words, which many templates trim. Where the words stand
is proved or refused, never guessed; ids and offsets always come from the plain text:

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
from dataclasses import dataclass
from functools import partial
from itertools import accumulate, count
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol, TypeAlias
from unicodedata import normalize

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


@dataclass(frozen=True, slots=True, eq=False)
class MessageSpans:
    """Tokens of each message of a rendered prompt.

    Attributes:
        ids: int64 ``[n]``: token ids of the prompt.
        start, end: int64 ``[m]``: message i has tokens ``[start[i], end[i])``; ascending and
            disjoint, empty for a message without words. A token that straddles an end of the words
            is nobody's.
    """

    ids: npt.NDArray[np.int64]
    start: npt.NDArray[np.int64]
    end: npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Segments:
    """A prompt's tokens cut where their owner changes.

    Attributes:
        ids: Ids of the observed blocks, chronological: those that own a token.
        offsets: int64 ``[s + 1]``: segment i spans tokens ``[offsets[i], offsets[i + 1])``, none
            empty; from 0 to the number of tokens.
        owner: int32 ``[s]``: index into ``ids``; -1 for tokens of no block.
    """

    ids: tuple[str, ...]
    offsets: npt.NDArray[np.int64]
    owner: npt.NDArray[np.int32]

    @classmethod
    def of(
        cls, ids: Sequence[str], owner_of_message: Sequence[int], spans: MessageSpans
    ) -> Segments:
        """Return the segments of a prompt; a block may have several.

        Args:
            ids: Block ids, chronological.
            owner_of_message: Index into ``ids`` of each message's block; -1 for no block.
            spans: Tokens of the messages.

        Raises:
            ValueError: An id stands twice, there is not one owner per message, an owner is no
                block, or blocks do not come in their order.
        """
        owner = np.asarray(owner_of_message, np.int64)
        _check_owners(ids, owner, spans)
        of_token = np.full(len(spans.ids), -1, np.int64)
        for block, start, end in zip(owner, spans.start, spans.end, strict=True):
            of_token[start:end] = block
        is_cut = np.diff(of_token, prepend=-2) != 0
        starts = np.flatnonzero(is_cut)
        seen = np.unique(of_token[of_token >= 0])
        renumbered = np.full(len(ids) + 1, -1, np.int32)  # the last one stands for no block
        renumbered[seen] = np.arange(len(seen))
        return cls(
            tuple(ids[at] for at in seen.tolist()),
            np.append(starts, len(of_token)),
            renumbered[of_token[starts]],
        )


def _check_owners(ids: Sequence[str], owner: npt.NDArray[np.int64], spans: MessageSpans) -> None:
    if len(set(ids)) != len(ids):
        raise ValueError("a block stands twice in ids")
    if owner.shape != spans.start.shape:
        raise ValueError(f"{owner.size} owners for {spans.start.size} messages")
    if owner.size and not (owner.min() >= -1 and owner.max() < len(ids)):
        raise ValueError(f"an owner must be -1 or index the {len(ids)} blocks")
    named, first = np.unique(owner, return_index=True)
    if (np.diff(first[named >= 0]) < 0).any():
        raise ValueError("blocks must first appear in their order")


def message_spans(
    messages: Sequence[Mapping[str, Any]],
    template: ChatTemplate,
    *,
    served_ids: Sequence[int] | None = None,
) -> MessageSpans:
    """Return the tokens of each message in the rendered list.

    A message's words are the strings under ``content`` (or the texts of its parts),
    ``reasoning_content`` and the names and arguments of ``tool_calls``; a string that the template
    leaves out whole has no tokens.

    Args:
        messages: Messages as the template takes them.
        template: Template and tokenizer.
        served_ids: Token ids that a server runs; they have to be those of the rendered list.

    Raises:
        SpanError: Anything is unproved; see its ``reason``.
    """
    text = _rendered(template, messages)
    ids, offsets = _encoded(template, text)
    if served_ids is not None and not np.array_equal(ids, np.asarray(served_ids)):
        raise SpanError("ids-differ", "the served tokens are not those of the rendered messages")
    prompt = _Prompt.of(messages, template, text)
    found = _by_marks(prompt)
    if found is None:
        found = _by_strange_words(prompt)
    start, end = _tokens(offsets, _hulls(found, len(messages)), text)
    return MessageSpans(ids, start, end)


def _rendered(template: ChatTemplate, messages: Sequence[Mapping[str, Any]]) -> str:
    try:
        return template.render(messages)
    except Exception as err:  # a template is a program of whoever made the model
        raise SpanError("refused", f"the chat template raised {type(err).__name__}") from err


def _encoded(template: ChatTemplate, text: str) -> tuple[IntArray, IntArray]:
    """Return ids int64 ``[n]`` and the characters of each token, int64 ``[n, 2]``."""
    try:
        ids, pairs = template.encode(text)
    except NotImplementedError as err:
        raise SpanError("no-offsets", "the tokenizer gives no offsets") from err
    except Exception as err:  # and so is a tokenizer
        raise SpanError("refused", f"the tokenizer raised {type(err).__name__}") from err
    if len(pairs) != len(ids):
        raise SpanError("no-offsets", f"{len(pairs)} offsets for {len(ids)} tokens")
    return np.asarray(ids, np.int64), np.asarray(pairs, np.int64).reshape(-1, 2)


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

        return _rendered(self.template, _changed(self.messages, marked))

    def with_word(self, number: int, word: str) -> str:
        """Return the list rendered with a word in place of one string."""
        numbers = count()

        def replaced(_: int, words: str) -> str:
            return word if next(numbers) == number else words

        return _rendered(self.template, _changed(self.messages, replaced))


def _by_marks(prompt: _Prompt) -> list[Place] | None:
    """Return where each string stands in the text, None where marks do not prove it."""
    try:
        rendered = prompt.with_marks()
    except SpanError:
        return None
    pieces = re.split(f"{prompt.letter}([0-9]+){prompt.letter}", rendered)
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
        rendered = prompt.with_word(number, word)
        if rendered == text:
            continue  # the template leaves this string out
        before, _, after = rendered.partition(word)
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
    hulls = np.full((messages, 2), -1, np.int64)
    for message, start, end in places:
        first, last = hulls[message]
        hulls[message] = (start if first < 0 else min(first, start), max(last, end))
    known = hulls[hulls[:, 0] >= 0].ravel()
    if (np.diff(known) < 0).any():
        raise SpanError("unproved", "the template does not keep the order of the messages")
    return hulls


def _tokens(offsets: IntArray, hulls: IntArray, text: str) -> tuple[IntArray, IntArray]:
    """Return the first token of each message, and the one after its last."""
    token = np.flatnonzero(offsets[:, 0] != offsets[:, 1])  # special tokens may have no characters
    first, last = offsets[token, 0], offsets[token, 1]
    is_sound = (first < last).all() and (np.diff(first) >= 0).all() and (np.diff(last) >= 0).all()
    if not is_sound or (len(token) and (first[0] < 0 or last[-1] > len(text))):
        raise SpanError("bad-offsets", "the tokenizer's offsets do not ascend within the text")
    _check_cover(first, last, hulls, text)
    low = np.searchsorted(first, hulls[:, 0], side="left")
    high = np.searchsorted(last, hulls[:, 1], side="right")
    has_any = (low < high) & (hulls[:, 0] >= 0)
    start, end = np.zeros(len(hulls), np.int64), np.zeros(len(hulls), np.int64)
    start[has_any] = token[low[has_any]]
    end[has_any] = token[high[has_any] - 1] + 1
    reached = np.maximum.accumulate(end)
    return np.where(has_any, start, reached), np.where(has_any, end, reached)


def _check_cover(first: IntArray, last: IntArray, hulls: IntArray, text: str) -> None:
    """Raise SpanError where a visible character of a message's words is in no token."""
    depth = np.zeros(len(text) + 1, np.int64)
    np.add.at(depth, first, 1)
    np.add.at(depth, last, -1)
    is_covered = np.cumsum(depth) > 0
    for start, end in hulls[hulls[:, 0] >= 0].tolist():
        words, is_in = text[start:end], is_covered[start:end]
        for at in np.flatnonzero(~is_in).tolist():
            if not (words[at].isspace() or _is_composed(words, at, is_in)):
                raise SpanError("bad-offsets", "the tokenizer's offsets leave words out")


def _is_composed(words: str, at: int, is_in: npt.NDArray[np.bool_]) -> bool:
    """Return True for a mark that a tokenizer joins to the character before it (NFC)."""
    before = np.flatnonzero(is_in[:at])
    return len(before) > 0 and len(normalize("NFC", words[before[-1] : at + 1])) == 1
