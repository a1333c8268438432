"""Options that commands share, and what they resolve to: a session, a request, settings."""

from __future__ import annotations

import functools
import os
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from recap.cli.output import preview, remark, working
from recap.cli.state import NO_STATE, State, state_options
from recap.cmv.locations import find_session, newest_session
from recap.errors import InputError, SettingsError, UsageError, shown, shown_path
from recap.files import read_file

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from recap.config import Settings
    from recap.economics import Prices
    from recap.graph.state import ContextGraph
    from recap.session import Compaction
    from recap.transcript.model import Transcript
    from recap.transcript.sources import Sized

STDIN = "-"
STDIN_NAME = "standard input"
REQUEST_PREVIEW = 90


@dataclass(frozen=True, slots=True)
class Session:
    """The session an invocation names.

    Attributes:
        path: Its file; None for standard input.
        format: Format given by the user, None to detect it.
    """

    path: Path | None
    format: str | None

    @property
    def name(self) -> str:
        """What to call it in messages."""
        return str(self.path) if self.path else STDIN_NAME

    def read(self) -> Transcript:
        """Read it; a reader's error names what was tried."""
        from recap.transcript.formats import read_source

        with working(f"reading {self.name}"):
            return read_source(source_of(self.path), self.format)


@dataclass(frozen=True, slots=True)
class Wanted:
    """What an invocation asks of the selection.

    Attributes:
        request: Text of the arriving request; None takes the last one of the session.
        settings: In force for it.
        pins: Block ids to keep.
        graph_file: A graph written by ``observe``; None builds one.
        request_file: File the request was read from, if any; "-" is standard input.
        selection: An earlier selection to show again instead of making one.
        state: Where what is known of the session stands.
    """

    request: str | None
    settings: Settings
    pins: tuple[str, ...]
    graph_file: Path | None
    request_file: str | None = None
    selection: str | None = None
    state: State = NO_STATE

    @property
    def inputs(self) -> dict[str, Path | None]:
        """The files it reads besides the session, by what they are; None is standard input."""
        read: dict[str, Path | None] = {"the graph": self.graph_file} if self.graph_file else {}
        if self.request_file:
            name = self.request_file
            read["the request file"] = None if name == STDIN else Path(name)
        return read | self.state.inputs

    @property
    def asked(self) -> str:
        """The request in one line."""
        if self.request:
            return preview(self.request, REQUEST_PREVIEW)
        if self.selection is not None:
            return "the one that selection was made for"
        return "the last one of the session"

    def compact(
        self,
        transcript: Transcript,
        *,
        label: str = "",
        to: str | None = None,
        alternate: bool = False,
        keep: bool = False,
    ) -> tuple[Compaction, float]:
        """Return the compaction and the seconds it took.

        Args:
            transcript: The session.
            label: What people know it by.
            to: Dialect of the result.
            alternate: Join adjacent messages of one role.
            keep: Keep what was learned and what the turn was given.
        """
        if not transcript.messages:
            from recap.transcript.doubt import OTHER_FORMAT

            demand_content(transcript.format, label or "the session")

            doubts = (each.detail for each in transcript.findings if each.code == OTHER_FORMAT)
            why = next(doubts, "`recap inspect` says what is in the file")
            raise InputError(
                f"no message was read as {transcript.format}: {why}; --format names another format"
            )
        graph = read_graph(self.graph_file) if self.graph_file else None
        settings = self.settings
        if settings.mode != "epoch":  # it was asked for, whatever the mode of a gateway
            settings = settings.replace(mode="turn")
        prices = prices_in_force()
        opened = self.state.session(transcript, label, settings, keep=keep, prices=prices)
        with working("selecting"), opened as session:
            started = time.perf_counter()
            if self.selection is not None:
                compaction = session.compact_as(
                    self.selection, transcript, self.request, to=to, alternate=alternate,  # type: ignore[arg-type]
                )  # fmt: skip
            else:
                compaction = session.compact(
                    transcript,
                    self.request,
                    pins=self.pins,
                    graph=graph,
                    to=to,  # type: ignore[arg-type]  # click.Choice checked it
                    alternate=alternate,
                    is_cold=True,
                    keep=keep,
                )
            seconds = time.perf_counter() - started
        return compaction, seconds


