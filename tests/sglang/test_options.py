"""The configuration of a server: read once in the launcher, handed to its children."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import recap
from recap.errors import SettingsError, UsageError
from recap.sglang.options import Options, is_enabled

if TYPE_CHECKING:
    from pathlib import Path

PLAIN = {"RECAP_CONFIG": "/dev/null"}


def test_a_server_changes_no_request_unless_it_is_told_to() -> None:
    assert Options.read("{}", PLAIN).settings.mode == "observe"
    assert Options.read('{"mode": "turn"}', PLAIN).settings.mode == "turn"


def test_children_get_what_the_launcher_read(tmp_path: Path) -> None:
    file = tmp_path / "recap.json"
    file.write_text('{"rows": 12, "tap_mib": 3, "retention": "1/3"}')
    read = Options.read(f"@{file}", PLAIN | {"RECAP_LAYERS": "2"})
    file.unlink()
    handed = PLAIN | read.environment()
    assert is_enabled(handed)
    assert Options.inherited(handed) == read
    assert (read.settings.rows, read.settings.layers, read.tap_mib) == (12, 2, 3)


def test_without_a_configuration_the_environment_alone_speaks() -> None:
    options = Options.inherited(PLAIN | {"RECAP_ENABLE": "1", "RECAP_ROWS": "7"})
    assert options.settings.rows == 7


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ('{"rowz": 1}', "rowz"),
        ('{"rows": 0}', "rows"),
        ('{"rows": 513}', "rows"),
        ('{"tap_mib": 0}', "tap_mib"),
        ('{"tap_mib": true}', "tap_mib"),
        ('{"error_limit": "8"}', "error_limit"),
        ("[1]", "object"),
        ("{", "JSON"),
        ("[" * 100_000, "JSON"),
        ("@/nowhere/recap.json", "/nowhere/recap.json"),
    ],
)
def test_a_wrong_configuration_is_refused_by_name(text: str, named: str) -> None:
    with pytest.raises(SettingsError, match=named):
        Options.read(text, PLAIN)


def test_enable_hands_the_configuration_to_an_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"RECAP_ENABLE": "", "RECAP_SGLANG": "", **PLAIN}.items():
        monkeypatch.setenv(name, value)  # put back afterwards
    recap.enable({"rows": 9})
    import os

    assert is_enabled(os.environ)
    assert Options.inherited(os.environ).settings.rows == 9


def test_enable_after_the_plugins_were_loaded_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys
    from types import SimpleNamespace

    loaded = SimpleNamespace(_plugins_loaded=True)
    monkeypatch.setitem(sys.modules, "sglang.srt.plugins", loaded)
    with pytest.raises(UsageError, match="before"):
        recap.enable()
