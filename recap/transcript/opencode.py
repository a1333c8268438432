"""OpenCode: reader of exports and of lists of messages (info and parts), and writer of messages.

A call and its result are one part there. Here they are two, in an assistant message and a tool message
that share the vendor's message; the writer makes one of them again.

What OpenCode does not send to the model is no part here: steps, patches, texts it ignores, files that
stand in a text of their own. It goes out with a message that is kept whole.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from recap.transcript.authors import author_in, mark_steering, media_author
from recap.transcript.convert import (
    UNCONVERTED_IMAGE,
    arguments_object,
    is_image,
    text_leaf,
    with_call_id,
    without_images,
)
from recap.transcript.images import image_address, image_of
from recap.transcript.items import (
    UNREADABLE,
    Fields,
    dialect_of,
    items_of,
    read_items,
    transcript_of,
)
from recap.transcript.lines import Report, elements, members
from recap.transcript.model import (
    HUMAN_AUTHORS,
    Author,
    Dialect,
    Envelope,
    Json,
    Message,
    Part,
    Raw,
    Role,
    Sent,
    Transcript,
    block_text,
    flat_text,
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

    from recap.transcript.tree import Tree

__all__ = ["detect", "read", "system_blocks", "with_call_id", "without_images", "write_message"]

ROLES: Mapping[str, Role] = {"user": "user", "assistant": "assistant"}

CLEARED = "[Old tool result content cleared]"
"""What OpenCode sends in place of an output it pruned; the output stays in the export."""

IN_TEXTS = ("text/plain", "application/x-directory")
"""Media types of files that OpenCode sends as synthetic texts beside the file part."""

STAND_INS: Mapping[str, str] = {
    "compaction": "What did we do so far?",
    "subtask": "The following tool was executed by the user",
}
"""Type of a user's part -> the text OpenCode sends for it."""

GOES_ON = ("tool-calls", "unknown")
"""Values of ``finish`` after which the agent's loop runs on."""


def detect(document: Json) -> str | None:
    """Return what shows that the document is an export or a list of messages; None if not."""
    dialect, evidence = dialect_of(document)
    if dialect == "opencode":
        return evidence
    info = document.get("info") if isinstance(document, dict) else None
    session_id = info.get("id") if isinstance(info, dict) else None
    is_session = isinstance(session_id, str) and session_id.startswith("ses_")
    return "a session id ses_" if is_session else None


def read(document: Raw) -> Transcript:
    """Return the transcript of an export, or of a list of its messages."""
    report = Report()
    items, fields = items_of(document)
    reader = _Reader()
    read_items(items, reader.read_message, report)
    info = fields["info"].load() if "info" in fields else {}
    session_id = info.get("id") if isinstance(info, dict) else ""
    transcript = transcript_of("opencode", "opencode", reader.live_last(), items, report)
    counts = {name: count for name, count in sorted(report.counts.items()) if count}
    return replace(
        transcript,
        session_id=session_id if isinstance(session_id, str) else "",
        counts=counts,
    )


