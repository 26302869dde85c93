"""Queues, messages, subscribers, alerts."""

from __future__ import annotations

import json

from simulation.promises.talks.command_line.printed import NO_QUEUE, REFUSED, WRONG_USAGE, would
from simulation.promises.talks.command_line.receiver_commands import gated, receiver_signed
from simulation.promises.talks.talk import Talk

MINUTE = 60


def queues(talk: Talk) -> None:
    """Queues, messages, subscribers, alerts."""
    talk.through(_queues, _posts, _converted, _failed, _paused, _alerts, _searched, _signed)


def _queues(talk: Talk) -> None:
    """Made, shown, listed, deleted."""
    first, second = "https://typed.example/in?x=1", "https://other.example/in"
    given = ("--push", f"shop={first}", "--push", second, "--retries", "2", "--retries-delay", "20")
    create = ("queues", "create", "typed", *given, "--error-queue", "typed-dead")
    talk.typed(*create, "--dry-run", shows=would("PUT", "/queues/typed"))
    talk.typed("queues", "show", "typed", code=REFUSED, says=NO_QUEUE)
    row = {"name": "typed", "type": "multicast", "size": 0, "total_messages": 0, "subscribers": 2}
    created = [{"name": "typed", "type": "multicast", "subscribers": 2}]
    talk.typed(*create, shows=created)
    talk.typed("queues", "create", "typed", "--eager", "--expiration", "77", shows=created)
    push = {"retries": 2, "retries_delay": 20, "error_queue": "typed-dead", "eager": True}
    both = [{"name": "shop", "url": first}, {"name": "", "url": second}]
    shown = {"name": "typed", "message_expiration": 77, "push": {**push, "subscribers": both}}
    talk.typed("queues", "show", "typed", shows=[shown])
    lines = talk.read("queues", "show", "typed")
    talk.is_so(
        "a table", [["name", "type", "size", "total_messages", "subscribers"], [*map(str, row.values())]], lines[:2]
    )
    for cell in (["message_expiration", "77"], ["shop", first]):
        talk.is_so(f"among its lines {cell}", True, any(line[: len(cell)] == cell for line in lines))
    settings = {"queue": {"type": "pull", "message_timeout": 5, "message_expiration": 77}}
    talk.typed("queues", "create", "typed-b", "--from", "-", "--timeout", "9", given=json.dumps(settings))
    talk.typed("queues", "show", "typed-b", shows=[{"type": "pull", "message_timeout": 9, "message_expiration": 77}])
    talk.typed("queues", "create", "typed-b", "--from", "-", given="{", code=WRONG_USAGE, says="not valid JSON")
    talk.typed("queues", "create", "typed-b", "--from", "-", given="[]", code=WRONG_USAGE)
    talk.typed("queues", "create", "typed-b", "--retries", "101", code=REFUSED, says="the hub says 40")
    talk.typed("queues", "create", 256 * "q", code=WRONG_USAGE)
    # In every second run, more than fit on a page
    more = 101 if talk.turn % 2 else 1
    for number in range(more):
        talk.typed("queues", "create", f"typed-n{number:03}")
    listed = [
        {**{"name": "typed", "type": "multicast", "waiting": 0, "subscribers": 2}, "state": "delivering"},
        {"name": "typed-b", "type": "pull", "waiting": 0, "subscribers": lambda each: not each, "state": None},
        *({"name": f"typed-n{number:03}"} for number in range(more)),
    ]
    talk.typed("queues", "list", "--prefix", "typed", shows=listed)
    talk.typed("queues", "list", "--prefix", "typing", shows=[])
    talk.is_so("nothing is called none", [["none"]], talk.read("queues", "list", "--prefix", "typing"))
    delete = ("queues", "delete", "typed-b")
    talk.typed(*delete, code=WRONG_USAGE, says="--yes")
    talk.typed(*delete, "--dry-run", shows=would("DELETE", "/queues/typed-b"))
    talk.typed("queues", "show", "typed-b")
    talk.typed(*delete, "--yes")
    talk.typed("queues", "show", "typed-b", code=REFUSED, says=NO_QUEUE)
    for name in ("typed", *(f"typed-n{number:03}" for number in range(more))):
        talk.typed("queues", "delete", name, "--yes")
    talk.typed("queues", "lst", code=WRONG_USAGE)
    talk.typed("quues", code=WRONG_USAGE, says="queues")


