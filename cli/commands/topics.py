"""``pushhub topics``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from ..answers import Odd, sections, text
from ..framework import Command
from ..hub import HubOptions

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..rest import Rest

PAGE = 1000
MOST_PAGES = 100
ROOT = "/notification2"


def subscribed(rest: Rest) -> list[str]:
    """The topics that the project's subscriptions feed, by name."""
    found: set[str] = set()
    for page in range(1, MOST_PAGES + 1):
        query = {"currentPage": str(page), "pageSize": str(PAGE)}
        rules = sections(rest.call("GET", f"{ROOT}/subscriptions", query=query), "subscriptions")
        found |= {text(each, "subscription") for each in rules}
        if len(rules) < PAGE:
            return sorted(found)
    raise Odd("its pages of subscriptions do not end")


@click.command(cls=Command)
@click.argument("names", nargs=-1, metavar="[TOPIC]...")
@click.pass_obj
def topics(hub: HubOptions, names: tuple[str, ...]) -> None:
    """Show what waits for the subscribers of topics, of all that subscriptions feed by default.

    A topic that only queues feed has to be named. Bytes are what counts for the limit of a topic.
    """
    rest = hub.rest()
    hub.show(row for name in names or subscribed(rest) for row in _waiting(rest, name))


def _waiting(rest: Rest, name: str) -> Iterator[dict[str, Any]]:
    answer = rest.call("GET", f"{ROOT}/subscribers", query={"subscription": name})
    for each in sections(answer, "subscribers"):
        yield {
            "topic": text(each, "subscription"),
            "subscriber": text(each, "subscriber"),
            "kept": "while connected" if each.get("nonPersistent") else "until acknowledged",
            "consumers": each.get("consumers"),
            "unacknowledged": each.get("unacknowledged"),
            "bytes": each.get("bytes"),
            "oldest": each.get("oldest"),
        }
