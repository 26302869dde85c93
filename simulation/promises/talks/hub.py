"""The hub protocol, talked through: mappings with filters and identifiers, parameters, schedulers, endpoints that
describe themselves, answers of every kind, held messages, notifications, lists and counts.

Sources: the guides of the Spree Commerce Hub (v5) and its admin client, and docs/hub-protocol.md for what those leave
open.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from simulation.promises.talks.services import AN_ID, done, mapped, pushed
from simulation.promises.talks.talk import Came, Talk

MINUTE = 60


def through(talk: Talk) -> None:
    """Everything."""
    talk.through(mappings, filtered, answers, held, schedulers, integrations, lists)


def _rows(talk: Talk, kind: str, query: str, shows: object) -> None:
    answer = talk.ask("GET", f"/{kind}{query}")
    talk.is_so(f"the list of {kind}", shows, answer.get(kind, answer) if isinstance(answer, dict) else answer)


def _payloads(came: Sequence[Came]) -> list[Any]:
    return [json.loads(each.body)["payload"] for each in came]


def mappings(talk: Talk) -> None:
    """Made, changed in part, listed, refused, switched off and removed; what services get."""
    came = talk.listen("talk-map.example", done)
    mapping = mapped(talk, "talk-map", ["talk:map"])
    shown = {
        "id": mapping.rpartition("/")[2],
        "name": "talk-map",
        "messages": ["talk:map"],
        "enabled": True,
        "required": False,
    }
    talk.ask("GET", mapping, shows=lambda each: _like(shown, each.get("mapping", each)))
    _rows(talk, "mappings", "", [shown])
    bad: dict[str, Any]
    for bad in (
        {"name": ""},
        {"url": "x"},
        {"url": "ftp://a.example/"},
        {"messages": []},
        {"messages": [201 * "m"]},
        {"options": {"retry_base": 0}},
        {"options": {"max_attempts": 0}},
        {"filters": [{"path": "a", "operator": "other", "value": "x"}]},
        {"filters": 51 * [{"path": "a", "operator": "eq", "value": "x"}]},
    ):
        fields = {"name": "bad", "url": "https://bad.example/", "token": "t", "messages": ["talk:bad"], **bad}
        talk.refused("POST", "/mappings", {"mapping": fields}, status=422, shows={"error": str, "errors": dict})
    bad_message: dict[str, Any]
    for bad_message in (
        {"payload": {}},
        {"message": "talk:map"},
        {"message": "talk:map", "payload": []},
        {"message": 201 * "m", "payload": {}},
    ):
        talk.refused("POST", "/messages", bad_message, status=422, shows={"error": str})
    talk.with_headers(x_augury_token="no").ask("GET", "/mappings", status=401, shows={"error": "Token is invalid."})
    message_id = pushed(talk, "talk:map", {"n": 1})
    pushed(talk, "talk:nobody", {"n": 2})
    talk.sleep(20)
    talk.came("one of two", [{"message": "talk:map", "payload": {"n": 1}}], [json.loads(each.body) for each in came])
    talk.came(
        "its headers", [{"x-augury-token": "t", "content-type": "application/json"}], [each.headers for each in came]
    )
    copy = json.loads(came[0].body)["message_id"]
    talk.came("a copy has a name of its own", lambda each: each != message_id and len(each) == AN_ID, copy)
    talk.ask(
        "GET",
        f"/messages/{copy}",
        shows={"message_id": copy, "parent_id": message_id, "state": "completed", "payload": {"n": 1}},
    )
    talk.ask("GET", f"/messages/{message_id}", shows={"message": "talk:map", "children": [{"id": copy}]})
    talk.ask("GET", f"/messages/{24 * '0'}", status=404)
    talk.ask("PUT", mapping, {"mapping": {"enabled": False, "messages": ["talk:map", "talk:more"]}})
    talk.sleep(61)
    pushed(talk, "talk:map", {"n": 3})
    talk.sleep(5)
    talk.ask("PUT", mapping, {"mapping": {"enabled": True}})
    talk.sleep(61)
    pushed(talk, "talk:more", {"n": 4})
    talk.sleep(20)
    talk.came("not while it is off", [{"n": 1}, {"n": 4}], _payloads(came))
    talk.ask("DELETE", mapping)
    talk.ask("GET", mapping, status=404)
    _rows(talk, "mappings", "", [])


def filtered(talk: Talk) -> None:
    """Every operator of a filter, both rules for several values, identifiers, and parameters."""
    cases: tuple[tuple[str, str, Any, list[int]], ...] = (
        ("payload.a", "eq", "x", [1]),
        ("payload.a", "neq", "x", [2, 3, 4]),
        ("payload.n", "gt", "2", [3, 4]),
        ("payload.n", "lt", "2", [1]),
        ("payload.a", "begin", "y", [2]),
        ("payload.a", "end", "z", [2]),
        ("payload.a", "contains", "-", [2]),
        ("payload.a", "present", "", [1, 2]),
        ("payload.a", "empty", "", [3, 4]),
        ("payload.items.*.k", "eq", "v", [1]),
    )
    heard: list[tuple[str, Sequence[Came], list[int]]] = []
    paths: list[str] = []
    for number, (path, operator, value, wanted) in enumerate(cases):
        name = f"talk-filter-{number}"
        heard.append((operator, talk.listen(f"{name}.example", done), wanted))
        paths.append(
            mapped(talk, name, ["talk:filter"], filters=[{"path": path, "operator": operator, "value": value}])
        )
    one = [{"path": "payload.items.*.k", "operator": "eq", "value": "v", "match_rule": "any"}]
    heard.append(("any", talk.listen("talk-any.example", done), [1, 2]))
    paths.append(mapped(talk, "talk-any", ["talk:filter"], filters=one))
    both = [
        {"path": "payload.n", "operator": "gt", "value": "1"},
        {"path": "payload.n", "operator": "lt", "value": "3"},
    ]
    heard.append(("both", talk.listen("talk-both.example", done), [2]))
    paths.append(mapped(talk, "talk-both", ["talk:filter"], filters=both))
    parameter = talk.ask(
        "POST", "/parameters", {"parameter": {"name": "talk.key", "value": "7", "data_type": "integer"}}, status=201
    )
    parameter = parameter.get("parameter", parameter)
    once = talk.listen("talk-once.example", lambda each: done(each, parameters=[{"name": "talk.key", "value": 8}]))
    paths.append(
        mapped(talk, "talk-once", ["talk:filter"], identifiers={"n": "payload.same"}, parameters=[parameter["id"]])
    )
    talk.sleep(61)
    for payload in (
        {"n": 1, "a": "x", "items": [{"k": "v"}], "same": 1},
        {"n": 2, "a": "y-z", "items": [{"k": "v"}, {"k": "w"}], "same": 1},
        {"n": 3, "a": "", "same": 2},
        {"n": 4},
    ):
        pushed(talk, "talk:filter", payload)
        talk.sleep(10)
    talk.sleep(20)
    for operator, came, wanted in heard:
        talk.came(operator, wanted, sorted(each["n"] for each in _payloads(came)))
    talk.came("once for each identity", [1, 3, 4], sorted(each["n"] for each in _payloads(once)))
    sent = [each["parameters"] for each in _payloads(once)]
    talk.came(
        "parameters, as they were set last", [[{"name": "talk.key", "value": value}] for value in (7, 8, 8)], sent
    )
    _rows(talk, "parameters", "", [{"name": "talk.key", "data_type": "integer"}])
    talk.refused(
        "POST",
        "/parameters",
        {"parameter": {"name": "talk.bad", "value": "x", "data_type": "integer"}},
        {"parameter": {"name": ""}},
        status=422,
    )
    talk.ask("PUT", f"/parameters/{parameter['id']}", {"parameter": {"value": "9"}})
    talk.ask(
        "GET",
        f"/parameters/{parameter['id']}",
        shows=lambda each: _like({"name": "talk.key"}, each.get("parameter", each)),
    )
    talk.ask("DELETE", f"/parameters/{parameter['id']}")
    for each in paths:
        talk.ask("DELETE", each)


def answers(talk: Talk) -> None:
    """Services that answer later, put off, make further messages, comment, lie and fail."""
    polls: list[str] = []

    def later(came: Came) -> tuple[int, bytes]:
        polls.append(json.loads(came.body)["message_id"])
        return done(came, delay=40, update_url="/status") if len(polls) < 3 else done(came, result="at last")

    def puts_off(came: Came) -> tuple[int, bytes]:
        return done(came, delay=30) if len(put_off) < 2 else done(came)

    def parent(came: Came) -> tuple[int, bytes]:
        children = [
            {"message": "talk:child", "payload": {"of": 1}},
            {"message": "talk:child", "payload": {"of": 2}, "delay": 60},
        ]
        notes = [{"level": "warn", "subject": "hm", "description": "d"}]
        return done(came, messages=children, notifications=notes)

    wrong = iter([(201, b"{}"), (200, b"no"), (200, b"[]"), (200, b'{"message_id": "other"}'), (302, b""), (500, b"")])

    def fails(came: Came) -> tuple[int, bytes]:
        return next(wrong, None) or done(came)

    came = talk.listen("talk-later.example", later)
    put_off = talk.listen("talk-off.example", puts_off)
    talk.listen("talk-parent.example", parent)
    children = talk.listen("talk-child.example", done)
    failed = talk.listen("talk-wrong.example", fails)
    paths = [
        mapped(talk, f"talk-{name}", [f"talk:{name}"], options={"retry_base": 10, "retry_cap": 60})
        for name in ("later", "off", "parent", "child", "wrong")
    ]
    talk.sleep(61)
    ids = {name: pushed(talk, f"talk:{name}", {"of": name}) for name in ("later", "off", "parent", "wrong")}
    talk.sleep(10)
    talk.came("a child at once", [{"of": 1}], _payloads(children))
    talk.ask(
        "GET",
        "/queues/accepted.json?state=scheduled",
        shows=lambda each: {"talk:later", "talk:off", "talk:child"} <= {row["message"] for row in each},
    )
    talk.sleep(2 * MINUTE)
    talk.came("a child later", [{"of": 1}, {"of": 2}], _payloads(children))
    talk.came("polls", 3, len(came))
    waits = [(after.at - before.at) / 1_000_000 for before, after in itertools.pairwise(came)]
    talk.came("when it said", [lambda each: 39 <= each <= 80] * 2, waits)
    talk.came("put off, and asked again", 2, len(put_off))
    talk.sleep(10 * MINUTE)
    talk.came("what is no answer is a failure", 7, len(failed))
    gaps = [(after.at - before.at) / 1_000_000 for before, after in itertools.pairwise(failed)]
    for gap, least in zip(gaps, (10, 20, 40, 60, 60, 60), strict=False):
        talk.came("waits double up to a cap", lambda each, least=least: least - 1 <= each <= 1.2 * least + 70, gap)
    for name in ("later", "off", "wrong"):
        [child] = talk.ask("GET", f"/messages/{ids[name]}", shows={"children": [...]})["children"]
        talk.ask("GET", f"/messages/{child['id']}", shows={"state": "completed"})
    _rows(
        talk,
        "notifications",
        "?level=warn",
        [{"level": "warn", "subject": "hm", "description": "d", "occurrences": 1}],
    )
    _rows(talk, "notifications", "?level=error", [])
    for each in paths:
        talk.ask("DELETE", each)


def held(talk: Talk) -> None:
    """What has failed often enough waits for a person, who has it tried again or gives it up."""
    says = {"status": 500}
    came = talk.listen("talk-held.example", lambda each: (500, b"no") if says["status"] == 500 else done(each))
    mapping = mapped(talk, "talk-held", ["talk:held"], options={"retry_base": 5, "retry_cap": 60, "max_attempts": 2})
    talk.sleep(61)
    for number in range(2):
        pushed(talk, "talk:held", {"n": number})
    talk.sleep(2)
    talk.sleep(2 * MINUTE)
    talk.came("two tries each", [0, 0, 1, 1], sorted(each["n"] for each in _payloads(came)))
    rows = talk.ask(
        "GET", "/queues/accepted.json?state=parked", shows=[{"message": "talk:held", "state": "parked"}] * 2
    )
    talk.ask("GET", "/queues", shows={"parked": 2, "failing": 0})
    first, second = (row["message_id"] for row in rows)
    talk.ask(
        "GET", f"/messages/{first}", shows={"state": "parked", "attempts": 2, "can_attempt": True, "last_error": str}
    )
    says["status"] = 200
    talk.ask("PUT", f"/messages/{first}", {"attempt_now": True})
    talk.ask("PUT", f"/messages/{second}", {"archive": True})
    talk.sleep(20)
    talk.came("one more", 5, len(came))
    talk.ask("GET", f"/messages/{first}", shows={"state": "completed"})
    talk.ask("GET", f"/messages/{second}", shows={"state": "never_processed"})
    talk.ask("GET", "/queues", shows={"parked": 0})
    talk.ask("PUT", f"/messages/{first}", {"attempt_now": True}, status=422)
    talk.ask("DELETE", mapping)


def schedulers(talk: Talk) -> None:
    """A message of a type, each so many minutes, until it is switched off."""
    came = talk.listen("talk-tick.example", done)
    mapping = mapped(talk, "talk-tick", ["talk:tick"])
    fields = {"key": "talk:tick", "count": 2, "interval": "minutes"}
    talk.refused(
        "POST",
        "/schedulers",
        *({"scheduler": {**fields, **bad}} for bad in ({"count": 0}, {"interval": "years"}, {"key": ""})),
        *({"scheduler": {**fields, "count": over, "interval": unit}} for over, unit in ((367, "days"), (53, "weeks"))),
        status=422,
    )
    for least_or_most in ({"count": 1}, {"count": 366, "interval": "days"}):
        body = {"scheduler": {**fields, "key": "talk:limits", **least_or_most}}
        allowed = talk.ask("POST", "/schedulers", body, status=201)
        talk.ask("DELETE", f"/schedulers/{allowed.get('scheduler', allowed)['id']}")
    # While anything is due later, each minute is looked at.
    later = talk.listen("talk-wait.example", lambda each: done(each, delay=3_600, update_url="/x"))
    waits = mapped(talk, "talk-wait", ["talk:wait"])
    talk.sleep(61)
    pushed(talk, "talk:wait", {})
    talk.sleep(10)
    talk.came("it waits", 1, len(later))
    scheduler = talk.ask("POST", "/schedulers", {"scheduler": fields}, status=201)
    scheduler = scheduler.get("scheduler", scheduler)
    talk.is_so("a scheduler", {**fields, "next_at": str}, scheduler)
    talk.sleep(10 * MINUTE)
    talk.came("each two minutes", lambda each: 4 <= each <= 6, len(came))
    gaps = [(after.at - before.at) / 1_000_000 for before, after in itertools.pairwise(came)]
    talk.came("apart", True, all(50 <= each <= 190 for each in gaps))
    talk.ask("DELETE", f"/schedulers/{scheduler['id']}")
    talk.sleep(3 * MINUTE)
    count = len(came)
    talk.sleep(8 * MINUTE)
    talk.came("not once it is gone", count, len(came))
    _rows(talk, "schedulers", "", [])
    for each in (mapping, waits):
        talk.ask("DELETE", each)


def integrations(talk: Talk) -> None:
    """An endpoint that describes its services, which become mappings."""
    service = {
        "name": "import",
        "path": "/import",
        "requires": {"parameters": [{"name": "api_key", "data_type": "string"}]},
        "recommends": {"messages": ["talk:import"], "options": {"retries_allowed": True}},
    }
    described = {
        "name": "talkative",
        "services": [service, {"name": "free", "path": "/free", "recommends": {"messages": ["talk:free"]}}],
    }
    came = talk.listen(
        "talk-described.example", lambda each: (200, json.dumps(described).encode()) if not each.body else done(each)
    )
    fields = {"name": "talkative", "url": "https://talk-described.example", "token": "t", "category": "custom"}
    integration = talk.ask("POST", "/integrations", {"integration": fields}, status=201)
    integration = integration.get("integration", integration)
    _rows(
        talk,
        "mappings",
        "",
        lambda each: (
            {(row["name"], row["enabled"]) for row in each} == {("talkative.import", False), ("talkative.free", True)}
        ),
    )
    talk.ask(
        "POST", f"/integrations/{integration['id']}/signup", {"parameters": {"api_key": "k"}, "enabled": ["import"]}
    )
    talk.sleep(61)
    pushed(talk, "talk:import", {"n": 1})
    talk.sleep(20)
    sent = [each for each in came if each.body]
    talk.came(
        "with its parameter", [{"n": 1, "parameters": [{"name": "talkative.api_key", "value": "k"}]}], _payloads(sent)
    )
    talk.ask("GET", f"/integrations/{integration['id']}/disable_mappings")
    _rows(talk, "mappings", "", [{"enabled": False}, {"enabled": False}])
    talk.ask("DELETE", f"/integrations/{integration['id']}")
    _rows(talk, "mappings", "", [])
    _rows(talk, "integrations", "", [])


def lists(talk: Talk) -> None:
    """Pages of 25, by type, state, time and mapping; counts."""
    talk.listen("talk-list.example", done)
    mapping = mapped(talk, "talk-list", ["talk:list"])
    talk.sleep(61)
    ids = []
    for number in range(30):
        ids.append(pushed(talk, "talk:list", {"n": number}))
        talk.sleep(1.1)
    talk.sleep(30)
    shows: Callable[[int], Any] = lambda count: lambda each: len(each) == count  # noqa: E731 (a short name for a check)
    talk.ask("GET", "/queues/archived.json?message=talk:list", shows=shows(25))
    talk.ask("GET", "/queues/archived.json?message=talk:list&page=2", shows=shows(5))
    talk.ask("GET", f"/queues/archived.json?mapping={mapping.rpartition('/')[2]}", shows=shows(25))
    talk.ask("GET", "/queues/archived?message=talk:list", shows={"page": 1, "pages": 2, "messages": list})
    talk.ask("GET", "/queues/archived.json?message=talk:list&source=incoming&page=2", shows=shows(5))
    talk.ask("GET", f"/queues/archived.json?source=incoming&message_id={ids[3]}", shows=[{"message_id": ids[3]}])
    talk.ask("GET", "/queues/archived.json?message=talk:list&end_date=2020-01-01T00:00:00Z", shows=[])
    talk.ask("GET", "/queues/archived.json?message=talk:list&start_date=2013-11-10T17:17:34Z&page=2", shows=shows(5))
    talk.ask("GET", "/queues/archived.json?message=talk:list&state=failing", shows=[])
    _rows(talk, "available_messages", "", lambda each: {"talk:list", "talk:map", "talk:child"} <= {*each})
    talk.ask("GET", "/queues", shows={"incoming": 0, "pending": 0, "failing": 0, "parked": 0})
    talk.ask("DELETE", mapping)


def _like(expected: Mapping[str, Any], found: Mapping[str, Any]) -> bool:
    return all(found.get(name) == value for name, value in expected.items())


__all__ = ["through"]