class _Reader:
    """Reads messages in order. Ids may be blanked out and repeat: only positions count."""

    def __init__(self) -> None:
        self.messages: list[Message] = []
        self.stops = [0]  # indices of messages before which a loop had ended
        self.starts: dict[str, int] = {}  # id of a vendor's message -> index of its first message
        self.compactions: list[tuple[str, int, Json]] = []  # (id, index, id of the tail kept)
        self.live_start = 0

    def live_last(self) -> list[Message]:
        """Return the messages with steering marked, those before a native compaction inactive."""
        ends = [*self.stops[1:], len(self.messages)]
        runs = zip(self.stops, ends, strict=True)
        marked = [
            message for start, end in runs for message in mark_steering(self.messages[start:end])
        ]
        return [
            replace(message, is_active=index >= self.live_start)
            for index, message in enumerate(marked)
        ]

    def read_message(
        self, raw: Raw, fields: Fields, line: int, report: Report
    ) -> Sequence[Message]:
        info = fields.get("info")
        info = info if isinstance(info, dict) else {}
        name = info.get("role")
        role = ROLES.get(name) if isinstance(name, str) else None
        if role is None:
            detail = "The message has no role of this format; it was left out."
            report.add("unknown-role", detail, line)
            return []
        handle = members(raw).get("parts")
        values = handle.load() if handle is not None else None
        if handle is None or not isinstance(values, list):
            report.add("no-content", "The message has no list of parts.", line)
            return []
        if role == "assistant" and _is_unsent(info, values):
            report.counts["failed_messages"] += 1
            self.stops.append(len(self.messages))
            return []
        parts = _Parts(role, values, line, report)
        for each, value in zip(elements(handle), values, strict=True):
            parts.take(each, value)
        self._add(raw, info, parts, line)
        self._compact(info, values)
        return []

    def _add(self, raw: Raw, info: Fields, parts: _Parts, line: int) -> None:
        size = len(parts.found) + len(parts.results) + parts.flaws
        envelope = Envelope(raw, size, "opencode")
        model, uid = info.get("modelID"), info.get("id")
        if isinstance(uid, str):
            self.starts[uid] = len(self.messages)
        groups: list[tuple[Role, list[Part]]] = [(parts.role, parts.found)]
        if parts.results:
            groups.append(("tool", parts.results))
        for role, group in groups:
            self.messages.append(
                Message(
                    role,
                    tuple(group),
                    line,
                    envelope,
                    model=model if isinstance(model, str) else "",
                    uid=uid if isinstance(uid, str) else "",
                )
            )
        if parts.role == "assistant" and info.get("finish") not in (None, *GOES_ON):
            self.stops.append(len(self.messages))

    def _compact(self, info: Fields, values: Sequence[Json]) -> None:
        """Note a native compaction: a user's part asks for it, the summary completes it."""
        at = self.starts.get(_text(info, "id"), len(self.messages))
        if info["role"] == "user":
            for value in values:
                if isinstance(value, dict) and value.get("type") == "compaction":
                    self.compactions.append((_text(info, "id"), at, value.get("tail_start_id")))
        elif info.get("summary") is True and info.get("finish") and not info.get("error"):
            parent = _text(info, "parentID")
            named = [each for each in self.compactions if each[0] == parent]
            for _, start, tail in (named or self.compactions)[-1:]:
                kept = self.starts.get(tail, start) if isinstance(tail, str) else start
                self.live_start = max(self.live_start, min(kept, start))


def _text(fields: Fields, key: str) -> str:
    value = fields.get(key)
    return value if isinstance(value, str) else ""


def _is_unsent(info: Fields, values: Sequence[Json]) -> bool:
    """Return True for a failed answer that OpenCode leaves out: all but one aborted on its way."""
    error = info.get("error")
    if not error:
        return False
    is_aborted = isinstance(error, dict) and error.get("name") == "MessageAbortedError"
    said = (value.get("type") for value in values if isinstance(value, dict))
    return not (is_aborted and any(kind not in ("step-start", "reasoning") for kind in said))


class _Parts:
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
        answer = _answer(state)
        if answer is not None:
            content, is_error = answer
            result = result_part(
                Sent(raw, content), uid, content, path=(), is_error=is_error, dialect=dialect
            )
            self.results.append(result)
        return True


