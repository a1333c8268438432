"""``recap completions``: the script that completes commands and options in a shell."""

from __future__ import annotations

import click

from recap.cli.command import Command

VARIABLE = "_RECAP_COMPLETE"


@click.command(
    "completions",
    cls=Command,
    example='recap completions zsh > "${fpath[1]}/_recap"\n'
    "recap completions bash > ~/.local/share/bash-completion/completions/recap\n"
    "recap completions fish > ~/.config/fish/completions/recap.fish",
)
@click.argument("shell", type=click.Choice(("bash", "zsh", "fish")))
def command(shell: str) -> None:
    """Print the completion script for a shell."""
    from click.shell_completion import get_completion_class

    from recap.cli import recap

    completion = get_completion_class(shell)
    assert completion is not None, "click.Choice admits only shells that click knows"
    template = completion(recap, {}, "recap", VARIABLE)
    click.echo(template.source_template % template.source_vars())
