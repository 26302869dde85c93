"""Lists: whatever their kind, all pages together are the whole, forwards and backwards; and each filter shows what the
caller finds in the whole by himself.

Sources: Svix's lists as its clients read them (``limit`` of 1 to 250, ``iterator``, ``prevIterator``, ``done``,
``order``), docs/webhooks.md and docs/streaming.md.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta, timezone
from typing import Any

from simulation.promises.talks.talk import Talk

FORGED = ("BAD-$$$ITERATOR", "app_", "x y")
"""What no list has given as an iterator."""

FOUR = range(4)
Item = Mapping[str, Any]


def webhooks(talk: Talk) -> None:
    """Everything of Svix's API that is listed."""
    talk.through(_one_by_one, _posted, _nothing)


def pages(
    talk: Talk, path: str, keys: Sequence[str], *, key: str = "id", forged: bool = True, sizes: Sequence[int] = ()
) -> None:
    """Read a list in pages of several sizes, there and back.

    Args:
        talk: Who reads.
        path: The list's, perhaps with a query.
        keys: The keys of all items, in the list's order.
        key: Which member is the key.
        forged: Whether iterators that no list has given are refused, and bounds of pages are asked for.
        sizes: Of the pages.
    """
    more = f"{path}{'&' if '?' in path else '?'}"
    for limit in sizes or (1, 3, len(keys), 250):
        iterator, begins = "", 0
        # There, until it is done
        while True:
            shown = keys[begins : begins + limit]
            ends = begins + limit >= len(keys)
            first, last = (each.replace("sink_", "ep_") for each in (shown[0], shown[-1]))
            expected = {"data": [{key: each} for each in shown], "done": ends, "iterator": last}
            page = talk.ask("GET", f"{more}limit={limit}{iterator}", shows={**expected, "prevIterator": f"-{first}"})
            if ends or len(page["data"]) != limit:
                break
            begins, iterator = begins + limit, f"&iterator={page['iterator']}"
        # And back, from before the last page
        while begins > 0:
            shown = keys[max(0, begins - limit) : begins]
            expected = {"data": [{key: each} for each in shown], "done": begins <= limit}
            page = talk.ask("GET", f"{more}limit={limit}&iterator={page['prevIterator']}", shows=expected)
            begins -= limit
    for limit, status in ((0, 422), (251, 422), (-1, 400)) if forged else ():
        talk.ask("GET", f"{more}limit={limit}", status=status)
    for iterator in FORGED if forged else ():
        talk.ask("GET", f"{more}iterator={iterator.replace(' ', '%20')}", status=422)


def _both_ways(talk: Talk, path: str, keys: Sequence[str], *, descending: bool, key: str = "id") -> None:
    """A list that may be asked for in either order; ``keys`` in that in which they were of_kind."""
    pages(talk, path, keys[::-1] if descending else keys, key=key)
    more = f"{path}{'&' if '?' in path else '?'}order="
    for order, expected in (("ascending", keys), ("descending", keys[::-1])):
        talk.ask("GET", more + order, shows={"data": [{key: each} for each in expected], "done": True})
    other, order = (keys, "ascending") if descending else (keys[::-1], "descending")
    pages(talk, more + order, other, key=key, forged=False, sizes=(3,))
    talk.ask("GET", f"{more}sideways", status=400)


def _several(talk: Talk, path: str, make: Callable[[int], Mapping[str, Any]], *, base: str = "/api/v1") -> list[str]:
    """Make four of a kind, one after the other; their ids."""
    ids = []
    for number in FOUR:
        ids.append(str(talk.at(base).ask("POST", path, make(number), status=201)["id"]))
        talk.sleep(0.1, exactly=True)
    return ids


