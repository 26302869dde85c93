"""The command line, talked through: what people type, what is printed, and that a dry run changes nothing.

Sources: docs/cli.md, and the pages of what the commands are about.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from typing import Any

from simulation.promises.talks.notifications import Connect
from simulation.promises.talks.talk import Came, Talk

MINUTE = 60
NO_QUEUE = "the hub says 404: Queue not found"
REFUSED, WRONG_USAGE = 1, 2
HUB = "https://hub.example"
SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"


def _would(*words: str) -> Any:
    """What a dry run prints: the request that it does not send."""
    return [{"would": lambda each: all(word in each for word in words)}]


def queues(talk: Talk) -> None:
    """Queues, messages, subscribers, alerts."""
    talk.through(_queues, _posts, _failed, _paused, _alerts, _searched, _signed)


def _queues(talk: Talk) -> None:
    """Made, shown, listed, deleted."""
    first, second = "https://typed.example/in?x=1", "https://other.example/in"
    given = ("--push", f"shop={first}", "--push", second, "--retries", "2", "--retries-delay", "20")
    create = ("queues", "create", "typed", *given, "--error-queue", "typed-dead")
    talk.typed(*create, "--dry-run", shows=_would("PUT", "/queues/typed"))
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
    talk.typed(*delete, "--dry-run", shows=_would("DELETE", "/queues/typed-b"))
    talk.typed("queues", "show", "typed-b")
    talk.typed(*delete, "--yes")
    talk.typed("queues", "show", "typed-b", code=REFUSED, says=NO_QUEUE)
    for name in ("typed", *(f"typed-n{number:03}" for number in range(more))):
        talk.typed("queues", "delete", name, "--yes")
    talk.typed("queues", "lst", code=WRONG_USAGE)
    talk.typed("quues", code=WRONG_USAGE, says="queues")


def _posts(talk: Talk) -> None:
    """A message, several, in any bytes; what is not asked for is not made silently."""
    talk.typed("post", "typed", "grüß dich", "--dry-run", shows=_would("POST", "/queues/typed/messages"))
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
    talk.typed("pause", "held", "rest", "--dry-run", shows=_would("POST", "/pause"))
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
    talk.typed(*given, "--dry-run", shows=_would("POST", "/alerts"))
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
    talk.typed(*collector, "--dry-run", shows=_would("PUT", "/traces"))
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
    _receiver_signed(talk, whose)
    talk.typed("signatures", "show", "--queue", "signed", "--subscriber", "o", shows=[{"signed": False}])
    for bad in (("--queue", "signed"), (*whose, "--mapping", "m"), ("--subscriber", "shop")):
        talk.typed("signatures", "show", *bad, code=WRONG_USAGE)
    talk.typed("signatures", "show", "--queue", "signed", "--subscriber", "none", code=REFUSED, says="no subscribers")
    _gated(talk, whose)
    talk.typed("gates", "external-id", shows=[{"external_id": str, "principal": str}])
    talk.typed("queues", "delete", "signed", "--yes")


def _receiver_signed(talk: Talk, whose: tuple[str, ...]) -> None:
    """All schemes of a subscriber or a service are replaced, or ended."""
    unsigned, signed = ([{"header": None, "endsAt": None, "signed": each}] for each in (False, True))
    talk.typed("signatures", "show", *whose, shows=unsigned)
    stripe = json.dumps([{"preset": "stripe", "secret": "12345678"}])
    talk.typed("signatures", "set", "-", *whose, "--dry-run", given=stripe, shows=_would("P"))
    talk.typed("signatures", "show", *whose, shows=unsigned)
    talk.typed("signatures", "set", "-", *whose, given=stripe, shows=signed)
    talk.typed("signatures", "add", "github", *whose, code=WRONG_USAGE)
    talk.typed("signatures", "off", *whose, code=WRONG_USAGE)
    talk.typed("signatures", "off", *whose, "--yes")
    talk.typed("signatures", "show", *whose, shows=unsigned)


def _gated(talk: Talk, whose: tuple[str, ...]) -> None:
    """Tokens of a receiver's token server."""
    talk.typed("gates", "show", *whose, shows=[{"gate": "oauth", "enabled": False}, {"gate": "mtls", "enabled": False}])
    oauth = ("gates", "oauth", "--token-url", "https://typed-login.example/t", "--client-id", "pushhub", "--scope", "a")
    talk.typed(*oauth, "--secret-file", "-", "--dry-run", *whose, given="hush\n")
    talk.typed("gates", "show", *whose, shows=[{"gate": "oauth", "enabled": False}, ...])
    says = "Tokens of https://typed-login.example/t are sent from now on"
    talk.typed(*oauth, *whose, "--secret-file", "-", given="hush\n", says=says)
    talk.typed(*oauth, *whose, says=says)
    shown = talk.typed(
        "gates", "show", *whose, shows=[{"gate": "oauth", "enabled": True}, {"gate": "mtls", "enabled": False}]
    )
    talk.is_so("no secret", False, "hush" in json.dumps(shown))
    talk.typed("gates", "oauth", "--token-url", "http://a.example/", "--client-id", "x", *whose, code=REFUSED)
    talk.typed("gates", "remove", "oauth", *whose, code=WRONG_USAGE)
    talk.typed("gates", "remove", "oauth", *whose, "--dry-run", shows=_would())
    talk.typed("gates", "remove", "oauth", *whose, "--yes")
    talk.typed("gates", "remove", "oauth", *whose, "--yes", code=REFUSED)
    talk.typed("gates", "show", *whose, shows=[{"gate": "oauth", "enabled": False}, ...])
    talk.typed("gates", "show", code=WRONG_USAGE)


