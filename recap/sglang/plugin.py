"""The entry point of group ``sglang.srt.plugins``: SGLang calls ``register`` in each of its processes.

The standard library only at module level: SGLang logs and forgets an import error here. Without the
flag nothing but the two hooks of the command line is active.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from recap.sglang.compat import Role


def register() -> None:
    """Register the hooks that this process needs.

    Raises:
        RefusedError: Recap is switched on and SGLang lacks what it needs. Ends the process.
    """
    from recap.sglang import compat
    from recap.sglang.options import is_enabled

    role = compat.loading_role(sys._getframe())
    if role == "main":
        compat.install("arguments")
    if role is not None and is_enabled(os.environ):
        start(role)


def start(role: Role) -> None:
    """Register the hooks of a role of a server that is switched on. Raises RefusedError."""
    from recap.sglang import compat
    from recap.sglang.refused import RefusedError

    try:
        if missing := compat.missing(role):
            raise RefusedError(
                f"SGLang {compat.version()} lacks {', '.join(missing)}: install SGLang "
                f"{compat.OLDEST} or a later version this release knows, or leave out --enable-recap"
            )
        compat.install(role)
    except Exception as err:  # SGLang would go on without us
        raise RefusedError(f"cannot start with SGLang {compat.version()}: {err!r}") from err


def demand_applied(role: Role) -> None:
    """Raise RefusedError when SGLang has not wrapped a target of this role."""
    from recap.sglang import compat
    from recap.sglang.refused import RefusedError

    if left := compat.not_applied(role):
        raise RefusedError(
            f"SGLang {compat.version()} did not apply the hooks of {', '.join(left)}; its log says "
            "why. Leave out --enable-recap to serve without Recap"
        )
