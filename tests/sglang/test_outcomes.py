"""Every outcome that is counted is explained to operators."""

from __future__ import annotations

import re
from pathlib import Path

from recap.sglang.turn_end import NO_ROOM

ROOT = Path(__file__).resolve().parents[2]
READ = ("sglang/*.py", "capture/spans.py", "capture/places.py", "capture/collector.py")
REASON = re.compile(
    r"""(?:NotAttributable|SpanError|CaptureError|empty)\(\s*"([a-z-]+)"|dropped = "([a-z-]+)\""""
)
UNREACHED = {"no-layers"}
"""The layer that edges are read from is one of those that a worker measures."""


def reasons() -> set[str]:
    texts = [path.read_text() for name in READ for path in (ROOT / "recap").glob(name)]
    return {one or other for text in texts for one, other in REASON.findall(text)}


def test_every_reason_stands_in_the_table_of_outcomes() -> None:
    found = reasons() | {NO_ROOM, "recorded", "asked", "error", "bad-result", "no-answer"}
    assert len(found) > 25
    table = (
        (ROOT / "docs" / "sglang.md").read_text().partition("| outcome |")[2].partition("\n\n")[0]
    )
    told = set(re.findall(r"`([a-z-]+)`", table))
    assert found - told == UNREACHED
