"""Every error Recap raises on purpose.

::

    RecapError
    ├── UsageError          the caller asked for something that does not exist (exit status 2)
    │   └── SettingsError   an unknown setting, or a value out of its range
    ├── InputError          the input cannot be used (exit status 1)
    │   ├── UnknownFormatError   no reader recognises it, or its reader is not built
    │   └── GraphFormatError     bytes that are no context graph of a known version
    ├── StoreError          the store cannot be opened, read or written (exit status 1)
    │   └── ConflictError   another process saved the row first: load it again
    ├── CaptureError        attention of a turn could not be measured: no observation of it
    ├── NotInstalledError   a package of an extra, or a model, is not installed (exit status 1)
    ├── MethodError         a method of the study cannot run: a package or a model is missing
    └── InvalidContextError  a rendered context failed its own check: a bug of ours, never sent
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import os

SHOWN_CHARS = 60
"""Characters of a value that an error repeats."""

SHOWN_PATH_CHARS = 200


def shown(value: object) -> str:
    """Return a value as an error repeats it: its ``repr``, cut to ``SHOWN_CHARS``."""
    if isinstance(value, int) and abs(value) > 10**SHOWN_CHARS:
        return f"a number of more than {SHOWN_CHARS} digits"  # repr refuses to print the largest
    try:
        text = repr(value[: SHOWN_CHARS + 1] if isinstance(value, str | bytes) else value)
    except ValueError:  # an integer inside is too large to be printed
        return f"a {type(value).__name__} too large to be shown"
    return text if len(text) <= SHOWN_CHARS else f"{text[: SHOWN_CHARS - 3]}..."


def shown_path(path: str | os.PathLike[str], most: int = SHOWN_PATH_CHARS) -> str:
    """Return a path as a message repeats it: above ``most`` characters, cut in the middle."""
    text = str(path)
    if len(text) <= most:
        return text
    head = (most - 3) // 3
    return f"{text[:head]}...{text[len(text) - (most - 3 - head) :]}"


def counted(value: int, noun: str, plural: str = "") -> str:
    """Return "1 block" or "12 blocks"."""
    return f"{value:,} {noun if value == 1 else plural or noun + 's'}"


class RecapError(Exception):
    """Base class. Its text is one line for the user: what is wrong, and the next step."""


class UsageError(RecapError):
    """An argument names something that does not exist or cannot be combined."""


class SettingsError(UsageError):
    """A setting is unknown, malformed or out of range."""


class InputError(RecapError):
    """A file or message list cannot be used at all."""


class UnknownFormatError(InputError):
    """No reader recognises the input; the text names what was tried."""


class GraphFormatError(InputError):
    """Bytes are not a context graph of a version this release reads."""


class StoreError(RecapError):
    """The store is damaged, locked, of a newer release, or cannot be written."""


class ConflictError(StoreError):
    """A row was saved by another process since it was loaded."""


class CaptureError(RecapError):
    """Attention of a turn could not be measured, or not surely: there is no observation of it.

    Attributes:
        reason: Kind of the failure, a word or two joined by hyphens, to count by.
    """

    def __init__(self, reason: str, text: str) -> None:
        super().__init__(text)
        self.reason = reason

    def __reduce__(self) -> tuple[type[CaptureError], tuple[str, str]]:
        """Return how it is made again in another process."""
        return type(self), (self.reason, str(self))


class NotInstalledError(RecapError):
    """What is optional and needed now is not installed. The text names the command that gets it."""


class MethodError(RecapError):
    """A method cannot run here: a package, a model or an endpoint is missing. The text says which."""


class InvalidContextError(RecapError):
    """A rendered context broke a rule of its dialect. It was not returned."""
