"""Which notifications reach a topic, and what stands for what: the parts of a subscription's own key, of a source's
name, of a type, and of what a publisher's key stands for; subscriptions by pages of a choice; endpoints and searches.

Sources: docs/notifications.md ("REST", "Publishing"), docs/ironmq.md ("Finding messages"), and Cumulocity's documents
of Notifications 2.0.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

from simulation.promises.talks.notifications import Connect, Connected, connecting
from simulation.promises.talks.talk import Talk
from simulation.promises.talks.topic_clients import (
    data_of,
    let_in,
    new_rule,
    new_token,
    numbers_of,
    publish,
    source_of,
    unsubscribe,
)

MINUTE = 60
FOUND_S = 2 * MINUTE
"""What was accepted is found by its values so soon."""
BRIEF_S = 10 * MINUTE
"""What a topic that keeps nothing holds expires after so long."""

LONGEST = 200
"""Characters of a source's id."""


def through(talk: Talk, connect: Connect) -> None:
    """Everything."""
    parts = (_sources, _types, _wholes, _repeated_later, _equal_contents, _from_an_endpoint, _found)
    talk.through(_unlike, _chosen_by_pages, *connecting(connect, parts))


def _over(talk: Talk, rules: Sequence[str], sides: Mapping[str, Connected]) -> None:
    for token, side in sides.items():
        side.close()
        unsubscribe(talk, token)
    for each in rules:
        talk.ask("DELETE", each, status=204)


def _unlike(talk: Talk) -> None:
    """One of a source, a context and a name: whatever else differs, another one is refused; if one of these differs, it
    is not. It cannot be changed, and once it is deleted there may be another.
    """
    first: dict[str, Any] = {
        "context": "mo",
        "source": {"id": "1"},
        "subscription": "unlikeOne",
        "subscriptionFilter": {"apis": ["operations"], "typeFilter": "t"},
    }
    tenant = {"context": "tenant", "subscription": "unlikeOne"}
    others: Sequence[Mapping[str, Any]] = (
        {**first, "source": {"id": "2"}},
        {**first, "subscription": "unlikeTwo"},
        {**first, "subscription": "unlikeon"},
        {**first, "subscription": "UNLIKEONE"},
        tenant,
        {**tenant, "subscription": "unlikeTwo"},
        # Names that run together
        {**first, "source": {"id": "11"}},
        {**first, "subscription": "1unlikeOne"},
    )
    [path, *rest] = [
        f"/subscriptions/{talk.ask('POST', '/subscriptions', each, status=201)['id']}" for each in (first, *others)
    ]
    for same in (
        {"nonPersistent": True},
        {"subscriptionFilter": {"apis": ["events"]}},
        {"subscriptionFilter": {"apis": ["operations"], "typeFilter": "u"}},
        {"fragmentsToCopy": ["a"]},
        {"source": {"id": 1}},
    ):
        talk.refused("POST", "/subscriptions", {**first, **same}, status=409)
    talk.refused("POST", "/subscriptions", {**tenant, "nonPersistent": True, "source": {"id": "1"}}, status=409)
    for method in ("PUT", "PATCH", "POST"):
        talk.ask(method, path, {**first, "subscription": "unlikeThree"}, status=405)
    talk.ask("GET", path, shows={**first, "nonPersistent": False})
    shown = talk.ask("GET", rest[4], shows={"source": {"id": talk.project}, "context": "tenant"})
    talk.is_so("without what it lacks", set(), {"subscriptionFilter", "fragmentsToCopy"} & {*shown})
    talk.ask("DELETE", path, status=204)
    changed = {**first, "nonPersistent": True, "fragmentsToCopy": ["a", "b"]}
    again = talk.ask("POST", "/subscriptions", changed, status=201, shows=changed)["id"]
    talk.ask("GET", path, status=404)
    talk.ask("GET", "/subscriptions?pageSize=9", shows={"subscriptions": lambda each: len(each) == 1 + len(rest)})
    for each in (f"/subscriptions/{again}", *rest):
        talk.ask("DELETE", each, status=204)


