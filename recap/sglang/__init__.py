"""Recap inside SGLang: attention statistics of the served model, one server flag, no changed file.

``recap.sglang.plugin`` is the entry point that SGLang finds. Nothing here is imported by
``import recap``, and SGLang only by what runs inside it.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping


def enable(config: Mapping[str, object] | None = None) -> None:
    """Switch Recap on for ``sglang.Engine``, which has no command line. Call it before the Engine.

    Args:
        config: What ``--recap-config`` takes, see ``recap.sglang.options.Options``.

    Raises:
        SettingsError: A name is unknown or a value out of its bounds.
        UsageError: SGLang has loaded its plugins already.
    """
    from recap.errors import UsageError
    from recap.sglang.options import Options

    plugins = sys.modules.get("sglang.srt.plugins")
    if getattr(plugins, "_plugins_loaded", False):
        raise UsageError("recap.enable() must come before the first sglang.Engine of the process")
    os.environ.update(Options.of(config or {}, os.environ).environment())
