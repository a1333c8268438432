"""What a person wrote, taken from the raw JSON alone: the sweep's own oracle.

Nothing here imports recap. The rules are those of the formats as the vendors write them, in their
simplest form; where a file needs judgement the expectation is pinned in the test.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from pathlib import Path

MACHINE = re.compile(
    r"\s*<(system-reminder|local-command-caveat|local-command-stdout|local-command-stderr"
    r"|task-notification|bash-input|bash-stdout|bash-stderr|environment_context"
    r"|user_instructions|command-name|command-message|tool_result id)\b"
)
OTHER_MACHINE = (
    "[Request interrupted by user",
    "This session is being continued from a previous",
    "Base directory for this skill: ",  # the body of a skill
    "[Image: source: ",  # where a pasted image came from
    "Tool loaded.",
)
REFUSAL = "The user doesn't want to "
SPOKEN = "the user said:\n"
ARGUMENTS = re.compile(r"<command-args>(.*?)</command-args>", re.DOTALL)


class Said(NamedTuple):
    """A text a person wrote: where it stands (1-based line or index) and its words."""

    at: int
    words: str


class Step(NamedTuple):
    """A cut of a session right after a person's message: its raw bytes and the texts so far."""

    data: bytes
    said: tuple[str, ...]


def human(text: str) -> str:
    """Return the words of a person in a user text, "" for machine text."""
    if not text.strip() or text.startswith(OTHER_MACHINE):
        return ""
    if MACHINE.match(text):
        arguments = ARGUMENTS.search(text)
        if arguments:
            return arguments.group(1) if arguments.group(1).strip() else ""
        rest = re.sub(r"<system-reminder>.*?</system-reminder>", "", text, flags=re.DOTALL)
        return text if not MACHINE.match(rest) and rest.strip() else ""
    return text


def texts_of(content: Any) -> list[str]:
    """Return the texts of a content value, results apart."""
    if isinstance(content, str):
        return [content]
    blocks = content if isinstance(content, list) else []
    return [
        b["text"] for b in blocks
        if isinstance(b, dict) and b.get("type") == "text" and isinstance(b.get("text"), str)
    ]  # fmt: skip


def spoken_of(content: Any) -> list[str]:
    """Return the words a person gave as the reason for refusing a call, from its result."""
    results = [
        block.get("content")
        for block in (content if isinstance(content, list) else [])
        if isinstance(block, dict) and block.get("type") == "tool_result"
    ]
    texts = [text for result in results for text in texts_of(result)]
    return [
        text.partition(SPOKEN)[2] for text in texts if text.startswith(REFUSAL) and SPOKEN in text
    ]


def words_in(content: Any) -> list[str]:
    """Return a person's words in the content of a user message."""
    texts = [words for text in texts_of(content) if (words := human(text))]
    return texts + spoken_of(content)


def claude_lines(data: bytes) -> list[tuple[int, dict[str, Any]]]:
    """Return the parseable lines with their numbers; a cut-off head of a glued line is skipped."""
    lines = []
    for number, line in enumerate(data.split(b"\n"), 1):
        try:
            record = json.loads(line)
        except ValueError:
            at = max(line.rfind(b'{"type":'), line.rfind(b'{"parentUuid":'))
            try:
                record = json.loads(line[at:]) if at > 0 else None
            except ValueError:
                record = None
        if isinstance(record, dict):
            lines.append((number, record))
    return lines


def claude_said(data: bytes) -> list[Said]:
    """Return what the person typed in a Claude Code log, side chains apart."""
    said = []
    for number, record in claude_lines(data):
        if record.get("type") != "user" or record.get("isSidechain"):
            continue
        if record.get("isMeta") or record.get("isCompactSummary"):
            continue
        message = record.get("message") or {}
        said += [Said(number, words) for words in words_in(message.get("content"))]
    return said


def list_said(messages: list[dict[str, Any]]) -> list[Said]:
    """Return what the person typed in a message list."""
    return [
        Said(number, words)
        for number, message in enumerate(messages, 1)
        if message.get("role") == "user"
        for words in words_in(message.get("content"))
    ]


def list_steps(document: Any) -> list[Step]:
    """Return the cuts of a message-list document after each message that holds a person's words."""
    key = "traj" if isinstance(document, dict) and "traj" in document else "messages"
    messages = document if isinstance(document, list) else document[key]
    said = list_said(messages)
    steps = []
    for at in sorted({each.at for each in said}):
        cut = messages[:at]
        whole = cut if isinstance(document, list) else {**document, key: cut}
        words = tuple(each.words for each in said if each.at <= at)
        steps.append(
            Step(json.dumps(whole, ensure_ascii=False).encode("utf-8", "surrogatepass"), words)
        )
    return steps


def claude_steps(data: bytes, rewound: dict[int, int]) -> list[Step]:
    """Return the cuts of a Claude Code log after each line that holds a person's words."""
    said = claude_said(data)
    ends = [m.end() for m in re.finditer(rb"\n", data)] + [len(data)]
    return [
        Step(
            data[: ends[at - 1]],
            tuple(e.words for e in said if e.at <= at < rewound.get(e.at, len(ends) + 1)),
        )
        for at in sorted({each.at for each in said})
    ]


def read_steps(path: Path, rewound: dict[int, int] | None = None) -> list[Step]:
    """Return the cuts of a file of either kind.

    Args:
        path: A log or a message list.
        rewound: Line of words the person took back -> line that took them back.
    """
    rewound = rewound or {}
    data = path.read_bytes()
    if path.suffix == ".jsonl":
        return claude_steps(data, rewound)
    document = json.loads(data)
    if isinstance(document, dict) and "loglines" in document:
        lines = b"".join(json.dumps(line).encode() + b"\n" for line in document["loglines"])
        return claude_steps(lines, rewound)
    return list_steps(document)
