"""How endpoints are said to be doing, at which rate they get messages, and what is read in their place.

Sources: docs/webhooks.md (Routes, "Pollers"), docs/ironmq.md ("How a subscriber is doing"), docs/flow.md ("A rate").
"""

from __future__ import annotations

import json
from typing import Any

from simulation.promises.talks.customers import KIND, LATE_S, OTHER, Customer, gaps
from simulation.promises.talks.talk import Talk

MINUTE, HOUR = 60, 3_600
SETTLED_S = 3
MANY = 30
"""Failures one after another that open a circuit for certain."""


def webhooks(talk: Talk) -> None:
    """All of it."""
    talk.through(_states, _open, _rates, _read, _once)


def _health(talk: Talk, one: Customer, uid: str, **shows: Any) -> Any:
    found = talk.ask("GET", f"{one.path}/endpoint/{uid}/health", shows=shows)
    listed = {each["uid"]: each["health"]["state"] for each in talk.ask("GET", f"{one.path}/endpoint")["data"]}
    talk.is_so(f"the same in the list, {uid}", found["health"]["state"], listed[uid])
    return found


def _states(talk: Talk) -> None:
    """What fails, what accepts some, what accepts all, and what is off, with how much waits; of a message's endpoints,
    too; those that do not get all are listed.
    """
    one = Customer(talk, "states")
    for uid in ("fails", "some", "well", "off"):
        one.endpoint(uid)
    one.says["fails"] = (500, b"")
    one.says["some"] = lambda came: (200, b"") if json.loads(came.body)["n"] == 2 else (500, b"")
    first = one.post(1)
    talk.sleep(20 + talk.put_off_s)
    one.post(2)
    talk.ask("PATCH", f"{one.path}/endpoint/off", {"disabled": True})
    talk.sleep(20 + talk.put_off_s)
    states = {"fails": ("failing", 2), "some": ("retrying", 1), "well": ("delivering", 0), "off": ("disabled", 0)}
    for uid, (state, waiting) in states.items():
        shows = {"waiting": waiting, "disabled": uid == "off", "circuit": "closed", "health": {"state": state}}
        found = _health(talk, one, uid, **shows)
        since = found["health"].get("since")
        talk.is_so(f"since when, {uid}", uid in {"fails", "some"}, since is not None)
    rows = talk.ask("GET", f"{one.path}/msg/{first}/endpoint")["data"]
    talk.is_so(
        "of a message",
        {uid: state for uid, (state, _) in states.items()},
        {each["uid"]: each["health"]["state"] for each in rows},
    )
    troubled = talk.ask("GET", "/health/endpoints")
    listed = {each["endpoint"]["uid"]: each["health"]["state"] for each in troubled["data"]}
    talk.is_so("who does not get all", {"fails": "failing", "off": "disabled"}, listed)
    talk.is_so("and not who does", False, "well" in listed)
    one.says = {}
    talk.sleep(300 * 1.2 + 2 * LATE_S + talk.gathered_s)
    for uid in ("fails", "some", "well"):
        _health(talk, one, uid, waiting=0, circuit="closed", health={"state": "delivering"})
    one.over()
    talk.ask("GET", "/health/endpoints", shows={"total": 0, "data": []})


def _open(talk: Talk) -> None:
    """Many failures in a row open a circuit, so that the endpoint is spared; another one of the application is not
    affected; when it is well, everything arrives.
    """
    one = Customer(talk, "open")
    one.says["down"] = (500, b"")
    for uid in ("down", "well"):
        one.endpoint(uid)
    for number in range(MANY):
        one.post(number)
        talk.sleep(1, exactly=True)
    talk.sleep(5 * MINUTE + talk.put_off_s)
    shows = {"circuit": "open", "waiting": MANY, "disabled": False, "health": {"state": "circuit_open", "until": str}}
    _health(talk, one, "down", **shows)
    talk.came("the other gets all", [*range(MANY)], sorted(one.numbers("well")))
    _health(talk, one, "well", circuit="closed", waiting=0, health={"state": "delivering"})
    before = len(one.came["down"])
    talk.came("it is spared", True, before < 2 * MANY)
    talk.sleep(10 * MINUTE)
    talk.came("a probe now and then", lambda count: 1 <= count <= 20, len(one.came["down"]) - before)
    one.says = {}
    before = len(one.came["down"])
    talk.sleep(3 * HOUR)
    talk.came("all of it arrives, once", [*range(MANY)], sorted(one.numbers("down")[before:]))
    _health(talk, one, "down", circuit="closed", waiting=0, health={"state": "delivering"})
    one.over()


def _rates(talk: Talk) -> None:
    """An application's rate is that of its endpoints that have none; each endpoint has it for itself; a change counts
    for what waits.
    """
    one = Customer(talk, "rates")
    talk.ask("PATCH", one.path, {"throttleRate": 1})
    for uid, more in (("slow", {}), ("also", {}), ("own", {"throttleRate": 50})):
        one.endpoint(uid, **more)
    talk.sleep(2)
    for number in range(20):
        one.post(number)
    talk.sleep(10 + talk.put_off_s)
    for uid in ("slow", "also"):
        talk.came(
            f"one a second, {uid}",
            lambda count: 5 <= count <= 16 + talk.put_off_s + talk.gathered_s,
            len(one.came[uid]),
        )
    talk.came("its own rate", 20, len(one.came["own"]))
    talk.ask("PATCH", f"{one.path}/endpoint/slow", {"throttleRate": 50})
    talk.sleep(6 + talk.gathered_s)
    talk.came("at once", 20, len(one.came["slow"]))
    talk.came("the other's is as it was", True, len(one.came["also"]) < 20 or talk.put_off_s + talk.gathered_s > 0)
    talk.sleep(30 + talk.put_off_s)
    for uid, heard in one.came.items():
        talk.came(f"each once, {uid}", [*range(20)], sorted(one.numbers(uid)))
        if uid == "also":
            talk.came("evenly", True, min(gaps(heard)[2:]) >= 0.3)
    one.over()