def _posts(talk: Talk) -> None:
    """A message, several, in any bytes; what is not asked for is not made silently."""
    talk.typed("post", "typed", "grüß dich", "--dry-run", shows=would("POST", "/queues/typed/messages"))
    talk.typed("queues", "show", "typed", code=REFUSED)
    [first] = talk.typed("post", "typed", "grüß dich", shows=[{"id": str}])
    talk.typed("post", "typed", "later", "--delay", "300", "-H", "X-Key=1")
    talk.typed("post", "typed", given="piped\n")
    talk.typed("post", "typed", "")
    lines = "".join(f'{{"n": {number}}}\r\n\n' for number in range(205))
    talk.typed("post", "typed", "--ndjson", "-", given=lines, shows=[{"posted": 205}])
    talk.typed("post", "typed", "--ndjson", "-", "--skip", "408", given=lines, shows=[{"posted": 1}])
    bodies = ["grüß dich", "piped\n", "", *(f'{{"n": {number}}}' for number in (*range(205), 204))]
    peeked = talk.ask(
        "GET", "/queues/typed/messages?n=100", shows={"messages": [{"body": each} for each in bodies[:100]]}
    )
    talk.is_so("the first", first["id"], peeked["messages"][0]["id"])
    talk.typed("queues", "show", "typed", shows=[{"total_messages": 210, "type": "pull"}])
    for words, code in (
        (("--ndjson", "-", "--file", "-"), WRONG_USAGE),
        (("x", "--file", "-"), WRONG_USAGE),
        (("x", "-H", "odd"), WRONG_USAGE),
        ((), WRONG_USAGE),
        (("x", "--delay", "604801"), REFUSED),
    ):
        talk.typed("post", "typed", *words, code=code)
    for number in range(3):
        talk.typed("expunge", peeked["messages"][number]["id"], "--queue", "typed", "--yes")
    talk.typed("expunge", first["id"], "--queue", "typed", "--yes", code=REFUSED, says="the hub says 404")
    talk.typed("expunge", first["id"], "--yes", code=WRONG_USAGE)
    talk.ask("GET", "/queues/typed/messages", shows={"messages": [{"body": bodies[3]}]})
    talk.typed("queues", "delete", "typed", "--yes")


def _converted(talk: Talk) -> None:
    """A pull queue that is to push: only if that is said, and with how much is left."""
    came = talk.listen("typed-turned.example", lambda _: (200, b""))
    talk.typed("post", "turned", "a")
    talk.typed("post", "turned", "b", "--delay", "60", "-H", "X-Of=post")
    create = ("queues", "create", "turned", "--push", "s=https://typed-turned.example/in")
    talk.typed(*create, code=REFUSED, says="the hub says 400")
    talk.typed(*create, "--convert", "--dry-run", shows=would("PUT", "/queues/turned"))
    talk.typed("queues", "show", "turned", shows=[{"type": "pull", "size": 2}])
    pushes = [{"name": "turned", "type": "multicast", "subscribers": 1}]
    talk.typed(*create, "--convert", shows=pushes, says="1 messages are still held for consumers")
    talk.sleep(75 + talk.put_off_s)
    talk.typed(*create, "--convert", shows=pushes)
    talk.sleep(20 + talk.put_off_s)
    talk.came("both", [(b"a", None), (b"b", "post")], [(each.body, each.headers.get("x-of")) for each in came])
    talk.typed("queues", "delete", "turned", "--yes")


