"""Chat histories of Aider (``.aider.chat.history.md``). Contexts go out as OpenAI chat messages.

In this markdown ``#### `` begins the lines of the person, ``> `` those of the client and its
commands; the rest is the assistant's. Aider ends lines of the first two kinds with two spaces, which
the assistant's own headings and quotes lack: where a file has such ends, they decide, and lines whose
mark they deny are reported. In a file that lost them the mark alone decides.

A file is the history of a folder: many sessions. The live one is the last in which the person said
something; those before it are inactive, as if a compaction had replaced them. So the person's words in
the whole file stay protected, the rest of it can be revived, and only the live session counts in the
budget.

A command with arguments (``/ask why?``, ``/run pytest``, ``!ls``) holds the person's words; a bare one
(``/undo``) does not. No part has the bytes of the file: marks and line ends are no part of the words.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal, NamedTuple

from recap.transcript.events import message_of
from recap.transcript.lines import Report, split_lines
from recap.transcript.model import HUMAN_AUTHORS, Author, Held, Message, Role, Transcript
from recap.transcript.parts import text_part

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from recap.transcript.foreign import Sample
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
    history = _History(report, _ended_kinds(source))
    for line in _lines(source, report):
        history.take(line)
    return Transcript(
        format="aider",
        dialect="openai",
        messages=history.messages(),
        findings=report.sorted(),
        bytes_read=source.size,
        lines=report.counts.pop("lines", 0),
        counts=dict(sorted(report.counts.items())),
    )


class _Line(NamedTuple):
    """A line: its 1-based number, its text, and whether it had a line feed."""

    number: int
    text: str
    is_ended: bool


def _lines(source: Sized, report: Report) -> Iterator[_Line]:
    for number, _, data, is_ended in split_lines(source):
        report.counts["lines"] = number
        text = data.decode("utf-8", "replace")
        if text.encode() != data:
            report.add("not-utf8", "bytes that are no UTF-8 are replaced", number, "warning")
        if nul_bytes := text.count("\0"):
            report.add("nul-bytes", f"{nul_bytes:,} NUL bytes are left out", number, "warning")
        yield _Line(number, text.replace("\0", "").removesuffix("\r"), is_ended)


def _ended_kinds(source: Sized) -> frozenset[Kind]:
    """Return the kinds of lines that have the ends Aider gives them somewhere in the file."""
    lines = (line for line in _lines(source, Report()) if line.text.endswith(END))
    return frozenset(_marked(line.text) for line in lines) - {"assistant"}


def _marked(text: str) -> Kind:
    """Return whose line it is by its mark alone."""
    for kind, mark in MARKS.items():
        if text.startswith(f"{mark} ") or text == mark:
            return kind
    return "assistant"


@dataclass(slots=True)
class _Run:
    """Consecutive lines of one kind, without their marks and ends."""

    kind: Kind = "assistant"
    line: int = 1
    words: list[str] = field(default_factory=list)

    def text(self) -> str:
        words = "\n".join(self.words)
        return words.strip() if self.kind == "assistant" else words.rstrip()


class _History:
    """State of one pass over the lines of a file."""

    def __init__(self, report: Report, ended: frozenset[Kind]) -> None:
        self.report = report
        self.ended = ended
        self.run = _Run()
        self.sessions: list[list[Message]] = [[]]  # first what stands before any session

    def take(self, line: _Line) -> None:
        """Take the next line."""
        if _START.fullmatch(line.text):
            self._close(_Run("assistant", line.number + 1))
            self.sessions.append([])
            self.report.counts["sessions"] += 1
            return
        kind = self._kind(line)
        if kind != self.run.kind:
            self._close(_Run(kind, line.number))
        words = line.text
        if kind in MARKS:
            words = words.removeprefix(MARKS[kind]).removeprefix(" ").removesuffix(END)
        self.run.words.append(words)

    def messages(self) -> tuple[Message, ...]:
        """Return the messages of all sessions, those before the live one inactive."""
        self._close(_Run())
        spoken = [at for at, said in enumerate(self.sessions) if any(map(_is_spoken, said))]
        live = spoken[-1] if spoken else 0
        return tuple(
            message if at >= live else replace(message, is_active=False)
            for at, session in enumerate(self.sessions)
            for message in session
        )

    def _kind(self, line: _Line) -> Kind:
        kind = _marked(line.text)
        if kind == "assistant" or line.text.endswith(END) or not line.is_ended:
            return kind
        if kind in self.ended:
            detail = (
                "it has the mark but not the end of a line of another's: read as the assistant's"
            )
            self.report.add(f"ambiguous-{kind}", detail, line.number, "note")
            return "assistant"
        if self.run.kind == "assistant" and self.run.text():
            detail = "it may be the assistant's own, as it follows a text of the assistant's"
            self.report.add(f"ambiguous-{kind}", detail, line.number, "note")
        return kind

    def _close(self, following: _Run) -> None:
        """End the run of lines, and begin the following one."""
        run, self.run = self.run, following
        words = run.text()
        if not words.strip():
            return
        if run.kind == "person" and words == EMPTY_PROMPT:
            self.report.counts["empty_prompts"] += 1
            return
        part = text_part(Held(words), words, _author(run.kind, words))
        self.sessions[-1].append(message_of(ROLES[run.kind], [part], run.line))


def _is_spoken(message: Message) -> bool:
    return any(part.author in HUMAN_AUTHORS for part in message.parts)


def _author(kind: Kind, words: str) -> Author:
    if kind != "person":
        return "agent" if kind == "assistant" else "tool"
    if _BARE_COMMAND.fullmatch(words):
        return "local"
    return "command" if words.startswith(("/", "!")) else "human"
