"""Every bound in the documents' tables of limits, asked for exactly and one beside it. What the other talks ask for is
not asked for again; ``tests/simulation/test_bounds.py`` has a talk for each row.

The numbers are read from the documents (:mod:`simulation.promises.documents`), so that a bound which the code moves is
noticed, and one that the documents move is asked for at its new place.
"""

from __future__ import annotations

import base64
import itertools
import json
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from simulation.promises.documents import numbers, said
from simulation.promises.talks.notifications import Connect
from simulation.promises.talks.services import mapped
from simulation.promises.talks.talk import Came, Talk

A_DAY_S, A_YEAR_S = 86_400, 31_536_000
MINUTE = 60


def filled(fields: Mapping[str, Any], size: int) -> bytes:
    """A request of so many bytes: the member whose text is empty gets as much as is missing."""
    frame = json.dumps(fields)
    return frame.replace('""', json.dumps((size - len(frame)) * "x"), 1).encode()


def queues(talk: Talk) -> None:
    """IronMQ."""
    talk.through(_request, _subscribers, _signing, _searched, _asked, _answer)


def _request(talk: Talk) -> None:
    """A request of exactly the size that is allowed, and one byte more."""
    most = numbers("ironmq", "request")[0]
    for size, status in ((most, 201), (most + 1, 413)):
        body = filled({"messages": [{"body": ""}]}, size)
        talk.is_so("a request of its size", size, len(body))
        talk.ask("POST", "/queues/bounds/messages", body, status=status)
    talk.ask("GET", "/queues/bounds", shows={"queue": {"size": lambda each: each <= 1, "total_messages": 1}})
    talk.ask("DELETE", "/queues/bounds")


