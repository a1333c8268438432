"""``recap study``: how methods compare on real sessions."""

from __future__ import annotations

import os
import platform
from pathlib import Path
from tempfile import TemporaryFile
from typing import TYPE_CHECKING

import click

from recap import __version__
from recap.cli.command import CommandGroup
from recap.cli.doctor import version_of
from recap.cli.observe import MOST_JOBS
from recap.cli.options import json_option, settings_in_force, settings_options
from recap.cli.output import (
    Column,
    Element,
    Line,
    Row,
    Table,
    byte_size,
    counted,
    safe,
    say,
    say_json,
    working,
)
from recap.cli.writing import refuse_inputs, write_whole
from recap.errors import InputError, MethodError, UsageError, shown, shown_path

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from recap.config import Settings
    from recap.study.results import Cell, Results
    from recap.study.runs import Half
    from recap.transcript.model import Json

STDOUT = "-"
METHODS_SCHEMA = "recap.study.methods/1"
RETENTIONS = "0.01,0.02,0.05,0.1,0.2"
OWN_OPTIONS = {"retention": "--retention", "policy": "--policies"}
"""Settings that the study runs several values of."""

QUALITY = ("id_exec", "line_exec")
"""Measures with a difference and a headroom in the table; the others stand with their means."""


@click.group("study", cls=CommandGroup, example="recap study reuse --sessions ~/.claude/projects")
def command() -> None:
    """Compare methods that shorten a history, on real sessions."""


@command.command("methods", example="recap study methods")
@json_option
def methods_command(as_json: bool) -> None:
    """List the methods there are, their options, and what is missing to run them here.

    An option stands with its default: `--policies "litellm-compress:form=anthropic"`. A recipe takes
    any setting that `recap config` lists instead, as in `--policies "coverage:expansion=0"`.
    """
    from recap.study.catalogue import all_methods, told_options

    methods = all_methods()
    if as_json:
        rows: list[Json] = [
            {
                "name": method.name,
                "help": method.help,
                "missing": method.missing(),
                "options": [dict(option._asdict()) for option in told_options(method)],
            }
            for method in methods
        ]
        say_json(METHODS_SCHEMA, {"methods": rows})
        return
    for method in methods:
        missing = method.missing()
        say(Line(f"{method.name:22}{method.help}", "faint" if missing else ""))
        for name, default, words in told_options(method):
            say(Line(f"{'':22}{name}={default}: {words}", "faint"))
        if missing:
            say(Line(f"{'':22}missing: {missing}", "faint"))


