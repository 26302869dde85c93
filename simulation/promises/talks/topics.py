"""Notifications 2.0, field by field: subscriptions as they are listed and shown, what reaches which topic, how it is
framed, what queues feed, tokens, shared and non-persistent subscribers, full topics.

Sources: Cumulocity's documents of Notifications 2.0, and docs/notifications.md for what is the hub's own.
"""

from __future__ import annotations

import base64
import itertools
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

from simulation.promises.talks.notifications import Connect, Connected, connecting
from simulation.promises.talks.pages import Page, by_pages
from simulation.promises.talks.talk import Talk

MINUTE = 60
APIS = ("alarms", "events", "measurements", "operations", "managedobjects")
FULL_EVERY = 4
"""A topic is filled in one run of so many: it takes a second of CPU."""


def through(talk: Talk, connect: Connect) -> None:
    """Everything."""
    parts = (
        _reaching,
        _framed,
        _fed,
        _shared,
        _passing,
        _keyed,
        _acknowledged,
        _early,
        _twins,
        _revoked,
        *([_full] if talk.turn % FULL_EVERY == 0 else []),
    )
    talk.through(_listed, _tokens, *connecting(connect, parts))


def _subscribed(
    talk: Talk, topic: str, *, apis: Sequence[str] = (), types: str = "", source: str = "", **more: Any
) -> str:
    """A subscription of the tenant, or of one source; its id."""
    rule: dict[str, Any] = {"context": "mo" if source else "tenant", "subscription": topic, **more}
    rule |= {"source": {"id": source}} if source else {}
    chosen = {**({"apis": [*apis]} if apis else {}), **({"typeFilter": types} if types else {})}
    rule |= {"subscriptionFilter": chosen} if chosen else {}
    return str(talk.ask("POST", "/subscriptions", rule, status=201, shows=rule)["id"])


def _token(talk: Talk, topic: str, subscriber: str = "s", **more: Any) -> str:
    return str(talk.ask("POST", "/token", {"subscription": topic, "subscriber": subscriber, **more})["token"])


def _connected(talk: Talk, connect: Connect, topic: str, **more: Any) -> tuple[str, Connected]:
    token = _token(talk, topic, **more)
    side = connect({"token": token})
    talk.is_so(f"{topic} is let in", 200, side.status)
    return token, side


def _ended(talk: Talk, subscriptions: Sequence[str], sides: Mapping[str, Connected]) -> None:
    for token, side in sides.items():
        side.close()
        talk.ask("POST", f"/unsubscribe?token={token}", shows={"result": "DONE"})
        talk.ask("POST", f"/unsubscribe?token={token}", status=500)
    for each in subscriptions:
        talk.ask("DELETE", f"/subscriptions/{each}", status=204)
        talk.ask("DELETE", f"/subscriptions/{each}", status=404)


