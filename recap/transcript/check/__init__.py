"""The public validator: would the vendor accept this, can the client resume it?

``check`` judges a decoded message list, ``check_log`` a Claude Code log. Both are pure, total over
any JSON value and linear in its size, and know nothing of the readers or the renderer, so that they
can judge both. The rules, with severity and origin, are one table: ``RULES``. Findings never hold
conversation text.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from recap.errors import UsageError, shown
from recap.transcript.check.anthropic import check_anthropic
from recap.transcript.check.claude_code import check_claude_code
from recap.transcript.check.dialect import detect
from recap.transcript.check.gemini import check_gemini
from recap.transcript.check.langchain import check_langchain
from recap.transcript.check.openai import check_openai
from recap.transcript.check.opencode import check_opencode
from recap.transcript.check.plain import escapes, measure
from recap.transcript.check.responses import check_responses
from recap.transcript.check.rules import RULES, Report, Rule
from recap.transcript.limits import exceeded
from recap.transcript.sources import ByteSource, open_source

if TYPE_CHECKING:
    from recap.transcript.model import Dialect, Finding, Json
    from recap.transcript.sources import Sized

__all__ = ["RULES", "Rule", "check", "check_log", "check_source", "dialect_of", "finding_to_json"]

LIST_KEYS = ("messages", "traj", "input", "contents")
"""Keys under which documents hold their message list."""

HEAD_KEYS = ("system", "tools", "instructions", "systemInstruction")
"""Keys of a request body that count towards its size besides the messages."""

_CHECKS: Mapping[Dialect, Callable[[Mapping[str, Json], Sequence[Json], Report], None]] = {
    "anthropic": check_anthropic,
    "openai": check_openai,
    "responses": check_responses,
    "gemini": check_gemini,
    "langchain": check_langchain,
    "opencode": check_opencode,
}


def check(
    messages: Sequence[Json] | Mapping[str, Json],
    dialect: Dialect | Literal["auto"] = "auto",
) -> list[Finding]:
    """Return what a vendor would refuse, or some servers might, in a message list.

    Args:
        messages: Decoded JSON: a list of messages, or a request body that holds one
            (``{"messages": [...], "system": ...}``, ``{"input": [...]}``, ``{"contents": [...]}``).
            Any other value gives a finding.
        dialect: Whose rules hold; ``auto`` goes by the first message that decides.

    Returns:
        Findings by message number (1-based; 0 for the list as a whole). Empty: nothing to say.

    Raises:
        UsageError: The dialect is unknown.
    """
    if dialect not in ("auto", *_CHECKS):
        raise UsageError(f"unknown dialect {shown(dialect)}: use {', '.join(_CHECKS)} or auto")
    document = messages if isinstance(messages, Mapping) else {}
    items = _list_in(messages)
    chosen = dialect_of(messages) if dialect == "auto" else dialect
    report = Report(chosen)
    if items is None:
        report.add("not-a-list")
    elif not items:
        report.add("no-messages")
    else:
        _check_plain(document, items, report, chosen)
        _CHECKS[chosen](document, items, report)
    return report.in_order()


def dialect_of(messages: Sequence[Json] | Mapping[str, Json]) -> Dialect:
    """Return the dialect that ``auto`` stands for with these messages."""
    document = messages if isinstance(messages, Mapping) else {}
    return detect(document, _list_in(messages) or ())


def check_log(log: str | Path | bytes) -> list[Finding]:
    """Return what Claude Code would lose, invent or refuse when it resumes a log.

    Args:
        log: Path of a ``.jsonl`` file (or of an exported ``{"loglines": [...]}``), or its bytes. An
            empty log is an empty session: no finding.

    Returns:
        Findings by line (1-based; 0 for the file as a whole).

    Raises:
        InputError: The file cannot be read.
    """
    return check_source(ByteSource(log) if isinstance(log, bytes) else open_source(Path(log)))


def check_source(source: Sized) -> list[Finding]:
    """Return what ``check_log`` does, of a source."""
    report = Report("claude-code")
    check_claude_code(source, report)
    return report.in_order()


def finding_to_json(finding: Finding) -> dict[str, str | int]:
    """Return a finding as the object that ``--json`` prints; its keys are stable."""
    return {
        "code": finding.code,
        "severity": finding.severity,
        "line": finding.line,
        "detail": finding.detail,
    }


def _list_in(messages: Json) -> Sequence[Json] | None:
    if isinstance(messages, list | tuple):
        return messages
    if isinstance(messages, Mapping):
        lists = (messages.get(key) for key in LIST_KEYS)
        return next((value for value in lists if isinstance(value, list | tuple)), None)
    return None


def _check_plain(
    document: Mapping[str, Json], items: Sequence[Json], report: Report, dialect: Dialect
) -> None:
    """Check that all of it is JSON, and its size."""
    head = [document[key] for key in HEAD_KEYS if key in document]
    total, is_json = measure([head, items])
    if not is_json:
        for line, value in enumerate([head, *items]):
            if not measure(value)[1]:
                report.add("not-json", line)
    if exceeded(2 * total, dialect, "request_bytes"):  # escapes double a text at most
        total += escapes([head, items])
    if most := exceeded(total, dialect, "request_bytes"):
        report.add("request-bytes", bytes=total, limit=most)