def _chosen_by_pages(talk: Talk) -> None:
    """The next page of a choice is of the same choice, and its totals are the choice's."""
    rules = [
        new_rule(
            talk, f"pages{number % 2}", source="" if number < 2 else f"{number % 3}{number}", types=number % 4 * "t"
        )
        for number in range(11)
    ]
    for query, count in (
        ({"context": "mo"}, 9),
        ({"context": "tenant"}, 2),
        ({"subscription": "pages1"}, 5),
        ({"source": talk.project}, 2),
        ({"typeFilter": "tt"}, 3),
        ({"context": "mo", "subscription": "pages1", "pageSize": "3"}, 4),
    ):
        asked = {"pageSize": "2", **query, "withTotalPages": "true", "withTotalElements": "true"}
        path, found = f"/subscriptions?{urlencode(asked)}", list[str]()
        for number in range(count):
            page = talk.ask("GET", path)
            size = int(asked["pageSize"])
            numbers = {"totalElements": count, "totalPages": -(-count // size), "currentPage": number + 1}
            shown = numbers if number == 0 else {"currentPage": number + 1}
            talk.is_so(f"the numbers of {query}", shown, page["statistics"])
            found += [f"/subscriptions/{each['id']}" for each in page["subscriptions"]]
            if "next" not in page:
                break
            following = dict(parse_qsl(urlsplit(page["next"]).query))
            talk.is_so("what follows", {**query, "currentPage": f"{number + 2}"}, following)
            path = f"/subscriptions?{urlencode(following)}"
        talk.is_so(f"all of {query}, each once", count, len({*found}))
        talk.is_so(f"the oldest first, of {query}", [each for each in rules if each in found], found)
    for each in rules:
        talk.ask("DELETE", each, status=204)


def _sources(talk: Talk, connect: Connect) -> None:
    """A subscription is of its source alone: not of one whose name begins like it, is longer, or of another case; a
    number is its digits.
    """
    names = ["1", "11", "1#operations", "a", "A", "a b", "%61", "é", "e\u0301", "*"]
    names += [LONGEST * "é", (LONGEST - 1) * "é" + "e", LONGEST * "s"]
    rules = [new_rule(talk, f"source{place}", source=each) for place, each in enumerate(names)]
    rules += [new_rule(talk, "sourceAny", source=each) for each in names]
    tokens = [new_token(talk, topic) for topic in ("sourceAny", *(f"source{place}" for place in range(len(names))))]
    whole, *sides = [let_in(talk, connect, each) for each in tokens]
    for place, each in enumerate([*names, "", "12"]):
        source: Any = {"id": int(each)} if each == "11" else each
        talk.ask(
            "POST",
            "/notifications",
            {"api": "operations", "source": source, "data": {"n": place}},
            status=201 if each else 422,
        )
    talk.sleep(5)
    talk.came("each its own", [[place] for place in range(len(names))], [numbers_of(side) for side in sides])
    talk.came("by its name", names, [source_of(each) for side in sides for each in side.frames])
    talk.came("a topic of all, each once", names, [source_of(each) for each in whole.frames])
    _over(talk, rules, dict(zip(tokens, [whole, *sides], strict=True)))


def _types(talk: Talk, connect: Connect) -> None:
    """A filter of types names whole types, which are texts of an object; with APIs both have to fit."""
    filters = {
        "typesBare": "ab",
        "typesOne": "'ab'",
        "typesSome": "'ab' or 'a b' OR '1'",
        "typesOdd": "or",
    }
    rules = []
    for topic, types in filters.items():
        wanted = {"apis": ["operations"], "typeFilter": types}
        rule = {"context": "tenant", "subscription": topic, "subscriptionFilter": wanted}
        rules.append(f"/subscriptions/{talk.ask('POST', '/subscriptions', rule, status=201, shows=rule)['id']}")
    tokens = {topic: new_token(talk, topic) for topic in filters}
    sides = {topic: let_in(talk, connect, token) for topic, token in tokens.items()}
    kinds: list[Any] = ["ab", "AB", "abc", "a", "a b", "1", 1, True, None, ["ab"], {"ab": 1}, "or", "'ab'", ""]
    bodies: list[Any] = [{"n": place, "type": each} for place, each in enumerate(kinds)]
    bodies += [{"n": len(kinds)}, {"n": len(kinds) + 1, "inner": {"type": "ab"}}, "ab", ["ab"], None]
    some = [{"api": "operations", "source": "1", "data": each} for each in bodies]
    binary = base64.b64encode(b'{"n": 99, "type": "ab"}').decode()
    some.append({"api": "operations", "source": "1", "data_base64": binary})
    some.append({"api": "alarms", "source": "1", "data": {"n": 98, "type": "ab"}})
    talk.ask("POST", "/notifications", some, status=201)
    talk.sleep(5)
    expected = {"typesBare": [0], "typesOne": [0], "typesSome": [0, 4, 5], "typesOdd": [11]}
    talk.came("by its type", expected, {topic: numbers_of(side) for topic, side in sides.items()})
    for bad in ("a b", "'a' 'b'", "'a' or", "or 'a'", "''", "'a' and 'b'", "'a", "'a' or 'b' c"):
        rule = {"context": "tenant", "subscription": "typesBad", "subscriptionFilter": {"typeFilter": bad}}
        talk.refused("POST", "/subscriptions", rule, status=422)
    _over(talk, rules, {tokens[topic]: side for topic, side in sides.items()})


def _wholes(talk: Talk, connect: Connect) -> None:
    """Named fragments are chosen of an object alone, by their whole names, as they were written; what is no object, and
    bytes, go on as they are.
    """
    rule = new_rule(talk, "wholesTopic", fragmentsToCopy=["c8y_Speed", "a.b", "é"])
    token = new_token(talk, "wholesTopic")
    side = let_in(talk, connect, token)
    written = (
        ('{"c8y_Speed": 1.50, "c8y_speed": 1, "c8y_SpeedLimit": 2}', '{"c8y_Speed": 1.50}'),
        ('{"a": {"b": 1}, "a.b": [1,  2], "é": null, "b": 1}', '{"a.b": [1,  2], "é": null}'),
        ('{"x": 1}', "{}"),
        ('["c8y_Speed", {"x": 1}]', '["c8y_Speed", {"x": 1}]'),
        ('"x"', '"x"'),
        ("null", "null"),
    )
    for given, _ in written:
        body = f'{{"api": "operations", "source": "1", "data": {given}}}'.encode()
        talk.ask("POST", "/notifications", body, status=201)
    binary = base64.b64encode(b'{"x": 1}').decode()
    talk.ask("POST", "/notifications", {"api": "operations", "source": "1", "data_base64": binary}, status=201)
    talk.sleep(10)
    came = [each.partition("\n\n")[2] for each in side.frames]
    talk.came("what was chosen", [json.loads(each) for _, each in written], [json.loads(each) for each in came[:-1]])
    talk.came("as it was written", (True, True, binary), ("1.50" in came[0], "[1,  2]" in came[1], came[-1]))
    _over(talk, [rule], {token: side})


def _repeated_later(talk: Talk, connect: Connect) -> None:
    """The subscriptions at the time of a repeat decide: it reaches topics that have not taken it, and leaves out those
    without a subscription by then.
    """
    names = ("laterOne", "laterTwo", "laterThree")
    tokens = {name: new_token(talk, name) for name in names}
    sides = {name: let_in(talk, connect, token) for name, token in tokens.items()}
    rules = {"laterOne": new_rule(talk, "laterOne")}
    once = talk.with_headers(idempotency_key="later")
    some = [{"api": "operations", "source": "1", "data": {"n": each}} for each in range(3)]
    ids = once.ask("POST", "/notifications", some, status=201)["ids"]
    talk.sleep(5)
    rules["laterTwo"] = new_rule(talk, "laterTwo", source="1")
    once.ask("POST", "/notifications", some, status=201, shows={"ids": ids})
    talk.sleep(5)
    talk.ask("DELETE", rules.pop("laterOne"), status=204)
    rules["laterThree"] = new_rule(talk, "laterThree", fragmentsToCopy=["n"])
    for _ in range(2):
        once.ask("POST", "/notifications", some, status=201, shows={"ids": ids})
    talk.sleep(5)
    publish(talk, 3)
    expected = {"laterOne": [0, 1, 2], "laterTwo": [0, 1, 2, 3], "laterThree": [0, 1, 2, 3]}
    talk.came("each topic once", expected, {name: numbers_of(side) for name, side in sides.items()})
    _over(talk, [*rules.values()], {tokens[name]: side for name, side in sides.items()})


def _equal_contents(talk: Talk, connect: Connect) -> None:
    """A key stands for its content to the last detail: what only looks like it is another, and is refused."""
    rule = new_rule(talk, "equalTopic")
    token = new_token(talk, "equalTopic")
    side = let_in(talk, connect, token)
    alike: tuple[Any, ...] = (1, True, "1", None, [1], {"n": 1}, "", [], {}, "MQ==", "base64 MQ==")
    one = {"api": "operations", "source": "1"}
    given: list[Any] = [{**one, "data": each} for each in alike]
    given += [{**one, "data_base64": "MQ=="}, [{**one, "data": 1}, {**one, "data": 2}]]
    for place, each in enumerate(given):
        once = talk.with_headers(idempotency_key=f"equal {place}")
        ids = once.ask("POST", "/notifications", each, status=201)["ids"]
        for other in given:
            if other is not each:
                once.refused("POST", "/notifications", other, status=422)
        once.ask("POST", "/notifications", each, status=201, shows={"ids": ids})
    two = talk.with_headers(idempotency_key=f"equal {len(given) - 1}")
    two.refused("POST", "/notifications", given[-1][::-1], given[-1][:1], [*given[-1], given[0]], status=422)
    # A key is its own to the last letter, too
    for key in ("Equal 0", "equal 0 ", "equal"):
        talk.with_headers(idempotency_key=key.strip() + "." * key.endswith(" ")).ask(
            "POST", "/notifications", {**one, "data": "other"}, status=201
        )
    talk.sleep(10)
    came = [*alike, "MQ==", 1, 2, "other", "other", "other"]
    bodies = [each.partition("\n\n")[2] for each in side.frames]
    said = [json.dumps(each) if place != len(alike) else "MQ==" for place, each in enumerate(came)]
    talk.came("each once", (len(came), said), (len(bodies), bodies))
    _over(talk, [rule], {token: side})


def _from_an_endpoint(talk: Talk, connect: Connect) -> None:
    """An endpoint may be a topic: each message comes once, about the source that it names or that the URL does, and a
    topic without a subscriber takes it all the same.
    """
    api = talk.at("/api/v1").with_headers(authorization=f"Bearer {talk.token}")
    token = new_token(talk, "endpointTopic")
    side = let_in(talk, connect, token)
    api.ask("POST", "/event-type", {"name": "topic.made", "description": "d"}, status=201)
    api.ask("POST", "/app", {"name": "Topics", "uid": "topics"}, status=201)
    for uid, url in (
        ("named", "notification2://endpointTopic?api=alarms&action=DELETE&source=77"),
        ("own", "notification2://endpointTopic"),
        ("nobody", "notification2://endpointNobody"),
    ):
        api.ask("POST", "/app/topics/endpoint", {"url": url, "uid": uid}, status=201)
    ids = []
    for number, source in enumerate(("5", {"id": 6}, "a/b")):
        body = {"eventType": "topic.made", "payload": {"n": number, "source": source}}
        ids.append(api.ask("POST", "/app/topics/msg", body, status=202)["id"])
    talk.sleep(15 + talk.put_off_s)
    heads = {number: set[str]() for number in range(3)}
    for frame, data in zip(side.frames, data_of(side), strict=True):
        _, about, action, *_ = frame.split("\n")
        heads[data["n"]].add(f"{action} {'/'.join(about.split('/')[2:])}")
    own: list[list[Any]] = [
        ["CREATE events/5"],
        ["CREATE events/6"],
        [lambda each: each.startswith("CREATE events/") and "a/b" not in each],
    ]
    for number, each in enumerate(own):
        expected = [*each, "DELETE alarms/77"]
        talk.came(f"what came of {number}", expected, sorted(heads[number]))
    talk.came("each once", 6, len(side.frames))
    for each in ids:
        states = [row["status"] for row in api.ask("GET", f"/app/topics/msg/{each}/endpoint")["data"]]
        talk.is_so("taken", [0, 0, 0], states)
    api.ask("DELETE", "/app/topics", status=204)
    api.ask("DELETE", "/event-type/topic.made?expunge=true", status=204)
    _over(talk, [], {token: side})


def _found(talk: Talk, connect: Connect) -> None:
    """Notifications are found by values of their body and listed by topic, as long as they have not expired: of a topic
    that keeps nothing, ten minutes.
    """
    hub = talk.at(f"/3/projects/{talk.project}").with_headers(authorization=f"OAuth {talk.token}")
    rules = [new_rule(talk, "foundKept"), new_rule(talk, "foundBrief", source="1", nonPersistent=True)]
    tokens = [new_token(talk, "foundKept"), new_token(talk, "foundBrief", nonPersistent=True)]
    sides = [let_in(talk, connect, each) for each in tokens]
    some = [
        {"api": "operations", "source": "1", "action": "UPDATE", "data": {"order": 815_471, "to": "lambdaword here"}},
        {"api": "operations", "source": "2", "data": {"order": 815_472}},
    ]
    ids = talk.ask("POST", "/notifications", some, status=201)["ids"]
    at = talk.now()
    talk.sleep(FOUND_S + 20 + talk.put_off_s)

    def found(value: str) -> list[tuple[str, str, str]]:
        rows: list[Any] = []
        query: dict[str, str] = {"value": value}
        for _ in range(40):
            answer = hub.ask("GET", f"/search?{urlencode(query)}")
            rows += answer["found"]
            if answer["after"] is None:
                break
            query["after"] = answer["after"]
        return sorted({(each["kind"], each["topic"], each["type"]) for each in rows})

    kept, brief = (("topic", topic, "operations UPDATE") for topic in ("foundKept", "foundBrief"))
    talk.is_so("in both", [brief, kept], found("815471"))
    talk.is_so("by a word", [brief, kept], found("LambdaWord"))
    talk.is_so("the other one", [("topic", "foundKept", "operations CREATE")], found("815472"))
    talk.is_so("no part of a word", [], found("81547"))
    listed = hub.ask("GET", "/events?kind=topic&of=foundKept")["events"]
    talk.is_so("listed", (2, {*ids}), (len(listed), {each["message_id"] for each in listed}))
    talk.is_so(
        "by their type", 1, len(hub.ask("GET", "/events?kind=topic&of=foundKept&type=operations%20CREATE")["events"])
    )
    talk.sleep(BRIEF_S + 20 - (talk.now() - at) / 1_000_000, exactly=True)
    talk.is_so("what has expired is not", [kept], found("815471"))
    for side in sides:
        side.close()
    talk.sleep(5)
    unsubscribe(talk, *tokens)
    for each in rules:
        talk.ask("DELETE", each, status=204)


__all__ = ["through"]
