"""The command classes: every command has an example, takes --debug, and prints help for -h."""

from __future__ import annotations

from typing import Any

import click


class Command(click.Command):
    """A command with an example in its help.

    Args of the constructor: ``example``, the command lines to show, and those of ``click.Command``.
    """

    def __init__(self, *args: Any, example: str, **kwargs: Any) -> None:
        lines = "\n".join(f"  {line}" for line in example.strip().split("\n"))
        kwargs["epilog"] = f"\b\nExample:\n{lines}"
        kwargs["context_settings"] = {"help_option_names": ["-h", "--help"]}
        super().__init__(*args, **kwargs)
        self.example = example
        self.params.append(click.Option(["--debug"], is_flag=True, expose_value=False, hidden=True))


class CommandGroup(Command, click.Group):
    """A command that has commands of its own, each a ``Command``."""

    command_class = Command

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, no_args_is_help=False, **kwargs)
