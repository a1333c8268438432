"""Branches of sessions that are one document, or a list with one message a line."""

from __future__ import annotations

import re
import secrets
from typing import TYPE_CHECKING

from recap.cmv.facts import OPENCODE
from recap.cmv.streams import spliced
from recap.errors import UsageError
from recap.transcript.formats import Input, format_named
from recap.transcript.items import items_of
from recap.transcript.lines import Rows
from recap.transcript.model import Json, Raw, Slice, encode
from recap.transcript.repair.patch import Edit

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from recap.transcript.sources import Sized

_OWN_ID = re.compile(
    rb'("(?:id|sessionID|messageID|parentID)"\s*:\s*)"((?:ses|msg|prt)_[0-9A-Za-z]{1,60})"'
)
_ID = re.compile(r"(ses|msg|prt)_([0-9a-f]{12})[0-9A-Za-z]{1,48}")
_STAMP_MASK = (1 << 48) - 1
_TAIL = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"


def _plain(text: str) -> Json:
    return {"role": "user", "content": text}


_USER: Mapping[str, Callable[[str], Json]] = {
    "anthropic-messages": _plain,
    "openai-chat": _plain,
    "openai-responses": lambda text: {
        "type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]
    },
    "gemini-contents": lambda text: {"role": "user", "parts": [{"text": text}]},
    "langchain": lambda text: {"type": "human", "data": {"content": text}},
}  # fmt: skip
"""A user's message in each format of message lists."""


def with_message(source: Sized, format: str, text: str) -> bytes:
    """Return a message list with a user's message behind its last one.

    Raises:
        UsageError: It is not known how a message of this format is made, or the list is empty.
    """
    make = _USER.get(format)
    if make is None:
        raise UsageError(f"an orientation message cannot be added to a session of {format}")
    return _appended(source, format, lambda _: make(text))


def opencode_branch(source: Sized, session: str, text: str, now: float) -> bytes:
    """Return an OpenCode export under a new id, its messages and parts under new ids as well.

    OpenCode keeps messages of all sessions by id: those it knows already it would not import. Ids
    sort as before.

    Args:
        source: The export.
        session: Id of the new session.
        text: An orientation message, "" for none.
        now: Unix time, seconds.
    """
    data = source.read(0, source.size)
    if text:
        data = _appended(source, OPENCODE, lambda last: _opencode_message(last, text, now))
    new_ids: dict[bytes, bytes] = {}
    own = _session_id(source)

    def new_id(match: re.Match[bytes]) -> bytes:
        old = match[2]
        if old.startswith(b"ses_"):
            new = session.encode() if old.decode() == own else old
        else:
            new = new_ids.setdefault(old, _renewed(old.decode()).encode())
        return match[1] + b'"' + new + b'"'

    return _OWN_ID.sub(new_id, data)


def opencode_session_id(now: float) -> str:
    """Return a new id of a session; newer ones sort first."""
    stamp = ~(int(now * 1000) * 4096 + secrets.randbelow(4096)) & _STAMP_MASK
    return f"ses_{stamp:012x}{_random_tail()}"


def _appended(source: Sized, format: str, message: Callable[[Json], Json]) -> bytes:
    given = Input(source)
    given.is_record = format_named(format).is_record
    document = given.document()
    items: Sequence[Raw] = items_of(document)[0]
    last = items[-1] if items else None
    if not isinstance(last, Slice):
        raise UsageError("the session has no message; an orientation message goes behind the last")
    separator = b"\n" if isinstance(document, Rows) else b","
    data = source.read(0, source.size)
    return spliced(data, [Edit(last.end, last.end, separator + encode(message(last.load())))])


def _opencode_message(last: Json, text: str, now: float) -> Json:
    info = last.get("info") if isinstance(last, dict) else None
    info = info if isinstance(info, dict) else {}
    model = info.get("model") or {
        name: info[name] for name in ("providerID", "modelID") if name in info
    }
    match = _ID.fullmatch(str(info.get("id")))
    # The digits of an id wrap around every two years: what follows has to sort behind it anyway.
    least = int(match[2], 16) + 1 if match else 0
    stamp = f"{max(least, int(now * 1000) * 4096 & _STAMP_MASK):012x}"
    message_id, part_id = (f"{kind}_{stamp}{_random_tail()}" for kind in ("msg", "prt"))
    ids = {"sessionID": info.get("sessionID", "")}
    told = {
        name: value for name, value in (("agent", info.get("agent")), ("model", model)) if value
    }
    head = {"role": "user", "time": {"created": int(now * 1000)}, **told, "id": message_id, **ids}
    part = {"type": "text", "text": text, "id": part_id, **ids, "messageID": message_id}
    return {"info": head, "parts": [part]}


def _session_id(source: Sized) -> str:
    from recap.transcript.formats import read_source

    return read_source(source, OPENCODE).session_id


def _renewed(id: str) -> str:
    """Return an id of the same time; one of another shape stays."""
    match = _ID.fullmatch(id)
    return f"{match[1]}_{match[2]}{_random_tail()}" if match else id


def _random_tail() -> str:
    return "".join(secrets.choice(_TAIL) for _ in range(14))
