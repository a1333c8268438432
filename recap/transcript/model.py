"""Transcript values: parts, messages, transcripts, and handles on the raw JSON behind them.

First stage of the flow. Readers turn a log or a message list into these values; everything after
works on them and never on a vendor's JSON. The unit of fidelity is the part: a kept part leaves
with the bytes (or the very object) it came with, because it carries a handle on them.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias

import msgspec

from recap.transcript.dialects import Dialect as Dialect  # noqa: TC001 - taken from here

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

Json: TypeAlias = Any
"""A decoded JSON value: None, bool, int, float, str, list or dict."""

Role = Literal["system", "user", "assistant", "tool"]
PartKind = Literal["text", "thinking", "image", "call", "result", "other"]
Author = Literal[
    "human",  # typed by the person
    "command",  # arguments of a slash command: the person's words
    "steering",  # typed while the agent worked, beside or right after tool results
    "injected",  # reminders, environment context, expanded skills: machine text in the user role
    "local",  # output of a local command or shell escape
    "notification",  # task notifications and the like
    "summary",  # a native compaction summary
    "marker",  # interruption marks and Recap's own omission markers
    "agent",  # assistant text, thinking and calls
    "tool",  # tool results
    "system",  # system and developer text
]
HUMAN_AUTHORS: frozenset[Author] = frozenset(("human", "command", "steering"))
"""The authors whose words are protected."""

DIGEST_BYTES = 16

MAX_DIGITS = 4300
"""Python's own bound of a whole number in text: reading longer ones takes time squared."""


class Source(Protocol):
    """Where raw bytes live: in memory or in a file read by offset."""

    def read(self, start: int, end: int) -> bytes:
        """Return bytes ``[start, end)``; raises InputError when the file lost them."""
        ...


class Raw(Protocol):
    """A handle on one JSON value as it was given."""

    @property
    def is_clean(self) -> bool:
        """True when the value is legal JSON in UTF-8: no lone surrogate, no NaN, no bad byte."""
        ...

    def load(self) -> Json:
        """Return the decoded value. A Python caller's object comes back as the same object."""
        ...

    def dump(self) -> bytes:
        """Return the JSON bytes: the original ones where the value came from a file."""
        ...


class Slice(msgspec.Struct, frozen=True, gc=False):
    """A JSON value that lies in a source at ``[start, end)``.

    One for every part: a struct is made in a twentieth of the time of a frozen dataclass.
    """

    source: Source
    start: int
    end: int
    is_clean: bool = True

    def load(self) -> Json:
        """Decode the slice."""
        return decode(self.dump())

    def dump(self) -> bytes:
        """Read the slice."""
        return self.source.read(self.start, self.end)


@dataclass(frozen=True, slots=True)
class Held:
    """A JSON value that is a Python object already."""

    value: Json
    is_clean: bool = True

    def load(self) -> Json:
        """Return the object itself."""
        return self.value

    def dump(self) -> bytes:
        """Encode the object."""
        return encode(self.value)


@dataclass(frozen=True, slots=True)
class Sent:
    """What a vendor sends for a block that holds it in another form, or holds more.

    Attributes:
        block: The block; the writer of its dialect takes it instead of the value.
        value: What is sent.
    """

    block: Raw
    value: Json

    @property
    def is_clean(self) -> bool:
        """True when the block is."""
        return self.block.is_clean

    def load(self) -> Json:
        """Return what is sent."""
        return self.value

    def dump(self) -> bytes:
        """Encode what is sent."""
        return encode(self.value)