def _one_by_one(talk: Talk) -> None:
    """What is made one by one: each list has it in the order in which it was of_kind, or the other way round."""
    talk.listen("talk-l.example", lambda _: (200, b""))
    talk.ask("POST", "/app", {"name": "L", "uid": "l"}, status=201)
    url = {"url": "https://talk-l.example/in"}
    queue = {
        "queueUrl": "https://sqs.eu-west-1.amazonaws.com/111122223333/q",
        "roleArn": "arn:aws:iam::111122223333:role/r",
    }
    code = {"transformation": "function handler(webhook) { return webhook }"}
    stream = talk.ask("POST", "/stream", {"name": "L", "uid": "l"}, status=201)
    source_kind = {"name": "L", "type": "generic-webhook"}
    source = talk.at("/ingest/api/v1").ask("POST", "/source", {**source_kind, "uid": "l"}, status=201)
    talk.ask("POST", "/app", {"name": "D", "uid": "d"}, status=201)
    lists: tuple[tuple[str, Callable[[int], Mapping[str, Any]], bool], ...] = (
        ("/app/l/endpoint", lambda number: {**url, "uid": f"e{number}"}, True),
        ("/app/d/destination", lambda number: {"type": "sqs", "config": queue, "uid": f"d{number}"}, True),
        ("/app/l/integration", lambda number: {"name": f"i{number}"}, False),
        ("/operational-webhook/endpoint", lambda number: {**url, "uid": f"o{number}"}, True),
        ("/connector", lambda number: {"name": f"c{number}", "uid": f"c{number}", **code}, False),
        ("/stream/l/sink", lambda number: {"type": "poller", "config": {}, "uid": f"s{number}"}, False),
    )
    for path, make, descending in lists:
        _both_ways(talk, path, _several(talk, path, make), descending=descending)
    ingest = talk.at("/ingest/api/v1")
    endpoints = _several(talk, "/source/l/endpoint", lambda number: {**url, "uid": f"{number}"}, base="/ingest/api/v1")
    _both_ways(ingest, "/source/l/endpoint", endpoints, descending=True)
    sources = _several(talk, "/source", lambda number: {**source_kind, "uid": f"n{number}"}, base="/ingest/api/v1")
    _both_ways(ingest, "/source", [source["id"], *sources], descending=False)
    streams = _several(talk, "/stream", lambda number: {"name": f"n{number}", "uid": f"n{number}"})
    _both_ways(talk, "/stream", [stream["id"], *streams], descending=False)
    # Endpoints on AWS are among the endpoints, too; what is deleted leaves no gap, and an iterator is only compared
    talk.ask("GET", "/app/d/endpoint", shows={"data": [{"uid": f"d{number}"} for number in (3, 2, 1, 0)]})
    shown = talk.ask("GET", "/app/l/endpoint", shows={"data": 4 * [...]})["data"]
    gone = shown[1]["id"]
    rest = [each["id"] for each in shown if each["id"] != gone]
    talk.ask("DELETE", f"/app/l/endpoint/{gone}", status=204)
    talk.ask("GET", "/app/l/endpoint", shows={"data": [{"id": each} for each in rest]})
    talk.ask("GET", f"/app/l/endpoint?iterator={gone}", shows={"data": [{"id": each} for each in rest[1:]]})
    names = [f"list.{letter}" for letter in "abcd"]
    for name in names:
        talk.ask("POST", "/event-type", {"name": name, "description": name}, status=201)
    for path in ("/event-type", "/stream/event-type"):
        pages(talk, path, names, key="name", forged=False)
    # What is archived is listed by whoever asks for it
    talk.ask("DELETE", "/event-type/list.b", status=204)
    for path in ("/event-type", "/stream/event-type"):
        pages(talk, path, [each for each in names if each != "list.b"], key="name", forged=False)
        pages(talk, f"{path}?include_archived=true", names, key="name", forged=False)
    schemas: tuple[tuple[str, Any], ...] = (("true", {"1": {}}), ("false", None))
    talk.ask("PUT", "/event-type/list.a", {"description": "with", "schemas": {"1": {}}})
    for content, expected in schemas:
        shows = {"data": [{"name": "list.a", "schemas": expected}]}
        talk.ask("GET", f"/event-type?limit=1&with_content={content}", shows=shows)
    for name in names:
        talk.ask("DELETE", f"/event-type/{name}?expunge=true", status=204)
    for number in FOUR:
        talk.ask("DELETE", f"/connector/c{number}", status=204)
        talk.ask("DELETE", f"/operational-webhook/endpoint/o{number}", status=204)
        talk.ask("DELETE", f"/stream/n{number}", status=204)
        ingest.ask("DELETE", f"/source/n{number}", status=204)
    talk.ask("DELETE", "/stream/l", status=204)
    ingest.ask("DELETE", "/source/l", status=204)
    for app in "ld":
        talk.ask("DELETE", f"/app/{app}", status=204)


