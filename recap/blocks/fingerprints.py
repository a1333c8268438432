"""Fingerprints of blocks: what a table read of each, so that it need not be read again."""

from __future__ import annotations

from hashlib import blake2b
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from collections.abc import Sequence

    from recap.blocks.segment import Block
    from recap.transcript.model import Message

Fingerprints: TypeAlias = npt.NDArray[np.uint64]

_BYTES = 8


def fingerprints(messages: Sequence[Message], blocks: Sequence[Block]) -> Fingerprints:
    """Return uint64 ``[blocks]``: a hash of cost, and of author and content of each part.

    Blocks of equal fingerprints feed the index alike. The hash is unkeyed BLAKE2b, the same in every
    process; 64 bits, as it stands against chance and not against a forger.
    """
    hashes = [_fingerprint(messages, block) for block in blocks]
    return np.frombuffer(b"".join(hashes), "<u8").astype(np.uint64)


def common_prefix(one: Fingerprints, other: Fingerprints) -> int:
    """Return how many fingerprints two lists share from their beginning."""
    shared = min(len(one), len(other))
    differing = np.flatnonzero(one[:shared] != other[:shared])
    return int(differing[0]) if len(differing) else shared


def _fingerprint(messages: Sequence[Message], block: Block) -> bytes:
    pieces = [b"%d" % block.cost_chars]
    for at, place in block.refs:
        part = messages[at].parts[place]
        pieces += part.author.encode(), part.digest
    return blake2b(b"\0".join(pieces), digest_size=_BYTES).digest()