@dataclass(frozen=True, slots=True)
class Part:
    """One content block of a message.

    Attributes:
        kind: What it is.
        raw: The block as it was given. For string content: the JSON string.
        path: Keys that lead from ``raw`` to the payload (text, arguments, result content);
            empty when ``raw`` is the payload.
        author: Who wrote it, set once by the reader.
        cost_chars: Characters it costs: text of texts, thinking and results; compact JSON of calls
            and unknown blocks; four times the pixel token estimate of images.
        digest: Content hash of the canonical form (gateway wire rules), ``b""`` for thinking, which
            has no place in identity. Equal content has an equal digest in every dialect.
        call_id: Id of the call this part makes or answers, as given; "" where there is none.
        name: Tool name of a call, block type of ``other``, else "".
        is_blank: True for a text of white space only, or thinking that holds nothing.
        is_error: True for a result that reports an error or a rejection.
        has_signature: True for thinking the vendor signed (or encrypted).
        dialect: Dialect whose content block ``raw`` is; None when it has to be converted always.
        images: Images in the part as (width, height, base64 characters); 0x0 where unknown.
    """

    kind: PartKind
    raw: Raw
    path: tuple[str, ...]
    author: Author
    cost_chars: int
    digest: bytes
    call_id: str = ""
    name: str = ""
    is_blank: bool = False
    is_error: bool = False
    has_signature: bool = False
    dialect: Dialect | None = None
    images: tuple[tuple[int, int, int], ...] = ()

    def payload(self) -> Json:
        """Return the decoded payload: text, arguments (object or string) or result content."""
        value = self.raw.load()
        for key in self.path:
            value = value.get(key) if isinstance(value, dict) else None
        return value

    def text(self) -> str:
        """Return what a reader would see: texts as they are, calls as their string values."""
        if self.kind == "call":
            return "\n".join((self.name, *strings(self.payload())))
        return flat_text(self.payload())


@dataclass(frozen=True, slots=True, eq=False)
class Envelope:
    """The message object a vendor's list holds, as one unit that can go out whole.

    Attributes:
        raw: The message object; None when the source has none of that form (merged log lines).
        size: How many parts it holds. It goes out whole only when all of them are kept.
        dialect: Dialect of ``raw``.
    """

    raw: Raw | None
    size: int
    dialect: Dialect


@dataclass(frozen=True, slots=True)
class Message:
    """One canonical message. A vendor's user message that mixes results and text becomes two.

    Attributes:
        role: ``tool`` for results, whatever role the vendor gives them.
        parts: Parts in order, blank ones included.
        line: 1-based line of a log, or 1-based index in a message list.
        envelope: The vendor's message; messages split from one share the same object.
        is_active: False for messages from before a native compaction.
        model: Model that wrote an assistant message, "" where unknown.
        uid: The vendor's id of the message or line, "" where there is none.
    """

    role: Role
    parts: tuple[Part, ...]
    line: int
    envelope: Envelope
    is_active: bool = True
    model: str = ""
    uid: str = ""


Severity = Literal["error", "warning", "note"]


@dataclass(frozen=True, slots=True)
class Finding:
    """Something a reader or the validator noticed.

    Attributes:
        code: Stable short name, for example ``orphan-result``.
        detail: One sentence for a person; never conversation text.
        line: 1-based line or message number; 0 for the whole input.
        severity: ``error`` when a provider would refuse it or data is lost.
    """

    code: str
    detail: str
    line: int = 0
    severity: Severity = "error"


@dataclass(frozen=True, slots=True)
class Transcript:
    """A session as read.

    Attributes:
        format: Name of the format read, for example ``claude-code``.
        dialect: Dialect its contexts go out in by default.
        messages: Canonical messages: first those from before a native compaction
            (``is_active`` false) in file order, then the live context in chain order. A request
            that the new context repeats without its answer stays among the former, active. Rewound
            turns and side chains are not in it; findings name them.
        findings: What was odd, in line order.
        session_id: The vendor's id, "" where there is none.
        evidence: What the format was recognised by.
        bytes_read: Size of the input in bytes; 0 for Python objects.
        lines: Lines or list elements seen.
        counts: Further numbers of the format, for ``inspect`` (side-chain lines, ...).
    """

    format: str
    dialect: Dialect
    messages: tuple[Message, ...]
    findings: tuple[Finding, ...] = ()
    session_id: str = ""
    evidence: str = ""
    bytes_read: int = 0
    lines: int = 0
    counts: Mapping[str, int] = field(default_factory=dict)


