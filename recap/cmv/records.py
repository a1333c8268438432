"""Lines of a Claude Code log as the trimmer reads them: one typed decode, texts left as bytes.

Most lines hold what their types say. What does not is read again without types, so that an odd field
is an odd field and no lost line.
"""

from __future__ import annotations

from typing import Any

import msgspec

from recap.transcript.lines import parse
from recap.transcript.model import decode
from recap.transcript.spans import is_deep

ABSENT = msgspec.Raw(b"")
"""Stands for a field that a line does not have."""


class Block(msgspec.Struct, gc=False):
    """A content block."""

    type: str = ""
    id: str | None = None
    tool_use_id: str | None = None
    name: str | None = None
    is_error: bool | None = None
    text: str | None = None
    thinking: str | None = None
    data: str | None = None
    input: msgspec.Raw = ABSENT
    content: msgspec.Raw = ABSENT
    source: msgspec.Raw = ABSENT


class Said(msgspec.Struct, gc=False):
    """The message of a line. Blocks of a list that is not all objects are ``Odd``."""

    id: str | None = None
    model: str | None = None
    usage: msgspec.Raw = ABSENT
    content: str | list[Block] | None = None


class Record(msgspec.Struct, gc=False):
    """The fields of a line that the trimmer reads; their names are the client's."""

    type: str = ""
    uuid: str | None = None
    parentUuid: str | None = ""  # noqa: N815
    timestamp: str | None = None
    version: str | None = None
    subtype: str | None = None
    sourceToolAssistantUUID: str | None = None  # noqa: N815
    isSidechain: bool | None = None  # noqa: N815
    isMeta: bool | None = None  # noqa: N815
    isApiErrorMessage: bool | None = None  # noqa: N815
    message: Said | None = None
    usage: msgspec.Raw = ABSENT
    toolUseResult: msgspec.Raw = ABSENT  # noqa: N815
    attachment: msgspec.Raw = ABSENT


NULL_BLOCK = "null"
BARE_BLOCK = "bare"
"""Types that stand for blocks that are no objects; no vendor's block has them."""

_RECORD = msgspec.json.Decoder(Record)
_RAWS = msgspec.json.Decoder(list[msgspec.Raw])
_BLOCK = msgspec.json.Decoder(Block)
_FIELDS = msgspec.json.Decoder(dict[str, msgspec.Raw])

FAILURES = (msgspec.DecodeError, RecursionError)

decode_record = _RECORD.decode


def record_of(data: bytes) -> tuple[Record | None, bytes]:
    """Return the record of a line, and bytes that can be decoded; see ``loose_record``."""
    try:
        return decode_record(data), data
    except FAILURES:
        return loose_record(data)


def loose_record(data: bytes) -> tuple[Record | None, bytes]:
    """Return the record of a line that the typed decoder refused, and bytes that can be decoded.

    They are the line's own, or of equal length with what strict JSON forbids replaced. None is a line
    of JSON that is no object.

    Raises:
        ValueError: The line is no JSON.
    """
    if is_deep(data):
        raise ValueError("nests too deeply")
    parsed = parse(data, _FIELDS)
    fields, read = parsed.value, parsed.data
    if fields is None:
        return None, read
    record = _filled(Record(), fields)
    if "message" in fields:
        record.message = _loose_message(bytes(fields["message"]))
    return record, read


def _loose_message(raw: bytes) -> Said | None:
    try:
        fields = _FIELDS.decode(raw)
    except FAILURES:
        return None
    message: Said = _filled(Said(), fields)
    message.content = _loose_content(bytes(fields.get("content", ABSENT)))
    return message


def _loose_content(raw: bytes) -> str | list[Block] | None:
    if raw[:1] == b'"':
        return text_of(raw)
    try:
        return list(map(loose_block, raw_elements(raw)))
    except FAILURES:
        return None


def raw_elements(raw: bytes) -> list[bytes]:
    """Return the elements of an array as they stand; raises one of ``FAILURES`` for what is none."""
    return list(map(bytes, _RAWS.decode(raw)))


def loose_block(raw: bytes) -> Block:
    """Return a block; what is no object has a type that says so."""
    try:
        return _BLOCK.decode(raw)
    except FAILURES:
        pass
    try:
        block: Block = _filled(Block(), _FIELDS.decode(raw))
    except FAILURES:
        return Block(NULL_BLOCK if raw == b"null" else BARE_BLOCK)
    block.type = block.type or ""
    return block


def _filled(struct: Any, fields: dict[str, msgspec.Raw]) -> Any:
    """Set the fields of a struct that have the right type; the others stay absent."""
    for key, raw in fields.items():
        kind = struct.__annotations__.get(key)
        if kind == "msgspec.Raw":
            setattr(struct, key, raw)
        elif kind in _SCALARS:
            value = decode(bytes(raw))
            if value is None or isinstance(value, _SCALARS[kind]):
                setattr(struct, key, value)
    return struct


_SCALARS = {"str": str, "str | None": str, "bool | None": bool}


def text_of(raw: bytes) -> str | None:
    """Return the text of a JSON string; None for any other value."""
    if raw[:1] != b'"':
        return None
    value = decode(raw)
    return value if isinstance(value, str) else None


def chars_of(raw: bytes) -> int:
    """Return the characters of a JSON string; 0 for any other value."""
    if raw[:1] != b'"':
        return 0
    if b"\\" not in raw and raw.isascii():
        return len(raw) - 2
    return len(text_of(raw) or "")