@command.command(
    "reuse",
    example="recap study reuse --sessions ~/.claude/projects --html study.html\n"
    "recap study reuse --sessions logs --policies coverage,paper --half all --json study.json",
)
@click.option(
    "--sessions", "places", metavar="DIR", multiple=True, required=True,
    help="Folder of sessions, or a session; repeatable.",
)  # fmt: skip
@click.option("--policies", metavar="A,B", help="Methods to run; all recipes if absent.")
@click.option("--retention", metavar="SHARES", default=RETENTIONS, help=f"{RETENTIONS} if absent.")
@click.option(
    "--half", type=click.Choice(("dev", "test", "all")), default="dev",
    help="Sessions to run: those to tune on (the default), those to judge by, or all.",
)  # fmt: skip
@click.option("--jobs", type=click.IntRange(1, MOST_JOBS), help="Processes; one a core if absent.")
@click.option(
    "--json", "json_file", metavar="[FILE]", is_flag=False, flag_value=STDOUT,
    help="Print JSON instead, or write it to a file.",
)  # fmt: skip
@click.option("--html", "html_file", metavar="FILE", help="Write a page with plots.")
@click.option("--rows", "rows_file", metavar="FILE", help="Write every row, as JSON Lines.")
@click.option("--judge", metavar="MODEL", help="Folder of a causal model that judges contexts.")
@click.option("--judge-cache", metavar="DIR", help="Folder of its verdicts, to go on with a run.")
@settings_options
def reuse_command(
    places: tuple[str, ...],
    policies: str | None,
    retention: str,
    half: Half,
    jobs: int | None,
    overrides: Mapping[str, object],
    **files: str | None,
) -> None:
    """Does a method keep what the next turn needs?

    Each request of a session is taken as the moment to shorten the history, and what the following
    turn read and wrote again is looked up in what each method kept. All methods get the same
    protected blocks inside the same budget. Intervals are of 2,000 draws of sessions; differences
    are to recency, at the same transitions.

    A session belongs to the half that the md5 of its file's stem says. A file of a session that was
    seen already does not count, nor does what is no session. Where a file or folder cannot be read,
    the others are studied, and the exit status is 1.

    `recap study methods` lists what --policies takes. NAME:KEY=VALUE;KEY=VALUE is a recipe with
    settings of its own, or a foreign method with options.

    --judge asks a local model how well it foresees what the agent wrote next, given each context:
    the extra proxy is needed, and seconds for each; `recap proxy install --full` brings a model.
    """
    from recap.study.catalogue import chosen
    from recap.study.files import listed
    from recap.study.runs import Plan, run
    from recap.study.summary import results_of

    settings = _settings(overrides)
    names = chosen(_policies(policies))
    judge, cache = files.pop("judge") or "", files.pop("judge_cache") or ""
    if cache and not judge:
        raise UsageError("--judge-cache keeps what --judge says: give a model as well")
    if judge:
        _demand_judge(judge)
    plan = Plan(names, _retentions(retention), settings, half, judge, cache)
    found = listed(map(Path, places))
    outputs = {name: Path(file) for name, file in files.items() if file and file != STDOUT}
    _demand_writable(outputs, found.files)
    with working(f"reading {len(found.files)} files") as report:
        study = run(found.files, plan, jobs or os.cpu_count() or 1, report, found.closed)
        report("resampling")
        results = results_of(study, _where())
    from recap.study.results import row_lines, to_json, written

    texts = {
        "json_file": lambda: written(to_json(results)),
        "html_file": lambda: _page(results),
        "rows_file": lambda: row_lines(study),
    }
    made = [(target, texts[name]().encode()) for name, target in outputs.items()]
    for target, data in made:
        write_whole(target, data)
    if files["json_file"] == STDOUT:
        click.echo(written(to_json(results)), nl=False)
    else:
        say(*told(results))
        say(*(f"written to {safe(str(target))}" for target in outputs.values()))
    if failed := [one.name for one in study.unread if one.is_failure]:
        raise InputError(
            f"{counted(len(failed), 'file or folder', 'files or folders')} could not be read, "
            f"{shown_path(failed[0])} among them: this is a study of the others"
        )


def _policies(text: str | None) -> list[str]:
    """Return the names given, none where the option was left out."""
    names = [name.strip() for name in (text or "").split(",") if name.strip()]
    if text is not None and not names:
        raise UsageError("--policies names no method; `recap study methods` lists them")
    return names


def _demand_judge(folder: str) -> None:
    """Say what is missing for the judge before the work begins."""
    from recap.capture.models import PACKAGES_COMMAND, missing_packages

    if not (Path(folder) / "config.json").is_file():
        raise InputError(
            f"{shown_path(folder)} holds no model: give the folder that "
            "`recap proxy install --full` names, or another causal model's"
        )
    if missing := missing_packages():
        raise MethodError(
            f"--judge needs {' and '.join(missing)}, not installed here: {PACKAGES_COMMAND}"
        )


def _where() -> dict[str, str]:
    """Return the computer and the versions in use."""
    return {
        "recap": __version__,
        "python": platform.python_version(),
        "numpy": version_of("numpy"),
        "platform": platform.platform(),
        "cores": str(os.cpu_count()),
    }


def _page(results: Results) -> str:
    from recap.study.page import page

    return page(results)


def _settings(overrides: Mapping[str, object]) -> Settings:
    """Return the settings the recipes run with; UsageError for what has an option of its own."""
    for name, option in OWN_OPTIONS.items():
        if name in overrides:
            raise UsageError(f"the study runs several: give {option}, not --set {name}=")
    settings, _ = settings_in_force(overrides)
    if settings.observer == "engine":
        raise UsageError("the study can observe by reuse or proxy; engine is a server's own model")
    if settings.observer == "proxy":
        from recap.capture.models import resolve

        resolve(settings.proxy_model, os.environ)  # says what is missing before the work begins
    return settings


def _retentions(text: str) -> tuple[str, ...]:
    """Return the retentions, ascending, each once, as text."""
    from recap.config import parse_retention

    given = [each.strip() for each in text.split(",") if each.strip()]
    if not given:
        raise UsageError(f"--retention takes shares such as {RETENTIONS}; got {shown(text)}")
    exact = {parse_retention(each): each for each in reversed(given)}
    return tuple(exact[share] for share in sorted(exact))


