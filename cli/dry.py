"""Dry runs: a command says what it would do, and cannot do it.

A command with ``--dry-run`` gets a hub that sends nothing that would change something (:class:`cli.rest.Rest`, and the
clients of :class:`cli.operators.deployment.Deployment`): what it forgets to ask for itself ends in :class:`NotDone`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

_Command = TypeVar("_Command", bound=Callable[..., Any])


class NotDone(Exception):
    """A dry run came to the first thing that it would do.

    Args:
        call: The request, or the call of AWS.
        body: What would be sent with it.
    """

    def __init__(self, call: str, body: Any = None) -> None:
        super().__init__(call)
        self.call = call
        self.body = body


def _as_dry(context: click.Context, _: click.Parameter, value: bool) -> None:
    context.obj.dry_run = value


def changes(command: _Command) -> _Command:
    """``--dry-run`` for a command that changes something."""
    option = click.option(
        "--dry-run",
        is_flag=True,
        expose_value=False,
        callback=_as_dry,
        help="Change nothing; only say what would be done.",
    )
    return option(command)
