"""``recap doctor``: what is installed, which paths are active, what is wrong.

Always prints: it imports the standard library only, and asks metadata instead of importing packages
that may be broken or slow.
"""

from __future__ import annotations

import os
import platform
import sys
from contextlib import suppress
from dataclasses import dataclass
from importlib import metadata, util
from pathlib import Path
from typing import TYPE_CHECKING

import click

import recap
from recap.cli.command import Command
from recap.cli.config import demand_policy
from recap.cli.options import json_option, settings_in_force
from recap.cli.output import Element, Line, byte_size, counted, say, say_json
from recap.cmv.locations import LOCATIONS, location_root, session_files

if TYPE_CHECKING:
    from collections.abc import Mapping

SCHEMA = "recap.doctor/1"
DISTRIBUTION = "recap-context"
STRANGER = "recap"
"""A distribution of that name on PyPI is unrelated and installs the same import name."""

REQUIRED = ("numpy", "msgspec", "click", "rich", "platformdirs")
SECTIONS = ("recap", "python", "packages", "observers", "settings", "homes", "store", "sglang")
OPTIONAL = ("torch", "triton", "transformers", "safetensors", "gguf", "aiohttp")


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """Everything the report says, as plain values; ``problems`` are what has to be done."""

    recap: Mapping[str, str]
    python: Mapping[str, str]
    packages: Mapping[str, str]
    observers: Mapping[str, str]
    settings: Mapping[str, str]
    homes: Mapping[str, str]
    store: Mapping[str, str]
    sglang: Mapping[str, str]
    problems: tuple[str, ...]


@click.command("doctor", cls=Command, example="recap doctor --json")
@json_option
def command(as_json: bool) -> None:
    """Report which Recap runs, on what, with which settings; exit 1 when something is wrong."""
    diagnosis = diagnose(os.environ, Path.home())
    if as_json:
        names = (*SECTIONS, "problems")
        say_json(SCHEMA, {name: _plain(getattr(diagnosis, name)) for name in names})
    else:
        say(*lines(diagnosis))
    if diagnosis.problems:
        raise click.exceptions.Exit(1)


def diagnose(environ: Mapping[str, str], home: Path) -> Diagnosis:
    """Look at the installation; raises nothing."""
    packages = {name: version_of(name) for name in (*REQUIRED, *OPTIONAL)}
    problems = [
        f"package {name} is missing: pip install {DISTRIBUTION}"
        for name in REQUIRED
        if not packages[name]
    ]
    if version_of(STRANGER):
        problems.append(
            f"the unrelated package {STRANGER!r} {version_of(STRANGER)} is installed and shares "
            f"the import name: pip uninstall {STRANGER}, then pip install --force-reinstall "
            f"{DISTRIBUTION}"
        )
    settings, trouble = _settings(environ)
    store, faults = _store(environ)
    proxy, missing = _proxy(environ)
    sglang, conflicts = _sglang(environ)
    return Diagnosis(
        recap={
            "version": recap.__version__,
            "imported_from": str(Path(recap.__file__ or "").parent),
            "distribution": f"{DISTRIBUTION} {version_of(DISTRIBUTION) or 'not installed'}",
        },
        python={"version": platform.python_version(), "executable": sys.executable},
        packages={name: version or "not installed" for name, version in packages.items()},
        observers={
            "reuse": "active: no model needed",
            "proxy": proxy,
            "engine": f"in an SGLang server; SGLang {sglang['version']}",
        },
        settings=settings,
        homes=_homes(environ, home),
        store=store,
        sglang=sglang,
        problems=(*problems, *trouble, *faults, *missing, *conflicts),
    )


def version_of(distribution: str) -> str:
    """Return the version of an installed distribution, without importing it; "" if absent."""
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return "unknown" if _is_importable(distribution) else ""


