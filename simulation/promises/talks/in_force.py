"""From when on a change of an endpoint counts: for what is posted right after its answer, and for tries that begin a
second after it; and what a name means once what had it is gone.

Source: docs/webhooks.md ("Differences from Svix").
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from simulation.promises.judgement import SECOND
from simulation.promises.talks.customers import KIND, OTHER, Customer
from simulation.promises.talks.talk import Came, Talk
from simulation.promises.talks.webhooks import OTHER_SECRET, SECRET, is_signed

TRIED = 3
"""Messages that wait for their second try while their endpoint is changed."""


def webhooks(talk: Talk) -> None:
    """All of it."""
    talk.through(_recipients, _tries, _named_again)


def _recipients(talk: Talk) -> None:
    """What is posted right after an answer goes by what was set: filters of each kind, on and off, made and deleted."""
    one = Customer(talk, "force")
    one.endpoint("one")
    path = f"{one.path}/endpoint/one"
    larger = [{"path": "n", "operator": "gt", "value": 0}]
    changes: tuple[tuple[dict[str, Any], bool, str, list[str]], ...] = (
        ({"eventTypes": [OTHER]}, False, KIND, []),
        ({"eventTypes": [KIND]}, True, KIND, []),
        ({"eventTypes": None, "channels": ["a"]}, False, KIND, ["b"]),
        ({"channels": ["b"]}, True, OTHER, ["b"]),
        ({"channels": None, "payloadFilters": [{**larger[0], "operator": "lt"}]}, False, KIND, []),
        ({"payloadFilters": larger}, True, KIND, []),
        ({"payloadFilters": None, "disabled": True}, False, KIND, []),
        ({"disabled": False}, True, KIND, []),
    )
    expected = []
    soon_s = 10 + talk.put_off_s
    for number, (change, comes, kind, channels) in enumerate(changes, 1):
        # What is on its way to an endpoint does not come once that is off
        talk.sleep(soon_s if change.get("disabled") else 0, exactly=True)
        talk.ask("PATCH", path, change)
        one.post(number, kind, **({"channels": channels} if channels else {}))
        expected += [number] if comes else []
    one.post(20)
    one.endpoint("later")
    one.post(21)
    talk.sleep(soon_s + talk.gathered_s)
    talk.ask("DELETE", path, status=204)
    one.post(22)
    talk.sleep(soon_s)
    talk.came("what was for it", [*expected, 20, 21], sorted(one.numbers("one")))
    talk.came("for what was made afterwards", [21, 22], sorted(one.numbers("later")))
    one.over()


def _tries(talk: Talk) -> None:
    """A try that begins a second after a change is made as the endpoint is by then, and none to one that is off; each
    in an application in which nothing else is changed.
    """
    changes: dict[str, tuple[str, str, Any]] = {
        "headers": ("PUT", "/headers", {"headers": {"X-New": "2"}}),
        "some": ("PATCH", "/headers", {"headers": {"X-New": "2"}, "deleteHeaders": ["X-Old"]}),
        "secret": ("POST", "/secret/rotate", {"key": OTHER_SECRET, "gracePeriodSeconds": 0}),
        "url": ("PATCH", "", {"url": "https://tries-url-one.example/new"}),
        "events": ("PATCH", "", {"cloudEvents": {"mode": "binary"}}),
        "scheme": ("PUT", "/signatures", {"signatures": [{"preset": "github", "secret": "12345678"}]}),
        "off": ("PATCH", "", {"disabled": True}),
        "gone": ("DELETE", "", None),
    }
    customers: dict[str, Customer] = {}
    for name in changes:
        beside = next(iter(customers.values()), None)
        customers[name] = one = Customer(talk, f"tries-{name}", beside=beside)
        one.says["one"] = lambda _, one=one: (500, b"") if len(one.came["one"]) <= TRIED else (200, b"")
        one.endpoint("one", headers={"X-Old": "1"}, secret=SECRET)
    for one in customers.values():
        for number in range(TRIED):
            one.post(number)
    # Until each has been tried once; it is tried again after some five seconds
    for _ in range(20 + talk.put_off_s + talk.gathered_s):
        if all(len(one.came["one"]) >= TRIED for one in customers.values()):
            break
        talk.sleep(0.5, exactly=True)
    answered = {}
    for name, (method, where, body) in changes.items():
        status = talk.status(method, f"{customers[name].path}/endpoint/one{where}", body)
        talk.is_so(f"{method} {name}{where}", 2, status // 100)
        answered[name] = talk.now()
    talk.sleep(20 + talk.put_off_s + talk.gathered_s)
    new: dict[str, Callable[[Came], bool]] = {
        **dict.fromkeys(("headers", "some"), lambda each: "x-old" not in each.headers and "x-new" in each.headers),
        "secret": lambda each: (is_signed(each, SECRET), is_signed(each, OTHER_SECRET)) == (False, True),
        "url": lambda each: each.path == "/new",
        "events": lambda each: each.headers.get("ce-type") == KIND,
        "scheme": lambda each: "x-hub-signature-256" in each.headers,
        **dict.fromkeys(("off", "gone"), lambda _: False),
    }
    for name, one in customers.items():
        heard = one.came["one"]
        begun = [each for each in heard if each.at >= answered[name] + SECOND]
        talk.came(f"as it is by then, {name}", [], [each.headers for each in begun if not new[name](each)])
        least = TRIED if name in {"off", "gone"} else 2 * TRIED
        talk.came(f"so often, {name}", lambda count, least=least: least <= count <= 2 * TRIED, len(heard))
    for one in reversed(customers.values()):
        one.over()


def _named_again(talk: Talk) -> None:
    """What is made under a uid that is free again has nothing of what had it: an endpoint neither secret, headers nor
    attempts; an application neither messages, their ids and numbers, nor a reader's place.
    """
    one = Customer(talk, "again")
    one.endpoint("old", headers={"X-Old": "1"}, secret=SECRET)
    keyed = talk.with_headers(idempotency_key="again")
    body = {"eventType": KIND, "payload": {"n": 1}, "eventId": "ev", "orderingKey": "k"}
    first = keyed.ask("POST", f"{one.path}/msg", body, status=202)["id"]
    talk.sleep(10 + talk.put_off_s)
    reader = f"{one.path}/poller/any/consumer/me"
    read = talk.ask("GET", reader, shows={"data": [{"id": first}]})["iterator"]
    talk.ask("GET", f"{reader}?iterator={read}", shows={"data": []})
    path = f"{one.path}/endpoint/old"
    talk.ask("PATCH", path, {"uid": "renamed"}, shows={"uid": "renamed"})
    talk.ask("GET", path, status=404)
    one.endpoint("old")
    talk.sleep(2)
    nothing = {"data": [], "done": True}
    for listed in (f"{one.path}/attempt/endpoint/old", f"{path}/msg"):
        talk.ask("GET", listed, shows=nothing)
    talk.ask("GET", f"{path}/stats", shows={"success": 0, "fail": 0})
    talk.ask("GET", f"{path}/headers", shows={"headers": lambda each: each == {}})
    talk.is_so("another secret", False, talk.ask("GET", f"{path}/secret")["key"] == SECRET)
    talk.ask("GET", f"{one.path}/endpoint/renamed/secret", shows={"key": SECRET})
    talk.ask("GET", f"{one.path}/attempt/endpoint/renamed", shows={"data": [{"msgId": first}]})
    talk.ask("PATCH", f"{one.path}/endpoint/renamed", {"uid": "old"}, status=409, shows={"code": "conflict"})
    talk.ask("DELETE", one.path, status=204)
    talk.ask("POST", "/app", {"name": "again", "uid": "again"}, status=201)
    for listed in (f"{one.path}/msg", f"{one.path}/endpoint", reader):
        talk.ask("GET", listed, shows=nothing)
    for name in (first, "ev"):
        talk.ask("GET", f"{one.path}/msg/{name}", status=404)
    one.endpoint("old")
    second = keyed.ask("POST", f"{one.path}/msg", body, status=202)["id"]
    talk.sleep(10 + talk.put_off_s)
    talk.came("one message", [1], one.numbers("old"))
    talk.came("the first of its key", "1", one.came["old"][0].headers["webhook-sequence"])
    talk.ask("GET", f"{one.path}/msg", shows={"data": [{"id": second, "eventId": "ev"}], "done": True})
    talk.is_so("what it says", {"n": 1}, json.loads(one.came["old"][0].body))
    one.over()


__all__ = ["webhooks"]
