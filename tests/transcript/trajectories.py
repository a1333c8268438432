"""What the tests of trajectories, event lists and chat histories share beside ``agents``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from recap.errors import InputError
from recap.transcript.formats import read_bytes
from tests.transcript.agents import parts

if TYPE_CHECKING:
    from collections.abc import Callable

    from recap.transcript.model import Part, Transcript

MANGLE: tuple[Callable[[bytes], bytes], ...] = (
    lambda data: data[: len(data) // 2],
    lambda data: data[: len(data) // 2] + b"\xff\xfe\x80" + data[len(data) // 2 :],
    lambda data: data.replace(b"e", rb"\ud83d", 3),
    lambda data: data.replace(b"a", b"\0", 2),
    lambda data: b"\xef\xbb\xbf" + data.replace(b"\n", b"\r\n"),
    lambda data: data + b"[" * 100_000,
    lambda data: b"[" * 100_000 + data,
    lambda data: data.replace(b"{", b'{"x":' + b"[" * 500 + b"]" * 500 + b',"y":NaN,', 1),
)
"""Ways to break a file, whether it is one document or not."""


def assert_read_or_refused(data: bytes, format: str | None) -> None:
    """A file is read, or refused in one line that names it."""
    try:
        read_bytes(data, format=format, name="log")
    except InputError as err:
        message = str(err)
    else:
        message = "log: "
    assert message.startswith("log: ")
    assert "\n" not in message


def user_authors(transcript: Transcript) -> list[str]:
    """Return the authors of the parts in the user role."""
    return [part.author for m in transcript.messages if m.role == "user" for part in m.parts]


def found(transcript: Transcript) -> list[tuple[str, int]]:
    """Return the code and line of each finding."""
    return [(finding.code, finding.line) for finding in transcript.findings]


def tools(transcript: Transcript) -> list[Part]:
    """Return the calls and results in order."""
    return [part for part in parts(transcript) if part.kind in ("call", "result")]
