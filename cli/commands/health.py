"""``pushhub health``: how subscribers are doing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from ..answers import number, section, sections, text
from ..framework import Command
from ..hub import HubOptions
from .queues import QUEUE_NAME, how_many_wait, pages

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from ..rest import Rest


WELL = frozenset({"delivering", "retrying", "rate_limited"})
"""States in which a subscriber accepts messages."""


@click.command(cls=Command)
@click.argument("queue", type=QUEUE_NAME, required=False)
@click.option("--store", is_flag=True, help="The services of the store's mappings.")
@click.pass_obj
def health(hub: HubOptions, queue: str | None, store: bool) -> None:
    """Show how each subscriber of a push QUEUE is doing; without one, all receivers of the project that get no
    messages: subscribers of queues, webhook endpoints, services of the store.
    """
    if queue is not None and store:
        raise click.UsageError("name a queue, or --store, not both")
    rest = hub.rest()
    if store:
        hub.show({"mapping": name, **health_row(found)} for name, found in _services(rest))
        return
    if queue is not None:
        hub.show(health_rows(rest.call("GET", rest.queue(queue, "/health"))))
        return
    unwell = [*_subscribers(rest), *(("store", name, found) for name, found in _services(rest))]
    answer = rest.call("GET", "/api/v1/health/endpoints")
    unwell += [
        (f"application {text(each, 'appName')}", text(section(each, "endpoint"), "url"), section(each, "health"))
        for each in sections(answer, "data")
    ]
    hub.show(
        {"of": of, "receiver": receiver, **health_row(found)}
        for of, receiver, found in unwell
        if found.get("state") not in WELL
    )
    left = number(answer, "total") - len(sections(answer, "data"))
    if left:
        hub.note(f"{left} more endpoints are not shown")
    hub.note("all others are well; name a QUEUE, or --store, to see each with what waits for it")


def _subscribers(rest: Rest) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Those of queues of which one at least is not well."""
    for page in pages(rest, health="true"):
        for queue in page:
            if queue.get("health") and section(queue, "health").get("state") not in WELL:
                name = text(queue, "name")
                for each in sections(rest.call("GET", rest.queue(name, "/health")), "subscribers"):
                    yield f"queue {name}", text(each, "name"), section(each, "health")


def _services(rest: Rest) -> Iterator[tuple[str, dict[str, Any]]]:
    """Those of the store's mappings, by the mapping's name."""
    for each in rest.call("GET", f"{rest.store}/mappings.json"):
        yield text(each, "name"), section(each, "health")


def health_rows(answer: Any) -> list[dict[str, Any]]:
    """A line for each subscriber of a queue."""
    return [
        {"subscriber": each.get("name"), **health_row(section(each, "health"))}
        for each in sections(answer, "subscribers")
    ]


def health_row(given: Mapping[str, Any]) -> dict[str, Any]:
    """The health of one, in the words of the hub."""
    return {
        "state": text(given, "text"),
        "since": given.get("since"),
        "until": given.get("until"),
        "waiting": how_many_wait(given),
        "reason": given.get("reason"),
    }
