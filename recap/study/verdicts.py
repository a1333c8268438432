"""What a judge said, on disk: a long run is gone on with, and a new method costs only its own contexts."""

from __future__ import annotations

import os
from dataclasses import dataclass
from math import isfinite
from typing import TYPE_CHECKING

from recap.capture.models import CONFIG, sha256_of
from recap.errors import UsageError, shown_path
from recap.transcript.model import digest

if TYPE_CHECKING:
    from pathlib import Path

MARKER = "model"
"""File that says whose verdicts a folder holds."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the judge says of one context.

    Attributes:
        nll: Mean negative log-likelihood of a token of the target, nats, >= 0.
        tokens: Tokens of the target.
        context_tokens: Tokens of the context that were read.
        clipped_tokens: Tokens of the context that the window did not hold.
    """

    nll: float
    tokens: int
    context_tokens: int
    clipped_tokens: int


class Verdicts:
    """A folder of one model's verdicts, a small file each; several processes may share it.

    Files hold numbers, and their names are hashes: no text of a conversation.
    """

    def __init__(self, folder: Path, model: Path) -> None:
        """Take a folder, made where it is missing, for the model of another folder.

        Raises:
            UsageError: It holds verdicts of another model.
        """
        self._folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        mark, marker = _fingerprint(model), folder / MARKER
        if not marker.exists():
            _put(marker, mark)
        if marker.read_text(encoding="ascii") != mark:
            raise UsageError(f"{shown_path(folder)} holds verdicts of another model: name another")

    def get(self, *key: str) -> Verdict | None:
        """Return what was said under this key, None for nothing that can be read."""
        try:
            text = (self._folder / digest(*key).hex()).read_text(encoding="ascii")
            nll, tokens, context_tokens, clipped_tokens = text.split()
            said = Verdict(float(nll), int(tokens), int(context_tokens), int(clipped_tokens))
        except (FileNotFoundError, ValueError):  # the latter where a computer went down
            return None
        return said if isfinite(said.nll) else None

    def put(self, verdict: Verdict, *key: str) -> None:
        """Store what is said under this key."""
        numbers = (verdict.tokens, verdict.context_tokens, verdict.clipped_tokens)
        text = " ".join(map(str, (repr(verdict.nll), *numbers)))
        _put(self._folder / digest(*key).hex(), text)


def _put(path: Path, text: str) -> None:
    partly = path.with_suffix(f".{os.getpid()}.part")  # the others write the same
    partly.write_text(text, encoding="ascii")
    partly.replace(path)


def _fingerprint(model: Path) -> str:
    files = [model / CONFIG, *sorted(model.glob("*.safetensors"))]
    return digest(*map(sha256_of, files)).hex()
