"""What ends a server instead of letting it run without statistics."""

from __future__ import annotations


class RefusedError(SystemExit):
    """The server must not start like this: one line that names the way out, exit status 1.

    SGLang logs and forgets an ``Exception`` of a plugin; a ``SystemExit`` ends the process.
    """

    def __init__(self, text: str) -> None:
        super().__init__(f"recap: {text}")