def _read(talk: Talk) -> None:
    """Who reads in an endpoint's place gets what is of its event types and channels, whatever it accepted; a poller's
    name is its own.
    """
    one = Customer(talk, "read")
    filters = [{"path": "n", "operator": "gt", "value": 1}]
    one.endpoint("chosen", eventTypes=[KIND], channels=["a"], payloadFilters=filters)
    one.endpoint("all")
    one.says["all"] = (500, b"")
    for number, kind, channel in ((1, KIND, "a"), (2, KIND, "a"), (3, OTHER, "a"), (4, KIND, "b"), (5, KIND, "a")):
        one.post(number, kind, channels=[channel])
        talk.sleep(0.5, exactly=True)
    talk.sleep(SETTLED_S, exactly=True)
    endpoint_id = talk.ask("GET", f"{one.path}/endpoint/chosen")["id"]

    def numbers(path: str) -> list[int]:
        return [each["payload"]["n"] for each in talk.ask("GET", f"{one.path}/poller/{path}")["data"]]

    for sink in ("chosen", endpoint_id):
        talk.is_so(f"what it wants, by {sink[:3]}", [1, 2, 5], numbers(sink))
        talk.is_so("and one of these", [5], numbers(f"{sink}?after={_time(talk, one, 4)}"))
    for sink in ("all", "nobody", "nobody"):
        talk.is_so(f"everything, by {sink}", [1, 2, 3, 4, 5], numbers(sink))
    talk.ask("DELETE", f"{one.path}/msg/{_id(talk, one, 5)}/content", status=204)
    page = talk.ask("GET", f"{one.path}/poller/nobody")["data"]
    talk.is_so("what is erased is not read", {"expired": True}, page[-1]["payload"])
    talk.is_so("nor its number", False, "n" in page[-1]["payload"])
    one.over()


def _message(talk: Talk, one: Customer, number: int) -> Any:
    return next(each for each in talk.ask("GET", f"{one.path}/msg")["data"] if each["payload"].get("n") == number)


def _time(talk: Talk, one: Customer, number: int) -> str:
    return str(_message(talk, one, number)["timestamp"])


def _id(talk: Talk, one: Customer, number: int) -> str:
    return str(_message(talk, one, number)["id"])


def _once(talk: Talk) -> None:
    """A message that is posted again with its key is one, also to all endpoints, in each application by itself; with an
    ``eventId`` that is taken it is refused, and takes no effect.
    """
    apps = [Customer(talk, "once")]
    apps[0].endpoint("one")
    talk.ask("POST", "/app", {"name": "Again", "uid": "once-more"}, status=201)
    came = talk.listen("once-more.example", lambda _: (200, b""))
    talk.ask("POST", "/app/once-more/endpoint", {"url": "https://once-more.example/", "uid": "one"}, status=201)
    keyed = talk.with_headers(idempotency_key="once-1")
    body = {"eventType": KIND, "payload": {"n": 1}, "eventId": "ev-1"}
    ids = [
        keyed.ask("POST", f"{path}/msg", body, status=202)["id"]
        for path in (apps[0].path, apps[0].path, "/app/once-more", "/app/once-more")
    ]
    talk.is_so("one each", (True, True, True), (ids[0] == ids[1], ids[2] == ids[3], ids[0] != ids[2]))
    for path in (apps[0].path, "/app/once-more"):
        talk.ask("POST", f"{path}/msg", {**body, "payload": {"n": 2}}, status=409)
        keyed.ask("POST", f"{path}/msg", {**body, "payload": {"n": 3}}, status=422)
    # A refused request uses up no key, whatever it was refused for
    again = talk.with_headers(idempotency_key="once-3")
    for refused, status in (({"payload": 7}, 422), ({"payload": {"n": 4}}, 409), ({"eventId": "a b"}, 422)):
        again.ask("POST", "/app/once-more/msg", {**body, **refused}, status=status)
    third = {**body, "payload": {"n": 3}, "eventId": "ev-3"}
    taken = [again.ask("POST", "/app/once-more/msg", third, status=202)["id"] for _ in range(2)]
    talk.is_so("then it is one message", (True, True), (taken[0] == taken[1], taken[0] not in ids))
    again.ask("POST", "/app/once-more/msg", body, status=422)
    talk.sleep(12 * HOUR + 60, exactly=True)
    keyed.ask("POST", f"{apps[0].path}/msg", body, status=409)
    talk.with_headers(idempotency_key="once-2").ask(
        "POST", f"{apps[0].path}/msg", {**body, "eventId": "ev-2"}, status=202
    )
    talk.sleep(10 + talk.put_off_s)
    talk.came("so often", ([1, 1], [1, 3]), (apps[0].numbers("one"), [json.loads(each.body)["n"] for each in came]))
    talk.ask("DELETE", "/app/once-more", status=204)
    apps[0].over()


__all__ = ["webhooks"]
