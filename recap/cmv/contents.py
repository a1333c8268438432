"""What the message of one line holds: which of it may go, what it costs, and proof of its words."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from recap.cmv.records import BARE_BLOCK, NULL_BLOCK, Block, Record, chars_of, text_of
from recap.cmv.stubs import is_stub
from recap.transcript.authors import classify_text
from recap.transcript.images import image_cost_chars, image_of
from recap.transcript.links import key_of
from recap.transcript.model import IMAGE_TYPES, Json, decode

if TYPE_CHECKING:
    from collections.abc import Sequence

    from recap.cmv.options import TrimOptions

USER: Final = 1
ASSISTANT: Final = 2
SIDE: Final = 4  # of a side chain
META: Final = 8  # a machine wrote it in the user role
SOLID: Final = 16  # holds a block that is always kept
RESULT: Final = 32  # holds a result
THINKING: Final = 64  # holds thinking
NULLS: Final = 128  # holds a null block
LONG: Final = 256  # holds a result that may become a stub
ERROR: Final = 512  # holds a long result that reports an error
BLOCKS: Final = 1024  # its message may change, and not by one result alone
NO_MESSAGE: Final = 2048  # its message is null or missing: the client cannot resume the file
PROGRESS: Final = 4096
ATTACHMENT: Final = 8192
USAGE: Final = 16384
COPY: Final = 32768  # holds a long copy of a result
SCAN: Final = 65536  # what goes was not found at first sight
WORDS: Final = 1 << 17  # holds words that have to stay
TEXT: Final = 1 << 18  # from this bit on: the number of its texts
MOST_TEXTS: Final = (1 << 14) - 1  # that are counted of one line

WRITES = ("Write", "Edit", "MultiEdit", "NotebookEdit")
STUBBED = b'"[Trimmed: '
THINKING_TYPES = ("thinking", "redacted_thinking")


class Reader:
    """Reads what lines hold, under the options of one trim."""

    def __init__(self, options: TrimOptions) -> None:
        self.options = options
        self.least = options.least
        self.is_verbatim = options.requests == "keep"
        self.may_change_texts = options.stub_local_output or options.strip_user_images

    def message(self, record: Record) -> tuple[int, int, int, tuple[int, ...]]:
        """Return what a user or assistant line holds.

        Flags, characters that are sent, a hash of its words (0 without any), the keys of the calls
        it makes or answers.
        """
        message = record.message
        role = USER if record.type == "user" else ASSISTANT
        if message is None:
            return role | NO_MESSAGE, 0, 0, ()
        content = message.content
        if type(content) is list:
            if len(content) == 1:
                flags, cost, said, tool = self._block(content[0], role)
                tools: tuple[int, ...] = (tool,) if tool else ()
            else:
                flags, cost, said, tools = self._several(content, role)
        elif type(content) is str:
            (flags, cost, said, _), tools = self._text(content, role), ()
        else:
            flags, cost, said, tools = SOLID, 0, 0, ()
        if record.isApiErrorMessage:
            cost = 0
        if said:
            said = hash((said, record.timestamp, message.model))
            flags |= WORDS
        return flags | role | META if record.isMeta else flags | role, cost, said, tools

    def words(self, record: Record) -> int:
        """Return the hash of a line's words as ``message`` does; faster for the common line."""
        message = record.message
        content = message.content if message is not None else None
        if type(content) is list and len(content) == 1 and not self.may_change_texts:
            block = content[0]
            if block.type == "text" and block.text:
                return hash((hash(block.text), record.timestamp, message.model))  # type: ignore[union-attr]
            if block.type == "tool_use" and record.type == "assistant" and self.is_verbatim:
                said = hash((block.id, block.name, bytes(block.input)))
                return hash((said, record.timestamp, message.model))  # type: ignore[union-attr]
        return self.message(record)[2]

    def _several(self, blocks: Sequence[Block], role: int) -> tuple[int, int, int, tuple[int, ...]]:
        flags = cost = said = texts = 0
        tools = []
        for block in blocks:
            each, size, words, tool = self._block(block, role)
            texts += each // TEXT
            flags |= each % TEXT
            cost += size
            said = hash((said, words)) if said and words else said or words
            if tool:
                tools.append(tool)
        if flags & (LONG | THINKING | NULLS):
            flags |= BLOCKS
        return flags + min(texts, MOST_TEXTS) * TEXT, cost, said, tuple(tools)

    def _block(self, block: Block, role: int) -> tuple[int, int, int, int]:
        kind = block.type
        if kind == "text":
            return self._text(block.text or "", role)
        if kind == "tool_result" and role == USER:
            return self._result(block)
        if kind == "tool_use" and role == ASSISTANT:
            return self._call(block)
        if kind in THINKING_TYPES and role == ASSISTANT:
            return THINKING, len(block.thinking or block.data or ""), 0, 0
        if kind in IMAGE_TYPES:
            return self._image(block, role)
        if kind == NULL_BLOCK:
            return NULLS, 0, 0, 0
        if kind.endswith("_tool_result") and role == USER:
            return self._result(block)
        held = bytes(block.input), bytes(block.content)
        return SOLID, 0 if kind == BARE_BLOCK else sum(map(len, held)), hash((kind, held)), 0

    def _text(self, text: str, role: int) -> tuple[int, int, int, int]:
        if role == USER and self.may_change_texts:
            return self._changing_text(text)
        return SOLID + TEXT, len(text), hash(text), 0

    def _changing_text(self, text: str) -> tuple[int, int, int, int]:
        """Read a text of the user role where pasted images or local output become stubs."""
        if self.options.strip_user_images and is_stub(text):
            return SOLID, len(text), 0, 0
        flags, words = SOLID + TEXT, text
        if self.options.stub_local_output and (outputs := local_outputs(text)):
            words = without(text, outputs)
            lengths = (end - start for start, end in outputs)
            flags |= BLOCKS if max(lengths) > self.options.threshold else 0
        return flags, len(text), hash(words), 0

    def _image(self, block: Block, role: int) -> tuple[int, int, int, int]:
        source = bytes(block.source)
        cost = image_cost_chars(image_of({"source": decode(source or b"null")}))
        if self.options.strip_user_images and role == USER:
            return SOLID | BLOCKS, cost, 0, 0
        return SOLID, cost, hash(source), 0

    def _call(self, block: Block) -> tuple[int, int, int, int]:
        arguments = bytes(block.input)
        tool = key_of(block.id) if block.id and block.name else 0
        requests = self.options.requests
        if requests == "keep":
            return SOLID, len(arguments), hash((block.id, block.name, arguments)), tool
        flags, words = SOLID, hash((block.id, block.name))
        if len(arguments) > self.options.threshold:
            flags |= BLOCKS if requests == "paper" or block.name in WRITES else 0
        return flags, len(arguments), words, tool

    def _result(self, block: Block) -> tuple[int, int, int, int]:
        tool = key_of(block.tool_use_id) if block.tool_use_id else 0
        raw = bytes(block.content)
        if raw[:1] == b"[":
            flags, cost = self._result_list(block, decode(raw))
            return flags | RESULT, cost, 0, tool
        chars = chars_of(raw)
        if chars <= self.least:
            return RESULT, chars, 0, tool
        known = text_of(raw) or "" if block.is_error or raw.startswith(STUBBED) else ""
        return RESULT | self._long(block, known), chars, 0, tool

    def _result_list(self, block: Block, content: Sequence[Json]) -> tuple[int, int]:
        texts = texts_in(content)
        chars = sum(map(len, texts))
        images = [each for each in content if is_image(each)]
        flags = LONG if images else 0
        if chars > self.least:
            flags |= self._long(block, texts[0] if len(texts) == 1 else "")
        return flags, chars + sum(image_cost_chars(image_of(each)) for each in images)

    def _long(self, block: Block, text: str) -> int:
        if is_stub(text):
            return 0
        if not block.is_error:
            return LONG
        return ERROR | BLOCKS if self.options.stub_errors else ERROR


_LOCAL = re.compile(
    r"<(bash-stdout|bash-stderr|local-command-stdout|local-command-stderr)>(.*?)</\1>", re.DOTALL
)


def local_outputs(text: str) -> list[tuple[int, int]]:
    """Return where output of local commands stands in a text that is theirs, the tags apart."""
    if not text.lstrip().startswith("<") or classify_text(text) != "local":
        return []
    return [match.span(2) for match in _LOCAL.finditer(text)]


def without(text: str, spans: Sequence[tuple[int, int]], new: Sequence[str] = ()) -> str:
    """Return a text with other texts, or none, in place of the spans."""
    pieces = []
    at = 0
    for number, (start, end) in enumerate(spans):
        pieces.append(text[at:start])
        pieces.extend(new[number : number + 1])
        at = end
    return "".join((*pieces, text[at:]))


def is_image(block: Json) -> bool:
    """Return True for a decoded image block."""
    return isinstance(block, dict) and block.get("type") in IMAGE_TYPES


def texts_in(content: Sequence[Json]) -> list[str]:
    """Return the texts of a result's decoded content list."""
    return [
        each["text"]
        for each in content
        if isinstance(each, dict)
        and each.get("type") == "text"
        and isinstance(each.get("text"), str)
    ]