def webhooks(talk: Talk) -> None:
    """Applications' endpoints, sources, streams, portals, and what another sender has."""
    talk.through(_endpoints, _streams, _sources, _resent)


SHOP = ("--app", "acme", "--endpoint", "shop")


def _acme(talk: Talk, url: str = "https://typed-acme.example/in", **more: Any) -> None:
    talk.ask("POST", "/app", {"name": "Acme", "uid": "acme"}, status=201)
    talk.ask("POST", "/app/acme/endpoint", {"url": url, "uid": "shop", **more}, status=201)


def _endpoints(talk: Talk) -> None:
    """Signatures, gates, transformations, frames."""
    both = [{"preset": "stripe", "secret": "12345678"}, {"preset": "standard-webhooks"}]
    _acme(talk, signatures=both)
    stripe, standard = {"preset": "stripe", "header": "Stripe-Signature"}, {"header": "webhook-signature"}
    talk.typed("signatures", "show", *SHOP, shows=[{**stripe, "inheritedFrom": None}, standard])
    another = ("signatures", "add", "stripe", *SHOP, "--secret-file", "-")
    talk.typed(*another, "--dry-run", given="another-one\n", shows=_would("PUT", "/signatures"))
    shown = talk.typed(*another, given="another-one\n")
    talk.is_so("both secrets sign", [1, 0], sorted((len(each["oldSecretsEnd"] or []) for each in shown), reverse=True))
    end = "2027-03-01T00:00:00.000Z"
    for words, ends in (("stripe-signature", end), ("stripe", None)):
        talk.typed("signatures", "end", words, ends or "never", *SHOP)
        shown = talk.typed("signatures", "show", *SHOP)
        talk.is_so("when it ends", {None, ends}, {each["endsAt"] for each in shown})
    remove = ("signatures", "remove", "standard-webhooks", *SHOP)
    talk.typed(*remove, code=WRONG_USAGE)
    talk.typed(*remove, "--yes", "--dry-run", shows=_would("PUT"))
    talk.typed(*remove, "--yes", shows=[stripe])
    talk.typed("signatures", "remove", "standard-webhooks", *SHOP, "--yes", code=REFUSED, says="no schemes are called")
    own = [{"content": "{body}", "header": {"name": "X-Own"}, "secret": "12345678"}]
    talk.typed("signatures", "set", "-", *SHOP, given=json.dumps(own), shows=[{"preset": None, "header": "X-Own"}])
    talk.typed("signatures", "set", "-", *SHOP, given="[]", shows=[...])
    # What is inherited, of the application or else of the project
    talk.typed("signatures", "show", shows=[])
    talk.typed("signatures", "add", "github", shows=[{"preset": "github"}])
    talk.typed("signatures", "show", *SHOP, shows=[{"preset": "github", "inheritedFrom": "project"}])
    sends = ("--send", "X-Shopify-Shop-Domain=a.example", "--send", "X-Shopify-API-Version=2026-10")
    talk.typed("signatures", "add", "shopify", "--send", "odd", "--app", "acme", code=WRONG_USAGE)
    talk.typed("signatures", "add", "shopify", *sends, "--app", "acme", shows=[{"header": "X-Shopify-Hmac-Sha256"}])
    added = ("signatures", "add", "hmac-body", "--header", "X-Sign", "--app", "acme")
    talk.typed(*added, shows=[{"header": "X-Shopify-Hmac-Sha256"}, {"header": "X-Sign"}])
    inherited = {"inheritedFrom": "application"}
    talk.typed(
        "signatures", "show", *SHOP, shows=[{**inherited, "preset": "shopify"}, {**inherited, "header": "X-Sign"}]
    )
    talk.typed("signatures", "remove", "shopify", *SHOP, "--yes", code=REFUSED, says="those of the application")
    talk.typed("signatures", "add", "standard-webhooks", *SHOP, shows=[{**standard, "inheritedFrom": None}])
    talk.typed("signatures", "off", *SHOP, "--yes", code=WRONG_USAGE)
    talk.typed("signatures", "show", "--endpoint", "shop", code=WRONG_USAGE)
    _gated(talk, SHOP)
    frame = ("frames", "set", "https://app.example.com", "http://localhost:8080")
    talk.typed(*frame, "--dry-run", shows=_would("PUT"))
    talk.typed("frames", "show", shows=[])
    talk.typed(*frame)
    talk.typed("frames", "set", "https://acme.example", "--app", "acme")
    talk.typed("frames", "show", shows=[{"origin": each} for each in frame[2:]])
    talk.typed("frames", "show", "--app", "acme", shows=[{"origin": "https://acme.example"}])
    talk.typed("frames", "set", "https://acme.example/path", code=REFUSED)
    talk.typed("frames", "set", shows=[])
    code = "function handler(webhook) { return webhook }"
    change = ("transformations", "set", "-", *SHOP, "--enable", "--variable", "K=v")
    empty = {"enabled": False, "code": None}
    talk.typed(*change, "--dry-run", given=code, shows=_would("PATCH"))
    talk.typed("transformations", "show", *SHOP, shows=[empty])
    talk.typed(*change, given=code)
    shows = {"enabled": True, "language": "javascript", "code": code, "variables": "K"}
    talk.typed("transformations", "show", *SHOP, shows=[shows])
    talk.typed("transformations", "set", *SHOP, "--disable")
    talk.typed("transformations", "show", *SHOP, shows=[{**shows, "enabled": False}])
    for bad in ((), ("--variable", "K")):
        talk.typed("transformations", "set", *SHOP, *bad, code=WRONG_USAGE)
    talk.ask("DELETE", "/app/acme", status=204)
    talk.typed("signatures", "remove", "github", "--yes", shows=[])


