"""What people look up of messages, over HTTP, once traffic and storms are over."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any
from urllib.parse import quote

from simulation.account import START_MS, HttpAnswer
from simulation.promises.judgement import Exchange
from simulation.promises.shown import Attempt, End, Shown

AFTER_S = 1_800
"""So long after the traffic and the storms."""

Ask = Callable[[str], HttpAnswer]
"""Gets a path."""

LONGEST_READ_S = 80_000
"""Statuses can be read for almost a day after a message expired."""

TAKEN, GIVEN_UP = frozenset({"delivered", "acknowledged"}), "exhausted"
PAGE = 50
"""Items of a page: fewer than there are, so that lists have several."""


def at(shown: str) -> int:
    """A time as the API shows it, in microseconds since the start."""
    return (round(datetime.fromisoformat(shown).timestamp() * 1000) - START_MS) * 1000


def pages(ask: Ask, path: str) -> Iterator[Mapping[str, Any]]:
    """All items of a list of the webhooks API, page by page."""
    iterator: str | None = None
    joined = "&" if "?" in path else "?"
    while True:
        answer = ask(f"{path}{joined}limit={PAGE}{f'&iterator={iterator}' if iterator else ''}")
        assert answer.status == 200, answer
        yield from answer.body["data"]
        if answer.body["done"]:
            return
        iterator = answer.body["iterator"]


def pushed(
    ask: Ask, message_id: str, posted: int, acknowledged: Sequence[tuple[str, Exchange]], *, unicast: bool
) -> Shown:
    """What IronMQ shows of a message: its attempts, and the statuses of its subscribers.

    Args:
        ask: Asks for what is below its queue.
        message_id: The message.
        posted: When, microseconds.
        acknowledged: Acknowledgements of it, by subscriber.
        unicast: Whether it is owed to all subscribers as one.
    """
    answer = ask(f"/messages/{message_id}/attempts")
    if answer.status != 200:
        return Shown(message_id, answer.exchange, posted, ())
    attempts = [
        Attempt(each["subscriber_name"], each["status_code"], at(each["started_at"]), each["manual"])
        for each in answer.body["attempts"]
    ]
    statuses = ask(f"/messages/{message_id}/subscribers")
    exchange = Exchange(answer.exchange.asked, statuses.exchange.answered, statuses.status)
    subscribers = statuses.body["subscribers"] if statuses.status == 200 else ()
    group = frozenset(each["name"] for each in subscribers) if unicast else frozenset[str]()
    ends = [
        End(each["name"], each["state"] in TAKEN, each.get("status_code"), group, each["state"] == GIVEN_UP)
        for each in subscribers
    ]
    return Shown(message_id, exchange, posted, attempts, answer.body["forgotten"], ends, acknowledged)


def given_up(ask: Ask) -> set[tuple[str, str]] | None:
    """Messages and subscribers in IronMQ's list of what a queue gave up, page by page; None if a page could not be had.

    Args:
        ask: Asks for what is below the queue.
    """
    found: set[tuple[str, str]] = set()
    after: str | None = ""
    while after is not None:
        answer = ask(f"/deliveries?state={GIVEN_UP}&count={PAGE}{f'&after={quote(after)}' if after else ''}")
        if answer.status != 200:
            return None
        found |= {(each["message_id"], each["subscriber_name"]) for each in answer.body["deliveries"]}
        after = answer.body["after"]
    return found


__all__ = ["AFTER_S", "LONGEST_READ_S", "PAGE", "Ask", "at", "given_up", "pages", "pushed"]