def _failed(talk: Talk) -> None:
    """What was given up, as its error queue and its subscriber have it sent again, which is waited for."""
    if talk.gathered_s or talk.put_off_s:
        return
    says = {"status": 500}
    came = talk.listen("typed-shop.example", lambda _: (says["status"], b"no"))
    well = talk.listen("typed-crm.example", lambda _: (200, b""))
    given = ("--push", "shop=https://typed-shop.example/in", "--push", "crm=https://typed-crm.example/in")
    talk.typed("queues", "create", "orders", *given, "--retries", "0", "--error-queue", "errors")
    ids = [talk.typed("post", "orders", f"m{number}")[0]["id"] for number in range(3)]
    talk.sleep(30)
    tried = {
        "shop": {"number": 1, "status_code": 500, "answer": "no"},
        "crm": {"number": 1, "status_code": 200},
    }
    shown = talk.typed("attempts", "orders", ids[0], shows=[..., ...])
    talk.is_so("attempts", tried, {each["subscriber"]: each for each in shown})
    talk.typed("attempts", "orders", "12", code=REFUSED, says="the hub says 404")
    talk.typed("replay", "errors", "--dry-run", shows=[{"queue": "orders", "subscriber": "shop", "messages": 3}])
    talk.came("nothing was sent", (3, 3), (len(came), len(well)))
    talk.typed("replay", "errors", "--limit", "2", code=REFUSED, shows=[{"queue": "errors", "sent": 0, "left": 2}])
    talk.came("two once more", (5, 3), (len(came), len(well)))
    says["status"] = 200
    talk.typed("replay", "errors", shows=[{"queue": "errors", "sent": 3, "left": 0}])
    talk.came("only to who missed it", (8, 3), (len(came), len(well)))
    talk.typed("replay", "errors", shows=[{"sent": 0, "left": 0}], says="there was nothing in errors")
    talk.typed("queues", "show", "errors", shows=[{"size": 0}])
    says["status"] = 500
    talk.typed("post", "orders", "again")
    talk.sleep(30)
    says["status"] = 200
    at = ("replay", "--queue", "orders", "--subscriber", "shop")
    counted = {"queue": "orders", "subscriber": "shop", "found": 1}
    talk.typed(*at, "--dry-run", shows=[{**counted, "replayed": 0}])
    talk.typed(*at, shows=[{**counted, "replayed": 1}])
    talk.sleep(20)
    talk.came("the last", ["again", "again"], [each.body.decode() for each in came[8:]])
    talk.typed("replay", "errors", "--to", "elsewhere", shows=[{"sent": 1, "left": 0}])
    talk.ask("GET", "/queues/elsewhere/messages", shows={"messages": [{"body": "again"}]})
    talk.typed("post", "errors", "[]")
    talk.typed("replay", "errors", code=REFUSED, shows=[{"sent": 0, "left": 1}], says="not an error message")
    for words in (("errors", "--queue", "orders", "--subscriber", "shop"), ("--queue", "orders"), ()):
        talk.typed("replay", *words, code=WRONG_USAGE)
    for name in ("orders", "errors", "elsewhere"):
        talk.typed("queues", "delete", name, "--yes")


def _paused(talk: Talk) -> None:
    """Pause, resume, and how subscribers are doing."""
    came = talk.listen("typed-rest.example", lambda _: (200, b""))
    talk.typed("queues", "create", "held", "--push", "rest=https://typed-rest.example/in")
    row = {"subscriber": "rest", "waiting": 0}
    talk.typed("health", "held", shows=[{**row, "state": "delivering"}])
    talk.typed("pause", "held", "rest", "--dry-run", shows=would("POST", "/pause"))
    talk.typed("health", "held", shows=[{**row, "state": "delivering"}])
    paused = {"state": lambda each: each.startswith("paused")}
    talk.typed("pause", "held", "rest", shows=[{**row, **paused}])
    talk.typed("pause", "held", "none", code=REFUSED, says="the hub says 404")
    talk.sleep(5)
    talk.typed("post", "held", "a")
    talk.sleep(2 * MINUTE)
    talk.came("nothing", [], came)
    talk.typed(
        "health", shows=[{"of": "queue held", "receiver": "rest", **paused, "waiting": 1}], says="all others are well"
    )
    talk.typed("health", "held", "--store", code=WRONG_USAGE)
    talk.typed("resume", "held", "rest", shows=[{"subscriber": "rest"}])
    talk.sleep(3 * MINUTE)
    talk.came("what waited", [b"a"], [each.body for each in came])
    talk.typed("health", shows=[])
    talk.typed("queues", "delete", "held", "--yes")


