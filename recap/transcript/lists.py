"""Message lists of Python callers: the same dicts and blocks come back out where they are kept."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

from recap.errors import UsageError, shown
from recap.transcript import (
    anthropic,
    gemini_contents,
    langchain,
    openai,
    opencode,
    responses,
)
from recap.transcript.doubt import with_doubt
from recap.transcript.items import LIST_KEYS, dialect_of
from recap.transcript.model import Dialect, Finding, Held, Json, Raw, Transcript, is_clean

READERS: Mapping[Dialect, Callable[[Raw], Transcript]] = {
    "anthropic": anthropic.read,
    "openai": openai.read,
    "responses": responses.read,
    "gemini": gemini_contents.read,
    "langchain": langchain.read,
    "opencode": opencode.read,
}

HEAD_KEYS = ("system", "instructions", "systemInstruction", "system_instruction", "info")
"""Fields of a request that are read besides its list."""

MAX_DEPTH = 200
"""Levels of nesting that are read; every codec ends somewhere above."""


def read_messages(
    messages: Iterable[Mapping[str, Json]] | Mapping[str, Json], dialect: str = "auto"
) -> Transcript:
    """Return the transcript of a message list, or of a request document that holds one.

    Total over what the list holds: what is no message becomes a finding and is left out. The input
    is not changed. Parts and envelopes hold the very objects; only a message with other values than
    JSON has (tuples, other mappings, cycles) is read from a copy, which a finding says.

    Args:
        messages: Messages as a client sends them, or the request around them (``messages`` and
            ``system``, ``input`` and ``instructions``, ``contents`` and ``systemInstruction``).
        dialect: One of ``DIALECTS``, or ``auto`` for what the messages show.

    Raises:
        UsageError: The dialect is unknown, or ``messages`` is neither a list nor a mapping.
    """
    if dialect not in ("auto", *READERS):
        raise UsageError(f"unknown dialect {shown(dialect)}: use {', '.join(READERS)} or auto")
    findings: list[Finding] = []
    document = _document(messages, findings)
    shown_as, evidence = dialect_of(document)
    found: Dialect = shown_as
    for asked in READERS:
        if dialect == asked:
            found, evidence = asked, "the caller's word"
    held = Held(document, is_clean(document))
    transcript = READERS[found](held)
    if found != shown_as:
        transcript = with_doubt(transcript, lambda: READERS[shown_as](held))
    findings.extend(transcript.findings)
    findings.sort(key=lambda finding: finding.line)
    return replace(transcript, findings=tuple(findings), evidence=evidence)


def _document(messages: Json, findings: list[Finding]) -> Json:
    """Return the list, or the fields of a request that are read, of plain JSON."""
    if isinstance(messages, Mapping):
        held = {key: messages[key] for key in (*LIST_KEYS, *HEAD_KEYS) if key in messages}
        return {
            key: _plain_items(value, findings)
            if isinstance(value, list | tuple) and key in LIST_KEYS
            else _plain(value, 0, findings)
            for key, value in held.items()
        }
    if isinstance(messages, str | bytes) or not isinstance(messages, Iterable):
        kind = type(messages).__name__
        raise UsageError(f"messages must be a list of messages or a request, got {kind}")
    return _plain_items(messages, findings)


def _plain_items(items: Iterable[Json], findings: list[Finding]) -> list[Json]:
    return [_plain(item, line, findings) for line, item in enumerate(items, 1)]


def _plain(value: Json, line: int, findings: list[Finding]) -> Json:
    if _is_plain(value):
        return value
    detail = "It holds values JSON does not have; a copy without them was read."
    findings.append(Finding("not-plain-json", detail, line, "warning"))
    return _copy(value, ())


def _is_plain(value: Json) -> bool:
    """Return True for JSON as Python decodes it; False for cycles and what lies too deep."""
    level = [value]
    for _ in range(MAX_DEPTH):
        below: dict[int, Json] = {}
        for item in level:
            if isinstance(item, dict):
                if not all(isinstance(key, str) for key in item):
                    return False
                below.update((id(each), each) for each in item.values())
            elif isinstance(item, list):
                below.update((id(each), each) for each in item)
            elif item is not None and not isinstance(item, str | int | float):
                return False
        if not below:
            return True
        level = list(below.values())
    return False


def _copy(value: Json, path: tuple[int, ...]) -> Json:
    """Return the value as plain JSON; what contains itself, or lies too deep, as null."""
    if value is None or isinstance(value, str | int | float):
        return value
    if id(value) in path or len(path) >= MAX_DEPTH:
        return None
    path = (*path, id(value))
    if isinstance(value, Mapping):
        return {str(key): _copy(each, path) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_copy(each, path) for each in value]
    if callable(dump := getattr(value, "model_dump", None)):  # the objects of the vendors' SDKs
        return _copy(dump(exclude_none=True), path)
    return str(value)
