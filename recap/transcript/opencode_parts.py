"""Parts of OpenCode messages: what of them is sent to the model."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from recap.transcript.authors import author_in, media_author
from recap.transcript.images import image_of
from recap.transcript.items import UNREADABLE, Fields
from recap.transcript.model import (
    HUMAN_AUTHORS,
    Author,
    Dialect,
    Json,
    Part,
    Raw,
    Role,
    Sent,
)
from recap.transcript.parts import (
    call_part,
    image_part,
    other_part,
    result_part,
    text_part,
    thinking_part,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from recap.transcript.lines import Report

CLEARED = "[Old tool result content cleared]"
"""What OpenCode sends in place of an output it pruned; the output stays in the export."""

IN_TEXTS = ("text/plain", "application/x-directory")
"""Media types of files that OpenCode sends as synthetic texts beside the file part."""

STAND_INS: Mapping[str, str] = {
    "compaction": "What did we do so far?",
    "subtask": "The following tool was executed by the user",
}
"""Type of a user's part -> the text OpenCode sends for it."""


class Parts:
    """Takes the parts of one message.

    Attributes:
        role: Of the message.
        found: Its parts, but for results.
        results: Of its calls.
        flaws: Parts that cannot go out as they are.
    """

    def __init__(self, role: Role, values: Sequence[Json], line: int, report: Report) -> None:
        self.role = role
        self.found: list[Part] = []
        self.results: list[Part] = []
        self.flaws = 0
        self._line = line
        self._report = report
        texts = [_author(role, value) for value in values if _is_sent_text(value)]
        self._media = media_author(role, texts)

    def take(self, raw: Raw, value: Json) -> None:
        """Take the next part."""
        kind = value.get("type") if isinstance(value, dict) else None
        reads = _READERS.get((self.role, kind)) if isinstance(kind, str) else None
        if isinstance(kind, str) and reads is None and kind not in _KNOWN:
            self.found.append(other_part(raw, kind, self._media, dialect="opencode"))
            return
        if isinstance(kind, str) and reads is None:
            return  # it is not sent
        try:
            is_read = reads is not None and reads(self, raw, value)
        except UNREADABLE:
            is_read = False
        if not is_read:
            self.flaws += 1
            detail = "A part lacks what its type needs; it was left out."
            self._report.add("malformed-block", detail, self._line)

    def text(self, raw: Raw, part: Fields) -> bool:
        """Take a text."""
        words = part.get("text")
        if not isinstance(words, str):
            return False
        if not (self.role == "user" and part.get("ignored")):
            author = _author(self.role, part)
            self.found.append(text_part(raw, words, author, path=("text",), dialect="opencode"))
        return True

    def reasoning(self, raw: Raw, part: Fields) -> bool:
        """Take thinking."""
        words = part.get("text")
        if not isinstance(words, str):
            return False
        is_sealed = bool(part.get("metadata"))
        self.found.append(
            thinking_part(raw, words, path=("text",), has_signature=is_sealed, dialect="opencode")
        )
        return True

    def file(self, raw: Raw, part: Fields) -> bool:
        """Take a file the person attached."""
        media_type = part.get("mime")
        if not isinstance(media_type, str) or not isinstance(part.get("url"), str):
            return False
        if media_type.startswith("image/"):
            self.found.append(image_part(raw, self._media, image_of(part), dialect="opencode"))
        elif media_type not in IN_TEXTS:
            self.found.append(other_part(raw, "file", self._media, dialect="opencode"))
        return True

    def stand_in(self, raw: Raw, part: Fields) -> bool:
        """Take a part for which OpenCode sends a fixed text."""
        words = STAND_INS[part["type"]]
        self.found.append(text_part(Sent(raw, words), words, "injected", dialect="opencode"))
        return True

    def tool(self, raw: Raw, part: Fields) -> bool:
        """Take a call and its result."""
        name, call_id, state = part.get("tool"), part.get("callID"), part.get("state")
        if not isinstance(name, str) or not name or not isinstance(state, dict):
            return False
        uid = call_id if isinstance(call_id, str) else ""
        arguments = state.get("input")
        is_ours = bool(uid) and isinstance(arguments, dict) and isinstance(state.get("time"), dict)
        dialect: Dialect | None = "opencode" if is_ours else None
        sent = {"callID": uid, "tool": name, "input": arguments}
        path = ("state", "input")
        self.found.append(
            call_part(raw, name, uid, arguments, path=path, dialect=dialect, sent=sent)
        )
        self.flaws += not is_ours
        if answer := _answer(raw, state):
            result = result_part(
                answer.raw,
                uid,
                answer.content,
                path=answer.path,
                is_error=answer.is_error,
                dialect=dialect,
            )
            self.results.append(result)
        return True


_READERS: Mapping[tuple[Role, str], Callable[[Parts, Raw, Fields], bool]] = {
    ("user", "text"): Parts.text,
    ("user", "file"): Parts.file,
    ("user", "compaction"): Parts.stand_in,
    ("user", "subtask"): Parts.stand_in,
    ("assistant", "text"): Parts.text,
    ("assistant", "reasoning"): Parts.reasoning,
    ("assistant", "tool"): Parts.tool,
}
"""Role and type of a part that is sent -> its reader."""

_KNOWN = frozenset(
    ("text", "file", "compaction", "subtask", "reasoning", "tool", "step-start", "step-finish",
     "snapshot", "patch", "agent", "retry")
)  # fmt: skip


def _is_sent_text(part: Json) -> bool:
    return (
        isinstance(part, dict)
        and part.get("type") == "text"
        and isinstance(part.get("text"), str)
        and not part.get("ignored")
    )


def _author(role: Role, part: Fields) -> Author:
    """Return the author of a text; a synthetic one is a machine's whatever it says."""
    author = author_in(role, part["text"])
    is_machine = bool(part.get("synthetic")) and author in HUMAN_AUTHORS
    return "injected" if is_machine else author


class _Answer(NamedTuple):
    """What is sent as a result, where it stands, and whether it reports an error."""

    content: Json
    raw: Raw
    path: tuple[str, ...] = ()
    is_error: bool = False


def _answer(raw: Raw, state: Fields) -> _Answer | None:
    """Return what is sent as the result of a tool part; None for an open call."""
    if state.get("status") == "error":
        error, metadata = state.get("error"), state.get("metadata")
        if isinstance(metadata, dict) and metadata.get("interrupted") is True:
            output = metadata.get("output")
            if isinstance(output, str):
                return _Answer(output, raw, ("state", "metadata", "output"))
        return _Answer(error, raw, ("state", "error"), True) if isinstance(error, str) else None
    output = state.get("output")
    if state.get("status") != "completed" or not isinstance(output, str):
        return None
    time, files = state.get("time"), state.get("attachments")
    if isinstance(time, dict) and time.get("compacted"):
        return _Answer(CLEARED, Sent(raw, CLEARED))
    if not isinstance(files, list) or not files:
        return _Answer(output, raw, ("state", "output"))
    blocks = [{"type": "text", "text": output}, *map(_attachment, files)]
    return _Answer(blocks, Sent(raw, blocks))


def _attachment(file: Json) -> Json:
    """Return an attached image as a block that every writer knows; other files as they are."""
    url = file.get("url") if isinstance(file, dict) else None
    if isinstance(url, str) and str(file.get("mime")).startswith("image/"):
        return {"type": "image_url", "image_url": {"url": url}}
    return file
