"""``pushhub up``, ``down``, ``status``: the hub on this machine."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import TYPE_CHECKING, Any, TypeVar

import click

from ..clone import folder
from ..framework import Command
from ..hub import UNREACHABLE, HubOptions, NoHub

if TYPE_CHECKING:
    from local.place import Place
    from local.stack import Description

_T = TypeVar("_T")


def _in_the_clone(do: Callable[[ModuleType, Place], _T]) -> _T:
    """Do something with the stack of this clone."""
    if folder() is None:
        raise click.ClickException("the local hub runs from a clone of its repository, and there is none here")
    # What is installed without a clone has none of this.
    from local.errors import LocalError  # noqa: PLC0415
    from local.place import Place  # noqa: PLC0415

    from local import stack  # noqa: PLC0415

    try:
        return do(stack, Place.from_environment())
    except LocalError as error:
        raise click.ClickException(str(error)) from error


def _shown(description: Description) -> list[dict[str, Any]]:
    return [{"url": description.base_url, "project": description.project_id, "token": description.token}]


@click.command(cls=Command)
@click.pass_obj
def up(hub: HubOptions) -> None:
    """Start the hub on this machine if it is not running, and say how to reach it."""
    hub.show(_shown(_in_the_clone(lambda stack, place: stack.up(place, hub.note))))


@click.command(cls=Command)
@click.pass_obj
def down(hub: HubOptions) -> None:
    """Stop the hub on this machine and keep its state."""
    ran = _in_the_clone(lambda stack, place: stack.down(place, hub.note))
    hub.note("Pushhub is down." if ran else "Pushhub was not running.")


@click.command(cls=Command)
@click.pass_obj
def status(hub: HubOptions) -> int:
    """Check whether the hub answers, and as which project: the profile's hub, or the one on this machine.

    In a clone, its processes are looked at too, and a message is sent through the hub on this machine.
    """
    if hub.settings().url or folder() is None:
        rest = hub.rest()
        rest.call("GET", rest.queues, query={"per_page": "1"})
        hub.show([{"url": rest.base_url, "project": rest.project, "state": "ok"}])
        return 0
    try:
        described, problems = _in_the_clone(lambda stack, place: (stack.describe(place), stack.problems(place)))
    except click.ClickException as error:
        raise NoHub(error.message) from error
    hub.show([each | {"state": "; ".join(problems) or "ok"} for each in _shown(described)])
    return UNREACHABLE if problems else 0
