"""``pushhub up``, ``down``, ``status``: the hub on this machine."""

from __future__ import annotations

from typing import Any

import click
from local.errors import LocalError
from local.place import REPOSITORY, Place
from local.stack import Description

from cli.framework import Command
from cli.hub import UNREACHABLE, HubOptions
from local import stack


def _place() -> Place:
    if not (REPOSITORY / "template.yaml").is_file():
        raise click.ClickException("the local hub runs from a clone of its repository, and there is none here")
    try:
        return Place.from_environment()
    except LocalError as error:
        raise click.ClickException(str(error)) from error


def _shown(description: Description) -> list[dict[str, Any]]:
    return [
        {
            "url": description.base_url,
            "project": description.project_id,
            "token": description.token,
        }
    ]


@click.command(cls=Command)
@click.pass_obj
def up(hub: HubOptions) -> None:
    """Start the hub on this machine if it is not running, and say how to reach it."""
    try:
        hub.show(_shown(stack.up(_place(), hub.note)))
    except LocalError as error:
        raise click.ClickException(str(error)) from error


@click.command(cls=Command)
@click.pass_obj
def down(hub: HubOptions) -> None:
    """Stop the hub on this machine and keep its state."""
    try:
        ran = stack.down(_place(), hub.note)
    except LocalError as error:
        raise click.ClickException(str(error)) from error
    hub.note("Pushhub is down." if ran else "Pushhub was not running.")


@click.command(cls=Command)
@click.pass_obj
def status(hub: HubOptions) -> int:
    """Check whether the hub answers, and as which project: the profile's hub, or the one on this machine."""
    known = hub.settings()
    if known.url:
        rest = hub.rest()
        rest.call("GET", rest.queues, query={"per_page": "1"})
        hub.show([{"url": rest.base_url, "project": rest.project, "state": "ok"}])
        return 0
    place = _place()
    try:
        description = stack.describe(place)
        problems = stack.problems(place)
    except LocalError as error:
        raise click.ClickException(str(error)) from error
    hub.show([each | {"state": "; ".join(problems) or "ok"} for each in _shown(description)])
    return UNREACHABLE if problems else 0