def decode(data: bytes) -> Json:
    """Return the decoded JSON value, also where strict JSON forbids it.

    Lone surrogate escapes stay lone surrogates, NaN and numbers of thousands of digits become
    floats, control characters may stand in strings, bytes that are no UTF-8 become U+FFFD. Raises
    ValueError when it is no JSON at all.
    """
    try:
        return msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        try:
            return json.loads(data.decode("utf-8", "replace"), strict=False, parse_int=_number)
        except RecursionError as err:
            raise ValueError("JSON nested too deeply") from err


def _number(digits: str) -> int | float:
    """Return a whole number; one that Python refuses to read for its length as a float."""
    return int(digits) if len(digits) <= MAX_DIGITS else float(digits)


def encode(value: Json) -> bytes:
    """Return compact JSON in UTF-8; lone surrogates stay escapes, NaN stays NaN."""
    try:
        return msgspec.json.encode(value)
    except (TypeError, ValueError, UnicodeEncodeError, OverflowError, RecursionError):
        return json.dumps(value, separators=(",", ":"), default=str).encode("ascii")


def is_clean(value: Json) -> bool:
    """Return True when the value can be written as strict JSON."""
    try:
        msgspec.json.decode(msgspec.json.encode(value))
    except (TypeError, ValueError, UnicodeEncodeError, OverflowError, RecursionError):
        return False
    return not any(
        isinstance(x, float) and (x != x or abs(x) == float("inf")) for x in leaves(value)
    )


def leaves(value: Json) -> Iterator[Json]:
    """Yield the scalar leaves of a JSON value in document order, without recursion."""
    stack = [value]
    while stack:
        item = stack.pop()
        if isinstance(item, dict):
            stack.extend(reversed(item.values()))
        elif isinstance(item, list | tuple):
            stack.extend(reversed(item))
        else:
            yield item


def strings(value: Json) -> Iterator[str]:
    """Yield the string leaves of a JSON value in document order."""
    return (leaf for leaf in leaves(value) if isinstance(leaf, str))


def flat_text(content: Json) -> str:
    """Return the text of a content value: a string, or the texts of a list of blocks, in lines."""
    if isinstance(content, str):
        return content
    if content is None:
        return ""
    if isinstance(content, list):
        return "\n".join(block_text(block) for block in content)
    return block_text(content)


def block_text(block: Json) -> str:
    """Return the text of one block inside a content list; unknown blocks as compact JSON."""
    if isinstance(block, str):
        return block
    if isinstance(block, dict):
        text = block.get("text", block.get("refusal"))
        if isinstance(text, str):
            return text
        if block.get("type") in IMAGE_TYPES:
            return ""
    return encode(block).decode("utf-8", "replace")


IMAGE_TYPES = ("image", "image_url", "input_image", "computer_screenshot")


def digest(*pieces: bytes | str) -> bytes:
    """Return the unkeyed 16-byte BLAKE2b hash of length-prefixed pieces (no two lists collide)."""
    hasher = blake2b(digest_size=DIGEST_BYTES)
    for piece in pieces:
        data = piece.encode("utf-8", "surrogatepass") if isinstance(piece, str) else piece
        hasher.update(len(data).to_bytes(8, "little"))
        hasher.update(data)
    return hasher.digest()


def canonical_json(value: Json) -> bytes:
    """Return compact JSON with sorted keys: equal values give equal bytes."""
    try:
        return msgspec.json.encode(value, order="deterministic")
    except (TypeError, ValueError, UnicodeEncodeError, OverflowError, RecursionError):
        return json.dumps(value, separators=(",", ":"), sort_keys=True, default=str).encode("ascii")