def _streams(talk: Talk) -> None:
    """Events in order, and who reads them."""
    talk.listen("typed-sink.example", lambda _: (200, b""))
    create = ("streams", "create", "Orders", "--uid", "orders")
    talk.typed(*create, "--dry-run", shows=_would("POST", "/stream"))
    talk.typed("streams", "list", shows=[])
    [created] = talk.typed(*create, shows=[{"name": "Orders", "uid": "orders"}])
    talk.typed("streams", "list", shows=[created])
    talk.typed("streams", "show", "orders", shows=[{**created, "externalId": str}])
    sink = ("streams", "add-sink", "orders")
    bucket = {"accessKeyId": "a", "secretAccessKey": "s", "bucket": "b", "region": "eu-central-1", "prefix": "p/"}
    settings = (
        "--config-file",
        "-",
        "--uid",
        "archive",
        "--batch-size",
        "7",
        "--max-wait",
        "60",
        "--event-type",
        "a.b",
    )
    shown = {"uid": "archive", "type": "amazonS3", "status": "enabled", "batchSize": 7, "maxWaitSecs": 60}
    talk.typed(*sink, "poller", "--uid", "own", shows=[{"type": "poller", "uid": "own", "status": "enabled"}])
    talk.typed(*sink, "http", code=WRONG_USAGE, says="--config-file")
    talk.typed(*sink, "http", "--config-file", "-", given=json.dumps({"url": "https://typed-sink.example/in"}))
    talk.typed(*sink, "amazonS3", *settings, given=json.dumps(bucket), code=REFUSED)
    talk.typed("streams", "skip", "orders", "own", "--yes", code=REFUSED)
    talk.typed("streams", "post", "orders", "order.paid", '{"n": 1}', '{"n": 2}', "--dry-run", shows=_would("POST"))
    talk.typed("streams", "events", "orders", shows=[])
    talk.typed("streams", "post", "orders", "order.paid", '{"n": 1}', '{"n": 2}')
    talk.sleep(5)
    events = [{"eventType": "order.paid", "payload": {"n": number}, "id": str} for number in (2, 1)]
    talk.typed("streams", "events", "orders", shows=events)
    talk.typed("streams", "events", "orders", "--limit", "1", shows=events[:1])
    before, *_ = [each for each in talk.typed("streams", "sinks", "orders") if each["uid"] == "own"]
    talk.typed("streams", "skip", "orders", "own", code=WRONG_USAGE)
    later = {"uid": "own", "currentIterator": lambda each: each > before["currentIterator"]}
    talk.typed("streams", "skip", "orders", "own", "--yes", shows=[later])
    talk.typed("streams", "retry", "orders", "own", shows=[{"uid": "own"}])
    talk.typed("streams", "remove-sink", "orders", "own", code=WRONG_USAGE)
    talk.typed("streams", "remove-sink", "orders", "own", "--yes")
    talk.is_so(
        "it is gone", shown["uid"] == "own", "own" in {each["uid"] for each in talk.typed("streams", "sinks", "orders")}
    )
    talk.typed("streams", "delete", "orders", "--dry-run", shows=_would("DELETE"))
    talk.typed("streams", "delete", "orders", code=WRONG_USAGE)
    talk.typed("streams", "delete", "orders", "--yes")
    talk.typed("streams", "list", shows=[])
    talk.typed("streams", "show", "orders", code=REFUSED, says="the hub says 404")


