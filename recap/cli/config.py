"""``recap config``: settings in force, their bounds, and where each value comes from."""

from __future__ import annotations

from dataclasses import fields
from math import isinf
from typing import TYPE_CHECKING

import click

from recap.cli.command import Command
from recap.cli.options import json_option, prices_in_force, settings_in_force, settings_options
from recap.cli.output import Column, Row, Table, say, say_json, say_source
from recap.errors import SettingsError, UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from recap.config import Settings

SCHEMA = "recap.config/1"


@click.command("config", cls=Command, example="recap config --toml > recap.toml")
@settings_options
@click.option("--toml", "as_toml", is_flag=True, help="Print a settings file to start from.")
@json_option
def command(overrides: Mapping[str, object], as_toml: bool, as_json: bool) -> None:
    """Show every setting: value, origin, the paper's symbol, what is allowed, what it does.

    A value comes from the first of: option, environment (RECAP_NAME), recap.toml, default.
    """
    from recap.config import setting_rows

    settings, origins = settings_in_force(overrides)
    demand_policy(settings, origins)
    prices_in_force()  # a table that compact would refuse is told here
    if as_toml:
        say_source(toml_template(settings))
    elif as_json:
        say_json(
            SCHEMA,
            {
                "settings": [
                    {
                        **row._asdict(),
                        "value": getattr(settings, row.name),
                        "origin": origins[row.name],
                    }
                    for row in setting_rows()
                ]
            },
        )
    else:
        say(_table(settings, origins))


def demand_policy(settings: Settings, origins: Mapping[str, str]) -> None:
    """Raise SettingsError when the policy in force is none, and say where it comes from."""
    from recap.select.policies import recipe_of

    try:
        recipe_of(settings.policy)
    except UsageError as err:
        origin = origins["policy"]
        raise SettingsError(str(err) if origin == "argument" else f"{origin}: {err}") from None


def toml_template(settings: Settings) -> str:
    """Return a settings file: values in force, each under what it does; unset ones commented."""
    from recap.config import setting_rows

    lines = ["# Settings of Recap. Options and RECAP_NAME variables win over this file."]
    for row in setting_rows():
        symbol = f" ({row.symbol})" if row.symbol else ""
        value = getattr(settings, row.name)
        lines += ["", f"# {row.help}{symbol}; {row.allowed}, default {row.default}"]
        lines.append(f"{row.name} = {_toml_value(value)}")
    return "\n".join(lines)


def _toml_value(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if value is None:
        return '"none"'
    return repr(value) if isinstance(value, int | float) else f'"{value}"'


def _text(value: object) -> str:
    return _toml_value(value).strip('"')


def _interval(settings: Settings, name: str) -> str:
    """Return what is allowed, short: "(0, 1]", "[0, ..)", or the choices."""
    metadata = next(field.metadata for field in fields(settings) if field.name == name)
    if metadata["choices"]:
        return ", ".join(metadata["choices"])
    bounds = metadata["bounds"]
    if bounds is None:
        return ""
    low = f"{'(' if bounds.is_low_open else '['}{bounds.low:g}"
    return f"{low}, ..)" if isinf(bounds.high) else f"{low}, {bounds.high:g}]"


def _table(settings: Settings, origins: Mapping[str, str]) -> Table:
    from recap.config import setting_rows

    return Table(
        (
            Column("setting"),
            Column("value", "right"),
            Column("from"),
            Column("symbol", is_optional=True),
            Column("allowed", is_optional=True),
            Column("what it does", is_flexible=True),
        ),
        tuple(
            Row(
                (
                    row.name,
                    _text(getattr(settings, row.name)),
                    origins[row.name],
                    row.symbol,
                    _interval(settings, row.name),
                    row.help,
                ),
                "" if origins[row.name] == "default" else "good",
            )
            for row in setting_rows()
        ),
    )
