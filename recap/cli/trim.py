"""``recap trim``: a session without its dead weight, every word of the conversation kept."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from recap.cli.command import Command
from recap.cli.forking import fork_session
from recap.cli.options import Session, json_option, session_path, source_of
from recap.cli.output import (
    Element,
    Line,
    byte_size,
    counted,
    number,
    percent,
    say,
    say_json,
    working,
)
from recap.cli.state import State, state_options
from recap.cli.versions import tell_drastic
from recap.cli.writing import refuse_inputs
from recap.errors import UsageError, shown

if TYPE_CHECKING:
    from collections.abc import Callable

    from recap.cmv.branch import Wish
    from recap.cmv.options import TrimOptions
    from recap.cmv.report import TrimReport

SCHEMA = "recap.trim/1"

DONE = {
    "results_stubbed": ("result", "became stubs"),
    "images_stubbed": ("image", "became stubs"),
    "inputs_stubbed": ("request payload", "became stubs"),
    "local_outputs_stubbed": ("local output", "became stubs"),
    "attachments_stubbed": ("attachment", "shortened"),
    "errors_kept": ("long error", "kept"),
    "thinking_removed": ("thinking block", "removed"),
    "tool_use_results_removed": ("duplicate result", "removed"),
    "pre_boundary_lines": ("line", "from before the last compaction left out"),
    "inactive_lines": ("line", "beside the conversation left out"),
    "orphans_dropped": ("result", "without a call removed"),
    "odd_lines_dropped": ("line", "that the client cannot load removed"),
    "odd_blocks_dropped": ("block", "that the client cannot load removed"),
    "unreadable_lines": ("line", "that cannot be read kept"),
    "open_calls": ("call", "without a result kept"),
}
"""What the report names, where there is any of it."""


def trim_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of a trim; the command gets ``options: TrimOptions``."""

    @click.option(
        "--threshold", metavar="N", help="Characters above which a result is stubbed, 500."
    )
    @click.option("--keep-last", metavar="N", help="Newest entries left as they are, 20.")
    @click.option("--stub-requests", is_flag=True, help="Stub what writing tools were to write.")
    @click.option("--stub-errors", is_flag=True, help="Shorten long errors.")
    @click.option("--stub-local-output", is_flag=True, help="Stub output of your own commands.")
    @click.option("--strip-user-images", is_flag=True, help="Stub images you pasted.")
    @click.option("--keep-thinking", is_flag=True, help="Keep the thinking of finished turns.")
    @click.option("--drop-inactive", is_flag=True, help="Leave out rewound turns and side chains.")
    @click.option("--tool", "tools", multiple=True, metavar="NAME=RULE", help="keep, stub or N.")
    @click.option(
        "--profile",
        type=click.Choice(("default", "paper")),
        default="default",
        metavar="NAME",
        help="default, or paper: as the published tool trims, for comparison.",
    )
    @click.option("--yes", is_flag=True, help="Go on where more than 95 % would go.")
    @functools.wraps(function)
    def wrapped(**given: Any) -> Any:
        names = (
            "threshold", "keep_last", "stub_requests", "stub_errors", "stub_local_output",
            "strip_user_images", "keep_thinking", "drop_inactive", "tools", "profile", "yes",
        )  # fmt: skip
        options = options_of(**{name: given.pop(name) for name in names})
        return function(options=options, **given)

    return wrapped


def options_of(
    *,
    threshold: str | None,
    keep_last: str | None,
    stub_requests: bool,
    tools: tuple[str, ...],
    profile: str,
    **flags: Any,
) -> TrimOptions:
    """Return the options that an invocation states; UsageError for one out of its range."""
    from recap.cmv.options import LEAST_THRESHOLD, PAPER, TrimOptions, tool_rule, whole_number

    base = PAPER if profile == "paper" else TrimOptions()
    least = LEAST_THRESHOLD
    return TrimOptions(
        threshold=base.threshold
        if threshold is None
        else whole_number("threshold", threshold, least),
        keep_last=base.keep_last if keep_last is None else whole_number("keep-last", keep_last, 0),
        requests="writes" if stub_requests else base.requests,
        tools=dict(map(tool_rule, tools)),
        **flags,
    )


