"""What stands in the place of what was trimmed: its size, what it was, and how to get it back.

Nothing that a tool put out is copied into a stub; of the request, one value in one line.
"""

from __future__ import annotations

import hashlib
import re
from typing import NamedTuple

from recap.transcript.images import image_of, image_tokens
from recap.transcript.model import Json, encode

SHOWN_KEYS = (
    "file_path", "notebook_path", "path", "url", "command", "pattern", "query", "description",
)  # fmt: skip
"""Arguments that say what a call was about; the first that is there is shown."""

SHOWN_CHARS = 200
KEPT_CHARS = 1000
"""Characters that stay at each end of a shortened error."""

_STUB = re.compile(
    r"\[Trimmed: (?:~[0-9]+ chars|image )[^\[\]]*; restore: recap show \S+ \S+\]", re.ASCII
)
_PLAIN_ID = re.compile(r"[A-Za-z0-9_.:-]{1,100}")


class Call(NamedTuple):
    """The call a result answers: its tool, what it was about, and the id it is restored by."""

    tool: str
    about: str
    id: str


def about(arguments: Json) -> str:
    """Return what a call was about, in one harmless line of at most 200 characters; "" if unknown."""
    if not isinstance(arguments, dict):
        return ""
    texts = (arguments.get(key) for key in SHOWN_KEYS)
    return harmless(next((text for text in texts if isinstance(text, str) and text), ""))


def harmless(text: str) -> str:
    """Return a value as a stub shows it: brackets and what does not print escaped, 200 characters."""
    line = " ".join(text[: 4 * SHOWN_CHARS].split())
    if line.isprintable() and "[" not in line and "]" not in line:
        return line[:SHOWN_CHARS]
    return "".join(_escaped(character) for character in line)[:SHOWN_CHARS]


def _escaped(character: str) -> str:
    if character.isprintable() and character not in "[]":
        return character
    code = ord(character)
    return f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}"


def restorable(id: str) -> str:
    """Return the name by which trimmed content is restored: its id, or the hash of an odd one."""
    if _PLAIN_ID.fullmatch(id):
        return id
    return f"sha256:{hashlib.sha256(id.encode('utf-8', 'surrogatepass')).hexdigest()[:16]}"


def is_stub(text: str) -> bool:
    """Return True for a stub of ours, and for an error that was shortened already."""
    if len(text) > 2 * KEPT_CHARS:
        text = text[KEPT_CHARS:-KEPT_CHARS]
    return text.startswith("[Trimmed: ") and bool(_STUB.fullmatch(text))


def text_stub(chars: int, call: Call, snapshot: str) -> str:
    """Return the stub of ``chars`` characters that a call brought."""
    what = " ".join(each for each in (call.tool, call.about) if each)
    return _stub(f"~{chars} chars", f" of {what}" if what else "", snapshot, call.id)


def image_stub(block: dict[str, Json], call: Call, snapshot: str) -> str:
    """Return the stub of an image block: its type, size and estimated tokens."""
    source = block.get("source")
    media = source.get("media_type") if isinstance(source, dict) else None
    image = image_of(block)
    width, height, _ = image
    size = f" {width}x{height}" if width and height else ""
    name = harmless(media) if isinstance(media, str) else ""
    what = " ".join(each for each in (call.tool, call.about) if each)
    head = f"image {name or 'of unknown type'}{size}, ~{image_tokens(image)} tokens"
    return _stub(head, f", of {what}" if what else "", snapshot, call.id)


def payload_stub(text: str, call_id: str, snapshot: str) -> str:
    """Return the stub of what a call was to write. No tool would take it for content."""
    data = text.encode("utf-8", "surrogatepass")
    proof = hashlib.sha256(data).hexdigest()[:12]
    return _stub(f"~{len(text)} chars", f", sha256:{proof}", snapshot, restorable(call_id))


def shortened(text: str, call: Call, snapshot: str) -> str:
    """Return the first and last characters of an error around a stub of the rest."""
    cut = len(text) - 2 * KEPT_CHARS
    return text[:KEPT_CHARS] + text_stub(cut, call, snapshot) + text[-KEPT_CHARS:]


def _stub(head: str, what: str, snapshot: str, id: str) -> str:
    return f"[Trimmed: {head}{what}; restore: recap show {snapshot} {id}]"


def as_json(text: str) -> bytes:
    """Return a stub as a JSON string."""
    return encode(text)


def text_block(text: str) -> bytes:
    """Return a stub as a text block."""
    return b'{"type":"text","text":' + as_json(text) + b"}"
