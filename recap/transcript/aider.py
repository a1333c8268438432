"""Chat histories of Aider (``.aider.chat.history.md``). Contexts go out as OpenAI chat messages.

In this markdown ``#### `` begins the lines of the person, ``> `` those of the client and its
commands; the rest is the assistant's. Aider ends lines of the first two kinds with two spaces, which
the assistant's own headings and quotes lack: where a session has such ends, they decide, and lines
whose mark they deny are reported. In a session that lost them the mark alone decides.

A file is the history of a folder: many sessions. The live one is the last in which the person said
something; those before it are inactive, as if a compaction had replaced them. So the person's words in
the whole file stay protected, the rest of it can be revived, and only the live session counts in the
budget.

A command with arguments (``/ask why?``, ``/run pytest``, ``!ls``) holds the person's words; a bare one
(``/undo``) does not. No part has the bytes of the file: marks and line ends are no part of the words.
"""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import groupby
from typing import TYPE_CHECKING, Literal, NamedTuple

from recap.transcript.events import message_of
from recap.transcript.lines import Report, split_lines
from recap.transcript.model import HUMAN_AUTHORS, Author, Held, Message, Role, Transcript
from recap.transcript.parts import text_part

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence, Set

    from recap.transcript.sample import Sample
    from recap.transcript.sources import Sized

Kind = Literal["person", "console", "assistant"]

START = "# aider chat started at "
MARKS: Mapping[Kind, str] = {"person": "####", "console": ">"}
END = "  "
EMPTY_PROMPT = "<blank>"
"""Stands for a prompt without words."""

ROLES: Mapping[Kind, Role] = {"person": "user", "console": "user", "assistant": "assistant"}

_START = re.compile(START + r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\s*")
_BARE_COMMAND = re.compile(r"/[a-z][a-z0-9_-]*\s*")


def detect(sample: Sample) -> str | None:
    """Return what shows that a sample is a chat history of Aider; None if it is none."""
    found = re.search(f"^\ufeff?{START}", sample.head, re.MULTILINE)
    return START.strip() if found else None


def read(source: Sized) -> Transcript:
    """Return the sessions of a history; all but the live one are inactive.

    Raises:
        InputError: The file lost bytes while it was read.
    """
    report = Report()
    sessions = [_messages(lines, report) for lines in _sessions(source, report)]
    spoken = [at for at, messages in enumerate(sessions) if any(map(_is_spoken, messages))]
    live = spoken[-1] if spoken else 0
    return Transcript(
        format="aider",
        dialect="openai",
        messages=tuple(
            message if at >= live else replace(message, is_active=False)
            for at, messages in enumerate(sessions)
            for message in messages
        ),
        findings=report.sorted(),
        bytes_read=source.size,
        lines=report.counts.pop("lines", 0),
        counts=dict(sorted(report.counts.items())),
    )


class _Line(NamedTuple):
    """A line: its 1-based number, its text, and whether it ends as Aider ends lines with a mark."""

    number: int
    text: str
    has_end: bool

    @property
    def kind(self) -> Kind:
        """Whose it is by its mark alone."""
        for kind, mark in MARKS.items():
            if self.text.startswith(f"{mark} ") or self.text == mark:
                return kind
        return "assistant"

    def words(self, kind: Kind) -> str:
        """Return the words of a line of some kind, without its mark and end."""
        if kind == "assistant":
            return self.text
        return self.text.removeprefix(MARKS[kind]).removeprefix(" ").removesuffix(END)


def _sessions(source: Sized, report: Report) -> list[list[_Line]]:
    """Return the lines of each session; first what stands before any."""
    sessions: list[list[_Line]] = [[]]
    for number, _, data, is_ended in split_lines(source):
        report.counts["lines"] = number
        try:
            text = data.decode()
        except UnicodeDecodeError:
            text = data.decode("utf-8", "replace")
            report.add("not-utf8", "bytes that are no UTF-8 are replaced", number, "warning")
        if nul_bytes := text.count("\0"):
            report.add("nul-bytes", f"{nul_bytes:,} NUL bytes are left out", number, "warning")
        text = text.replace("\0", "").removesuffix("\r")
        if _START.fullmatch(text):
            report.counts["sessions"] += 1
            sessions.append([])
        else:
            # A last line may have been cut before its end.
            sessions[-1].append(_Line(number, text, text.endswith(END) or not is_ended))
    return sessions


def _messages(lines: Sequence[_Line], report: Report) -> list[Message]:
    """Return the messages of a session: one for each run of lines of one kind."""
    ended = {line.kind for line in lines if line.text.endswith(END)}
    messages: list[Message] = []
    for kind, run in groupby(lines, lambda line: _kind(line, ended, report)):
        message = _message(kind, list(run), report)
        if message is None:
            continue
        before = messages[-1].role if messages else ""
        if kind == "person" and kind not in ended and before == "assistant":
            detail = "it may be a heading of the assistant's, whose text it follows"
            report.add("ambiguous-person", detail, message.line, "note")
        messages.append(message)
    return messages


def _kind(line: _Line, ended: Set[Kind], report: Report) -> Kind:
    kind = line.kind
    if kind == "assistant" or line.has_end or kind not in ended:
        return kind
    detail = "it has the mark but not the end of such a line: read as the assistant's"
    report.add(f"ambiguous-{kind}", detail, line.number, "note")
    return "assistant"


def _message(kind: Kind, run: Sequence[_Line], report: Report) -> Message | None:
    """Return what a run of lines says; None when it says nothing."""
    words = "\n".join(line.words(kind) for line in run).strip("\n")
    if kind == "person" and words == EMPTY_PROMPT:
        report.counts["empty_prompts"] += 1
        return None
    first = next((line.number for line in run if line.words(kind).strip()), None)
    if first is None:
        return None
    part = text_part(Held(words), words, _author(kind, words))
    return message_of(ROLES[kind], [part], first)


def _is_spoken(message: Message) -> bool:
    return any(part.author in HUMAN_AUTHORS for part in message.parts)


def _author(kind: Kind, words: str) -> Author:
    if kind != "person":
        return "agent" if kind == "assistant" else "tool"
    if _BARE_COMMAND.fullmatch(words):
        return "local"
    return "command" if words.startswith(("/", "!")) else "human"
