"""Settings: exact retention, bounds, sources and their order, and errors that name the next step."""

from __future__ import annotations

import dataclasses
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recap.config import (
    MODES,
    Settings,
    find_toml,
    load_settings,
    parse_retention,
    read_prices,
    setting_rows,
    unknown_variables,
)
from recap.errors import SettingsError

if TYPE_CHECKING:
    from pathlib import Path

NUMERIC = {row.name: row for row in setting_rows() if "number" in row.allowed}


@pytest.mark.parametrize(
    "value", ["0.29", 0.29, " 0.29 ", ".29", "29e-2", "29/100", Fraction(29, 100), Decimal("0.29")]
)
def test_retention_is_exact_in_every_form(value: str | float | Fraction | Decimal) -> None:
    assert parse_retention(value) * 100 == 29


@pytest.mark.parametrize("value", [1, "1", 1.0, "1.0", Fraction(1)])
def test_retention_may_be_one(value: str | float | Fraction) -> None:
    assert parse_retention(value) == 1


@pytest.mark.parametrize(
    "value",
    [
        *(0, "0", 0.0, 1.5, "1.5", "abc", "", "nan", float("nan"), float("inf"), -0.1, "-0.1"),
        *(True, "1/0", "0/1", "10%", "0,1", None, [0.1], Decimal("NaN")),
    ],
)
def test_bad_retention_is_one_clear_line(value: object) -> None:
    with pytest.raises(
        SettingsError, match=r"retention must be .* above 0 and at most 1"
    ) as caught:
        parse_retention(value)  # type: ignore[arg-type]
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 200


def test_retention_never_builds_or_prints_huge_numbers() -> None:
    for value in ("1e-999999999", "1/" + "9" * 200, "x" * 10_000, 10**5000, -(10**5000)):
        with pytest.raises(SettingsError) as caught:
            parse_retention(value)
        assert len(str(caught.value)) < 200


@given(st.floats(min_value=1e-9, max_value=1))
def test_a_float_is_read_through_its_shortest_decimal_form(value: float) -> None:
    assert parse_retention(value) == parse_retention(repr(value)) == Fraction(repr(value))


def test_numpy_numbers_are_read_as_numbers() -> None:
    numpy = pytest.importorskip("numpy")
    for kind in (numpy.float32, numpy.float64):
        assert parse_retention(kind(0.29)) == Fraction(29, 100)
    settings = Settings().replace(rows=numpy.int32(5), smoothing=numpy.float64(0.25))
    assert (repr(settings.rows), repr(settings.smoothing)) == ("5", "0.25")


def test_exact_settings_are_fractions() -> None:
    settings = Settings(retention="1/3", expansion="0.2")
    assert (settings.beta, settings.delta) == (Fraction(1, 3), Fraction(1, 5))


@pytest.mark.parametrize("name", NUMERIC)
def test_every_number_has_bounds_that_bite(name: str) -> None:
    for value in (-1, float("nan"), float("inf"), "abc", True):
        with pytest.raises(SettingsError, match=rf"^{name} must be "):
            Settings().replace(**{name: value})


def test_every_setting_survives_its_own_text() -> None:
    rows = setting_rows()
    assert Settings().replace(**{row.name: row.default for row in rows}) == Settings()


def test_every_setting_is_documented() -> None:
    assert [row.name for row in setting_rows()] == [f.name for f in dataclasses.fields(Settings)]
    assert all(row.help and row.allowed for row in setting_rows())


def test_edit_cap_may_be_none() -> None:
    assert Settings().replace(edit_cap="none").edit_cap is None
    assert Settings().replace(edit_cap=None).edit_cap is None
    assert Settings().replace(edit_cap="4000").edit_cap == 4000


@pytest.mark.parametrize(("text", "value"), [("off", False), ("TRUE", True), ("0", False)])
def test_booleans_read_the_usual_words(text: str, value: bool) -> None:
    assert Settings().replace(markers=text).markers is value


@pytest.mark.parametrize("value", ["maybe", "", 1, None])
def test_booleans_refuse_other_words(value: object) -> None:
    with pytest.raises(SettingsError, match="markers must be true or false"):
        Settings().replace(markers=value)


def test_whole_numbers_refuse_floats() -> None:
    with pytest.raises(SettingsError, match="rows must be a whole number"):
        Settings().replace(rows=1.5)


def test_an_unknown_choice_names_the_choices() -> None:
    with pytest.raises(SettingsError, match=r"observer must be one of .*reuse.*; got 'telepathy'"):
        Settings(observer="telepathy")


def test_a_policy_is_never_blank() -> None:
    with pytest.raises(SettingsError, match="policy must be a name"):
        Settings(policy=" ")


def test_exploration_bounds_are_ordered() -> None:
    with pytest.raises(SettingsError, match="exploration_low must be at most exploration_high"):
        Settings(exploration_low=0.9, exploration_high=0.6)


def test_replace_keeps_the_rest_and_the_original() -> None:
    settings = Settings(rows=16)
    changed = settings.replace(query_weight="0.25")
    assert (changed.rows, changed.query_weight) == (16, 0.25)
    assert settings.query_weight == 0.5


