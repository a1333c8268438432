"""``recap config``: every setting, its value and where that comes from."""

from __future__ import annotations

import tomllib
from dataclasses import fields
from typing import TYPE_CHECKING

import pytest

from recap.config import Settings, load_settings

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.conftest import Cli

NAMES = [field.name for field in fields(Settings)]


def test_every_setting_has_a_row(cli: Cli) -> None:
    rows = cli("config").out.splitlines()
    assert [row.split()[0] for row in rows[1:]] == NAMES


def test_json_names_value_origin_symbol_and_bounds(cli: Cli) -> None:
    answer = cli("config", "--set", "retention=0.3", "--json", RECAP_ROWS="32").json()
    assert answer["schema"] == "recap.config/1"
    rows = {row["name"]: row for row in answer["settings"]}
    assert rows.keys() == set(NAMES)
    assert (rows["retention"]["value"], rows["retention"]["origin"]) == ("0.3", "argument")
    assert (rows["rows"]["value"], rows["rows"]["origin"]) == (32, "RECAP_ROWS")
    assert rows["policy"]["origin"] == "default"
    assert rows["retention"]["symbol"] == "beta"
    assert "above 0" in rows["retention"]["allowed"]


def test_bounds_are_shown_as_intervals(cli: Cli) -> None:
    rows = {row.split()[0]: row for row in cli("config").out.splitlines()}
    assert "(0, 1]" in rows["retention"]
    assert "[0, ..)" in rows["edit_cap"]


def test_the_template_is_a_settings_file_with_the_same_values(cli: Cli, tmp_path: Path) -> None:
    text = cli("config", "--toml", "--set", "edit_cap=none", "--set", "markers=false").out
    path = tmp_path / "written.toml"
    path.write_text(text)
    assert tomllib.loads(text).keys() == set(NAMES)
    settings, _ = load_settings({}, path, {})
    assert settings == Settings(edit_cap=None, markers=False)


def test_a_mistake_in_the_file_names_the_file(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "recap.toml").write_text("retention = 7\n")
    result = cli("config")
    assert result.status == 2
    assert "recap.toml" in result.err


@pytest.mark.parametrize("command", ["config", "doctor"])
@pytest.mark.parametrize("line", ['policy = "papper"', 'observer = "reused"'])
def test_a_policy_or_observer_that_is_none_is_found_where_it_stands(
    cli: Cli, tmp_path: Path, command: str, line: str
) -> None:
    (tmp_path / "recap.toml").write_text(line + "\n")
    result = cli(command)
    name = line.split('"')[1]
    assert result.status == (2 if command == "config" else 1)
    assert name in result.out + result.err
    assert "recap.toml" in result.out + result.err
    assert "coverage" in result.out + result.err or "reuse" in result.out + result.err


def test_a_policy_given_by_option_or_environment_is_checked(cli: Cli) -> None:
    assert "RECAP_POLICY: unknown policy" in cli("config", RECAP_POLICY="papper").err
    assert cli("config", "--set", "policy=papper").err.startswith("recap: unknown policy")
    assert cli("config", "--set", "policy=paper").status == 0