def _nothing(talk: Talk) -> None:
    """A list of nothing has no iterators, and is done."""
    talk.listen("talk-n.example", lambda _: (200, b""))
    talk.ask("POST", "/app", {"name": "N", "uid": "n"}, status=201)
    talk.ask("POST", "/app/n/endpoint", {"url": "https://talk-n.example/in", "uid": "n"}, status=201)
    talk.ask("POST", "/app/n/msg", {"eventType": "list.made", "payload": {}, "eventId": "n"}, status=202)
    empty = (
        *("/app/n/integration", "/operational-webhook/endpoint", "/connector", "/event-type"),
        *("/stream", "/app/n/attempt/endpoint/n?status=2", "/app/n/msg?channel=none", "/app/n/endpoint/n/msg?status=2"),
        "/background-task?task=application.purge_content",
    )
    for path in empty:
        whole = talk.ask("GET", path, shows={"data": [], "iterator": None, "done": True})
        talk.is_so(f"what is before nothing in {path}", False, "prevIterator" in whole)
    talk.ask("DELETE", "/app/n", status=204)


POSTED: tuple[Mapping[str, Any], ...] = (
    {"eventType": "list.made", "channels": ["a"], "tags": ["red"], "payload": {"says": 200}},
    {"eventType": "list.gone", "channels": ["b"], "tags": ["blue", "red"], "payload": {"says": 404}},
    {"eventType": "list.made", "channels": ["a", "b"], "payload": {"says": 500}},
    {"eventType": "list.else", "tags": ["blue"], "payload": {"says": 201}},
    {"eventType": "list.gone", "channels": ["a"], "payload": {"says": 302}},
    {"eventType": "list.made", "channels": ["c"], "tags": ["green"], "payload": {"says": 404}},
)
"""Messages, each with what the endpoint says to it."""

Holds = Callable[[Item], bool]
OF_MESSAGES: tuple[tuple[str, Holds], ...] = (
    *((f"channel={name}", lambda each, name=name: name in (each["channels"] or ())) for name in "abcd"),
    *((f"tag={name}", lambda each, name=name: name in each.get("tags", ())) for name in ("red", "blue", "pink")),
    *(
        (f"event_types=list.{name}", lambda each, name=name: each["eventType"] == f"list.{name}")
        for name in ("made", "no")
    ),
    *(
        (query, lambda each: each["eventType"] in {"list.made", "list.else"})
        for query in (
            "event_types=list.made,list.else",
            "event_types[]=list.made&event_types[]=list.else",
            "event_types[0]=list.made&event_types[1]=list.else",
        )
    ),
    ("channel=a&tag=red", lambda each: "a" in (each["channels"] or ()) and "red" in each.get("tags", ())),
    (
        "channel=b&event_types=list.made",
        lambda each: "b" in (each["channels"] or ()) and each["eventType"] == "list.made",
    ),
)
"""What finds messages, and of which that holds."""