def _alerts(talk: Talk) -> None:
    """Set, changed, tried, deleted."""
    notified = talk.listen("typed-told.example", lambda _: (200, b""))
    given = ("alerts", "set", "Shop fails", "failure-rate", "50", "--url", "https://typed-told.example/in")
    fields = {"name": "Shop fails", "measure": "failure_rate", "threshold": 50, "minutes": 15, "format": "json"}
    talk.typed(*given, "--dry-run", shows=would("POST", "/alerts"))
    talk.typed("alerts", "list", shows=[])
    talk.typed(*given, shows=[{**fields, "state": "quiet"}])
    talk.typed(*given, "--minutes", "30", "--slack", shows=[{**fields, "minutes": 30, "format": "slack"}])
    [alert] = talk.typed("alerts", "list", shows=[{**fields, "minutes": 30, "format": "slack"}])
    talk.typed(*given, "--minutes", "4", code=REFUSED, says="the hub says 400")
    talk.typed("alerts", "test", "Shop fails", says="A test is on its way to https://typed-told.example/in")
    talk.sleep(30)
    talk.came("a test", 1, len(notified))
    talk.typed("alerts", "test", "none", code=REFUSED, says="no alerts are called none")
    talk.typed("alerts", "delete", alert["id"], code=WRONG_USAGE)
    talk.typed("alerts", "delete", alert["id"], "--yes")
    talk.typed("alerts", "list", shows=[])
    collector = ("traces", "export", "https://typed-told.example/v1/traces", "-H", "X-Key=1")
    talk.typed("traces", "show", shows=[])
    talk.typed(*collector, "--dry-run", shows=would("PUT", "/traces"))
    talk.typed("traces", "show", shows=[])
    shown = {"url": "https://typed-told.example/v1/traces", "on": True, "exported": 0, "dropped": 0, "failing": None}
    talk.typed(*collector, shows=[shown])
    talk.typed(*collector, "--off", shows=[{**shown, "on": False}])
    talk.typed("traces", "export", "https://typed-told.example/", "-H", "odd", code=WRONG_USAGE)
    talk.typed("traces", "stop")
    talk.typed("traces", "show", shows=[])


def _searched(talk: Talk) -> None:
    """By a value, by what they are, in lists."""
    came = talk.listen("typed-found.example", lambda _: (200, b""))
    talk.typed("queues", "create", "looked", "--push", "finds=https://typed-found.example/in")
    ids = [talk.typed("post", "looked", json.dumps({"order": f"typed-{number}"}))[0]["id"] for number in (1, 2)]
    talk.sleep(3 * MINUTE + talk.put_off_s)
    talk.came("both", 2, len(came))
    row = {"of": "looked", "state": "finds delivered"}
    talk.typed("search", "typed-1", shows=[{**row, "message": ids[0], "field": str}])
    talk.typed("search", "typed-3", shows=[], says="bodies of the last week's messages")
    talk.typed("events", "--queue", "looked", shows=[{**row, "message": each} for each in ids[::-1]])
    talk.typed("events", "--queue", "looked", "--limit", "1", shows=[{**row, "message": ids[1]}])
    talk.typed("events", "--queue", "looked", "--since", "1m", shows=[])
    talk.typed("events", "--queue", "looked", "--until", "1m", shows=[..., ...])
    talk.typed("events", "--queue", "looked", "--state", "delivered", "--subscriber", "finds", shows=[..., ...])
    talk.typed("events", "--queue", "looked", "--state", "exhausted", shows=[])
    for words in (
        ("search",),
        ("search", "x", "--queue", "looked"),
        ("search", "--past"),
        ("search", "x", "--since", "2"),
    ):
        talk.typed(*words, code=WRONG_USAGE)
    talk.typed("events", "--queue", "looked", "--store", code=WRONG_USAGE)
    talk.sleep(20 * MINUTE)
    past = ("search", "--past", "--queue", "looked")
    talk.typed(*past, shows=lambda rows: {each["message"] for each in rows} == {*ids})
    talk.typed(
        "search", ids[0], "--past", "--since", "2h", shows=lambda rows: {each["message"] for each in rows} == {ids[0]}
    )
    talk.typed(*past, "--since", "2h", "--until", "90m", shows=[])
    talk.typed("queues", "delete", "looked", "--yes")


def _signed(talk: Talk) -> None:
    """What a subscriber is signed with, and what it demands."""
    talk.typed(
        "queues", "create", "signed", "--push", "shop=https://typed-signed.example/in", "--push", "o=https://o.example/"
    )
    whose = ("--queue", "signed", "--subscriber", "shop")
    receiver_signed(talk, whose)
    talk.typed("signatures", "show", "--queue", "signed", "--subscriber", "o", shows=[{"signed": False}])
    for bad in (("--queue", "signed"), (*whose, "--mapping", "m"), ("--subscriber", "shop")):
        talk.typed("signatures", "show", *bad, code=WRONG_USAGE)
    talk.typed("signatures", "show", "--queue", "signed", "--subscriber", "none", code=REFUSED, says="no subscribers")
    gated(talk, whose)
    talk.typed("gates", "external-id", shows=[{"external_id": str, "principal": str}])
    talk.typed("queues", "delete", "signed", "--yes")


__all__ = ["queues"]
