from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from recap.transcript.check import check
from recap.transcript.dialects import DIALECT_NAMES, DIALECTS

if TYPE_CHECKING:
    from pathlib import Path

CHAT = [
    {"role": "user", "content": "What does parser.py do?"},
    {"role": "assistant", "content": "It parses."},
    {"role": "user", "content": "And lexer.py?"},
]


@pytest.mark.parametrize("dialect", DIALECTS)
def test_every_dialect_can_be_asked_for(cli: Any, tmp_path: Path, dialect: Any) -> None:
    source, out = tmp_path / "chat.json", tmp_path / "out.json"
    source.write_text(json.dumps(CHAT))
    done = cli("compact", str(source), "--to", dialect, "-o", str(out))
    assert done.status == 0
    assert f"valid for {DIALECT_NAMES[dialect]}" in done.out + done.err
    assert check(json.loads(out.read_text()), dialect) == []
    assert cli("check", str(out), "--dialect", dialect).status == 0