def _demand_writable(outputs: Mapping[str, Path], sessions: Mapping[str, Path]) -> None:
    """Raise UsageError now for what could not be written after minutes of work."""
    inputs: dict[str, Path | None] = {f"the session {n}": path for n, path in sessions.items()}
    for name, target in outputs.items():
        option = f"--{name.partition('_')[0]}"
        if target.is_dir() or not target.absolute().parent.is_dir():
            raise UsageError(f"{option} {shown_path(target)}: name a file in a folder that exists")
        try:
            refuse_inputs(target, inputs)
        except UsageError as err:
            what = str(err).rpartition(";")[0]
            raise UsageError(f"{what}; give {option} another file") from None
        _demand_folder(option, target.resolve())
    if len({target.resolve() for target in outputs.values()}) < len(outputs):
        raise UsageError("two results go to one file: give each a name of its own")


def _demand_folder(option: str, target: Path) -> None:
    """Raise UsageError where no file can be made beside a result that is no pipe or device."""
    if target.exists() and not target.is_file():
        return
    try:
        TemporaryFile(dir=target.parent).close()
    except OSError as err:
        folder = shown_path(target.parent)
        raise UsageError(f"{option}: no file can be made in {folder}: {err.strerror}") from err


def told(results: Results) -> list[Element]:
    """Return the tables: for each half the quality, then the costs, at one retention."""
    from recap.study.words import (
        HALF_NAMES,
        corpus_line,
        extent,
        share,
        shown_retention,
        unread_line,
    )

    retention = shown_retention(results.retentions)
    lines: list[Element] = [corpus_line(results)]
    if unread := unread_line(results):
        lines.append(Line(unread, "faint"))
    for half in results.halves:
        given = next(g for g in results.given if (g.half, g.retention) == (half, retention))
        cells = [cell for cell in results.cells if (cell.half, cell.retention) == (half, retention)]
        lines += [
            "",
            Line(
                f"{HALF_NAMES[half]}, retention {retention}: "
                f"{extent(given.transitions, given.sessions)}",
                "strong",
            ),
            f"protected blocks take {share(given.protected)} of the budget (median), and more than "
            f"all of it in {share(given.over)} of the transitions",
            _quality(results, cells),
            "",
            _costs(results, cells),
        ]
    lines += ["", f"{results.timings.seconds:.0f} s with {results.timings.jobs} processes"]
    return lines


def _quality(results: Results, cells: Sequence[Cell]) -> Table:
    from recap.study.words import NOTHING, closed, decimal, difference

    columns = [Column("method")]
    for measure in results.measures():
        columns.append(Column(measure, "right"))
        if measure in QUALITY or measure == "judge":
            columns += [Column(f"to {results.reference}", "right"), Column("closed", "right")]
    rows = []
    for cell in cells:
        row = [cell.method]
        for measure in results.measures():
            score = cell.scores.get(measure)
            row.append(decimal(score.level.mean) if score else NOTHING)
            if measure in QUALITY or measure == "judge":
                row.append(difference(score.difference if score else None))
                row.append(closed(score.headroom if score else None))
        rows.append(Row(tuple(row), "faint" if cell.method in results.oracles.values() else ""))
    return Table(tuple(columns), tuple(rows))


def _costs(results: Results, cells: Sequence[Cell]) -> Table:
    from recap.study.words import NOTHING, share

    latencies = {(each.method, each.retention): each for each in results.timings.latencies}
    columns = (
        Column("method"),
        Column("of budget", "right"),
        Column("tokens", "right"),
        Column("blocks kept", "right"),
        Column("revive", "right"),
        Column("blocks revived", "right"),
        Column("ms", "right"),
        Column("ms, 95 %", "right"),
        Column("kept between turns", "right"),
        Column("model calls", "right"),
        Column("tokens in, out", "right"),
    )
    rows = []
    for cell in cells:
        latency = latencies[cell.method, cell.retention]
        calls = f"{cell.model_calls:.1f}" if cell.model_calls else NOTHING
        tokens = f"{cell.input_tokens:,.0f}, {cell.output_tokens:,.0f}"
        rows.append(
            Row(
                (
                    cell.method,
                    share(cell.of_budget),
                    f"{cell.tokens:,.0f}",
                    f"{cell.kept_blocks:.0f} of {cell.blocks:.0f}",
                    share(cell.reviving),
                    f"{cell.revived_blocks:.1f}",
                    f"{latency.median_ms:.1f}",
                    f"{latency.p95_ms:.1f}",
                    byte_size(round(cell.memory_bytes)) if cell.memory_bytes else NOTHING,
                    calls,
                    tokens if cell.model_calls else NOTHING,
                ),
                "faint" if cell.method in results.oracles.values() else "",
            )
        )
    return Table(columns, tuple(rows))