def lines(diagnosis: Diagnosis) -> list[Element]:
    """Return the report in lines."""
    shown: list[Element] = []
    for section in SECTIONS:
        shown.append(Line(section, "strong"))
        values: Mapping[str, str] = getattr(diagnosis, section)
        shown += [f"  {name.replace('_', ' '):16}{value}" for name, value in values.items()]
    shown += [Line(f"problem: {problem}", "bad") for problem in diagnosis.problems]
    if not diagnosis.problems:
        shown.append(Line("nothing is wrong", "good"))
    return shown


def _is_importable(name: str) -> bool:
    if name in (DISTRIBUTION, STRANGER):  # our own import name says nothing about either
        return False
    try:
        return util.find_spec(name) is not None
    except (ImportError, ValueError):
        return False


def _settings(environ: Mapping[str, str]) -> tuple[dict[str, str], list[str]]:
    """Return what differs from the defaults with its origin, and what is wrong with it."""
    from recap.config import find_toml, unknown_variables
    from recap.errors import SettingsError

    try:
        settings, origins = settings_in_force({})
        found = find_toml(environ, Path.cwd())
        with suppress(ImportError):  # what is missing is told already
            demand_policy(settings, origins)
    except SettingsError as err:
        return {}, [str(err)]
    changed = {
        name: f"{getattr(settings, name)} (from {origin})"
        for name, origin in origins.items()
        if origin != "default"
    }
    return (
        {"file": str(found) if found else "none", **(changed or {"values": "all defaults"})},
        [f"environment variable {name} means nothing" for name in unknown_variables(environ)],
    )


def _proxy(environ: Mapping[str, str]) -> tuple[str, list[str]]:
    """Return whether the observer proxy can run; where it is switched on and cannot, a problem."""
    from recap.capture.models import resolve
    from recap.errors import RecapError

    try:
        settings, _ = settings_in_force({})
        setting, is_wanted = settings.proxy_model, settings.observer == "proxy"
    except RecapError:  # told already
        setting, is_wanted = "", False
    try:
        return f"ready: {resolve(setting, environ)}", []
    except RecapError as err:
        return f"off: {err}", [str(err)] if is_wanted else []
    except ImportError:  # told already
        return "off", []


def _homes(environ: Mapping[str, str], home: Path) -> dict[str, str]:
    counts = {
        location: sum(1 for _ in session_files(location, home, environ)) for location in LOCATIONS
    }
    return {
        location.agent: f"{location_root(location, home, environ)} ({counted(count, 'session')})"
        for location, count in counts.items()
    }


def _store(environ: Mapping[str, str]) -> tuple[dict[str, str], list[str]]:
    """Return where the store is and how large, and what its files show to be wrong with it."""
    try:
        from recap.store.files import Place, store_folder
        from recap.store.opening import has_remains

        place = Place(store_folder(None, environ))
    except ImportError:  # told already
        return {}, []
    if not place.database.exists():
        if has_remains(place):
            lost = (
                f"{place.database} is gone but copies of it are there; run: recap verify --repair"
            )
            return {"folder": str(place.folder)}, [lost]
        return {"folder": f"{place.folder} (none yet)"}, []
    try:
        size = place.database.stat().st_size
        with place.database.open("rb") as stream:
            is_ours = stream.read(16) == b"SQLite format 3\0"
    except OSError as err:
        return {"folder": str(place.folder)}, [f"{place.database}: {err.strerror}"]
    trouble = [] if is_ours else [f"{place.database} is damaged; run: recap verify --repair"]
    return {"folder": str(place.folder), "size": byte_size(size)}, trouble


def _sglang(environ: Mapping[str, str]) -> tuple[dict[str, str], list[str]]:
    """Return what the SGLang beside us offers, and what keeps Recap out of it."""
    try:
        from recap.sglang.report import report
    except ImportError:  # told already
        return {"version": version_of("sglang") or "not installed"}, []
    return report(environ)


def _plain(values: Mapping[str, str] | tuple[str, ...]) -> dict[str, str] | list[str]:
    return list(values) if isinstance(values, tuple) else dict(values)
