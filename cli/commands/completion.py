"""``pushhub completion``."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from ..framework import Printing


@click.command(cls=Printing)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print the code with which a shell completes commands, options and names of queues.

    For bash: eval "$(pushhub completion bash)" in ~/.bashrc.
    """
    kind = get_completion_class(shell)
    if kind is None:
        raise click.UsageError(f"{shell} is not known")
    click.echo(kind(context.find_root().command, {}, "pushhub", "_PUSHHUB_COMPLETE").source())