def _sources(talk: Talk) -> None:
    """URLs for other senders."""
    create = ("sources", "create", "Repos", "github", "--uid", "repos", "--to", "https://typed-to.example/in")
    talk.typed(*create, "--secret-file", "-", "--dry-run", given="a-secret\n", shows=_would("POST", "/source"))
    talk.typed("sources", "list", shows=[])
    shown = {"uid": "repos", "name": "Repos", "type": "github", "verified": True, "ingestUrl": str}
    [created] = talk.typed(*create, "--secret-file", "-", given="a-secret\n", shows=[shown])
    talk.typed("sources", "list", shows=[created])
    talk.typed("sources", "show", "repos", shows=[created])
    talk.typed("sources", "refused", "repos", shows=[])
    talk.typed("sources", "rotate", "repos", code=WRONG_USAGE)
    talk.typed("sources", "rotate", "repos", "--dry-run", shows=_would("POST", "rotate"))
    talk.typed("sources", "show", "repos", shows=[created])
    other = {**created, "ingestUrl": lambda each: each != created["ingestUrl"]}
    talk.typed("sources", "rotate", "repos", "--yes", shows=[other])
    signature = json.dumps({"content": "{body}", "header": {"name": "X-Own"}, "secret": "12345678"})
    own = ("sources", "create", "Own", "generic-webhook", "--uid", "own", "--signature-file", "-")
    talk.typed(*own, given=signature, shows=[{"uid": "own", "verified": True}])
    talk.typed(*own, given="{", code=WRONG_USAGE)
    talk.typed("sources", "create", "Odd", "odd", code=WRONG_USAGE)
    for uid in ("repos", "own"):
        talk.typed("sources", "delete", uid, code=WRONG_USAGE)
        talk.typed("sources", "delete", uid, "--dry-run", shows=_would("DELETE"))
        talk.typed("sources", "show", uid)
        talk.typed("sources", "delete", uid, "--yes")
        talk.typed("sources", "show", uid, code=REFUSED, says="the hub says 404")


