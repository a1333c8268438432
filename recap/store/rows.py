"""The rows of the store as values, and the one place that judges them before they are written."""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, TypeAlias

from recap.errors import StoreError, UsageError

if TYPE_CHECKING:
    from collections.abc import Container

KEY_BYTES = 16
TEXT_LIMIT = 4096
"""Characters of a label, a name or another short text of a row."""

Value: TypeAlias = str | bytes | int | float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionRow:
    """One session of one tenant as one observer sees it.

    Attributes:
        tenant: 16 bytes, see ``Store.key``.
        id: 16 bytes, unique within the tenant.
        rev: Revision that was loaded; 0 for a session not stored yet.
        parent: Id of the session (epoch) that this one continues.
        label: What people know it by: a path or the client's id.
        format: Dialect of the log or message list.
        mode: observe, turn, epoch or off.
        observer: What measured the graph.
        observed_key: Turn key (hex) of the boundary that closes the settled turns; "" for none.
        turns: Settled turns in the graph.
        blocks: Blocks in the graph.
        last_response: Unix time of the last answer of the model, seconds.
        cached_tokens: Tokens the provider read from its cache for that answer.
        chars_per_token: Calibrated from the usage reported.
        created: Unix time, set when the row is first saved.
        updated: Unix time, set with each save.
        graph: Encoded context graph, at most 4 MiB.
    """

    tenant: bytes
    id: bytes
    rev: int = 0
    parent: bytes | None = None
    label: str = ""
    format: str = ""
    mode: str = ""
    observer: str = ""
    observed_key: str = ""
    turns: int = 0
    blocks: int = 0
    last_response: float | None = None
    cached_tokens: int | None = None
    chars_per_token: float | None = None
    created: float = 0.0
    updated: float = 0.0
    graph: bytes = b""


@dataclass(frozen=True, slots=True, kw_only=True)
class SelectionRow:
    """What one turn of a session was given.

    Attributes:
        tenant: Tenant of the session.
        session: Id of the session.
        turn_key: Key of the turn, 1 to 64 bytes.
        key: Key of the settings it was made with, 0 to 64 bytes.
        graph_rev: Revision of the session whose graph it was made from.
        created: Unix time, set when the row is saved.
        kept: Encoded selection, at most 4 MiB.
    """

    tenant: bytes
    session: bytes
    turn_key: bytes
    key: bytes = b""
    graph_rev: int = 0
    created: float = 0.0
    kept: bytes = b""


def check_key(name: str, value: object) -> None:
    """Raise UsageError unless the value is a key made by ``Store.key``."""
    if not isinstance(value, bytes) or len(value) != KEY_BYTES:
        raise UsageError(f"{name} must be {KEY_BYTES} bytes made by Store.key, got {_shown(value)}")


def check_bytes(name: str, value: object, low: int, high: int) -> None:
    """Raise UsageError unless the value is bytes of an allowed length."""
    if not isinstance(value, bytes) or not low <= len(value) <= high:
        raise UsageError(f"{name} must be {low} to {high} bytes, got {_shown(value)}")


def check_values(row: object, *, but: Container[str] = ()) -> None:
    """Raise UsageError for a text too long, a number SQLite cannot hold, or another type."""
    for field in fields(row):  # type: ignore[arg-type]
        value = getattr(row, field.name)
        if field.name not in but and not _is_storable(value):
            raise UsageError(f"{field.name} cannot be stored: got {_shown(value)}")


def _is_storable(value: object) -> bool:
    if isinstance(value, str):
        return len(value) <= TEXT_LIMIT
    if isinstance(value, int):
        return 0 <= value < 1 << 63
    if isinstance(value, float):
        return math.isfinite(value)  # SQLite turns NaN into NULL
    return value is None or isinstance(value, bytes)


def _shown(value: object) -> str:
    if isinstance(value, bytes | str):
        return f"{len(value)} {'bytes' if isinstance(value, bytes) else 'characters'}"
    return type(value).__name__ if not isinstance(value, float) else repr(value)


def to_column(value: Value) -> Value:
    """Return the value as SQLite takes it: a text that is no UTF-8 goes in as bytes."""
    if not isinstance(value, str):
        return value
    data = value.encode("utf-8", "surrogatepass")
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return data
    return value


def to_text(value: Any) -> str:
    """Return a text column as it was given."""
    return value.decode("utf-8", "surrogatepass") if isinstance(value, bytes) else str(value)


def seal(*values: Value) -> bytes:
    """Return 16 bytes that prove a row: SHA-256 of its columns, then of the bytes among them."""
    digest = hashlib.sha256(ascii([_sealable(value) for value in values]).encode())
    for value in values:
        if isinstance(value, bytes):
            digest.update(value)
    return digest.digest()[:KEY_BYTES]


def _sealable(value: Value) -> object:
    if isinstance(value, bytes):
        return (len(value),)
    return value if isinstance(value, str) or value is None else value + 0.0  # 1 and 1.0 are alike


def check_seal(found: object, *values: Value) -> None:
    """Raise StoreError when a row is not what was written."""
    if found != seal(*values):
        raise StoreError("a row of the store is damaged; run: recap verify --repair")