def session_options(
    *, is_needed: bool = True
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return what adds SESSION, --latest and --format; the command gets ``session``.

    It is a ``Session``; where none is needed and none was given, None.
    """

    def added(function: Callable[..., Any]) -> Callable[..., Any]:
        @click.argument("session", required=False)
        @source_options
        @functools.wraps(function)
        def wrapped(
            session: str | None, latest: bool, format_name: str | None, **given: Any
        ) -> Any:
            if session is None and not latest and not is_needed:
                return function(session=None, **given)
            named = Session(session_path(session, latest), format_name)
            return function(session=named, **given)

        return wrapped

    return added


def source_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add --latest and --format; the command gets ``latest`` and ``format_name``."""
    latest = click.option("--latest", is_flag=True, help="Take the newest session of any agent.")
    named = click.option(
        "--format", "format_name", metavar="NAME", help="Format; detected by default."
    )
    return latest(named(function))


def session_path(
    name: str | None, latest: bool, option: str = "SESSION (a file, an id, - for standard input)"
) -> Path | None:
    """Return the file an invocation names, None for standard input.

    Args:
        name: What was given: a file, a client's id of a session or the beginning of one, or ``-``.
        latest: Whether the newest session is asked for.
        option: What ``name`` is called in messages.

    Raises:
        UsageError: Both are given, or neither.
        InputError: There is no such session, or there are several.
    """
    if (name is None) != latest:
        raise click.UsageError(f"give one of {option} and --latest", click.get_current_context())
    if name is None:
        newest = newest_session(Path.home(), os.environ, Path.cwd())
        remark(f"--latest takes {newest.path} ({newest.agent})")
        return newest.path
    return None if name == STDIN else session_file(name)


def session_file(name: str) -> Path:
    """Return the session that a file, a client's id or the beginning of one names."""
    return find_session(name, Path.home(), os.environ)


def selection_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of a selection; the command gets ``wanted: Wanted``."""

    @click.option("--request", metavar="TEXT", help="The arriving request; the last one if absent.")
    @click.option("--request-file", metavar="FILE", help="Read the request from a file (- stdin).")
    @click.option("--retention", metavar="SHARE", help="Share of the history to keep, 0.1.")
    @click.option("--policy", metavar="NAME", help="Recipe that selects blocks.")
    @click.option("--pin", "pins", multiple=True, metavar="ID", help="Keep this block; repeatable.")
    @click.option("--graph", "graph_file", metavar="FILE", help="Graph written by observe.")
    @click.option("--no-markers", is_flag=True, help="Leave no mark where blocks were omitted.")
    @click.option(
        "--selection", metavar="REF", help="An earlier selection again; -1 is the newest."
    )
    @state_options
    @settings_options
    @functools.wraps(function)
    def wrapped(**given: Any) -> Any:
        if given["request_file"] == STDIN and given["session"].path is None:
            raise UsageError("only one of session and request can come from standard input")
        named = {
            "retention": given.pop("retention"),
            "policy": given.pop("policy"),
            "markers": False if given.pop("no_markers") else None,
        }
        graph_file, request_file = given.pop("graph_file"), given.pop("request_file")
        wanted = Wanted(
            _request_text(given.pop("request"), request_file),
            settings_in_force(merged(given.pop("overrides"), named))[0],
            given.pop("pins"),
            Path(graph_file) if graph_file else None,
            request_file,
            given.pop("selection"),
            given.pop("state"),
        )
        shaping = [name for name in ("retention", "policy") if named[name] is not None]
        if wanted.selection is not None and (wanted.graph_file or wanted.pins or shaping):
            raise UsageError(
                "--selection shows what was kept; it takes no --retention, --policy, --pin or --graph"
            )
        return function(wanted=wanted, **given)

    return wrapped


def settings_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add --set and --observer; the command gets ``overrides``, checked when they are used."""

    @click.option("--observer", metavar="NAME", help="What measures which blocks a turn used.")
    @click.option("--set", "pairs", multiple=True, metavar="KEY=VALUE", help="Set; see config.")
    @functools.wraps(function)
    def wrapped(observer: str | None, pairs: tuple[str, ...], **given: Any) -> Any:
        overrides: dict[str, object] = {}
        for pair in pairs:
            key, equals, value = pair.partition("=")
            if not equals or not key.strip():
                raise UsageError(f"--set takes KEY=VALUE; got {shown(pair)}")
            overrides = merged(overrides, {key.strip(): value.strip()})
        return function(overrides=merged(overrides, {"observer": observer}), **given)

    return wrapped


def json_option(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add --json; the command gets ``as_json``."""
    return click.option("--json", "as_json", is_flag=True, help="Print JSON instead.")(function)


def settings_in_force(overrides: Mapping[str, object]) -> tuple[Settings, dict[str, str]]:
    """Return the settings and where each comes from: option, environment, file or default."""
    from recap.config import find_toml, load_settings

    return load_settings(overrides, find_toml(os.environ, Path.cwd()), os.environ)


def prices_in_force() -> Mapping[str, Prices]:
    """Return the prices of models, those of the settings file before the ones Recap knows."""
    from recap.config import find_toml, read_prices
    from recap.economics import price_table

    toml = find_toml(os.environ, Path.cwd())
    try:
        return price_table(read_prices(toml))
    except SettingsError as err:
        where = "" if toml is None or str(err).startswith(shown_path(toml)) else shown_path(toml)
        raise SettingsError(f"{where}: {err}" if where else str(err)) from None


def read_graph(path: Path) -> ContextGraph:
    """Read a graph that ``recap observe`` wrote."""
    from recap.graph.codec import decode

    return decode(read_file(path))


def read_stdin() -> bytes:
    """Return all of standard input; InputError when it is closed."""
    if sys.stdin is None:
        raise InputError("standard input is closed; name a file instead of -")
    return sys.stdin.buffer.read()


def source_of(path: Path | None) -> Sized:
    """Open a session, None for standard input."""
    from recap.transcript.sources import ByteSource, open_source

    if path is None:
        return ByteSource(read_stdin(), STDIN_NAME)
    return open_source(path)


def demand_content(format: str, name: str) -> None:
    """Raise InputError for a session of no bytes, or of white space alone.

    Args:
        format: What the session was recognised as.
        name: What it is called in the message.
    """
    from recap.transcript.formats import EMPTY

    if format == EMPTY:
        raise InputError(f"{shown_path(name)} is empty: no message was read from it")


def merged(overrides: Mapping[str, object], more: Mapping[str, object]) -> dict[str, object]:
    """Return both; UsageError when a setting is given twice. None is not given."""
    merged = dict(overrides)
    for name, value in more.items():
        if value is None:
            continue
        if name in merged:
            raise UsageError(f"setting {shown(name)} is given twice")
        merged[name] = value
    return merged


def _request_text(request: str | None, request_file: str | None) -> str | None:
    if request is not None and request_file is not None:
        raise UsageError("give one of --request and --request-file")
    if request_file is not None:
        request = _file_text(request_file)
    if request is not None and not request.strip():
        raise UsageError("the request is empty; leave --request out to take the session's last one")
    return request


def _file_text(name: str) -> str:
    data = read_stdin() if name == STDIN else read_file(Path(name))
    try:
        return data.decode("utf-8-sig").strip()
    except UnicodeDecodeError:
        raise InputError(f"the request in {shown_path(name)} is no UTF-8 text") from None
