"""``pushhub pause`` and ``pushhub resume``."""

from __future__ import annotations

import click

from ..dry import changes
from ..framework import Command
from ..hub import HubOptions
from .health import health_rows
from .queues import QUEUE_NAME


@click.command(cls=Command)
@click.argument("queue", type=QUEUE_NAME)
@click.argument("subscriber")
@changes
@click.pass_obj
def pause(hub: HubOptions, queue: str, subscriber: str) -> None:
    """Pause a SUBSCRIBER of a push QUEUE: what it is owed waits, and uses up no attempts."""
    _set(hub, queue, subscriber, "pause")


@click.command(cls=Command)
@click.argument("queue", type=QUEUE_NAME)
@click.argument("subscriber")
@changes
@click.pass_obj
def resume(hub: HubOptions, queue: str, subscriber: str) -> None:
    """Resume a paused SUBSCRIBER of a QUEUE. What waits is sent within two minutes."""
    _set(hub, queue, subscriber, "resume")


def _set(hub: HubOptions, queue: str, subscriber: str, what: str) -> None:
    rest = hub.rest()
    rest.call("POST", rest.queue(queue, f"/{what}"), {"subscriber": subscriber})
    hub.show(health_rows(rest.call("GET", rest.queue(queue, "/health"))))