def _resent(talk: Talk) -> None:
    """Webhooks that are sent again, replayed and removed."""
    if talk.gathered_s or talk.put_off_s:
        return
    says = {"status": 500}

    def say(_: Came) -> tuple[int, bytes]:
        return says["status"], b""

    came = talk.listen("typed-acme.example", say)
    _acme(talk)
    talk.ask("POST", "/event-type", {"name": "typed.made", "description": "d"}, status=201)
    body = {"eventType": "typed.made", "payload": {"n": 1}}
    one = talk.ask("POST", "/app/acme/msg", body, status=202)["id"]
    talk.sleep(20)
    talk.came("two tries", 2, len(came))
    says["status"] = 200
    talk.typed("retry", one, *SHOP, "--dry-run", shows=_would("POST", "/resend"))
    talk.typed("retry", one, *SHOP, shows=[{"message": one, "endpoint": "shop", "state": "queued"}])
    talk.sleep(10)
    talk.came("a third", 3, len(came))
    talk.ask("PATCH", "/app/acme/endpoint/shop", {"disabled": True})
    talk.sleep(5)
    talk.typed("retry", one, *SHOP, code=REFUSED, shows=[{"state": lambda each: "disabled" in each}])
    talk.ask("PATCH", "/app/acme/endpoint/shop", {"disabled": False})
    talk.sleep(5)
    for words in ((one, "--app", "acme"), (), (one, "--waiting")):
        talk.typed("retry", *words, code=WRONG_USAGE)
    talk.typed("replay", *SHOP, code=WRONG_USAGE)
    for more, kind in (((), "recover"), (("--missing",), "replay-missing")):
        words = ("replay", *SHOP, "--since", "1h", *more)
        talk.typed(*words, "--dry-run", shows=_would("POST", kind))
        talk.typed(*words, shows=[{"status": "running", "id": str}])
    talk.sleep(100)
    talk.typed("expunge", one, "--app", "acme", code=WRONG_USAGE)
    talk.typed("expunge", one, "--app", "acme", "--yes")
    talk.ask("GET", f"/app/acme/msg/{one}", shows={"payload": lambda each: each != {"n": 1}})
    talk.ask("DELETE", "/app/acme", status=204)


def imported(mine: Talk, theirs: Talk) -> None:
    """What another sender has is copied, once, and its receivers notice nothing."""

    def copied(talk: Talk) -> None:
        _imported(talk, theirs)

    mine.through(copied)


def _imported(mine: Talk, theirs: Talk) -> None:
    theirs.ask("POST", "/event-type", {"name": "moved.made", "description": "d", "groupName": "g"}, status=201)
    app = {"name": "Moved", "uid": "moved", "throttleRate": 7, "metadata": {"a": "b"}}
    theirs.ask("POST", "/app", app, status=201)
    endpoint = {"url": "https://typed-moved.example/in", "uid": "one", "eventTypes": ["moved.made"], "channels": ["x"]}
    more = {"headers": {"X-Region": "1"}, "secret": SECRET, "description": "ü"}
    theirs.ask("POST", "/app/moved/endpoint", {**endpoint, **more}, status=201)
    words = ("import", "--from", HUB, "--token", theirs.token, "--app", "moved")
    created = [("event type", "moved.made"), ("application", "moved"), ("endpoint", "one")]

    def outcomes(shown: list[Any]) -> set[tuple[str, str, str]]:
        return {(each["kind"], str(each["name"]).rpartition("/")[2], each["outcome"]) for each in shown}

    for dry in (("--dry-run",), ()):
        shown = mine.typed(*words, *dry)
        for kind, name in created:
            mine.is_so(f"{kind} {name}", True, (kind, name, "made") in outcomes(shown))
        if dry:
            mine.ask("GET", "/app/moved", status=404)
    mine.ask("GET", "/event-type/moved.made", shows={"description": "d", "groupName": "g"})
    mine.ask("GET", "/app/moved", shows=app)
    path = "/app/moved/endpoint/one"
    mine.ask("GET", path, shows={**endpoint, "description": "ü", "disabled": False})
    mine.ask("GET", f"{path}/secret", shows={"key": SECRET})
    mine.ask("GET", f"{path}/headers", shows={"headers": {"X-Region": "1"}})
    again = mine.typed(*words)
    mine.is_so("nothing twice", False, bool(again))
    theirs.ask("PATCH", path, {"description": "new"})
    mine.is_so("what differs", True, ("endpoint", "one", "changed") in outcomes(mine.typed(*words)))
    mine.ask("GET", path, shows={"description": "new"})
    mine.typed("import", "--from", HUB, "--token", "none", code=REFUSED, says="the hub says 401")
    mine.typed("import", "--from", "ftp://x", "--token", "t", code=WRONG_USAGE)
    for talk in (mine, theirs):
        talk.ask("DELETE", "/app/moved", status=204)
        talk.ask("DELETE", "/event-type/moved.made?expunge=true", status=204)


