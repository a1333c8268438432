from __future__ import annotations

from recap.select.vendor import WRITERS
from recap.transcript.check import RULES
from recap.transcript.dialects import DIALECT_NAMES, DIALECTS
from recap.transcript.lists import READERS


def test_every_dialect_is_named_read_written_and_checked() -> None:
    assert set(DIALECT_NAMES) == set(READERS) == set(WRITERS) == set(DIALECTS)
    assert set(RULES) == {*DIALECTS, "claude-code"}
