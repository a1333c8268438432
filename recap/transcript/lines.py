"""Bytes of a log to records: sources, exact slices of JSON values, lines and their salvage."""

from __future__ import annotations

import msgspec

from recap.transcript.model import Held, Raw, Slice, is_clean
from recap.transcript.spans import Span, element_spans, member_spans


def members(raw: Raw) -> dict[str, Raw]:
    """Return handles on the members of a JSON object, exact bytes or very objects; {} if none."""
    if isinstance(raw, Slice):
        data = raw.dump()
        try:
            spans = member_spans(data)
        except ValueError:
            return {}
        return {key: _sub_slice(raw, data, span) for key, span in spans.items()}
    value = raw.load()
    if not isinstance(value, dict):
        return {}
    return {key: _held(item, raw.is_clean) for key, item in value.items()}


def elements(raw: Raw) -> list[Raw]:
    """Return handles on the elements of a JSON array, exact bytes or very objects; [] if none."""
    if isinstance(raw, Slice):
        data = raw.dump()
        try:
            spans = element_spans(data)
        except ValueError:
            return []
        return [_sub_slice(raw, data, span) for span in spans]
    value = raw.load()
    if not isinstance(value, list | tuple):
        return []
    return [_held(item, raw.is_clean) for item in value]


def _sub_slice(raw: Slice, data: bytes, span: Span) -> Slice:
    start, end = span
    clean = raw.is_clean or is_strict(data[start:end])
    return Slice(raw.source, raw.start + start, raw.start + end, clean)


def _held(value: object, parent_is_clean: bool) -> Held:
    return Held(value, parent_is_clean or is_clean(value))


def is_strict(data: bytes) -> bool:
    """Return True when the bytes are one value of strict JSON in UTF-8."""
    try:
        msgspec.json.decode(data, type=msgspec.Raw)  # checks the syntax, not the encoding
        if not data.isascii():
            data.decode("utf-8")
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False
    return True