@click.command("trim", cls=Command, example="recap trim --latest\nrecap trim s.jsonl -o out.jsonl")
@click.argument("session", required=False)
@click.option("--latest", is_flag=True, help="Take the newest session found.")
@click.option("-o", "--out", metavar="OUT", help="Write this file, keep nothing in the store.")
@click.option("-n", "name", metavar="NAME", help="Name of the snapshot; trim_DATE_TIME if absent.")
@click.option("--launch", "is_launched", is_flag=True, help="Start the agent on the branch.")
@click.option("--target", metavar="SHARE", help="Stub by importance until this share is gone.")
@click.option("--graph", "graph_file", metavar="FILE", help="Graph written by observe.")
@click.option("--dry-run", is_flag=True, help="Say what would be done, write nothing.")
@trim_options
@state_options
@json_option
def command(
    session: str | None, latest: bool, out: str | None, dry_run: bool, as_json: bool, **given: Any
) -> None:
    """Trim a Claude Code session: keep a snapshot of it and make a trimmed branch to go on with.

    With -o the trimmed copy is that file, and nothing is kept.

    Texts of the conversation and tool requests stay word for word. Long results become stubs that say
    what was there and how to get it back; thinking of finished turns, usage, progress and copies of
    results go. The session itself is never changed.

    With --target results go in the order of their importance in the context graph per character, and
    only until that share of the context is gone.
    """
    name, is_launched = given.pop("name"), given.pop("is_launched")
    path = session_path(session, latest)
    if out is None and not dry_run:
        if path is None:
            raise UsageError("standard input has no place for a branch: give -o OUT, or --dry-run")
        wish = _wish(path, **given)
        fork_session(
            path, name, wish, given["state"],
            schema=SCHEMA, is_launched=is_launched, as_json=as_json,
        )  # fmt: skip
        return
    if name is not None or is_launched:
        raise UsageError("-n and --launch go with a branch: leave -o and --dry-run out")
    if out is not None:
        refuse_inputs(Path(out), {"the session": path})
    report = _trimmed(path, None if dry_run or out is None else Path(out), **given)
    if dry_run:
        tell_drastic(report, given["options"])
    if as_json:
        say_json(SCHEMA, {"written": not dry_run, "out": out, **report.to_json()})
    else:
        say(*_lines(report, out, dry_run))


def _trimmed(
    path: Path | None,
    out: Path | None,
    options: TrimOptions,
    target: str | None,
    graph_file: str | None,
    state: State,
) -> TrimReport:
    from recap.cmv.trim import trim

    importance, share = _aim(path, target, graph_file, state)
    with working(f"trimming {path or 'standard input'}"):
        source = path if path is not None else source_of(None)
        return trim(source, out, options, importance=importance, target=share)


def _wish(
    path: Path, options: TrimOptions, target: str | None, graph_file: str | None, state: State
) -> Wish:
    from recap.cmv.branch import Wish

    importance, share = _aim(path, target, graph_file, state)
    return Wish(trim=options, importance=importance, target=share)


def _aim(
    path: Path | None, target: str | None, graph_file: str | None, state: State
) -> tuple[dict[str, float] | None, float | None]:
    """Return the importance of blocks and the share that is to go; neither without a target."""
    if target is None:
        if graph_file is not None:
            raise UsageError("--graph goes with --target: without it every long result is stubbed")
        return None, None
    return _importance(path, graph_file, state), _share(target)


def _share(text: str) -> float:
    try:
        share = float(text)
    except ValueError:
        share = 0.0
    if not 0 < share < 1:
        raise UsageError(f"target takes a share above 0 and below 1; got {shown(text)}")
    return share


def _importance(path: Path | None, graph_file: str | None, state: State) -> dict[str, float]:
    """Return the effective importance of each block, by the graph given or the session's own."""
    from recap.cli.graph import graph_of
    from recap.cli.options import settings_in_force
    from recap.graph.effective import effective_importance

    if path is None:
        raise UsageError("--target reads the session twice; give a file instead of -")
    given = Path(graph_file) if graph_file is not None else None
    settings, _ = settings_in_force({})
    return effective_importance(graph_of(Session(path, None), settings, state, given).graph)


def _lines(report: TrimReport, out: str | None, dry_run: bool) -> list[Element]:
    before, after = report.active_chars_before, report.active_chars_after
    counts = report.counts
    wrote = (
        f"would be {byte_size(report.bytes_out)}"
        if dry_run
        else f"{byte_size(report.bytes_out)} in {out}"
    )
    return [
        Line(
            f"{percent(report.reduction)} less to send: {number(before)} -> {counted(after, 'character')}",
            "strong",
        ),
        f"file     {byte_size(report.bytes_in)} -> {wrote}, {percent(report.file_reduction)} less",
        f"kept     {counted(counts['user_texts'], 'user text')}, "
        f"{counted(counts['assistant_texts'], 'assistant text')}, "
        f"{counted(counts['tool_requests'], 'tool request')}: all of them",
        *(
            f"  {counted(counts[name], noun)} {what}"
            for name, (noun, what) in DONE.items()
            if counts.get(name)
        ),
    ]
