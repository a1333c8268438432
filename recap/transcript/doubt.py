"""A format or dialect that the caller names and the content contradicts: said, not overruled."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from recap.transcript.model import Finding

if TYPE_CHECKING:
    from collections.abc import Callable

    from recap.transcript.model import Transcript

OTHER_FORMAT = "other-format"
"""Code of the finding."""

SHARE = 0.1
"""Share of the characters below which a format reads too little to be the right one."""


def with_doubt(transcript: Transcript, better: Callable[[], Transcript | None]) -> Transcript:
    """Return the transcript; with a finding where another format reads ten times as much.

    ``better`` reads the same input as what is recognised; None where that is what was named.
    """
    other = better()
    if other is None or _chars(transcript) >= SHARE * _chars(other):
        return transcript
    finding = Finding(
        OTHER_FORMAT,
        f"read as {transcript.format}, as asked, it holds {_chars(transcript):,} characters; "
        f"read as {other.format} it holds {_chars(other):,}",
        0,
        "warning",
    )
    return replace(transcript, findings=(finding, *transcript.findings))


def _chars(transcript: Transcript) -> int:
    parts = (part for message in transcript.messages for part in message.parts)
    return sum(part.cost_chars for part in parts if part.kind != "other")