def moved(mine: Talk, theirs: Talk) -> None:
    """A pull queue moves between projects, and what is verified."""

    def shovelled(talk: Talk) -> None:
        _shovelled(talk, theirs)

    mine.through(shovelled, _verified)


def _shovelled(mine: Talk, theirs: Talk) -> None:
    bodies = [*(f"m{number}" for number in range(103)), 300_000 * "ü", 'quo"ted \n']
    for some in (bodies[:100], bodies[100:]):
        theirs.ask("POST", "/queues/moved/messages", {"messages": [{"body": each} for each in some]}, status=201)
    theirs.ask("POST", "/queues/moved/webhook", b"\xff\xfe", status=201)
    words = ("shovel", "moved", "--from", HUB, "--project", theirs.project, "--token", theirs.token)
    mine.typed(*words, "--dry-run", shows=[{"would move": 106, "from": "moved", "to": "moved"}])
    mine.ask("GET", "/queues/moved", status=404)
    mine.typed(*words, shows=[{"moved": 106, "maybe twice": 0}])
    found = []
    for _ in range(2):
        taken = mine.ask("POST", "/queues/moved/reservations", {"n": 100, "delete": True})["messages"]
        found += [each.get("body_base64") or each["body"] for each in taken]
    mine.is_so("each once, with its bytes", sorted([*bodies, "//4="]), sorted(found))
    theirs.ask("GET", "/queues/moved/messages", shows={"messages": []})
    mine.typed(*words, shows=[{"moved": 0}])
    mine.typed("post", "moved", "back")
    back = ("shovel", "moved", "--to", HUB, *words[4:], "--queue-there", "elsewhere")
    mine.typed(*back, shows=[{"moved": 1, "from": "moved", "to": "elsewhere"}])
    theirs.ask("GET", "/queues/elsewhere/messages", shows={"messages": [{"body": "back"}]})
    own = ("--project", mine.project, "--token", mine.token)
    for bad in (("--from", HUB, *own), own, ("--from", HUB, "--to", HUB, *own), ("--from", "ftp://x", *own)):
        mine.typed("shovel", "moved", *bad, code=WRONG_USAGE)
    for talk, name in ((mine, "moved"), (theirs, "moved"), (theirs, "elsewhere")):
        talk.ask("DELETE", f"/queues/{name}")


def _verified(talk: Talk) -> None:
    """A request that is right, and which part of it is wrong."""
    body, at = '{"n": 1}', talk.epoch_s()
    key = base64.b64decode(SECRET.removeprefix("whsec_"))

    def parts(timestamp: int, signed: str = body) -> tuple[str, ...]:
        text = f"msg_1.{timestamp}.{signed}".encode()
        signature = "v1," + base64.b64encode(hmac.digest(key, text, hashlib.sha256)).decode()
        given = ("--id", "msg_1", "--timestamp", f"{timestamp}", "--signature", signature)
        return ("verify", "--secret", SECRET, *given)

    def right(rows: list[Any]) -> bool:
        return {each["state"] for each in rows} == {"ok"}

    for timestamp, ok in ((at, True), (at - 299, True), (at + 299, True), (at - 302, False), (at + 302, False)):
        shown = talk.typed(*parts(timestamp), given=body, code=0 if ok else REFUSED)
        talk.is_so(f"{timestamp - at} s", ok, right(shown))
        wrong = set() if ok else {"timestamp"}
        talk.is_so("what is wrong", wrong, {each["part"] for each in shown if each["state"] == "wrong"})
    shown = talk.typed(*parts(at), given=body + "\n", code=REFUSED)
    talk.is_so("the body", {"body"}, {each["part"] for each in shown if each["state"] == "wrong"})
    talk.typed(*parts(at - 400), "--tolerance", "500", given=body, shows=right)