_READERS: Mapping[tuple[Role, str], Callable[[_Parts, Raw, Fields], bool]] = {
    ("user", "text"): _Parts.text,
    ("user", "file"): _Parts.file,
    ("user", "compaction"): _Parts.stand_in,
    ("user", "subtask"): _Parts.stand_in,
    ("assistant", "text"): _Parts.text,
    ("assistant", "reasoning"): _Parts.reasoning,
    ("assistant", "tool"): _Parts.tool,
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


def _answer(state: Fields) -> tuple[Json, bool] | None:
    """Return what is sent as the result and whether it reports an error; None for an open call."""
    output, metadata = state.get("output"), state.get("metadata")
    if state.get("status") == "error":
        if isinstance(metadata, dict) and metadata.get("interrupted") is True:
            output = metadata.get("output")
            if isinstance(output, str):
                return output, False
        error = state.get("error")
        return (error, True) if isinstance(error, str) else None
    if state.get("status") != "completed" or not isinstance(output, str):
        return None
    time = state.get("time")
    if isinstance(time, dict) and time.get("compacted"):
        return CLEARED, False
    files = state.get("attachments")
    blocks = [_attachment(file) for file in files] if isinstance(files, list) else []
    return ([{"type": "text", "text": output}, *blocks] if blocks else output), False


def _attachment(file: Json) -> Json:
    """Return an attached image as a block that every writer knows; other files as they are."""
    url = file.get("url") if isinstance(file, dict) else None
    if isinstance(url, str) and _text(file, "mime").startswith("image/"):
        return {"type": "image_url", "image_url": {"url": url}}
    return file


def write_message(role: Role, parts: Sequence[Part]) -> list[Tree]:
    """Return the message that holds ``parts``; none for system parts and results alone.

    An assistant's results stand among its parts, in the order of its calls. Thinking must be of this
    dialect: the caller drops any other.
    """
    written = _written_parts(parts)
    if role in ("system", "tool") or not written:
        return []
    return [{"info": {"role": role}, "parts": written}]


def system_blocks(parts: Sequence[Part]) -> list[Tree]:
    """Return the system parts as texts, to stand beside the list."""
    return [_text_part(part) for part in parts]


def _written_parts(parts: Sequence[Part]) -> list[Tree]:
    results = iter([part for part in parts if part.kind == "result"])
    written: list[Tree] = []
    for part in parts:
        if part.kind == "call":
            written.append(_tool(part, next(results, None)))
        elif part.kind != "result":
            written.append(_part(part))
    return written


def _part(part: Part) -> Tree:
    if part.dialect == "opencode" and isinstance(part.raw, Sent):
        return part.raw.block
    if part.dialect == "opencode" and part.kind != "text":
        return part.raw
    if part.dialect == "opencode" and part.path:
        return part.raw
    assert part.kind != "thinking"
    if part.kind == "image" and part.author != "agent":
        return _file(part.payload())
    return _text_part(part)


def _text_part(part: Part) -> Tree:
    words = text_leaf(part) if part.kind == "text" else part.text()
    if part.kind == "image":
        words = UNCONVERTED_IMAGE
    made: dict[str, Tree] = {"type": "text", "text": words}
    is_machine = part.author not in (*HUMAN_AUTHORS, "agent", "system")
    return {**made, "synthetic": True} if is_machine else made


def _file(block: Json) -> Tree:
    url = image_address(block)
    if not url:
        return {"type": "text", "text": UNCONVERTED_IMAGE}
    media_type = url.removeprefix("data:").partition(";")[0] if url.startswith("data:") else ""
    return {"type": "file", "mime": media_type or "image/*", "url": url}


def _tool(call: Part, result: Part | None) -> Tree:
    """Return the tool part of a call and its result: the original where both are unchanged."""
    if call.dialect == "opencode" and (
        result is None or (isinstance(result.raw, Sent) and result.raw.block is call.raw)
    ):
        return call.raw
    state: dict[str, Tree] = {"status": "pending", "input": arguments_object(call.payload())}
    if result is None:
        state["raw"] = ""
    else:
        state.update(_result_state(result))
    return {"type": "tool", "callID": call.call_id, "tool": call.name, "state": state}


def _result_state(result: Part) -> dict[str, Tree]:
    """Return the fields of a finished call; OpenCode needs a time and a title, neutral here."""
    content = result.payload()
    blocks = content if isinstance(content, list) else [content]
    texts = [block_text(block) for block in blocks if not is_image(block)]
    text = "\n".join(texts) if isinstance(content, list) else flat_text(content)
    time = {"start": 0, "end": 0}
    if result.is_error:
        return {"status": "error", "error": text, "time": time}
    files = [_file(block) for block in blocks if is_image(block)]
    return {
        "status": "completed",
        "output": text,
        "title": "",
        "metadata": {},
        "time": time,
        **({"attachments": files} if files else {}),
    }