def _listed(talk: Talk) -> None:
    """Subscriptions page by page, by each filter, with their numbers; each is shown as it was made."""
    created: list[str] = []
    rules: list[dict[str, Any]] = []
    for topic, source, types in (
        ("listedA", "1", "t"),
        ("listedA", "2", "t"),
        ("listedB", "1", "'a' or 'b'"),
        ("listedB", "", ""),
        ("listedC", "", "t"),
        ("listedC", "3", ""),
    ):
        more = {"nonPersistent": True} if topic == "listedC" else {}
        created.append(_subscribed(talk, topic, apis=["events"], types=types, source=source, **more))
        rules.append({"topic": topic, "source": source, "types": types, "id": created[-1]})
    for each in rules:
        shown = {"id": each["id"], "subscription": each["topic"], "context": "mo" if each["source"] else "tenant"}
        shown |= {
            "nonPersistent": each["topic"] == "listedC",
            "self": lambda link, each=each: link.endswith(each["id"]),
        }
        talk.ask("GET", f"/subscriptions/{each['id']}", shows=shown)

    def page(size: int, after: Any) -> Page:
        query = {"pageSize": size, "currentPage": after or 1, "withTotalPages": "true", "withTotalElements": "true"}
        got = talk.ask("GET", f"/subscriptions?{urlencode(query)}")
        numbers = {
            "currentPage": after or 1,
            "pageSize": size,
            "totalPages": -(-len(created) // size),
            "totalElements": len(created),
        }
        talk.is_so("the page's numbers", numbers, got["statistics"])
        following = dict(parse_qsl(urlsplit(got["next"]).query)) if got.get("next") else {}
        talk.is_so("there is one before it", bool(after), bool(got.get("prev")))
        return [each["id"] for each in got["subscriptions"]], int(following["currentPage"]) if following else None

    whole = [each["id"] for each in talk.ask("GET", "/subscriptions?pageSize=2000")["subscriptions"]]
    talk.is_so("all of them", sorted(created), sorted(whole))
    by_pages(talk, "subscriptions", whole, page, sizes=(1, 2, 3, 6, 7))
    filters: tuple[tuple[dict[str, str], Callable[[dict[str, Any]], bool]], ...] = (
        ({"subscription": "listedA"}, lambda each: each["topic"] == "listedA"),
        ({"source": "1"}, lambda each: each["source"] == "1"),
        ({"context": "mo"}, lambda each: bool(each["source"])),
        ({"context": "tenant"}, lambda each: not each["source"]),
        ({"typeFilter": "t"}, lambda each: each["types"] == "t"),
        ({"source": "1", "subscription": "listedB"}, lambda each: each["source"] == "1" and each["topic"] == "listedB"),
        ({"context": "mo", "subscription": "listedC"}, lambda each: each["source"] == "3"),
        ({"subscription": "listed"}, lambda _: False),
    )
    for query, by in filters:
        chosen = [{"id": each} for each in whole if by(next(rule for rule in rules if rule["id"] == each))]
        talk.ask("GET", f"/subscriptions?{urlencode({**query, 'pageSize': 9})}", shows={"subscriptions": chosen})
    bare = talk.ask("GET", "/subscriptions", shows={"statistics": {"pageSize": 5, "currentPage": 1}})
    talk.is_so("no totals unless asked for", set(), {"totalPages", "totalElements"} & {*bare["statistics"]})
    for bad in ("pageSize=0", "pageSize=x", "currentPage=0", "context=other"):
        talk.refused("GET", f"/subscriptions?{bad}", status=422)
    talk.refused("DELETE", "/subscriptions", status=422)
    # By source: those of one, in the context "mo" unless it is given
    talk.ask("DELETE", "/subscriptions?source=1", status=204)
    left = [each for each in whole if each not in (created[0], created[2])]
    talk.ask("GET", "/subscriptions?pageSize=9", shows={"subscriptions": [{"id": each} for each in left]})
    talk.ask("DELETE", "/subscriptions?context=tenant", status=204)
    talk.ask(
        "GET",
        "/subscriptions?pageSize=9",
        shows=lambda each: {row["id"] for row in each["subscriptions"]} == {created[1], created[5]},
    )
    for last in (created[1], created[5]):
        talk.ask("DELETE", f"/subscriptions/{last}", status=204)
    links = talk.ask("GET", "")
    talk.is_so("templates of links", True, any("notification2/subscriptions" in str(each) for each in links.values()))


def _tokens(talk: Talk) -> None:
    """What a token says: whose it is, of which topic, for how long."""
    for more, said, minutes in (
        ({}, {}, 1_440),
        ({"expiresInMinutes": 7}, {}, 7),
        ({"shared": True}, {"shared": "true"}, 1_440),
        ({"nonPersistent": True}, {"volatile": "true"}, 1_440),
        ({"shared": False, "nonPersistent": False, "signed": False}, {}, 1_440),
    ):
        token = _token(talk, "tokenTopic", "who", **more)
        header, payload, _ = (
            base64.b64decode(f"{each}==") if place < 2 else each for place, each in enumerate(token.split("."))
        )
        claims = json.loads(payload)
        shown = {"sub": "who", "topic": f"{talk.project}/relnotif/tokenTopic", "jti": str, **said}
        talk.is_so("a token", shown, claims)
        talk.is_so("and nothing else of that kind", {*said}, {*claims} & {"shared", "volatile"})
        talk.is_so("its signature", {"alg": "HS256"}, json.loads(header))
        talk.is_so("how long", 60 * minutes, claims["exp"] - claims["iat"])
        talk.is_so("from when", True, abs(claims["iat"] - talk.epoch_s()) <= 1)
        talk.ask("GET", f"/token?token={token}", shows={each: claims[each] for each in ("sub", "topic", "exp", *said)})
    for bad in ({"type": "mqtt"}, {"subscriber": "a\nb"}, {"shared": "maybe"}, {"nonPersistent": 7}):
        talk.refused("POST", "/token", {"subscription": "tokenTopic", "subscriber": "who", **bad}, status=422)
    talk.refused("GET", "/token", status=401)
    talk.refused("POST", "/unsubscribe", status=401)


def _reaching(talk: Talk, connect: Connect) -> None:
    """Each API and action, in both contexts, with and without their names; and both types of alarms and events."""
    rules: dict[str, dict[str, Any]] = {
        "toTenant": {},
        "toTenantNamed": {"apis": APIS},
        "toOne": {"source": "1"},
        "toOneNamed": {"source": "1", "apis": APIS},
        "toChildren": {"apis": ["alarmsWithChildren", "eventsWithChildren"]},
        "toAny": {"source": "1", "apis": ["*"]},
        "toTenantAny": {"apis": ["*"]},
        "toTyped": {"apis": ["events"], "types": "c8y_A"},
    }
    subscriptions = [_subscribed(talk, topic, **rule) for topic, rule in rules.items()]
    sides = {topic: _connected(talk, connect, topic) for topic in rules}
    talk.sleep(5)
    published: list[dict[str, Any]] = [
        {"api": api, "action": action, "source": source, "data": {"type": f"c8y_{kind}"}}
        for api, action, source, kind in (
            *itertools.product(APIS, ("CREATE", "UPDATE", "DELETE"), ("1",), ("A",)),
            ("events", "CREATE", "2", "B"),
        )
    ]
    for place, each in enumerate(published):
        each["data"]["n"] = place
    talk.ask("POST", "/notifications", published, status=201, shows={"ids": len(published) * [str]})
    talk.sleep(10)

    def tenant(each: Mapping[str, Any], *, named: bool) -> list[str]:
        if each["api"] == "managedobjects":
            return ["managedobjects"] if each["action"] == "CREATE" else []
        return [each["api"]] if named or each["api"] != "measurements" else []

    def one(each: Mapping[str, Any]) -> list[str]:
        created = each["api"] == "managedobjects" and each["action"] == "CREATE"
        return [each["api"]] if each["source"] == "1" and not created else []

    def children(each: Mapping[str, Any]) -> list[str]:
        return [f"{each['api']}WithChildren"] if each["api"] in ("alarms", "events") else []

    expected: dict[str, Callable[[Mapping[str, Any]], list[str]]] = {
        "toTenant": lambda each: tenant(each, named=False),
        "toTenantNamed": lambda each: tenant(each, named=True),
        "toOne": one,
        "toOneNamed": one,
        "toChildren": children,
        "toAny": lambda each: [*one(each), *(children(each) if each["source"] == "1" else [])],
        "toTenantAny": lambda each: [*tenant(each, named=False), *children(each)],
        "toTyped": lambda each: ["events"] if each["api"] == "events" and each["data"]["type"] == "c8y_A" else [],
    }
    for topic, (_, side) in sides.items():
        wanted = [
            (f"/{talk.project}/{kind}/{each['source']}", each["action"], each["data"])
            for each in published
            for kind in expected[topic](each)
        ]
        came = [(about, action, json.loads(body)) for _, about, action, body in map(_parts, side.frames)]
        talk.came(f"what reached {topic}", sorted(wanted, key=str), sorted(came, key=str))
        places = [each["n"] for *_, each in came]
        talk.came(f"in order, at {topic}", sorted(places), places)
    _ended(talk, subscriptions, dict(sides.values()))


def _parts(frame: str) -> tuple[str, str, str, str]:
    """Acknowledgement, description, action and body of a frame."""
    head, _, body = frame.partition("\n\n")
    ack, about, action = head.split("\n")[:3]
    return ack, about, action, body


def _framed(talk: Talk, connect: Connect) -> None:
    """Bodies come as they were published, on one line."""
    rule = _subscribed(talk, "framedTopic", apis=["events"])
    token, side = _connected(talk, connect, "framedTopic")
    other, same = _connected(talk, connect, "framedTopic", subscriber="other")
    talk.sleep(5)
    written: tuple[tuple[str, str], ...] = (
        ('{"data": {"a": 1.50, "b": "é 🦊"}}', '{"a": 1.50, "b": "é 🦊"}'),
        ('{"data": [1, null, true]}', "[1, null, true]"),
        ('{"data": "text"}', '"text"'),
        ('{"data": 7}', "7"),
        ('{"data": null}', "null"),
        ('{"data": {"a": "x\\ny\u2028z\u0085"}}', '{"a": "x\\ny\\u2028z\\u0085"}'),
        ('{"data": {"a":\n  1,\n  "b": 2}}', '{"a":  1,  "b": 2}'),
        ('{"data_base64": "/wBieXRlcw=="}', "/wBieXRlcw=="),
    )
    for given, _ in written:
        body = f'{{"api": "events", "source": {{"id": "9"}}, {given[1:]}'.encode()
        talk.ask("POST", "/notifications", body, status=201, shows={"ids": [str]})
        talk.sleep(2)
    talk.sleep(5)
    came = [_parts(each) for each in side.frames]
    talk.came(
        "as they were published",
        [(f"/{talk.project}/events/9", "CREATE", body) for _, body in written],
        [each[1:] for each in came],
    )
    talk.came("the same for all subscribers of a topic", [*side.frames], [*same.frames])
    acks = [each[0] for each in came]
    talk.came("16 characters each", (len(written), {16}), (len({*acks}), {len(each) for each in acks}))
    _ended(talk, [rule], {token: side, other: same})


def _fed(talk: Talk, connect: Connect) -> None:
    """A subscriber of a push queue that is a topic: what it is told, of whom, and what it cannot take."""
    iron = talk.at(f"/3/projects/{talk.project}").with_headers(authorization=f"OAuth {talk.token}")
    queries = ("", "api=alarms&action=UPDATE&source=77", "nonPersistent=true")
    subscribers = [
        {"name": f"t{n}", "url": f"notification2://fedTopic?{each}".rstrip("?")} for n, each in enumerate(queries)
    ]
    subscriptions = [_subscribed(talk, "fedTopic", apis=["operations"])]
    sides = {
        name: _connected(talk, connect, "fedTopic", **more)
        for name, more in (("kept", {}), ("brief", {"nonPersistent": True}))
    }
    talk.sleep(5)
    push = {"subscribers": subscribers, "retries": 0, "error_queue": "unfed"}
    iron.ask("PUT", "/queues/feeds", {"queue": {"push": push}})
    bodies = ('{"source": "5", "n": 1}', '{"source": {"id": "6"}, "n": 2}', '{"n":\n3}', "one line", "two\nlines")
    for each in bodies:
        iron.ask("POST", "/queues/feeds/messages", {"messages": [{"body": each}]}, status=201)
        talk.sleep(6 + talk.put_off_s)
    iron.ask("POST", "/queues/feeds/webhook", b"\xff\x00", status=201)
    talk.sleep(20 + talk.put_off_s)
    shown = ['{"source": "5", "n": 1}', '{"source": {"id": "6"}, "n": 2}', '{"n":3}', "one line"]
    shown += [base64.b64encode(each).decode() for each in (b"two\nlines", b"\xff\x00")]
    sources = ["5", "6", *4 * ["feeds"]]
    wanted = {f"events/{source} CREATE {body}" for source, body in zip(sources, shown, strict=True)}
    alarms = {f"alarms/77 UPDATE {body}" for body in shown}
    for name, expected in (("kept", wanted | alarms), ("brief", wanted)):
        came = [_parts(each) for each in sides[name][1].frames]
        found = [f"{about.partition('/')[2].partition('/')[2]} {action} {body}" for _, about, action, body in came]
        talk.came(f"what {name} was told", sorted(expected), sorted(found))
    large = iron.ask("POST", "/queues/feeds/messages", {"messages": [{"body": 140_000 * "x"}]}, status=201)["ids"][0]
    talk.sleep(30 + talk.put_off_s)
    iron.ask("GET", f"/queues/feeds/messages/{large}/subscribers", shows={"subscribers": 3 * [{"state": "exhausted"}]})
    one = {"name": "bad", "url": "notification2://fedTopic"}
    bad: dict[str, Any]
    for bad in (
        {"headers": {"X-A": "b"}},
        {"signing": {"secret": "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"}},
        {"url": "notification2://fed topic"},
        {"url": "notification2://"},
        {"url": "notification2://fedTopic?action=OTHER"},
        {"url": "notification2://fedTopic?api=other"},
    ):
        iron.refused("POST", "/queues/feeds/subscribers", {"subscribers": [{**one, **bad}]})
    for queue in ("feeds", "unfed"):
        iron.ask("DELETE", f"/queues/{queue}")
    _ended(talk, subscriptions, dict(sides.values()))


def _published(talk: Talk, *numbers: int, source: str = "1", **headers: str) -> list[str]:
    some = [{"api": "events", "source": source, "data": {"n": each}} for each in numbers]
    ids: list[str] = talk.with_headers(**headers).ask("POST", "/notifications", some, status=201)["ids"]
    return ids


def _numbers(side: Connected) -> list[int]:
    return [json.loads(_parts(each)[3])["n"] for each in side.frames]


def _shared(talk: Talk, connect: Connect) -> None:
    """Who may connect beside whom, by which names, and who takes over what others leave."""
    rule = _subscribed(talk, "sharedTopic", apis=["events"])
    shared, alone = (_token(talk, "sharedTopic", "s", **more) for more in ({"shared": True}, {}))
    first = connect({"token": shared, "consumer": "a"})
    talk.is_so("the first", 200, first.status)
    talk.sleep(5)
    for query, status in (
        ({"token": alone}, 409),
        ({"token": shared, "consumer": "a"}, 409),
        ({"token": shared, "consumer": ""}, 422),
        ({"token": shared, "consumer": 256 * "c"}, 422),
        ({"token": f"{shared}x"}, 401),
        ({}, 401),
    ):
        talk.is_so(f"who is let in beside it: {sorted(query)}", status, connect(query).status)
    second = connect({"token": shared, "consumer": 255 * "c"})
    talk.is_so("the second", 200, second.status)
    talk.sleep(5)
    for number in range(12):
        _published(talk, number, source=f"{number}")
        talk.sleep(2)
    talk.sleep(5)
    came = (_numbers(first), _numbers(second))
    talk.came("each once, between the two", [*range(12)], sorted(came[0] + came[1]))
    # What the other one was sent cannot be acknowledged, and comes again to who is left
    here, there = (first, second) if len(came[0]) >= len(came[1]) else (second, first)
    for each in here.frames:
        there.send(_parts(each)[0])
    talk.sleep(5)
    waits = {"subscriber": "s", "shared": True, "consumers": 2, "unacknowledged": 12}
    talk.ask("GET", "/subscribers?subscription=sharedTopic", shows={"subscribers": [waits]})
    talk.ask("POST", f"/unsubscribe?token={shared}", status=500)
    kept = _numbers(here)
    here.close()
    # Which nobody may have been told; whoever sends something is not idle
    for _ in range(16):
        talk.sleep(MINUTE)
        there.send("still here")
    talk.came("what was left behind", sorted(kept), sorted(_numbers(there)[-len(kept) :]))
    there.close()
    talk.sleep(5)
    talk.ask("POST", f"/unsubscribe?token={shared}", shows={"result": "DONE"})
    talk.ask("DELETE", f"/subscriptions/{rule}", status=204)


def _passing(talk: Talk, connect: Connect) -> None:
    """A non-persistent topic is one of its own, starts empty, and sends nothing again."""
    rules = [_subscribed(talk, "passing", apis=["events"])]
    rules.append(_subscribed(talk, "passing", apis=["events"], source="1", nonPersistent=True))
    sides = {name: _connected(talk, connect, "passing", nonPersistent=name == "brief") for name in ("kept", "brief")}
    talk.sleep(5)
    _published(talk, 0)
    talk.sleep(5)
    for token, side in sides.values():
        talk.came("both topics", [0], _numbers(side))
        side.close()
        talk.is_so("gone", True, bool(token))
    talk.sleep(5)
    _published(talk, 1)
    talk.sleep(5)
    again = {name: connect({"token": token}) for name, (token, _) in sides.items()}
    talk.sleep(5)
    _published(talk, 2)
    talk.sleep(10)
    talk.came("what was kept", [0, 1, 2], _numbers(again["kept"]))
    talk.came("what was not", [2], _numbers(again["brief"]))
    rows = {each["nonPersistent"]: each for each in talk.ask("GET", "/subscribers?subscription=passing")["subscribers"]}
    talk.is_so(
        "what waits",
        {False: {"unacknowledged": 3, "oldest": str, "bytes": lambda each: each > 0}, True: {"unacknowledged": 1}},
        rows,
    )
    # Without its subscription, what waits stays, and nothing more comes
    talk.ask("DELETE", f"/subscriptions/{rules[0]}", status=204)
    _published(talk, 3)
    talk.sleep(10)
    talk.came("without a subscription", ([0, 1, 2], [2, 3]), (_numbers(again["kept"]), _numbers(again["brief"])))
    _ended(talk, rules[1:], {token: again[name] for name, (token, _) in sides.items()})


def _keyed(talk: Talk, connect: Connect) -> None:
    """A key stands for all of its request: with anything else in it, it is refused, and nothing is sent."""
    rule = _subscribed(talk, "keyTopic", apis=["events", "alarms"])
    token, side = _connected(talk, connect, "keyTopic")
    talk.sleep(5)
    once = talk.with_headers(idempotency_key="all of it")
    first = {"api": "events", "source": "1", "action": "CREATE", "data": {"n": 1}}
    ids = once.ask("POST", "/notifications", first, status=201)["ids"]
    for changed in ({"api": "alarms"}, {"source": "2"}, {"action": "DELETE"}, {"data": {"n": 2}}, {"data": {"n": "1"}}):
        once.refused("POST", "/notifications", {**first, **changed}, status=422)
    once.refused("POST", "/notifications", [first, first], status=422)
    once.ask("POST", "/notifications", first, status=201, shows={"ids": ids})
    talk.sleep(10)
    talk.came("once", [1], _numbers(side))
    side.close()
    talk.sleep(5)
    talk.ask("POST", f"/unsubscribe?token={token}", shows={"result": "DONE"})
    talk.ask("DELETE", f"/subscriptions/{rule}", status=204)


def _acknowledged(talk: Talk, connect: Connect) -> None:
    """Keys that make repeats harmless; acknowledgements in any order, several in a frame; the end in the band."""
    rule = _subscribed(talk, "ackTopic", apis=["events"])
    token, side = _connected(talk, connect, "ackTopic")
    talk.sleep(5)
    key = 255 * "a"
    ids = _published(talk, 0, 1, idempotency_key=key)
    talk.is_so("the same again", ids, _published(talk, 0, 1, idempotency_key=key))
    talk.is_so("in order", sorted(ids), ids)
    other = {"api": "events", "source": "1", "data": {"n": 9}}
    talk.with_headers(idempotency_key=key).ask("POST", "/notifications", other, status=422)
    for bad in (256 * "a", "é"):
        talk.with_headers(idempotency_key=bad).ask("POST", "/notifications", other, status=422)
    _published(talk, 2, 3, 4, 5)
    talk.sleep(10)
    talk.came("each once", [*range(6)], _numbers(side))
    acks = [_parts(each)[0] for each in side.frames]
    side.send(f"{acks[1]}\n{acks[3]}")
    side.send("nonsense")
    side.send(f'"{acks[0]}"')
    side.send(acks[1])
    talk.sleep(5)
    side.close()
    talk.sleep(5)
    side = connect({"token": token})
    talk.sleep(10)
    talk.came("what was not acknowledged, in order", [0, 2, 4, 5], _numbers(side))
    talk.came("under the same names", [acks[each] for each in (0, 2, 4, 5)], [_parts(each)[0] for each in side.frames])
    side.send("unsubscribe_subscriber")
    talk.sleep(10)
    talk.ask("GET", "/subscribers?subscription=ackTopic", shows={"subscribers": []})
    talk.ask("POST", f"/unsubscribe?token={token}", status=500)
    side = connect({"token": token})
    talk.sleep(5)
    _published(talk, 6)
    talk.sleep(5)
    talk.came("anew, it begins with what is new", [6], _numbers(side))
    _ended(talk, [rule], {token: side})


def _early(talk: Talk, connect: Connect) -> None:
    """What is acknowledged at once does not come again, though its consumer leaves soon."""
    rule = _subscribed(talk, "earlyTopic", apis=["events"])
    token, side = _connected(talk, connect, "earlyTopic")
    talk.sleep(5)
    _published(talk, 0, 1)
    for _ in range(2_000):
        if side.frames:
            break
        talk.sleep(0.01, exactly=True)
    talk.came("something", True, bool(side.frames))
    acknowledged = _numbers(side)
    for frame in side.frames:
        side.send(_parts(frame)[0])
    # An acknowledgement that is on its way when its connection ends may come too late
    talk.sleep(2, exactly=True)
    side.close()
    talk.sleep(10)
    side = connect({"token": token})
    talk.sleep(15)
    talk.came("the others", [each for each in (0, 1) if each not in acknowledged], _numbers(side))
    _ended(talk, [rule], {token: side})


def _twins(talk: Talk, connect: Connect) -> None:
    """A persistent and a non-persistent topic of one name are two, also for a request that is repeated."""
    rules = [
        _subscribed(talk, "twinTopic", apis=["events"]),
        _subscribed(talk, "twinTopic", apis=["events"], source="1", nonPersistent=True),
    ]
    sides = [_connected(talk, connect, "twinTopic", nonPersistent=brief) for brief in (False, True)]
    talk.sleep(5)
    for _ in range(2):
        _published(talk, 0, 1, idempotency_key="twins")
        talk.sleep(10)
    talk.came("each once", [[0, 1], [0, 1]], [_numbers(side) for _, side in sides])
    _ended(talk, rules, dict(sides))


def _revoked(talk: Talk, connect: Connect) -> None:
    """A consumer's token ends with the project's token that it was made with, soon; what is open, in five minutes."""
    # Not of an API of which other parts publish what fills a topic
    rule = _subscribed(talk, "revokedTopic", apis=["alarms"])
    [created] = talk.typed("tokens", "make", talk.project, "--label", "brief")
    [known] = [each for each in talk.typed("tokens", "list", talk.project) if each["label"] == "brief"]
    basic = base64.b64encode(f"{talk.project}/me:{created['token']}".encode()).decode()
    other = talk.with_headers(authorization=f"Basic {basic}")
    kept, stays = _connected(talk, connect, "revokedTopic", subscriber="stays")
    _, open_still = _connected(other, connect, "revokedTopic", subscriber="open")
    unused = _token(other, "revokedTopic", subscriber="unused")
    talk.typed("tokens", "revoke", talk.project, known["token_id"])
    talk.sleep(31, exactly=True)
    talk.is_so("refused", 401, connect({"token": unused}).status)
    for _ in range(6):
        # Idle ones would be closed anyway
        stays.send("ping")
        open_still.send("ping")
        talk.sleep(60)
    talk.ask("POST", "/notifications", {"api": "alarms", "source": "1", "data": {"n": 0}}, status=201)
    talk.sleep(10)
    talk.came("closed", ([], [0]), (_numbers(open_still), _numbers(stays)))
    again = _token(talk, "revokedTopic", subscriber="open")
    talk.ask("POST", f"/unsubscribe?token={again}", shows={"result": "DONE"})
    _ended(talk, [rule], {kept: stays})


def _full(talk: Talk, connect: Connect) -> None:
    """A topic that is full refuses, and others go on; repeated with its key, the request reaches what was full."""
    rules = [
        _subscribed(talk, "fullOne", apis=["events"]),
        _subscribed(talk, "fullTwo", apis=["events"], types="small"),
    ]
    token, gone = _connected(talk, connect, "fullOne")
    other, side = _connected(talk, connect, "fullTwo")
    talk.sleep(5)
    gone.close()
    size, at_once, most = 130_000, 31, 26_214_400
    some = [{"api": "events", "source": "1", "data": {"n": 0, "type": "large", "text": size * "x"}}] * at_once
    some.append({"api": "events", "source": "1", "data": {"n": 1, "type": "small"}})
    body = json.dumps(some).encode()
    sent = 0
    for _ in range(most // (size * at_once) + 2):
        answer = talk.answered("POST", "/notifications", body)
        if answer.status != 201:
            break
        sent += 1
    talk.is_so("as much as it takes", True, most <= sent * at_once * size <= most + 2 * size * at_once)
    full = [{"subscription": "fullOne", "nonPersistent": False}]
    details = {"full": full, "taken": [{"subscription": "fullTwo"}], "ids": list, "idempotencyKey": str}
    refusal = {"error": "reliable-notification/Backlog Quota Exceeded", "message": str, "details": details}
    talk.is_so("what it refuses", (500, refusal), (answer.status, answer.body))
    talk.sleep(10)
    talk.came("what others got", sent + 1, len(side.frames))
    talk.ask("POST", f"/unsubscribe?token={token}", shows={"result": "DONE"})
    key = answer.body["details"]["idempotencyKey"]
    talk.with_headers(idempotency_key=key).ask("POST", "/notifications", body, status=201)
    talk.sleep(10)
    talk.came("they do not get it again", sent + 1, len(side.frames))
    _ended(talk, rules, {other: side})


__all__ = ["through"]
