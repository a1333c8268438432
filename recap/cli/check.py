"""``recap check``: would the provider accept these messages, would the client resume this log?"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import click

from recap.cli.command import Command
from recap.cli.inspect import finding_lines
from recap.cli.options import json_option, session_path, source_of
from recap.cli.output import Line, counted, say, say_json, working
from recap.cli.repairing import repair_file
from recap.errors import UsageError
from recap.transcript.dialects import DIALECTS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from recap.transcript.model import Finding, Severity

SCHEMA = "recap.check/1"
LOG = "claude-code"
AUTO = "auto"
UNJUDGED = frozenset(
    (
        "codex",
        "copilot-cli",
        "gemini-cli",
        "pi",
        "swe-agent",
        "mini-swe-agent",
        "openhands",
        "aider",
    )
)
"""Sessions of clients whose loaders' rules are not known: what their reader found is shown."""


@click.command("check", cls=Command, example="recap check context.json --dialect anthropic")
@click.argument("session", required=False, metavar="FILE")
@click.option("--latest", is_flag=True, help="Check the newest session found.")
@click.option(
    "--dialect",
    type=click.Choice((AUTO, *DIALECTS, LOG)),
    default=AUTO,
    metavar="NAME",
    help=f"Whose rules hold: {', '.join((*DIALECTS, LOG))}; those that fit if absent.",
)
@click.option("--repair", "out", metavar="OUT", help="Write a repaired copy of FILE to OUT.")
@click.option("--dry-run", is_flag=True, help="With --repair: say what would be done.")
@json_option
def command(
    session: str | None, latest: bool, dialect: str, out: str | None, dry_run: bool, as_json: bool
) -> None:
    """Check a message list, a request body or a Claude Code log against its provider's rules.

    FILE is - for standard input. Findings name lines of a log, messages of a list. The exit status
    is 1 when one of them is an error: a provider would refuse it, or something would be lost.

    --repair writes a copy that the provider's client can use again, and what was taken out of it, raw,
    to OUT.quarantine. FILE is never changed. The status is then that of the copy.
    """
    from recap.transcript.check import finding_to_json

    path = session_path(session, latest)
    if out is not None:
        format = None if dialect == AUTO else dialect
        repair_file(path, Path(out), format, dry_run=dry_run, as_json=as_json)
        return
    if dry_run:
        raise UsageError("--dry-run goes with --repair: a check writes nothing")
    with working("checking"):
        findings, judged_as = findings_of(path, dialect)
    levels = Counter(finding.severity for finding in findings)
    if as_json:
        say_json(
            SCHEMA,
            {
                "dialect": judged_as,
                "errors": levels["error"],
                "warnings": levels["warning"],
                "findings": [finding_to_json(finding) for finding in findings],
            },
        )
    elif findings:
        unit = "message" if judged_as in DIALECTS else "line"
        say(*finding_lines(findings, unit), verdict(levels, judged_as))
    else:
        say(Line(f"valid as {judged_as}", "good"))
    if levels["error"]:
        raise click.exceptions.Exit(1)


def findings_of(path: Path | None, dialect: str) -> tuple[list[Finding], str]:
    """Return the findings of a file (None: standard input), and whose rules it was judged by."""
    from recap.transcript.check import check, check_source
    from recap.transcript.formats import EMPTY, read_source, recognise_source

    source = source_of(path)
    if dialect == AUTO and (format := recognise_source(source)[0]) in {*UNJUDGED, EMPTY}:
        return list(read_source(source).findings), f"{format} session"
    if dialect == LOG or (dialect == AUTO and is_log(source.read(0, source.size))):
        return check_source(source), LOG
    document = _document(source.read(0, source.size))
    judged_as = _dialect_of(document) if dialect == AUTO else dialect
    return check(document, judged_as), judged_as  # type: ignore[arg-type]  # one of the two


def is_log(data: bytes) -> bool:
    """Return True for lines of JSON objects; False for one document with a message list."""
    from recap.transcript.check import LIST_KEYS
    from recap.transcript.model import decode

    body = data.removeprefix(b"\xef\xbb\xbf").lstrip()
    first, _, _ = body.partition(b"\n")
    try:
        value = decode(first)
    except ValueError:
        return not body.startswith((b"[", b"{"))
    if isinstance(value, list):
        return False
    return not (isinstance(value, dict) and any(key in value for key in LIST_KEYS))


def verdict(levels: Mapping[Severity, int], judged_as: str) -> Line:
    """Return the last line of the report."""
    if levels["error"]:
        return Line(f"not valid as {judged_as}: {counted(levels['error'], 'error')}", "bad")
    return Line(f"valid as {judged_as}, with remarks", "good")


def _dialect_of(document: object) -> str:
    """Return whose rules fit a document, as ``check`` itself decides it."""
    from recap.transcript.check.dialect import detect
    from recap.transcript.items import list_in

    return detect(document if isinstance(document, dict) else {}, list_in(document) or ())


def _document(data: bytes) -> object:
    from recap.errors import InputError
    from recap.transcript.model import decode

    try:
        return decode(data.removeprefix(b"\xef\xbb\xbf"))
    except ValueError as err:
        raise InputError(
            f"this is no JSON document ({err}); for a log use --dialect {LOG}"
        ) from None
