"""Notifications 2.0, talked through: subscriptions, tokens, what reaches which topic, what is refused, and what waits.

Sources: Cumulocity's documents of Notifications 2.0, and docs/notifications.md for what is the hub's own.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from simulation.promises.talks.talk import Talk


@dataclass(frozen=True)
class Connected:
    """A consumer's connection.

    Attributes:
        status: Of the handshake.
        frames: What came on it, which grows.
        send: Sends a text frame.
        close: Ends it.
        vanish: Is gone without a word.
        closed: Whether the hub has ended it.
    """

    status: int
    frames: Sequence[str]
    send: Callable[[str], None]
    close: Callable[[], None]
    vanish: Callable[[], None] = lambda: None
    closed: Callable[[], bool] = lambda: False


Connect = Callable[[Mapping[str, str]], Connected]
"""Opens a connection with a query."""


def connecting(connect: Connect, parts: Iterable[Callable[[Talk, Connect], None]]) -> Iterator[Callable[[Talk], None]]:
    """Parts of a talk that open connections, as parts like others, under their names."""

    def opening(part: Callable[[Talk, Connect], None]) -> Callable[[Talk], None]:
        def asked(talk: Talk) -> None:
            part(talk, connect)

        asked.__name__ = part.__name__
        return asked

    return map(opening, parts)


def through(talk: Talk, connect: Connect) -> None:
    """Everything."""

    def consumed(one: Talk) -> None:
        consumers(one, connect)

    def chosen(one: Talk) -> None:
        reached(one, connect)

    talk.through(subscriptions, tokens, consumed, chosen)


def _rule(topic: str, *, source: str = "", apis: Sequence[str] = (), **more: Any) -> dict[str, Any]:
    rule: dict[str, Any] = {"context": "mo" if source else "tenant", "subscription": topic, **more}
    if source:
        rule["source"] = {"id": source}
    if apis:
        rule["subscriptionFilter"] = {"apis": list(apis), **more.pop("filter", {})}
    return rule


def subscriptions(talk: Talk) -> None:
    """Made, found, listed in pages, refused, removed."""
    fields = {
        **_rule("talkOne", source="1", apis=["alarms", "events"]),
        "fragmentsToCopy": ["c8y_Speed"],
    }
    subscription = talk.ask(
        "POST", "/subscriptions", fields, status=201, shows={**fields, "id": str, "nonPersistent": False}
    )
    talk.ask("POST", "/subscriptions", fields, status=409)
    talk.ask("GET", f"/subscriptions/{subscription['id']}", shows={**fields, "id": subscription["id"]})
    talk.ask("GET", "/subscriptions/0", status=404)
    for bad in (
        {"context": "other"},
        {"subscription": "a b"},
        {"subscription": ""},
        {"subscription": 201 * "t"},
        {"source": None},
        {"subscriptionFilter": {"apis": ["other"]}},
        {"fragmentsToCopy": "x"},
    ):
        talk.refused("POST", "/subscriptions", {**fields, **bad}, status=422, shows={"error": str, "message": str})
    talk.with_headers(authorization="Basic bm8=").ask("GET", "/subscriptions", status=401)
    ids = [subscription["id"]]
    for number in range(2, 8):
        ids.append(
            talk.ask("POST", "/subscriptions", _rule("talkOne", source=str(number), apis=["*"]), status=201)["id"]
        )
    page = talk.ask(
        "GET",
        "/subscriptions?withTotalPages=true&withTotalElements=true",
        shows={
            "subscriptions": list,
            "statistics": {"pageSize": 5, "currentPage": 1, "totalPages": 2, "totalElements": 7},
        },
    )
    rest = talk.ask("GET", "/subscriptions?currentPage=2", shows={"subscriptions": list})
    talk.is_so(
        "two pages", sorted(ids), sorted(each["id"] for each in [*page["subscriptions"], *rest["subscriptions"]])
    )
    talk.is_so("of five", 5, len(page["subscriptions"]))
    talk.ask("GET", "/subscriptions?pageSize=2000", shows={"subscriptions": lambda each: len(each) == 7})
    talk.refused("GET", "/subscriptions?pageSize=2001", status=422)
    talk.ask("GET", "/subscriptions?source=3", shows={"subscriptions": [{"id": ids[2]}]})
    talk.ask("GET", "/subscriptions?context=tenant", shows={"subscriptions": []})
    talk.ask(
        "GET", "/subscriptions?subscription=talkOne&pageSize=9", shows={"subscriptions": lambda each: len(each) == 7}
    )
    talk.ask("GET", "/subscriptions?subscription=talkTwo", shows={"subscriptions": []})
    talk.ask("DELETE", f"/subscriptions/{ids[0]}", status=204)
    talk.ask("GET", f"/subscriptions/{ids[0]}", status=404)
    talk.ask("DELETE", "/subscriptions?source=2", status=204)
    talk.ask("GET", f"/subscriptions/{ids[1]}", status=404)
    for each in ids[2:]:
        talk.ask("DELETE", f"/subscriptions/{each}", status=204)
    talk.ask("GET", "/subscriptions", shows={"subscriptions": []})


def tokens(talk: Talk) -> None:
    """What is in a token, its bounds, and its end."""
    wanted = {"subscription": "talkToken", "subscriber": "s", "expiresInMinutes": 2}
    token = talk.ask("POST", "/token", wanted, shows={"token": str})["token"]
    talk.ask("GET", f"/token?token={token}", shows={"sub": "s"})
    for bad in (
        {"subscriber": ""},
        {"subscriber": 201 * "s"},
        {"subscription": "a b"},
        {"expiresInMinutes": "x"},
    ):
        talk.refused("POST", "/token", {**wanted, **bad}, status=422)
    for good in ({"subscriber": 200 * "s"}, {"subscription": 200 * "t"}, {"expiresInMinutes": 525_600}):
        talk.ask("POST", "/token", {**wanted, **good}, shows={"token": str})
    talk.ask("GET", f"/token?token={token[:-2]}xx", status=401)
    talk.sleep(115, exactly=True)
    talk.ask("GET", f"/token?token={token}")
    talk.sleep(10)
    talk.ask("GET", f"/token?token={token}", status=401)
    talk.ask("POST", "/unsubscribe?token=" + talk.ask("POST", "/token", wanted)["token"], status=500)


def consumers(talk: Talk, connect: Connect) -> None:
    """Exclusive and shared subscribers, what waits for them, and how they end."""
    rule = talk.ask("POST", "/subscriptions", _rule("talkMachines", apis=["events"]), status=201)["id"]

    def token(subscriber: str, **more: Any) -> str:
        wanted = {"subscription": "talkMachines", "subscriber": subscriber, **more}
        return str(talk.ask("POST", "/token", wanted)["token"])

    def publish(number: int) -> None:
        body = {"api": "events", "source": "111", "data": {"type": "door", "n": number}}
        talk.ask("POST", "/notifications", body, status=201, shows={"ids": [str]})
        talk.sleep(3)

    alone = token("alone")
    talk.is_so("a bad token", 401, connect({"token": "no"}).status)
    publish(0)
    first = connect({"token": alone})
    talk.is_so("the first", 200, first.status)
    talk.sleep(5)
    talk.is_so("nobody else", 409, connect({"token": alone}).status)
    publish(1)
    publish(2)
    talk.came("from then on", [1, 2], [_content(each)["n"] for each in first.frames])
    ack, description, action = first.frames[0].partition("\n\n")[0].split("\n")
    talk.came("its header", ("CREATE", True), (action, description.endswith("/events/111")))
    first.send(ack)
    talk.sleep(5)
    first.close()
    talk.sleep(5)
    publish(3)
    again = _back(talk, connect, {"token": alone})
    talk.sleep(5)
    talk.came("what was not acknowledged, then what is new", [2, 3], [_content(each)["n"] for each in again.frames])
    waits = {
        "subscription": "talkMachines",
        "subscriber": "alone",
        "shared": False,
        "consumers": 1,
        "unacknowledged": 2,
    }
    talk.ask("GET", "/subscribers?subscription=talkMachines", shows={"subscribers": [waits]})
    for each in again.frames:
        again.send(each.partition("\n")[0])
    talk.sleep(5)
    talk.ask(
        "GET",
        "/subscribers?subscription=talkMachines",
        shows={"subscribers": [{"subscriber": "alone", "unacknowledged": 0, "bytes": 0}]},
    )
    both = token("both", shared=True)
    sides = [connect({"token": both, "consumer": name}) for name in ("a", "b")]
    talk.sleep(5)
    for number in range(4, 8):
        publish(number)
    came = [[_content(each)["n"] for each in side.frames] for side in sides]
    talk.came("each once, one source at one of them", [[], [4, 5, 6, 7]], sorted(came))
    for side in sides:
        side.close()
    talk.ask("POST", f"/unsubscribe?token={both}", shows={"result": "DONE"})
    talk.ask("POST", f"/unsubscribe?token={alone}", shows={"result": "DONE"})
    talk.sleep(5)
    talk.ask("GET", "/subscribers?subscription=talkMachines", shows={"subscribers": []})
    talk.ask("DELETE", f"/subscriptions/{rule}", status=204)


def reached(talk: Talk, connect: Connect) -> None:
    """Which topics a notification reaches: by context, API, type and source; what is copied, repeated and refused."""
    rules = {
        "talkAll": _rule("talkAll"),
        "talkMo": _rule("talkMo", source="7"),
        "talkAlarms": _rule("talkAlarms", apis=["alarms"]),
        "talkTyped": {
            "context": "tenant",
            "subscription": "talkTyped",
            "subscriptionFilter": {"apis": ["events"], "typeFilter": "'a' or 'b'"},
        },
        "talkCopied": {**_rule("talkCopied", apis=["events"]), "fragmentsToCopy": ["kept"]},
    }
    subscription_ids = [talk.ask("POST", "/subscriptions", rule, status=201)["id"] for rule in rules.values()]
    sides: dict[str, Connected] = {}
    used: dict[str, str] = {}
    for topic in rules:
        used[topic] = str(talk.ask("POST", "/token", {"subscription": topic, "subscriber": "s"})["token"])
        sides[topic] = connect({"token": used[topic]})
    talk.sleep(5)
    published: list[dict[str, Any]] = [
        {"api": "events", "source": "7", "data": {"n": 1, "type": "a", "kept": 1, "left": 2}},
        {"api": "events", "source": {"id": "8"}, "data": {"n": 2, "type": "c"}},
        {"api": "alarms", "source": "8", "action": "UPDATE", "data": {"n": 3, "type": "b"}},
        {"api": "measurements", "source": "7", "data": {"n": 4}},
        {"api": "managedobjects", "source": "7", "action": "CREATE", "data": {"n": 5}},
        {"api": "managedobjects", "source": "7", "action": "UPDATE", "data": {"n": 6}},
    ]
    once = talk.with_headers(idempotency_key="talk")
    ids = once.ask("POST", "/notifications", published, status=201, shows={"ids": 6 * [str]})["ids"]
    once.ask("POST", "/notifications", published, status=201, shows={"ids": ids})
    once.ask("POST", "/notifications", published[:1], status=422)
    talk.sleep(10)
    expected = {"talkAll": [1, 2, 3, 5], "talkMo": [1, 4, 6], "talkAlarms": [3], "talkTyped": [1], "talkCopied": [1, 2]}
    for topic, numbers in expected.items():
        came = [_content(each) for each in sides[topic].frames]
        if topic == "talkCopied":
            talk.came("copied fragments", [{"type": "a", "kept": 1}, {"type": "c"}], came)
            talk.came("and no others", [False, False], ["left" in each or "n" in each for each in came])
        else:
            talk.came(topic, numbers, [each["n"] for each in came])
    for bad in ({"api": "other"}, {"source": ""}, {"source": "a/b"}, {"source": 201 * "s"}, {"action": "OTHER"}):
        talk.refused("POST", "/notifications", {**published[0], **bad}, status=422)
    talk.refused("POST", "/notifications", [], 101 * published[:1], status=422)
    talk.refused("POST", "/notifications", {**published[0], "data": {"text": 131_072 * "x"}}, status=413)
    talk.ask(
        "POST",
        "/notifications",
        {"api": "events", "source": "9", "data_base64": base64.b64encode(b"\xff").decode()},
        status=201,
    )
    talk.sleep(5)
    talk.came("bytes", "/w==", sides["talkAll"].frames[-1].partition("\n\n")[2])
    for topic, side in sides.items():
        side.close()
        talk.ask("POST", f"/unsubscribe?token={used[topic]}", shows={"result": "DONE"})
    for each in subscription_ids:
        talk.ask("DELETE", f"/subscriptions/{each}", status=204)


def _back(talk: Talk, connect: Connect, query: Mapping[str, str]) -> Connected:
    """A connection of a consumer that was gone, which nobody may have been told."""
    for _ in range(30):
        connection = connect(query)
        if connection.status == 200:
            return connection
        talk.sleep(30)
    talk.is_so("who was gone is let in again", 200, connection.status)
    return connection


def _content(frame: str) -> Any:
    return json.loads(frame.partition("\n\n")[2])


__all__ = ["Connected", "through"]