def stores(talk: Talk) -> None:
    """Messages that wait for a person, and services."""
    talk.through(_waiting, _services)


def _waiting(talk: Talk) -> None:
    says = {"status": 500}

    def done(each: Came) -> tuple[int, bytes]:
        return says["status"], json.dumps({"message_id": json.loads(each.body)["message_id"]}).encode()

    came = talk.listen("typed-held.example", done)
    options = {"retry_base": 5, "retry_cap": 60, "max_attempts": 1}
    fields = {"name": "typed-held", "url": "https://typed-held.example/in", "token": "t", "messages": ["typed:held"]}
    mapping = {"mapping": {**fields, "options": options}}
    answer = talk.ask("POST", "/mappings", mapping, status=201)
    mapping_id = answer.get("mapping", answer)["id"]
    talk.sleep(61)
    for number in range(3):
        talk.ask("POST", "/messages", {"message": "typed:held", "payload": {"n": number}}, status=201)
    talk.sleep(2 * MINUTE + talk.put_off_s)
    talk.came("one try each", 3, len(came))
    waits = talk.typed("retry", "--waiting", "--dry-run", shows=3 * [{"state": "would be tried"}])
    first = waits[0]["message"]
    talk.came("nothing was sent", 3, len(came))
    talk.typed("health", "--store", shows=[{"mapping": "typed-held", "state": str}])
    says["status"] = 200
    talk.typed("retry", first, shows=[{"message": first, "type": "typed:held"}])
    talk.sleep(20)
    talk.came("one more", 4, len(came))
    talk.typed(
        "retry", first, code=REFUSED, shows=[{"message": first, "state": lambda each: each.startswith("refused")}]
    )
    talk.typed("retry", "--waiting", code=WRONG_USAGE)
    talk.typed("retry", "--waiting", "--yes", shows=[{"type": "typed:held"}, {"type": "typed:held"}])
    talk.sleep(30 + talk.put_off_s)
    talk.came("all that waited", 6, len(came))
    talk.typed("retry", "--waiting", "--yes", shows=[])
    talk.typed("events", "--store", "--type", "typed:held", shows=lambda rows: len(rows) >= 3)
    talk.typed("events", "--store", "--type", "typed:none", shows=[])
    talk.ask("DELETE", f"/mappings/{mapping_id}")


def _services(talk: Talk) -> None:
    fields = {"name": "typed.ship", "url": "https://typed-ship.example/in", "token": "t", "messages": ["typed:ship"]}
    answer = talk.ask("POST", "/mappings", {"mapping": fields}, status=201)
    mapping_id = answer.get("mapping", answer)["id"]
    whose = ("--mapping", "typed.ship")
    _receiver_signed(talk, whose)
    _gated(talk, whose)
    talk.typed("signatures", "show", "--mapping", "typed.none", code=REFUSED, says="no mappings are called")
    talk.ask("DELETE", f"/mappings/{mapping_id}")


def topics(talk: Talk, connect: Connect) -> None:
    """What waits for the subscribers of topics."""

    def waits(one: Talk) -> None:
        _topics(one, connect)

    talk.through(waits)


def _topics(talk: Talk, connect: Connect) -> None:
    talk.typed("topics", shows=[])
    rule = {"context": "tenant", "subscription": "typedTopic", "subscriptionFilter": {"apis": ["events"]}}
    created = talk.ask("POST", "/subscriptions", rule, status=201)["id"]
    tokens = {
        name: talk.ask("POST", "/token", {"subscription": "typedTopic", "subscriber": name, **more})["token"]
        for name, more in (("kept", {}), ("brief", {"nonPersistent": True}))
    }
    sides = [connect({"token": each}) for each in tokens.values()]
    talk.sleep(5)
    talk.ask("POST", "/notifications", {"api": "events", "source": "1", "data": {"type": "t"}}, status=201)
    talk.sleep(5)
    row = {"topic": "typedTopic", "consumers": 1, "bytes": int}
    rows = [
        {**row, "subscriber": "brief", "kept": "while connected", "unacknowledged": 0},
        {**row, "subscriber": "kept", "kept": "until acknowledged", "unacknowledged": 1},
    ]
    for words in (("topics",), ("topics", "typedTopic")):
        shown = sorted(talk.typed(*words), key=lambda each: str(each["subscriber"]))
        talk.is_so("subscribers", rows, shown)
    talk.typed("topics", "nobody", shows=[])
    for each in sides:
        each.close()
    for each in tokens.values():
        talk.ask("POST", f"/unsubscribe?token={each}", shows={"result": "DONE"})
    talk.ask("DELETE", f"/subscriptions/{created}", status=204)