def test_an_unknown_name_gets_the_closest_and_the_list() -> None:
    with pytest.raises(SettingsError) as caught:
        Settings().replace(retenton="0.2")
    assert "unknown setting 'retenton'; did you mean 'retention'?" in str(caught.value)
    assert "edit_cap" in str(caught.value)


def test_an_unknown_name_without_a_neighbour_gets_the_list() -> None:
    with pytest.raises(
        SettingsError, match=r"unknown setting 'zzz'\. Settings: act_power, break_even_limit"
    ):
        load_settings({"zzz": 1}, None, {})


def test_argument_beats_environment_beats_file_beats_default(tmp_path: Path) -> None:
    toml = tmp_path / "recap.toml"
    toml.write_text('retention = 0.29\nrows = 32\nlayers = 4\nedit_cap = "none"\n')
    environ = {"RECAP_ROWS": "16", "RECAP_LAYERS": "2", "RECAP_MARKERS": ""}
    settings, origins = load_settings({"layers": 1}, toml, environ)
    assert (settings.beta, settings.rows, settings.layers) == (Fraction(29, 100), 16, 1)
    assert (settings.edit_cap, settings.markers) == (None, True)
    assert origins["retention"] == str(toml)
    assert (origins["rows"], origins["layers"], origins["markers"]) == (
        "RECAP_ROWS",
        "argument",
        "default",
    )
    assert origins.keys() == {row.name for row in setting_rows()}


def test_a_bad_value_names_where_it_stands(tmp_path: Path) -> None:
    toml = tmp_path / "recap.toml"
    toml.write_text("smoothing = 7\n")
    with pytest.raises(SettingsError, match=r"recap\.toml: smoothing must be"):
        load_settings({}, toml, {})
    with pytest.raises(SettingsError, match=r"^RECAP_ROWS: rows must be"):
        load_settings({}, None, {"RECAP_ROWS": "many"})
    with pytest.raises(SettingsError, match=r"^rows must be"):
        load_settings({"rows": "many"}, None, {})


def test_a_bad_value_is_an_error_even_where_a_better_source_covers_it(tmp_path: Path) -> None:
    toml = tmp_path / "recap.toml"
    toml.write_text("rows = 0\n")
    with pytest.raises(SettingsError, match="rows must be"):
        load_settings({"rows": 8}, toml, {})


@pytest.mark.parametrize("text", [b"retention = ", b"\xff\xfe", b"[a\n", b"a=" + b"[" * 9999])
def test_a_broken_file_is_one_clear_line(tmp_path: Path, text: bytes) -> None:
    toml = tmp_path / "recap.toml"
    toml.write_bytes(text)
    with pytest.raises(SettingsError, match="no valid TOML") as caught:
        load_settings({}, toml, {})
    assert "\n" not in str(caught.value)


def test_a_file_with_a_byte_order_mark_is_read(tmp_path: Path) -> None:
    toml = tmp_path / "recap.toml"
    toml.write_bytes(b"\xef\xbb\xbfrows = 3\n")
    assert load_settings({}, toml, {})[0].rows == 3


def test_a_named_file_that_is_missing_is_an_error(tmp_path: Path) -> None:
    toml = find_toml({"RECAP_CONFIG": str(tmp_path / "gone.toml")}, tmp_path)
    with pytest.raises(SettingsError, match=r"cannot read .*gone\.toml"):
        load_settings({}, toml, {})


def test_the_folders_file_is_found_before_the_users(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home, folder = tmp_path / "home", tmp_path / "project"
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home))
    (home / "recap").mkdir(parents=True)
    folder.mkdir()
    assert find_toml({}, folder) is None
    (home / "recap" / "recap.toml").touch()
    assert find_toml({}, folder) == home / "recap" / "recap.toml"
    (folder / "recap.toml").touch()
    assert find_toml({}, folder) == folder / "recap.toml"
    assert find_toml({"RECAP_CONFIG": "other.toml"}, folder) != folder / "recap.toml"


def test_misspelt_variables_are_named() -> None:
    environ = {"RECAP_RETENTON": "1", "RECAP_RETENTION": "1", "RECAP_DEBUG": "1", "PATH": ""}
    assert unknown_variables(environ) == ["RECAP_RETENTON"]


def test_the_table_of_prices_holds_no_settings(tmp_path: Path) -> None:
    toml = tmp_path / "recap.toml"
    toml.write_text('rows = 3\n[prices."my-*"]\ninput = 1.5\n')
    assert load_settings({}, toml, {})[0].rows == 3
    assert read_prices(toml) == {"my-*": {"input": 1.5}}
    assert read_prices(None) == {}


def test_prices_that_are_no_table_are_an_error(tmp_path: Path) -> None:
    toml = tmp_path / "recap.toml"
    toml.write_text("prices = 3\n")
    with pytest.raises(SettingsError, match="prices must be a table"):
        read_prices(toml)


def test_a_mode_is_one_of_four() -> None:
    assert [Settings(mode=mode).mode for mode in MODES] == ["observe", "turn", "epoch", "off"]
    with pytest.raises(SettingsError, match="mode must be one of observe, turn, epoch, off"):
        Settings(mode="always")
