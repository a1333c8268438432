"""The command line of a server: two flags, an alias, and what cannot run together.

``--attention-backend recap[:INNER]`` means ``--enable-recap --attention-backend INNER``: SGLang asks
for the name of a backend in many places, so the name that stays is the inner one's.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from recap.errors import SettingsError, shown
from recap.sglang import compat
from recap.sglang.options import Options, is_enabled
from recap.sglang.plugin import demand_applied, start
from recap.sglang.refusals import refuse_arguments
from recap.sglang.refused import RefusedError

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from collections.abc import Callable

ALIAS = "recap"


def add_flags(original: Callable[[ArgumentParser], None], parser: ArgumentParser) -> None:
    """Add our flags and aliases to a parser of server arguments."""
    choices = compat.backend_choices()
    names = [name for name in choices if name.partition(":")[0] != ALIAS]
    aliases = [ALIAS, *(f"{ALIAS}:{name}" for name in names)]
    choices.extend(alias for alias in aliases if alias not in choices)
    original(parser)
    group = parser.add_argument_group("recap")
    group.add_argument(
        "--enable-recap",
        action="store_true",
        help="build context graphs of sessions from the attention of the served model",
    )
    group.add_argument(
        "--recap-config",
        metavar="JSON|@FILE",
        help="settings of Recap as a JSON object, or a file that holds one; needs --enable-recap",
    )


def read_flags(original: Callable[[type, Namespace], Any], cls: type, args: Namespace) -> Any:
    """Return SGLang's server arguments; switch Recap on where they ask for it.

    Raises:
        RefusedError: The configuration is wrong, or something asked for cannot be measured.
    """
    _switch(args)
    return original(cls, args)


def _switch(arguments: Namespace) -> None:
    wanted = _take_alias(arguments)
    wanted |= bool(getattr(arguments, "enable_recap", False)) or is_enabled(os.environ)
    config = getattr(arguments, "recap_config", None)
    if not wanted:
        if config is not None:
            raise RefusedError("--recap-config needs --enable-recap")
        return
    try:
        if config is None:
            options = Options.inherited(os.environ)
        else:
            options = Options.read(config, os.environ)
    except SettingsError as err:
        raise RefusedError(str(err)) from err
    refuse_arguments(arguments, os.environ)
    os.environ.update(options.environment())
    if missing := compat.missing("scheduler"):  # before a model is loaded
        raise RefusedError(f"SGLang {compat.version()} lacks {', '.join(missing)}")
    start("main")
    compat.apply()
    for role in ("arguments", "main"):
        demand_applied(role)


def _take_alias(arguments: Namespace) -> bool:
    """Put the inner backend's name in place of the alias; return whether there was one."""
    for phase in ("decode", "prefill"):
        name = getattr(arguments, f"{phase}_attention_backend", None) or ""
        if name.partition(":")[0] == ALIAS:
            raise RefusedError(
                f"--{phase}-attention-backend {shown(name)}: Recap wraps the backends of all phases; "
                f"give --attention-backend {ALIAS}, or --enable-recap and the name of the backend"
            )
    name = getattr(arguments, "attention_backend", None) or ""
    alias, _, inner = name.partition(":")
    if alias != ALIAS:
        return False
    arguments.attention_backend = inner or None
    return True