def operators(talk: Talk) -> None:
    """Projects and tokens."""
    talk.through(_projects)


def _projects(talk: Talk) -> None:
    # Of what is made in one millisecond, no one is the older
    talk.sleep(1, exactly=True)
    talk.typed("projects", "make", "Typed", "--dry-run")
    before = talk.typed("projects", "list")
    talk.is_so("nothing was made", False, "Typed" in {each["name"] for each in before})
    shown = {"name": "Typed", "allowed_targets": ["10.0.0.0/8"], "quota": "default", "traces": "own", "suspended": None}
    [created] = talk.typed("projects", "make", "Typed", "--allow", "10.0.0.0/8", shows=[{**shown, "token": str}])
    project = created["project"]
    talk.typed("projects", "list", shows=[*before, {**shown, "project": project}])
    for words, changed in (
        (("rename", project, "Other"), {"name": "Other"}),
        (("allow", project, "a.example", "b.example"), {"allowed_targets": ["a.example", "b.example"]}),
        (("allow", project), {"allowed_targets": []}),
        (("quota", project, "20"), {"quota": "20/s, 200 at once"}),
        (("quota", project, "7", "--burst", "9"), {"quota": "7/s, 9 at once"}),
        (("quota", project, "none"), {"quota": "none"}),
        (("quota", project, "default"), {"quota": "default"}),
        (("traces", project, "all"), {"traces": "all"}),
    ):
        talk.typed("projects", *words, "--dry-run")
        talk.typed("projects", "list", shows=[*before, {**shown, "project": project}])
        shown |= changed
        talk.typed("projects", *words, shows=[shown])
        talk.typed("projects", "list", shows=[*before, {**shown, "project": project}])
    for each in ("0", "1000001", "x"):
        talk.typed("projects", "quota", project, each, code=WRONG_USAGE)
    talk.typed("projects", "rename", "none", "x", code=REFUSED)
    _tokens(talk, project, created["token"])
    talk.typed("projects", "suspend", project, shows=[{"suspended": str}])
    talk.typed("projects", "resume", project, shows=[{"suspended": None}])


def _tokens(talk: Talk, project: str, first: str) -> None:
    """Made, listed, replaced and taken back; each opens the project as long as it lasts."""
    [known] = talk.typed("tokens", "list", project, shows=[{"label": "first", "expires": None}])
    talk.sleep(1, exactly=True)
    [created] = talk.typed(
        "tokens", "make", project, "--label", "brief", "--expires", "30m", shows=[{"label": "brief"}]
    )
    talk.typed("tokens", "list", project, shows=[known, {"label": "brief", "expires": str}])
    [other] = talk.typed("tokens", "rotate", project, known["token_id"], "--overlap", "10m", shows=[{"token": str}])
    owners = {
        name: talk.with_headers(authorization=f"OAuth {token}")
        for name, token in (("first", first), ("brief", created["token"]), ("other", other["token"]))
    }
    for wait, valid in ((1, {"first", "brief", "other"}), (11 * MINUTE, {"brief", "other"}), (20 * MINUTE, {"other"})):
        talk.sleep(wait, exactly=True)
        for name, owner in owners.items():
            owner.ask("GET", f"/3/projects/{project}/queues", status=200 if name in valid else 401)
    [left] = [each for each in talk.typed("tokens", "list", project) if not each["expires"]]
    talk.typed("tokens", "revoke", project, left["token_id"], "--dry-run")
    owners["other"].ask("GET", f"/3/projects/{project}/queues")
    talk.typed("tokens", "revoke", project, left["token_id"], shows=[{"token_id": left["token_id"]}])
    talk.sleep(40, exactly=True)
    owners["other"].ask("GET", f"/3/projects/{project}/queues", status=401)


__all__ = ["imported", "moved", "operators", "queues", "stores", "topics", "webhooks"]
