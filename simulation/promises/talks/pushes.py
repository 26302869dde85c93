"""What pushes of all protocols share, talked through with queues of IronMQ: order, signatures, queues that push to
queues, expiry, circuits, rates, and answers that are obeyed.

Sources: docs/ironmq.md, docs/flow.md, docs/ironmq-behaviour.md; of circuits the settings that the operator gave.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from simulation.promises.judgement import SECOND
from simulation.promises.talks.talk import Came, Talk
from simulation.promises.talks.webhooks import OTHER_SECRET, is_signed

MINUTE = 60
LATE_S = 75
"""What waits longer than a minute is looked after each minute."""


@dataclass(frozen=True)
class Circuit:
    """Settings of a circuit: failures in a row that open it, and the first and the longest wait for a probe."""

    failures: int
    probe_s: int
    most_probe_s: int


@dataclass(frozen=True)
class Protection:
    """What an operator can give a queue.

    Attributes:
        circuit: Its circuit.
        protect: Gives it to a queue, by name, and has the queue obey ``Retry-After``.
        limit: Gives the subscribers of a queue a rate, requests a second.
    """

    circuit: Circuit
    protect: Callable[[str], None]
    limit: Callable[[str, float], None]


def through(talk: Talk, protection: Protection) -> None:
    """Everything."""

    def circuits(one: Talk) -> None:
        circuit(one, protection)

    def rates(one: Talk) -> None:
        rate(one, protection)

    talk.through(ordered, eager, long_beside_many, signatures, between_queues, expired, circuits, rates)


def _make(talk: Talk, name: str, *hosts: str, **push: Any) -> None:
    subscribers = [{"name": host, "url": f"https://talk-{host}.example/in"} for host in hosts]
    talk.ask("PUT", f"/queues/{name}", {"queue": {"push": {"subscribers": subscribers, **push}}})


def _post(talk: Talk, name: str, *bodies: str, **more: Any) -> list[str]:
    messages = [{"body": each, **more} for each in bodies]
    ids: list[str] = talk.ask("POST", f"/queues/{name}/messages", {"messages": messages}, status=201)["ids"]
    return ids


def _bodies(came: Sequence[Came]) -> list[str]:
    return [each.body.decode() for each in came]


def _gaps(came: Sequence[Came]) -> list[float]:
    return [(after.at - before.at) / SECOND for before, after in pairwise(came)]


def ordered(talk: Talk) -> None:
    """Messages of a key come one after the other, whatever happens to one; other keys do not wait."""
    fails = {"b1": 2}

    def say(came: Came) -> tuple[int, bytes]:
        left = fails.get(came.body.decode(), 0)
        fails[came.body.decode()] = left - 1
        return (500, b"") if left > 0 else (200, b"")

    came = talk.listen("talk-keyed.example", say)
    _make(talk, "keyed", "keyed", retries=2, retries_delay=20)
    _post(talk, "keyed", "b1", "b2", "b3", ordering_key="b")
    _post(talk, "keyed", "c1", ordering_key="c")
    _post(talk, "keyed", "d1")
    talk.refused(
        "POST",
        "/queues/keyed/messages",
        *({"messages": [{"body": "x", "ordering_key": each}]} for each in ("a b", 257 * "k", "é")),
    )
    talk.sleep(15)
    talk.came("only one of a key is under way", ["b1", "c1", "d1"], sorted(_bodies(came)))
    talk.sleep(3 * MINUTE)
    own = [each for each in _bodies(came) if each.startswith("b")]
    talk.came("one after the other", ["b1", "b1", "b1", "b2", "b3"], own)
    fails["e1"] = 9
    _post(talk, "keyed", "e1", "e2", ordering_key="e")
    talk.sleep(4 * MINUTE)
    own = [each for each in _bodies(came) if each.startswith("e")]
    talk.came("the next when one was given up", ["e1", "e1", "e1", "e2"], own)
    fails["f1"] = 9
    first, _ = _post(talk, "keyed", "f1", "f2", ordering_key="f")
    talk.sleep(5)
    talk.ask("DELETE", f"/queues/keyed/messages/{first}", {})
    talk.sleep(3 * MINUTE)
    own = [each for each in _bodies(came) if each.startswith("f")]
    talk.came("the next when one was deleted", ["f1", "f2"], own)
    talk.ask("DELETE", "/queues/keyed")


def eager(talk: Talk) -> None:
    """Of a queue that is eager each subscriber gets a message once, also one that takes long beside a quick one."""
    quick = talk.listen("talk-quick.example", lambda _: (200, b""))

    def thinks(_: Came) -> tuple[int, bytes]:
        talk.sleep(MINUTE, exactly=True)
        return 200, b""

    long = talk.listen("talk-long.example", thinks)
    subscribers = [
        {"name": name, "url": f"https://talk-{name}.example/in", "timeout": timeout}
        for name, timeout in (("quick", 5), ("long", 100))
    ]
    talk.ask("PUT", "/queues/eager", {"queue": {"push": {"subscribers": subscribers, "eager": True, "retries": 0}}})
    [one] = _post(talk, "eager", "{}")
    talk.sleep(4 * MINUTE)
    talk.came("once for each", (1, 1), (len(quick), len(long)))
    talk.ask(
        "GET",
        f"/queues/eager/messages/{one}/subscribers",
        shows={"subscribers": [{"state": "delivered", "tries": 1}, {"state": "delivered", "tries": 1}]},
    )
    talk.ask("DELETE", "/queues/eager")


def long_beside_many(talk: Talk) -> None:
    """An attempt that takes minutes is made once, whatever else its run gets meanwhile."""

    def thinks(_: Came) -> tuple[int, bytes]:
        talk.sleep(150, exactly=True)
        return 200, b""

    long = talk.listen("talk-minutes.example", thinks)
    talk.listen("talk-many.example", lambda _: (200, b""))
    for name in ("minutes", "many"):
        one = {"name": name, "url": f"https://talk-{name}.example/in", "timeout": 180}
        talk.ask("PUT", f"/queues/{name}", {"queue": {"push": {"subscribers": [one], "retries": 0}}})
    _post(talk, "minutes", "{}")
    for number in range(20):
        _post(talk, "many", f"{number}")
        talk.sleep(10, exactly=True)
    talk.sleep(2 * MINUTE)
    talk.came("once", 1, len(long))
    for name in ("minutes", "many"):
        talk.ask("DELETE", f"/queues/{name}")


def signatures(talk: Talk) -> None:
    """Signed pushes, as Standard Webhooks specifies; the secret is never shown."""
    came = talk.listen("talk-signed.example", lambda _: (200, b""))
    one = {"name": "signed", "url": "https://talk-signed.example/in", "signing": {"secret": OTHER_SECRET}}
    talk.ask("PUT", "/queues/signed", {"queue": {"push": {"subscribers": [one]}}})
    talk.ask("GET", "/queues/signed", shows={"queue": {"push": {"subscribers": [{"name": "signed", "signing": True}]}}})
    [first] = _post(talk, "signed", "{}")
    talk.sleep(10)
    talk.came(
        "a signed push",
        [(first, True)],
        [(each.headers.get("webhook-id"), is_signed(each, OTHER_SECRET)) for each in came],
    )
    talk.ask("POST", "/queues/signed/subscribers", {"subscribers": [{**one, "signing": None}]})
    _post(talk, "signed", "{}")
    talk.sleep(10)
    talk.ask("POST", "/queues/signed/subscribers", {"subscribers": [{**one, "signing": False}]})
    talk.sleep(2)
    _post(talk, "signed", "{}")
    talk.sleep(10)
    talk.came(
        "left out changes nothing, false ends it",
        [True, True, False],
        ["webhook-signature" in each.headers for each in came],
    )
    for bad in ("x", "whsec_c2hvcnQ=", 5):
        talk.refused("POST", "/queues/signed/subscribers", {"subscribers": [{**one, "signing": {"secret": bad}}]})
    talk.ask("DELETE", "/queues/signed")


def between_queues(talk: Talk) -> None:
    """A queue pushes to another; one that pushes to itself in a circle ends after ten."""
    one = {"name": "next", "url": "ironmq:///second"}
    talk.ask("PUT", "/queues/first", {"queue": {"push": {"subscribers": [one]}}})
    talk.ask("POST", "/queues/first/messages", {"messages": [{"body": "é", "push_headers": {"X-A": "b"}}]}, status=201)
    talk.sleep(20)
    talk.ask("POST", "/queues/second/reservations", {"n": 9}, shows={"messages": [{"body": "é"}]})
    for here, there in (("ring-a", "ring-b"), ("ring-b", "ring-a")):
        ring = {"subscribers": [{"name": "ring", "url": f"ironmq:///{there}"}], "retries": 0, "error_queue": "ring-end"}
        talk.ask("PUT", f"/queues/{here}", {"queue": {"push": ring}})
    _post(talk, "ring-a", "round")
    talk.sleep(5 * MINUTE)
    talk.ask("GET", "/queues/ring-a", shows={"queue": {"total_messages": lambda each: 5 <= each <= 6}})
    talk.ask("POST", "/queues/ring-end/reservations", {"n": 9}, shows={"messages": [...]})
    for name in ("first", "second", "ring-a", "ring-b"):
        talk.ask("DELETE", f"/queues/{name}")


def expired(talk: Talk) -> None:
    """What is not delivered in its time is reported as expired, and not found any more."""
    came = talk.listen("talk-never.example", lambda _: (500, b""))
    push = {"retries": 100, "retries_delay": 20, "error_queue": "too-old"}
    subscribers = [{"name": "never", "url": "https://talk-never.example/in"}]
    talk.ask("PUT", "/queues/old", {"queue": {"message_expiration": 70, "push": {"subscribers": subscribers, **push}}})
    [one] = _post(talk, "old", "too late")
    talk.sleep(65, exactly=True)
    talk.ask("GET", f"/queues/old/messages/{one}", shows={"message": {"body": "too late"}})
    talk.sleep(10 * MINUTE)
    talk.came("as often as there was time for", lambda each: (1 if talk.gathered_s else 3) <= each <= 4, len(came))
    talk.ask("GET", f"/queues/old/messages/{one}", status=404)
    [error] = talk.ask("POST", "/queues/too-old/reservations", {"n": 9}, shows={"messages": [...]})["messages"]
    talk.is_so("the report", {"source_msg_id": one, "body": "too late", "reason": "expired"}, json.loads(error["body"]))
    talk.ask("DELETE", "/queues/old")


def circuit(talk: Talk, protection: Protection) -> None:
    """A circuit opens after its failures, probes ever more seldom, and lets go what waits in a ramp."""
    settings, says = protection.circuit, {"status": 500}
    came = talk.listen("talk-spared.example", lambda _: (says["status"], b""))
    _make(talk, "spared", "spared", retries=100, retries_delay=300)
    protection.protect("spared")
    talk.sleep(35)
    # What is posted together is tried by one environment, each of which counts by itself.
    _post(talk, "spared", *(f"a{number}" for number in range(settings.failures - 1)))
    talk.sleep(10)
    says["status"] = 200
    _post(talk, "spared", "b")
    talk.sleep(12)
    talk.came("a closed circuit lets it through", settings.failures, len(came))
    talk.sleep(6 * MINUTE)
    talk.came("and what had failed", 2 * settings.failures - 1, len(came))
    says["status"] = 500
    before = len(came)
    # Each environment counts by itself, so that some more are tried than open a circuit.
    _post(talk, "spared", *(f"c{number}" for number in range(60)))
    talk.sleep(25)
    failed = len(came)
    talk.came("enough to open it", lambda each: settings.failures <= each <= 45, failed - before)
    _post(talk, "spared", *(f"d{number}" for number in range(20)))
    talk.sleep(20)
    talk.came("an open one does not", failed, len(came))
    talk.sleep(2 * 3_600)
    probes = came[failed - 1 :]
    wait = settings.probe_s
    for gap in _gaps(probes):
        talk.came("waits for probes double", lambda each, wait=wait: wait - 2 <= each <= wait + LATE_S, gap)
        wait = min(2 * wait, settings.most_probe_s)
    talk.came("probes of two hours", lambda each: 9 <= each <= 13, len(probes))
    says["status"] = 200
    before = len(came)
    talk.sleep(settings.most_probe_s + LATE_S)
    talk.came("a probe that succeeds", True, len(came) > before)
    talk.sleep(10 * MINUTE)
    taken = came[before:]
    wanted = 80
    talk.came("all that waited, once each", wanted, len({each.body for each in taken}))
    talk.came("and nothing twice", wanted, len(taken))
    for minute, most in ((60, 12), (120, 32), (180, 72)):
        count = sum(each.at <= taken[0].at + minute * SECOND for each in taken)
        talk.came("in a ramp", lambda each, most=most: each <= most, count)
    _post(talk, "spared", "last")
    talk.sleep(10)
    talk.came("closed again", "last", _bodies(came)[-1])
    talk.ask("DELETE", "/queues/spared")


def rate(talk: Talk, protection: Protection) -> None:
    """A rate below one a second is a wait between requests, and no longer than that."""
    came = talk.listen("talk-rated.example", lambda _: (200, b""))
    _make(talk, "rated", "rated", retries=1)
    protection.limit("rated", 0.1)
    talk.sleep(35)
    _post(talk, "rated", *(f"r{number}" for number in range(6)))
    talk.sleep(100 + talk.put_off_s)
    talk.came("six in a minute and a half", 6, len(came))
    talk.came("ten seconds apart", [lambda each: 9.4 <= each <= 18 + talk.put_off_s] * 5, _gaps(came))
    protection.limit("rated", 10)
    talk.sleep(35)
    began = len(came)
    _post(talk, "rated", *(f"s{number}" for number in range(40)))
    talk.sleep(15 + talk.put_off_s)
    talk.came("forty in four seconds", 40, len(came) - began)
    lasted = (came[-1].at - came[began].at) / SECOND
    talk.came("and not sooner", lambda each: 3.2 <= each <= 8 + talk.put_off_s, lasted)
    talk.ask("DELETE", "/queues/rated")


__all__ = ["Circuit", "Protection", "through"]