def _subscribers(talk: Talk) -> None:
    """As many bytes of subscribers as a queue may have; lines of JSON may be counted a little differently."""
    most = numbers("ironmq", "`push.subscribers`", "A queue")[0]
    one = {"name": "n000", "url": "https://bounds.example/" + 1_900 * "u"}
    size = len(json.dumps(one))
    for count, status in (((most - 2_000) // size, 200), (most // size + 1, 400)):
        several = [{**one, "name": f"n{number:03}"} for number in range(count)]
        talk.ask("PUT", "/queues/subscribed", {"queue": {"push": {"subscribers": several}}}, status=status)
    talk.ask("DELETE", "/queues/subscribed")


def _signing(talk: Talk) -> None:
    """A secret of the shortest and the longest, a time for the one before it, and as many that sign as a queue may
    have.
    """
    least, most = said("ironmq", r"base64 of (\d+) to \d+ bytes"), said("ironmq", r"base64 of \d+ to (\d+) bytes")
    longest_s = said("ironmq", r"default 86,400, 0\.\.([\d,]+)")
    one = {"name": "signs", "url": "https://bounds.example/in"}

    def subscribers(*signing: Mapping[str, Any]) -> dict[str, Any]:
        return {"subscribers": [{**one, "name": f"s{n}", "signing": each} for n, each in enumerate(signing)]}

    def signs(size: int, **more: Any) -> dict[str, Any]:
        return {"secret": secret(size), **more}

    talk.ask("PUT", "/queues/signing", {"queue": {"push": subscribers(signs(least))}})
    path = "/queues/signing/subscribers"
    for good in (signs(most), signs(least, grace_period=0), signs(most, grace_period=longest_s)):
        talk.ask("POST", path, subscribers(good), shows={"msg": "Updated"})
    for bad in (
        *(signs(each) for each in (least - 1, most + 1)),
        *(signs(least, grace_period=each) for each in (-1, longest_s + 1)),
    ):
        talk.refused("POST", path, subscribers(bad))
    signed = said("ironmq", r"At most (\d+) subscribers of a queue can have signatures")
    talk.ask("PUT", path, subscribers(*(signs(least) for _ in range(signed))), shows={"msg": "Updated"})
    talk.refused("PUT", path, subscribers(*(signs(least) for _ in range(signed + 1))))
    talk.ask("GET", "/queues/signing", shows={"queue": {"push": {"subscribers": signed * [{"signing": True}]}}})
    talk.ask("DELETE", "/queues/signing")


def secret(size: int) -> str:
    """A secret of so many bytes."""
    return f"whsec_{base64.b64encode(bytes(range(size))).decode()}"


def _searched(talk: Talk) -> None:
    """As many fields to search by, and as long ones."""
    count, longest = numbers("ironmq", "`search_fields`", "A queue")
    names = [longest * letter for letter in "abcdefgh"]
    talk.ask("PUT", "/queues/searched", {"queue": {"search_fields": names[:count]}})
    for bad in (names[: count + 1], [(longest + 1) * "a"]):
        talk.refused("PATCH", "/queues/searched", {"queue": {"search_fields": bad}})
    talk.ask("GET", "/queues/searched", shows={"queue": {"search_fields": names[:count]}})
    talk.ask("DELETE", "/queues/searched")


def _asked(talk: Talk) -> None:
    """Hours of activity, alerts of a project, what a replay is for, and how long a consumer waits."""
    hours = said("ironmq", r"`hours` \(24, at most (\d+)\)")
    for query, status in (("hours=1", 200), (f"hours={hours}", 200), (f"hours={hours + 1}", 400)):
        talk.ask("GET", f"/activity?{query}", status=status)
    most = said("ironmq", r"\[alerts\]\(#alerts-of-a-project\), at most (\d+)")
    alert = {"name": "a", "measure": "given_up", "threshold": 1, "minutes": 5, "url": "https://bounds.example/told"}
    alerts = [talk.ask("POST", "/alerts", {"alert": alert}, status=201) for _ in range(most)]
    talk.refused("POST", "/alerts", {"alert": alert})
    for each in alerts:
        talk.ask("DELETE", f"/alerts/{each['alert']['id']}")
    some = numbers("ironmq", "messages in one post, reservation, peek or deletion")[0]
    talk.ask("PUT", "/queues/waited", {})
    talk.ask("GET", f"/queues/waited/messages?n={some}")
    talk.refused("GET", f"/queues/waited/messages?n={some + 1}")
    least_s, most_s, within_s = numbers("ironmq", "`wait`")[:3]
    # With what a request takes on its way
    for wait, longest in ((least_s, 1), (most_s, within_s + 0.1)):
        ask = {"n": 1, "wait": wait}
        shortest = 0 if not wait else within_s - 2
        talk.timed(shortest, longest, lambda ask=ask: talk.ask("POST", "/queues/waited/reservations", ask))  # type: ignore[misc]
    talk.refused("POST", "/queues/waited/reservations", {"wait": most_s + 1})
    talk.ask("DELETE", "/queues/waited")


def _answer(talk: Talk) -> None:
    """What fits into the answer of a reservation comes, in order, and the rest stays."""
    most = numbers("ironmq", "answer of a reservation")[0]
    body = most // 2 - 100_000
    for _ in range(3):
        sent = filled({"messages": [{"body": ""}]}, body)
        talk.ask("POST", "/queues/answered/messages", sent, status=201)
    taken = []
    for count in (2, 1):
        got = talk.ask("POST", "/queues/answered/reservations", {"n": 3}, shows={"messages": count * [...]})
        taken += [each["id"] for each in got["messages"]]
    talk.is_so("in order", sorted(taken), taken)
    talk.ask("DELETE", "/queues/answered")


def swept(talk: Talk, purge: Callable[[], None]) -> None:
    """What an operator purges by mistake is found again within a day, whichever part of the table it lies in: each
    hour one of 24, also the one of midnight.
    """

    def lost(one: Talk) -> None:
        _swept(one, purge)

    talk.through(lost)


def _swept(talk: Talk, purge: Callable[[], None]) -> None:
    came = talk.listen("bounds-swept.example", lambda _: (200, b""))
    push = {"subscribers": [{"name": "swept", "url": "https://bounds-swept.example/in"}]}
    talk.ask("PUT", "/queues/swept", {"queue": {"push": push}})
    bodies = [f"{number}" for number in range(100)]
    began = talk.now()
    delayed = [{"body": each, "delay": 300} for each in bodies]
    talk.ask("POST", "/queues/swept/messages", {"messages": delayed}, status=201)
    # Until the orders of all are in their queue
    talk.sleep(60 + talk.put_off_s)
    purge()
    # More than an hour overdue, in the part of the table that is read next, and on its way
    talk.sleep(MINUTE * 60 - 30, exactly=True)
    talk.came("not before it is overdue by an hour", [], came)
    talk.sleep(A_DAY_S + 2 * MINUTE * 60)
    talk.came("all of them within a day", sorted(bodies), sorted(each.body.decode() for each in came))
    hours = {(each.at - began) // (3_600 * 1_000_000) for each in came}
    talk.came("a part each hour", lambda each: each >= 20, len(hours))
    talk.ask("DELETE", "/queues/swept")


def stores(talk: Talk) -> None:
    """The hub protocol; what takes seconds of CPU in every fifth run."""
    dear = (_answers, _refused_answers, _notices, _chain, _put_off)
    talk.through(_pushed, _described, _patterns, dear[talk.turn % len(dear)])


def _pushed(talk: Talk) -> None:
    """A body of exactly the size that is allowed, and one byte more."""
    most = numbers("hub-protocol", "pushed body; answer")[0]
    for size, status in ((most, 201), (most + 1, 413)):
        body = filled({"message": "bounds:pushed", "payload": {"text": ""}}, size)
        talk.is_so("a body of its size", size, len(body))
        talk.ask("POST", "/messages", body, status=status)


def _answers(talk: Talk) -> None:
    """The largest answers that take effect."""
    children, parameters, longest = numbers("hub-protocol", "children; parameters; notifications of an answer")[:3]
    [type_length] = numbers("hub-protocol", "message type")
    size = numbers("hub-protocol", "pushed body; answer")[0]
    child = {"message": type_length * "c", "payload": {}, "delay": A_YEAR_S}
    few = {"message": "bounds:one-of", "payload": {}}
    named = [{"name": f"bounds.p{number}", "value": number} for number in range(parameters - 1)]
    said_so: dict[str, Any] = {
        "children": {"messages": [*((children - 1) * [few]), child]},
        "parameters": {"parameters": [*named, {"name": "bounds.long", "value": (longest - 2) * "v"}]},
        "delay": {"delay": f"{A_YEAR_S}", "update_url": "/later"},
        "size": {"text": ""},
    }
    _answered(talk, said_so, size, asked_again=False)


def _refused_answers(talk: Talk) -> None:
    """One more than that: the answer fails as a whole, and the request is made again."""
    children, parameters, longest = numbers("hub-protocol", "children; parameters; notifications of an answer")[:3]
    [type_length] = numbers("hub-protocol", "message type")
    size = numbers("hub-protocol", "pushed body; answer")[0]
    few = {"message": "bounds:too-many", "payload": {}}
    one = {"name": "bounds.one", "value": 1}
    said_so: dict[str, Any] = {
        "children-many": {"messages": (children + 1) * [few]},
        "child-type": {"messages": [few, {**few, "message": (type_length + 1) * "c"}]},
        "child-delay": {"messages": [few, {**few, "delay": A_YEAR_S + 1}]},
        "parameters-many": {"parameters": (parameters + 1) * [one]},
        "parameter-long": {"parameters": [one, {"name": "bounds.long", "value": (longest - 1) * "v"}]},
        "delay-long": {"delay": A_YEAR_S + 1, "update_url": "/later"},
        "size-large": {"text": ""},
    }
    _answered(talk, said_so, size + 1, asked_again=True)
    # None of it took effect.
    talk.ask("GET", "/queues/archived.json?message=bounds:too-many&source=incoming", shows=[])
    talk.ask("GET", "/parameters", shows=lambda each: "bounds.one" not in json.dumps(each))


def _answered(talk: Talk, said_so: Mapping[str, Any], size: int, *, asked_again: bool) -> None:
    """Services that answer so at first, the one about sizes with so many bytes; whether they are asked again."""
    asked: dict[str, int] = dict.fromkeys(said_so, 0)

    def answers(came: Came) -> tuple[int, bytes]:
        sent = json.loads(came.body)
        kind = sent["message"].removeprefix("bounds:")
        asked[kind] += 1
        fields = {"message_id": sent["message_id"], **(said_so[kind] if asked[kind] == 1 else {})}
        return 200, filled(fields, size) if kind.startswith("size") and asked[kind] == 1 else json.dumps(
            fields
        ).encode()

    talk.listen("bounds-answers.example", answers)
    kinds = [f"bounds:{each}" for each in said_so]
    mapping = mapped(talk, "bounds-answers", kinds, options={"retry_base": 10, "retry_cap": 60})
    talk.sleep(61)
    for each in kinds:
        talk.ask("POST", "/messages", {"message": each, "payload": {}}, status=201)
    talk.sleep(3 * MINUTE)
    talk.came("how often each is asked", dict.fromkeys(said_so, 2 if asked_again else 1), asked)
    talk.ask("DELETE", mapping)


def _notices(talk: Talk) -> None:
    """As many notifications of an answer as are kept, and as much of each."""
    most, text, further = numbers("hub-protocol", "children; parameters; notifications of an answer")[3:]
    notes = [{"level": "warn", "subject": f"bounds {number}", "description": "d"} for number in range(most + 1)]
    notes[0] |= {"description": text * "d", "more": (further - len('{"more":""}')) * "m"}
    notes[1] |= {"description": (text + 1) * "d", "more": (further + 1) * "m"}

    def answers(came: Came) -> tuple[int, bytes]:
        return 200, json.dumps({"message_id": json.loads(came.body)["message_id"], "notifications": notes}).encode()

    talk.listen("bounds-notices.example", answers)
    mapping = mapped(talk, "bounds-notices", ["bounds:notices"])
    talk.sleep(61)
    talk.ask("POST", "/messages", {"message": "bounds:notices", "payload": {}}, status=201)
    talk.sleep(20)
    found: dict[str, Any] = {}
    for page in range(1, most // 25 + 2):
        answer = talk.ask("GET", f"/notifications?level=warn&page={page}")
        found |= {each["subject"]: each for each in answer["notifications"]}
    ours = {name: each for name, each in found.items() if name.startswith("bounds ")}
    talk.is_so("the first hundred", {f"bounds {number}" for number in range(most)}, {*ours})
    lengths = [len(ours[f"bounds {number}"]["description"]) for number in range(2)]
    talk.is_so("descriptions", [text, text], lengths)
    talk.ask("DELETE", mapping)


def _chain(talk: Talk) -> None:
    """Messages that lead to one another, until the last generation."""
    most = said("hub-protocol", r"after (\d+) generations children are refused")
    child = {"message": "bounds:chain", "payload": {}}

    def answers(came: Came) -> tuple[int, bytes]:
        return 200, json.dumps({"message_id": json.loads(came.body)["message_id"], "messages": [child]}).encode()

    came = talk.listen("bounds-chain.example", answers)
    mapping = mapped(talk, "bounds-chain", ["bounds:chain"])
    talk.sleep(61)
    talk.ask("POST", "/messages", child, status=201)
    talk.sleep(most * (5 + 3 * talk.gathered_s))
    talk.came("the posted one and its generations", 1 + most, len(came))
    notices = talk.ask("GET", "/notifications?level=error")["notifications"]
    talk.is_so("what is told of it", True, any(f"{most} messages" in each["description"] for each in notices))
    talk.ask("DELETE", mapping)


def _put_off(talk: Talk) -> None:
    """A service that only ever puts off: four times as it likes, then ever less often, and in the end it has failed."""
    most = said("hub-protocol", r"From the (\d+)st on they count as failures") - 1

    def answers(came: Came) -> tuple[int, bytes]:
        return 200, json.dumps({"message_id": json.loads(came.body)["message_id"], "delay": 1}).encode()

    came = talk.listen("bounds-off.example", answers)
    options = {"retry_base": 600, "retry_cap": 600, "max_attempts": 1}
    mapping = mapped(talk, "bounds-off", ["bounds:off"], options=options)
    talk.sleep(61)
    message = talk.ask("POST", "/messages", {"message": "bounds:off", "payload": {}}, status=201)["message_id"]
    talk.sleep((most + 30) * 2 * MINUTE)
    talk.came("so often, and once more", most + 1, len(came))
    gaps = [(after.at - before.at) / 1_000_000 for before, after in itertools.pairwise(came)]
    least = [1, 1, 1, 1, *(min(60, 2**number) for number in range(most))]
    for gap, wait in zip(gaps, least, strict=False):
        talk.came("not before the least wait", lambda each, wait=wait: wait - 1 <= each, gap)
    [copy] = talk.ask("GET", f"/messages/{message}", shows={"children": [...]})["children"]
    talk.ask("GET", f"/messages/{copy['id']}", shows={"state": "parked"})
    talk.ask("PUT", f"/messages/{copy['id']}", {"archive": True})
    talk.ask("DELETE", mapping)


def _described(talk: Talk) -> None:
    """An ``endpoint.json`` of the largest size, and with as many services as are used."""
    size, most = numbers("hub-protocol", "`endpoint.json`")

    def services(count: int) -> dict[str, Any]:
        listed = [{"name": f"s{n}", "path": f"/{n}", "recommends": {"messages": ["bounds:none"]}} for n in range(count)]
        return {"name": "bounds", "services": listed}

    described = {
        "most": json.dumps(services(most)).encode(),
        "more": json.dumps(services(most + 1)).encode(),
        "large": filled({**services(1), "other": ""}, size),
        "larger": filled({**services(1), "other": ""}, size + 1),
    }
    for (name, text), count in zip(described.items(), (most, most, 1, 0), strict=True):
        talk.listen(f"bounds-{name}.example", partial(_says, text))
        fields = {"name": f"bounds{name}", "url": f"https://bounds-{name}.example", "token": "t", "category": "custom"}
        integration = talk.ask("POST", "/integrations", {"integration": fields}, status=201)
        integration = integration.get("integration", integration)
        found = [each for each in talk.ask("GET", "/mappings") if each["name"].startswith(f"bounds{name}.")]
        talk.is_so(f"services of {name}", count, len(found))
        talk.ask("DELETE", f"/integrations/{integration['id']}")


def _says(text: bytes, _: Came) -> tuple[int, bytes]:
    return 200, text


def _patterns(talk: Talk) -> None:
    """Patterns as long as all of a mapping may be together."""
    longest = numbers("hub-protocol", "all patterns of a mapping together")[0]
    fields = {"name": "bounds-patterns", "url": "https://bounds.example/in", "token": "t", "messages": ["bounds:p"]}
    for sizes, status in (((longest,), 201), ((longest - 1, 1), 201), ((longest, 1), 422), ((longest + 1,), 422)):
        filters = [{"path": "payload.a", "operator": "match", "value": size * "p"} for size in sizes]
        answer = talk.ask("POST", "/mappings", {"mapping": {**fields, "filters": filters}}, status=status)
        if status == 201:
            talk.ask("DELETE", f"/mappings/{answer.get('mapping', answer)['id']}")


def webhooks(talk: Talk) -> None:
    """Svix's API."""
    talk.through(_applications, _endpoints, _keys, _portals)


def _applications(talk: Talk) -> None:
    """Paths to redact, and fields to search by."""
    paths, length = said("webhooks", r"at most (\d+) paths of \d+"), said("webhooks", r"paths of (\d+) characters")
    parts = said("webhooks", r"paths of \d+ characters and (\d+) parts")
    talk.ask("POST", "/app", {"name": "Bounds", "uid": "bounds"}, status=201)

    def redacts(*found: str) -> dict[str, Any]:
        return {"redaction": {"payload": list(found)}}

    goods = ([f"p{number}" for number in range(paths)], [length * "p"], [".".join(parts * "p")])
    for good in goods:
        talk.ask("PATCH", "/app/bounds", redacts(*good), shows=redacts(*good))
    bads = ([f"p{number}" for number in range(paths + 1)], [(length + 1) * "p"], [".".join((parts + 1) * "p")])
    for bad in bads:
        talk.refused("PATCH", "/app/bounds", redacts(*bad), status=422)
    names = list("abcd")
    talk.ask("PATCH", "/app/bounds", {"searchFields": names[:3]}, shows={"searchFields": names[:3]})
    talk.refused("PATCH", "/app/bounds", {"searchFields": names}, status=422)


def _endpoints(talk: Talk) -> None:
    """Filters of payloads and their values, further headers of a signature, two schemes, and when they end."""
    values = said("webhooks", r"a list of up to (\d+) of them")
    days = said("signatures", r"past or more than (\d+) days away")
    url = {"url": "https://bounds.example/in"}

    def filters(count: int, of: int) -> dict[str, Any]:
        return {"payloadFilters": count * [{"path": "a", "operator": "in", "value": [*range(of)]}]}

    for count, of, status in ((10, values, 201), (11, 1, 422), (1, values + 1, 422)):
        talk.ask("POST", "/app/bounds/endpoint", {**url, **filters(count, of)}, status=status)

    def own(headers: int) -> dict[str, Any]:
        return {
            "content": "{ts}.{body}",
            "header": {"name": "X-Signature"},
            "headers": {f"X-{number}": "{id}" for number in range(headers)},
            "secret": "at least eight bytes",
        }

    def ends(away: timedelta) -> str:
        return (now + away).strftime("%Y-%m-%dT%H:%M:%SZ")

    now = datetime.fromisoformat(talk.ask("POST", "/app", {"name": "Now"}, status=201)["createdAt"])
    last = {"preset": "standard-webhooks"}
    minute, longest = timedelta(minutes=1), timedelta(days=days)
    for good in (
        [own(10)],
        [own(1), last],
        *([{**own(1), "endsAt": ends(each)}, last] for each in (minute, longest - minute)),
    ):
        talk.ask("POST", "/app/bounds/endpoint", {**url, "signatures": good}, status=201)
    for bad in (
        [own(11)],
        [own(1), {**own(1), "header": {"name": "X-Other"}, "headers": {}}, last],
        *([{**own(1), "endsAt": ends(each)}, last] for each in (-minute, longest + minute)),
        [{**own(1), "endsAt": ends(minute)}],
    ):
        talk.refused("POST", "/app/bounds/endpoint", {**url, "signatures": bad}, status=422)


def _keys(talk: Talk) -> None:
    """An ordering key of the shortest and the longest, and days for which a payload is kept."""
    longest = said("webhooks", r"`orderingKey` \(ours; 1 to (\d+) ASCII characters")
    talk.listen("bounds.example", lambda _: (200, b""))
    talk.ask("POST", "/event-type", {"name": "bounds.made", "description": "d"}, status=201)
    body: dict[str, Any] = {"eventType": "bounds.made", "payload": {}}
    goods: tuple[dict[str, Any], ...] = (
        *({"orderingKey": length * "k"} for length in (1, longest)),
        *({"payloadRetentionPeriod": each} for each in (1, 90)),
        *({"payloadRetentionHours": each} for each in (1, 2_160)),
    )
    for good in goods:
        talk.ask("POST", "/app/bounds/msg", {**body, **good}, status=202)
    bads: tuple[dict[str, Any], ...] = (
        *({"orderingKey": each} for each in ("", (longest + 1) * "k", "a b")),
        *({"payloadRetentionPeriod": each} for each in (0, 91)),
        *({"payloadRetentionHours": each} for each in (0, 2_161)),
    )
    for bad in bads:
        talk.refused("POST", "/app/bounds/msg", {**body, **bad}, status=422)
    talk.ask("DELETE", "/event-type/bounds.made?expunge=true", status=204)


def _portals(talk: Talk) -> None:
    """Pages that may show a portal, and for how long tokens last that are to expire."""
    most = said("webhooks", r"up to (\d+) origins")
    origins = [f"https://o{number}.example" for number in range(most + 1)]
    for good in (origins[:most], []):
        talk.ask("PUT", "/portal/frame", {"origins": good}, shows={"origins": good})
    talk.refused("PUT", "/portal/frame", {"origins": origins}, status=422)
    for good_s in (0, 3 * A_DAY_S):
        talk.ask("POST", "/auth/app/bounds/expire-all", {"expiry": good_s}, status=204)
    talk.refused("POST", "/auth/app/bounds/expire-all", {"expiry": -1}, {"expiry": 3 * A_DAY_S + 1}, status=422)
    talk.ask("DELETE", "/app/bounds", status=204)


def topics(talk: Talk, connect: Connect) -> None:
    """Notifications 2.0."""

    def framed(one: Talk) -> None:
        _frames(one, connect)

    def shared(one: Talk) -> None:
        _consumers(one, connect)

    talk.through(framed, shared)


def _frames(talk: Talk, connect: Connect) -> None:
    """A frame of exactly the size that API Gateway sends, and one byte more; the largest request; a topic that is full;
    names and keys as long as they may be.
    """
    most = numbers("notifications", "a frame")[0]
    request, backlog = (
        numbers("notifications", "a publish request")[0],
        numbers("notifications", "a topic's backlog")[0],
    )
    longest = numbers("notifications", "names")[2]
    rule = {"context": "tenant", "subscription": "boundsFrames", "subscriptionFilter": {"apis": ["events"]}}
    subscription_id = talk.ask("POST", "/subscriptions", rule, status=201)["id"]
    wanted = {"subscription": "boundsFrames", "subscriber": "s"}
    token = str(talk.ask("POST", "/token", wanted)["token"])
    side = connect({"token": token})
    talk.sleep(5)

    def publish(text: str, status: int, source: str = "1") -> None:
        body = {"api": "events", "source": source, "data": {"t": text}}
        talk.ask("POST", "/notifications", json.dumps(body, ensure_ascii=False).encode(), status=status)
        talk.sleep(5)

    publish("", 201)
    room = most - len(side.frames[0].encode())
    # Two bytes each in UTF-8, which is how frames are counted; and one that fills the last byte
    for text, status in ((room * "x", 201), (room * "x" + "y", 413), (room // 2 * "é" + room % 2 * "x", 201)):
        publish(text, status)
    publish(room // 2 * "é" + room % 2 * "x" + "y", 413)
    talk.came("the largest frames", 2 * [most], [len(each.encode()) for each in side.frames[1:]])
    publish("", 201, longest * "s")
    publish("", 422, (longest + 1) * "s")
    for key, status in ((255 * "k", 201), (256 * "k", 422)):
        keyed = talk.with_headers(idempotency_key=key)
        keyed.ask("POST", "/notifications", {"api": "events", "source": "1", "data": {}}, status=status)
    for size, status in ((request, 201), (request + 1, 413)):
        talk.ask("POST", "/notifications", _many(size), status=status)
    # Nobody acknowledges: what fills the topic is accepted as a whole, and nothing after it
    said_so = [_patiently(talk, str(number), _many(request)) for number in range(backlog // request + 2)]
    talk.is_so("until it is full", (backlog // request) * [201] + 2 * [500], said_so)
    side.close()
    talk.ask("POST", f"/unsubscribe?token={token}", shows={"result": "DONE"})
    talk.ask("DELETE", f"/subscriptions/{subscription_id}", status=204)


def _patiently(talk: Talk, key: str, body: bytes) -> int:
    """Publish what takes more writes than a table may take at once: the status, after the hub was too busy for it."""
    once = talk.with_headers(idempotency_key=f"full-{key}")
    for _ in range(5):
        answer = once.answered("POST", "/notifications", body)
        if answer.status != 503:
            return answer.status
        talk.sleep(int(answer.headers["retry-after"]), exactly=True)
    return answer.status


def _many(size: int) -> bytes:
    """A request of so many bytes, with as many notifications as it needs."""
    whole = [{"api": "events", "source": "1", "data": {"t": 120_000 * "x"}} for _ in range(size // 121_000)]
    return filled({"all": [*whole, {"api": "events", "source": "1", "data": {"t": ""}}]}, size + 9)[8:-1]


def _consumers(talk: Talk, connect: Connect) -> None:
    """As many consumers of a shared subscriber as there may be, and names as long as they may be."""
    [most] = numbers("notifications", "consumers of a shared subscriber")
    rule = {"context": "tenant", "subscription": "boundsShared", "subscriptionFilter": {"apis": ["events"]}}
    subscription_id = talk.ask("POST", "/subscriptions", rule, status=201)["id"]
    wanted = {"subscription": "boundsShared", "subscriber": "s", "shared": True}
    token = str(talk.ask("POST", "/token", wanted)["token"])
    names = [255 * "c", *(f"c{number}" for number in range(most - 1))]
    sides = [connect({"token": token, "consumer": each}) for each in names]
    talk.is_so("as many as may be", most * [200], [each.status for each in sides])
    talk.is_so("one more", 409, connect({"token": token, "consumer": "more"}).status)
    for bad in (256 * "c", "", " "):
        talk.is_so("a name that is none", 422, connect({"token": token, "consumer": bad}).status)
    sides[-1].close()
    talk.sleep(20)
    for side in sides:
        side.close()
    talk.sleep(5)
    talk.ask("POST", f"/unsubscribe?token={token}", shows={"result": "DONE"})
    talk.ask("DELETE", f"/subscriptions/{subscription_id}", status=204)


__all__ = ["queues", "stores", "swept", "topics", "webhooks"]
