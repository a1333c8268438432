"""Which tokens of a rendered prompt are whose: messages to tokens to blocks, for any tokenizer.

The tokens of a message are those that lie wholly between the first and the last character of its
own words in the rendered text. What the template writes around them (role headers, end marks) is
nobody's, and so is white space around the words, which many templates trim. Where the words stand
is proved or refused, never guessed (see ``recap.capture.places``).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias
from unicodedata import normalize

import numpy as np

from recap.capture.places import ChatTemplate as ChatTemplate
from recap.capture.places import SpanError as SpanError
from recap.capture.places import SpanReason as SpanReason
from recap.capture.places import find_words, rendered

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy.typing as npt

IntArray: TypeAlias = "npt.NDArray[np.int64]"


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
    text = rendered(template, messages)
    ids, offsets = _encoded(template, text)
    if served_ids is not None and not np.array_equal(ids, np.asarray(served_ids)):
        raise SpanError("ids-differ", "the served tokens are not those of the rendered messages")
    start, end = _tokens(offsets, find_words(messages, template, text), text)
    return MessageSpans(ids, start, end)


def _encoded(template: ChatTemplate, text: str) -> tuple[IntArray, IntArray]:
    """Return ids int64 ``[n]`` and the characters of each token, int64 ``[n, 2]``."""
    try:
        ids, pairs = template.encode(text)
    except NotImplementedError as err:
        raise SpanError("no-offsets", "the tokenizer gives no offsets") from err
    except Exception as err:  # a tokenizer is a program of whoever made the model
        raise SpanError("refused", f"the tokenizer raised {type(err).__name__}") from err
    if len(pairs) != len(ids):
        raise SpanError("no-offsets", f"{len(pairs)} offsets for {len(ids)} tokens")
    return np.asarray(ids, np.int64), np.asarray(pairs, np.int64).reshape(-1, 2)


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
