"""What the chat layer asks of a scheduler about one request, and what it gets back.

Both cross process borders: a payload in ``sampling_params.custom_params``, whose values are scalars
and flat lists; a result by pickle. Both are checked on arrival, since a client can write either.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from recap.capture.spans import Segments
from recap.graph.observation import TurnObservation

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy.typing as npt

PREFIX = "recap."
"""Names in ``custom_params`` that are ours. The chat layer drops what a client sent under them."""

KEY = "recap"
"""Name of a result in ``meta_info``."""

MOST_LABEL = 128
MOST_TURN = 2**31 - 1
_LABEL = re.compile(r"[\x21-\x7e]{0,128}", re.ASCII)


class PayloadError(ValueError):
    """A payload or a result contradicts itself; the text repeats nothing of it."""


@dataclass(frozen=True, slots=True, eq=False)
class Payload:
    """How to measure one request; ``parse`` checks, the constructor trusts.

    Attributes:
        session: Label of the session, "" for none. Never an authority: the main process knows
            which session a request belongs to.
        seed: Of (session, turn key), ``recap.capture.sampling.row_seed``.
        turn: 0-based number of the turn.
        start: Position of the turn's first token; rows are sampled from here on.
        segments: Which tokens of the prompt belong to which block.
        tail: Id under which generated tokens count as a block; "" for no block. The chat layer
            puts the id of the answer's block in its place.
    """

    session: str
    seed: int
    turn: int
    start: int
    segments: Segments
    tail: str = ""

    def params(self) -> dict[str, object]:
        """Return the entries of ``custom_params`` that ``parse`` reads."""
        return {
            "recap.session": self.session,
            "recap.seed": self.seed,
            "recap.turn": self.turn,
            "recap.start": self.start,
            "recap.offsets": self.segments.offsets.tolist(),
            "recap.owner": self.segments.owner.tolist(),
            "recap.ids": list(self.segments.ids),
            "recap.tail": self.tail,
        }

    @classmethod
    def parse(
        cls, params: Mapping[str, object], prompt_tokens: int, most_segments: int
    ) -> Payload | None:
        """Return the payload of a request, None when it carries none.

        Args:
            params: ``sampling_params.custom_params``.
            prompt_tokens: Tokens of the prompt; no segment may end behind them.
            most_segments: Bound on the segments.

        Raises:
            PayloadError: An entry is missing, malformed or out of range.
        """
        if not any(name.startswith(PREFIX) for name in params):
            return None
        segments = _segments(params, prompt_tokens, most_segments)
        tail = _label(params.get("recap.tail", ""))
        if tail and tail in segments.ids:
            raise PayloadError("tail is the id of a block of the prompt")
        return cls(
            session=_label(params.get("recap.session", "")),
            seed=_integer(params.get("recap.seed"), 2**64 - 1),
            turn=_integer(params.get("recap.turn"), MOST_TURN),
            start=_integer(params.get("recap.start"), prompt_tokens),
            segments=segments,
            tail=tail,
        )

    def segments_to(self, end: int) -> Segments:
        """Return the segments with the tokens behind the last one up to ``end``: the answer's."""
        own = self.segments
        if end <= int(own.offsets[-1]):
            return own
        owner = len(own.ids) if self.tail else -1
        return Segments(
            (*own.ids, self.tail) if self.tail else own.ids,
            np.append(own.offsets, end),
            np.append(own.owner, owner).astype(np.int32),
        )


def _segments(params: Mapping[str, object], prompt_tokens: int, most: int) -> Segments:
    ids = _list(params.get("recap.ids"), most)
    labels = tuple(_label(value) for value in ids)
    if len(set(labels)) != len(labels) or "" in labels:
        raise PayloadError("ids must be distinct and not empty")
    owner = _integers(params.get("recap.owner"), most, -1, len(labels) - 1)
    offsets = _integers(params.get("recap.offsets"), most + 1, 0, prompt_tokens)
    if len(offsets) != len(owner) + 1 or offsets[0] or (np.diff(offsets) < 1).any():
        raise PayloadError("offsets must rise from 0, one more than owners")
    return Segments(labels, offsets, owner.astype(np.int32))


def _list(value: object, most: int) -> Sequence[object]:
    if not isinstance(value, list | tuple) or not len(value) <= most:
        raise PayloadError(f"a list of at most {most} entries is missing")
    return value


def _integers(value: object, most: int, low: int, high: int) -> npt.NDArray[np.int64]:
    given = _list(value, most)
    if not all(isinstance(n, int) and not isinstance(n, bool) and low <= n <= high for n in given):
        raise PayloadError(f"whole numbers from {low} to {high} are wanted")
    return np.asarray(given, np.int64)


def _integer(value: object, high: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= high:
        raise PayloadError(f"a whole number from 0 to {high} is missing")
    return value


def _label(value: object) -> str:
    if not isinstance(value, str) or not _LABEL.fullmatch(value):
        raise PayloadError(f"a label has at most {MOST_LABEL} visible ASCII characters")
    return value


@dataclass(frozen=True, slots=True, eq=False)
class Result:
    """What became of one measured request.

    Attributes:
        rid: SGLang's id of the request.
        session: Label its payload carried.
        observation: What its turn used so far; None when it was dropped.
        dropped: Why there is no observation, "" when there is one.
        rows: Sampled query rows.
        layers: Measured layers.
        start, end: The turn's tokens that were sampled from: ``[start, end)``.
        inner: Name of the attention backend that served it.
    """

    rid: str
    session: str
    observation: TurnObservation | None
    dropped: str
    rows: int
    layers: tuple[int, ...]
    start: int
    end: int
    inner: str

    def wire(self) -> dict[str, Any]:
        """Return plain values, for pickle and JSON."""
        plain: dict[str, Any] = {
            name: getattr(self, name)
            for name in ("rid", "session", "dropped", "rows", "start", "end", "inner")
        }
        plain["layers"] = list(self.layers)
        if (seen := self.observation) is not None:
            plain["turn"], plain["ids"] = seen.turn, list(seen.ids)
            for name in ("use", "later", "earlier", "mass"):
                plain[name] = getattr(seen, name).tolist()
        return plain

    @classmethod
    def parse(cls, wire: object) -> Result:
        """Return the result of plain values.

        Raises:
            PayloadError: They are none.
        """
        try:
            plain: dict[str, Any] = dict(wire)  # type: ignore[call-overload]
            observation = None
            if not plain["dropped"]:
                measured = (plain[n] for n in ("turn", "ids", "use", "later", "earlier", "mass"))
                observation = TurnObservation.of(*measured)
            return cls(
                rid=str(plain["rid"]),
                session=_label(plain["session"]),
                observation=observation,
                dropped=_label(plain["dropped"]),
                rows=_integer(plain["rows"], MOST_TURN),
                layers=tuple(_integer(layer, MOST_TURN) for layer in plain["layers"]),
                start=_integer(plain["start"], MOST_TURN),
                end=_integer(plain["end"], MOST_TURN),
                inner=str(plain["inner"]),
            )
        except (KeyError, TypeError, ValueError) as err:
            raise PayloadError("no result of a measured request") from err
