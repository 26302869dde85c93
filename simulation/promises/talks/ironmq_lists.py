"""Listings of IronMQ v3, asked for page by page and by each filter: queues, messages, deliveries that failed, what was
accepted, alerts.

Sources: docs/ironmq.md and Iron.io's documents of the API.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote, urlencode

from simulation.promises.talks.pages import Page, by_pages, chosen
from simulation.promises.talks.talk import Talk

MINUTE = 60
NAMES = ("pages-", "pages-A", "pages-B", "pages-a", "pages-a b", "pages-a+b", "pages-é")
"""By name."""


def pull(talk: Talk) -> None:
    """Listings of pull queues."""
    talk.through(_queues, _peeked)


def push(talk: Talk) -> None:
    """Listings of push queues."""
    talk.through(_accepted_and_failed)


def _queues(talk: Talk) -> None:
    """Queues by name, with what waits in them; page by page, by prefix, and after any name."""
    for count, name in enumerate(sorted(NAMES, reverse=True)):
        talk.ask("PUT", f"/queues/{name}", {})
        if count:
            bodies = {"messages": [{"body": "x"}] * count}
            talk.ask("POST", f"/queues/{name}/messages", bodies, status=201)
    waiting = {name: count for count, name in enumerate(sorted(NAMES, reverse=True))}

    def page(size: int, after: Any, **more: str) -> Page:
        query = {"prefix": "pages-", "per_page": f"{size}", **more, **({"previous": after} if after else {})}
        rows = talk.ask("GET", f"/queues?{urlencode(query, quote_via=quote)}")["queues"]
        return rows, rows[-1]["name"] if len(rows) == size else None

    names = [{"name": each} for each in NAMES]
    by_pages(talk, "queues", names, page, sizes=(1, 2, 3, 7, 8, 100))
    talk.sleep(6, exactly=True)
    rows = [{"name": each, "type": "pull", "subscribers": 0, "waiting": waiting[each]} for each in NAMES]
    by_pages(talk, "queues and how they are", rows, lambda *given: page(*given, health="true"), sizes=(2, 100))
    for prefix, previous in (
        ("pages-a", ""),
        ("pages-", "pages-a"),
        ("pages-", "pages-Z, which is no queue"),
        ("pages-a", "pages-B"),
        ("pages-a", "pages-a+b"),
        ("pages-é", "pages-"),
        ("pages-x", ""),
        ("pages-a+", ""),
    ):
        query = urlencode({"prefix": prefix, "previous": previous}, quote_via=quote)
        left = [{"name": each} for each in NAMES if each.startswith(prefix) and each > previous]
        talk.ask("GET", f"/queues?{query}", shows={"queues": left})
    for name in NAMES:
        talk.ask("DELETE", f"/queues/{name}", shows={"msg": "Deleted"})
    talk.ask("GET", "/queues?prefix=pages-", shows={"queues": []})


def _peeked(talk: Talk) -> None:
    """The first so many messages of a queue, of those that nobody has reserved and that are not delayed."""
    bodies = [f"m{number}" for number in range(7)]
    delays = {2: 30}
    messages = [{"body": body, "delay": delays.get(place, 0)} for place, body in enumerate(bodies)]
    ids = talk.ask("POST", "/queues/peeked/messages", {"messages": messages}, status=201)["ids"]
    whole = [{"id": each, "body": body, "reserved_count": 0} for each, body in zip(ids, bodies, strict=True)]

    def shows(*rows: Mapping[str, Any]) -> None:
        for count in (1, 2, 3, len(rows), len(rows) + 1, 100):
            talk.ask("GET", f"/queues/peeked/messages?n={count}", shows={"messages": list(rows[:count])})
        talk.ask("GET", "/queues/peeked/messages", shows={"messages": list(rows[:1])})

    shows(*whole[:2], *whole[3:])
    taken = talk.ask(
        "POST", "/queues/peeked/reservations", {"n": 2, "timeout": 600}, shows={"messages": whole_of(ids[:2])}
    )
    shows(*whole[3:])
    talk.sleep(31, exactly=True)
    shows(*whole[2:])
    held = [{"id": each["id"], "reservation_id": each["reservation_id"]} for each in taken["messages"]]
    talk.ask("POST", f"/queues/peeked/messages/{ids[1]}/release", held[1], shows={"msg": "Released"})
    shows({**whole[1], "reserved_count": 1}, *whole[2:])
    talk.ask("DELETE", "/queues/peeked/messages", {"ids": [held[0], ids[3], {"id": ids[4]}]}, shows={"msg": "Deleted"})
    shows({**whole[1], "reserved_count": 1}, whole[2], *whole[5:])
    talk.ask("DELETE", "/queues/peeked")


def whole_of(ids: Sequence[str]) -> list[dict[str, str]]:
    """Rows with these ids."""
    return [{"id": each} for each in ids]


def _accepted_and_failed(talk: Talk) -> None:
    """What was accepted, newest first, by each filter; what failed, oldest first, by its state."""
    says = {"one": 200, "two": 500}
    for name, status in says.items():
        talk.listen(f"pages-{name}.example", lambda _, status=status: (status, b""))  # type: ignore[misc]
    urls = {name: f"https://pages-{name}.example/in" for name in says}
    queues = {"pages-both": [*says], "pages-well": ["one"]}
    ids: dict[str, list[str]] = {}
    for queue, names in queues.items():
        subscribers = [{"name": each, "url": urls[each]} for each in names]
        talk.ask("PUT", f"/queues/{queue}", {"queue": {"push": {"subscribers": subscribers, "retries": 0}}})
    began = talk.epoch_s()
    for queue, count in (("pages-both", 5), ("pages-well", 2)):
        ids[queue] = []
        for number in range(count):
            body = {"messages": [{"body": f"{number}"}]}
            ids[queue] += talk.ask("POST", f"/queues/{queue}/messages", body, status=201)["ids"]
            talk.sleep(2, exactly=True)
    talk.sleep(4 * MINUTE + talk.put_off_s)
    failed = [{"message_id": each, "subscriber_name": "two", "state": "exhausted"} for each in ids["pages-both"]]

    def deliveries(size: int, after: Any) -> Page:
        query = f"state=exhausted&count={size}" + (f"&after={after}" if after else "")
        got = talk.ask("GET", f"/queues/pages-both/deliveries?{query}")
        return got["deliveries"], got["after"]

    by_pages(talk, "deliveries that were given up", failed, deliveries, sizes=(1, 2, 3, 5, 100))
    for state in ("retrying", "reserved"):
        talk.ask("GET", f"/queues/pages-both/deliveries?state={state}", shows={"deliveries": [], "after": None})

    def events(size: int, after: Any, **query: str) -> Page:
        asked = {**query, "limit": f"{size}", **({"after": after} if after else {})}
        got = talk.ask("GET", f"/events?{urlencode(asked)}")
        return got["events"], got["after"]

    def all_events(**query: str) -> list[Any]:
        found: list[Any] = []
        after: Any = None
        for _ in range(20):
            some, after = events(100, after, **query)
            found += some
            if after is None:
                return found
        return found

    def rows(*queues: str) -> list[Mapping[str, Any]]:
        found = [{"kind": "queue", "queue": queue, "message_id": each} for queue in queues for each in ids[queue]]
        return sorted(found, key=lambda each: int(each["message_id"]), reverse=True)

    both = all_events(kind="queue", of="pages-both")
    talk.is_so("what a queue accepted", rows("pages-both"), both)
    by_pages(
        talk,
        "what it accepted",
        rows("pages-both"),
        lambda *given: events(*given, kind="queue", of="pages-both"),
        sizes=(1, 3),
    )
    since = {"since": _iso(began - 1)}
    whole = [each for each in all_events(**since) if each.get("queue") in queues]
    talk.is_so("what all queues accepted", rows(*queues), whole)

    def ours(**query: str) -> Callable[[], Sequence[Any]]:
        return lambda: [each for each in all_events(**since, **query) if each.get("queue") in queues]

    def own(**query: str) -> Callable[[], Sequence[Any]]:
        return lambda: all_events(kind="queue", of="pages-both", **query)

    filters: tuple[tuple[str, dict[str, str], Callable[[Any], bool]], ...] = (
        ("what was given up", {"in_state": "exhausted"}, lambda each: "exhausted" in _states(each)),
        ("what is for a subscriber", {"subscriber": "two"}, lambda each: len(each["deliveries"]) == len(says)),
        ("what one accepted", {"kind": "queue", "of": "pages-well"}, lambda each: each["queue"] == "pages-well"),
    )
    for about, query, by in filters:
        chosen(talk, about, whole, ours(**query), by)
    # Each was posted two seconds after the one before it
    at = next(each["accepted_at"] for each in both if each["message_id"] == ids["pages-both"][2])
    later, earlier = (_iso(_epoch_s(at) + each) for each in (1, -1))
    chosen(talk, "what came until then", both, own(until=later), lambda each: each["accepted_at"] <= at)
    chosen(talk, "what came since then", both, own(since=earlier), lambda each: each["accepted_at"] >= at)
    chosen(
        talk, "what came at that time", both, own(since=earlier, until=later), lambda each: each["accepted_at"] == at
    )
    for bad in ("limit=0", "limit=101", "kind=other", "since=x"):
        talk.refused("GET", f"/events?{bad}")
    for queue in queues:
        talk.ask("DELETE", f"/queues/{queue}")


def _states(event: Mapping[str, Any]) -> set[str]:
    return {each["state"] for each in event["deliveries"]}


def _iso(epoch_s: float) -> str:
    return datetime.fromtimestamp(epoch_s, UTC).isoformat()


def _epoch_s(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()


__all__ = ["pull", "push"]
