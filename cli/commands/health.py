"""``pushhub health``: how subscribers are doing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

from ..answers import number, section, sections, text
from ..framework import Command
from ..hub import HubOptions
from .queues import QUEUE_NAME


@click.command(cls=Command)
@click.argument("queue", type=QUEUE_NAME, required=False)
@click.option("--store", is_flag=True, help="The services of the store's mappings.")
@click.pass_obj
def health(hub: HubOptions, queue: str | None, store: bool) -> None:
    """Show how each subscriber of a push QUEUE is doing; without one, the webhook endpoints that get no messages."""
    if queue is not None and store:
        raise click.UsageError("name a queue, or --store, not both")
    rest = hub.rest()
    if store:
        mappings = rest.call("GET", f"{rest.store}/mappings.json")
        hub.show({"mapping": text(each, "name"), **health_row(section(each, "health"))} for each in mappings)
        return
    if queue is not None:
        hub.show(health_rows(rest.call("GET", rest.queue(queue, "/health"))))
        return
    answer = rest.call("GET", "/api/v1/health/endpoints")
    hub.show(
        {
            "endpoint": text(section(each, "endpoint"), "url"),
            "application": text(each, "appName"),
            **health_row(section(each, "health")),
        }
        for each in sections(answer, "data")
    )
    left = number(answer, "total") - len(sections(answer, "data"))
    if left:
        hub.note(f"{left} more are not shown")


def health_rows(answer: Any) -> list[dict[str, Any]]:
    """A line for each subscriber of a queue."""
    return [
        {"subscriber": each.get("name"), **health_row(section(each, "health"))}
        for each in sections(answer, "subscribers")
    ]


def health_row(given: Mapping[str, Any]) -> dict[str, Any]:
    """The health of one, in the words of the hub."""
    waiting = number(given, "waiting")
    return {
        "state": text(given, "text"),
        "since": given.get("since"),
        "until": given.get("until"),
        "waiting": waiting if given.get("complete") is True else f"{waiting} or more",
        "reason": given.get("reason"),
    }