OF_ATTEMPTS: tuple[tuple[str, Holds], ...] = (
    *((f"status={number}", lambda each, number=number: each["status"] == number) for number in (0, 1, 2, 3)),
    *(
        (
            f"status_code_class={hundred}",
            lambda each, hundred=hundred: each["responseStatusCode"] // 100 * 100 == hundred,
        )
        for hundred in (0, 100, 200, 300, 400, 500)
    ),
    ("status=2&status_code_class=400", lambda each: each["responseStatusCode"] // 100 == 4),
    ("status=0&status_code_class=400", lambda _: False),
)
"""What finds attempts, and of which that holds."""


def _posted(talk: Talk) -> None:
    """Messages, their attempts and what became of them, by each filter, from and before each time."""
    talk.listen("talk-list.example", lambda each: (json.loads(each.body)["says"], b"said"))
    talk.listen("talk-other.example", lambda _: (200, b"well"))
    talk.ask("POST", "/app", {"name": "L", "uid": "l"}, status=201)
    ids = {
        uid: talk.ask("POST", "/app/l/endpoint", {"url": f"https://talk-{uid}.example/in", "uid": uid}, status=201)[
            "id"
        ]
        for uid in ("list", "other")
    }
    messages = []
    for number, each in enumerate(POSTED):
        message = {**each, "eventId": f"n{number}"}
        messages.append(talk.ask("POST", "/app/l/msg", message, status=202, shows=message)["id"])
        talk.sleep(2, exactly=True)
    talk.sleep(20)
    whole = talk.ask("GET", "/app/l/msg", shows={"data": [{"id": each} for each in messages[::-1]], "done": True})[
        "data"
    ]
    pages(talk, "/app/l/msg", messages[::-1])
    _found(talk, "/app/l/msg", whole, OF_MESSAGES)
    _between(talk, "/app/l/msg", whole)
    of_kind = [each["id"] for each in whole if each["eventType"] == "list.made"]
    pages(talk, "/app/l/msg?event_types=list.made", of_kind, forged=False, sizes=(1, 2, 3))
    # Attempts show their message to those who ask for it, and are found by what it has
    path = "/app/l/attempt/endpoint/list"
    plain = talk.ask("GET", path)["data"]
    attempts = talk.ask("GET", f"{path}?with_msg=true", shows={"data": [{"id": each["id"]} for each in plain]})["data"]
    talk.is_so("without their messages", False, any("msg" in each for each in plain))
    codes = sorted(each["responseStatusCode"] for each in attempts)
    # Failures are tried again after five seconds
    talk.is_so("all answers", [200, 201, 302, 302, 404, 404, 404, 404, 500, 500], codes)
    by_id = {each["id"]: each for each in whole}
    for each in attempts:
        talk.is_so("its message", {**by_id[each["msgId"]], "payload": dict}, each["msg"])
    pages(talk, path, [each["id"] for each in attempts])
    _found(talk, path, attempts, OF_ATTEMPTS)
    _found(talk, path, attempts, [(query, _of_message(holds)) for query, holds in OF_MESSAGES])
    _between(talk, path, attempts)
    for bad in ("status=x", "status=5", "status_code_class=250", "before=then", "after=2026-13-01T00:00:00Z"):
        talk.ask("GET", f"{path}?{bad}", status=400)
    shown = talk.ask("GET", f"{path}?with_content=false&limit=1", shows={"data": [{"response": "{}"}]})
    talk.ask(
        "GET", f"/app/l/msg/{shown['data'][0]['msgId']}/attempt/{shown['data'][0]['id']}", shows={"response": "said"}
    )
    # Of one message: at all endpoints, or at one
    one = messages[1]
    path = f"/app/l/attempt/msg/{one}"
    attempts = talk.ask("GET", f"{path}?with_msg=true", shows={"data": 3 * [{"msgId": one}]})["data"]
    _found(talk, path, attempts, OF_ATTEMPTS)
    for uid, endpoint_id in ids.items():
        mine = [{"id": each["id"]} for each in attempts if each["endpointId"] == endpoint_id]
        for name in (uid, endpoint_id):
            talk.ask("GET", f"{path}?endpoint_id={name}", shows={"data": mine})
        talk.ask("GET", f"/app/l/msg/{one}/endpoint/{uid}/attempt", shows={"data": mine})
    talk.ask("GET", f"{path}?endpoint_id=none", status=404)
    talk.ask("GET", f"/app/l/msg/{one}/attempt", shows={"data": [{"id": each["id"]} for each in attempts]})
    pages(talk, path, [each["id"] for each in attempts])
    # What became of each at an endpoint
    path = "/app/l/endpoint/list/msg"
    became = talk.ask("GET", path, shows={"data": [{"id": each} for each in messages[::-1]]})["data"]
    says = {each: posted["payload"]["says"] for each, posted in zip(messages, POSTED, strict=True)}
    for each in became:
        went_well = says[each["id"]] // 100 == 2
        wanted = {"status": 0, "statusText": "success"} if went_well else {"status": 3, "statusText": "sending"}
        talk.is_so("what became of it", wanted | ({} if went_well else {"nextAttempt": str}), each)
    _found(talk, path, became, (*OF_ATTEMPTS[:4], *OF_MESSAGES))
    _between(talk, path, became)
    pages(talk, path, messages[::-1])
    destinations = sorted(ids.values())
    pages(talk, f"/app/l/msg/{one}/endpoint", destinations)
    # Without contents
    for shown_at in ("/app/l/msg", path):
        rows = len(messages) * [{"payload": lambda payload: payload == {}}]
        talk.ask("GET", f"{shown_at}?with_content=false", shows={"data": rows})
        talk.ask("GET", f"{shown_at}?with_content=true", shows={"data": len(messages) * [{"payload": {"says": int}}]})
    talk.ask("DELETE", "/app/l", status=204)


def _of_message(holds: Holds) -> Holds:
    return lambda attempt: holds(attempt["msg"])


def _found(talk: Talk, path: str, whole: Sequence[Item], queries: Sequence[tuple[str, Holds]]) -> None:
    """Each filter shows the items of which it holds, in the order of the whole."""
    for query, holds in queries:
        expected = [{"id": each["id"]} for each in whole if holds(each)]
        talk.ask("GET", f"{path}?{query}", shows={"data": expected})


def _between(talk: Talk, path: str, whole: Sequence[Item]) -> None:
    """``before`` leaves its own instant out, ``after`` has it; both may be given, in whatever zone."""
    times = [each["timestamp"] for each in whole]
    at_times = [datetime.fromisoformat(each) for each in times]
    # Identifiers, by which lists go, know a moment to four milliseconds
    moments = [round(each.timestamp() * 1000) // 4 for each in at_times]

    def within(later_than: int, earlier_than: int) -> dict[str, Any]:
        """Items that are newer than that place, or at it, and older than that one."""
        lower, upper = moments[later_than], moments[earlier_than]
        return {"data": [{"id": each["id"]} for each, at in zip(whole, moments, strict=True) if lower <= at < upper]}

    last = len(whole) - 1
    for place in {0, 1, last // 2, last}:
        at = moments[place]
        older = [{"id": each["id"]} for each, one in zip(whole, moments, strict=True) if one < at]
        newer = [{"id": each["id"]} for each, one in zip(whole, moments, strict=True) if one >= at]
        talk.ask("GET", f"{path}?before={times[place]}", shows={"data": older})
        talk.ask("GET", f"{path}?after={times[place]}", shows={"data": newer})
        # With only a time from which on, the oldest ones come
        if newer:
            talk.ask("GET", f"{path}?limit=1&after={times[place]}", shows={"data": newer[-1:], "done": len(newer) == 1})
    talk.ask("GET", f"{path}?after={times[last - 1]}&before={times[0]}", shows=within(last - 1, 0))
    there = at_times[1].astimezone(timezone(timedelta(hours=2))).isoformat().replace("+", "%2B")
    naive = at_times[1].replace(tzinfo=None).isoformat()
    since = [{"id": each["id"]} for each, one in zip(whole, moments, strict=True) if one >= moments[1]]
    for each in (there, naive):
        talk.ask("GET", f"{path}?after={each}", shows={"data": since})


__all__ = ["pages", "webhooks"]
