"""The command classes: every command has an example, takes --debug, and prints help for -h."""

from __future__ import annotations

from typing import Any

import click

from recap.errors import UsageError

PLACES = ("FILE", "[FILE]", "DIR", "OUT", "GRAPH", "MODEL")
"""What options are called in help that take a file or a folder."""


class Command(click.Command):
    """A command with an example in its help; options that take a file or a folder refuse an empty name.

    Args of the constructor: ``example``, the command lines to show, and those of ``click.Command``.
    """

    def __init__(self, *args: Any, example: str, **kwargs: Any) -> None:
        lines = "\n".join(f"  {line}" for line in example.strip().split("\n"))
        kwargs["epilog"] = f"\b\nExample:\n{lines}"
        kwargs["context_settings"] = {"help_option_names": ["-h", "--help"]}
        super().__init__(*args, **kwargs)
        self.example = example
        self.params.append(click.Option(["--debug"], is_flag=True, expose_value=False, hidden=True))

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the arguments. ``-o "$OUT"`` of a variable that is not set is a mistake, not a wish."""
        rest = super().parse_args(ctx, args)
        for param in self.params:
            value = ctx.params.get(param.name or "")
            given = value if isinstance(value, tuple) else (value,)
            if param.metavar in PLACES and any(isinstance(v, str) and not v.strip() for v in given):
                raise UsageError(
                    f"{param.opts[-1]} names nothing: give it a value, or leave it out"
                )
        return rest


class CommandGroup(Command, click.Group):
    """A command that has commands of its own, each a ``Command``."""

    command_class = Command

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, no_args_is_help=False, **kwargs)
