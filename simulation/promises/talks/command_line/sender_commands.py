"""What ``import`` copies from other senders, whose servers answer as their documents say: once, with their secrets, so
that receivers notice nothing; what it leaves, it names.

Sources: docs/migrating.md, docs/signatures.md.
"""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import parse_qsl

from simulation.promises.talks.command_line.printed import HUB, REFUSED, WRONG_USAGE
from simulation.promises.talks.talk import Came, Talk

OUTPOST_SECRET, CONVOY_SECRET = "whsec_a1b2c3d4e5f6", "convoy-webhook-secret"
HOOK0_SECRET = "6f5c1d2e-8a5b-4a1f-9d59-0a4f1b7f2c11"
Answers = Mapping[str, Any]
"""By path: what is answered, or a function of the query that makes it."""


def taken_over(talk: Talk) -> None:
    """Outpost, Convoy, Hook0, QStash."""
    talk.through(_outpost, _convoy, _hook0, _qstash, _wrongly)


def _serves(talk: Talk, host: str, answers: Answers) -> None:
    """A server at a host."""

    def say(came: Came) -> tuple[int, bytes]:
        found = answers.get(came.path)
        if found is None:
            return 404, b'{"message": "not found"}'
        return 200, json.dumps(found(dict(parse_qsl(came.query))) if callable(found) else found).encode()

    talk.listen(host, say)


def _copied(talk: Talk, source: str, *words: str, code: int = 0) -> list[tuple[str, str, str]]:
    """Kind, name and outcome of each thing that a run reports."""
    given = ("--url", f"https://{source}.example", "--token", "theirs", *words)
    shown = talk.typed("import", "--from", source, *given, code=code)
    return [(each["kind"], each["name"], each["outcome"]) for each in shown]


def _thrice(talk: Talk, source: str, expected: list[tuple[str, str, str]], *words: str) -> None:
    """Dry, in earnest, and again, when nothing differs."""
    talk.is_so(f"what would come of {source}", expected, _copied(talk, source, *words, "--dry-run"))
    apps = {name for kind, name, _ in expected if kind == "application"}
    for each in apps:
        talk.ask("GET", f"/app/{each}", status=404)
    talk.is_so(f"what came of {source}", expected, _copied(talk, source, *words))
    again = {outcome for _, _, outcome in _copied(talk, source, *words)}
    talk.is_so(f"{source} again", set(), again - {"same", "left"})


def _sent(talk: Talk, app: str, kind: str, came: list[Came] | Any, **more: Any) -> Came:
    """What an endpoint gets of a message that is posted now."""
    body = {"eventType": kind, "payload": {"n": 1}, **more}
    talk.ask("POST", f"/app/{app}/msg", body, status=202)
    talk.sleep(20 + talk.put_off_s)
    last: Came = came[-1]
    return last


def _hex(secret: str, content: bytes) -> str:
    return hmac.new(secret.encode(), content, hashlib.sha256).hexdigest()


def _gone(talk: Talk, *apps: str, kinds: tuple[str, ...]) -> None:
    for each in apps:
        talk.ask("DELETE", f"/app/{each}", status=204)
    for each in kinds:
        talk.ask("DELETE", f"/event-type/{each}?expunge=true", status=204)


def _outpost(talk: Talk) -> None:
    """Tenants on two pages, patterns of topics, headers as a text, and a destination that is no webhook."""
    came = talk.listen("taken-a.example", lambda _: (200, b""))
    config = {"url": "https://taken-a.example/in", "custom_headers": '{"X-Key": "k"}'}
    hook: dict[str, Any] = {"id": "des_1", "type": "webhook", "topics": ["order.*", "user.created"], "config": config}
    hook |= {"credentials": {"secret": OUTPOST_SECRET}, "disabled_at": None, "metadata": {"team": "x"}}
    off: dict[str, Any] = {**hook, "id": "des_3", "topics": ["*"], "disabled_at": "2026-01-01T00:00:00Z"}
    queue: dict[str, Any] = {"id": "des_2", "type": "aws_sqs", "topics": ["*"], "config": {}, "credentials": {}}

    def tenants(query: Mapping[str, str]) -> dict[str, Any]:
        if query.get("next") == "n1":
            return {"models": [{"id": "taken-two"}], "pagination": {"next": None}}
        return {"models": [{"id": "taken-one"}], "pagination": {"next": "n1"}}

    answers: dict[str, Any] = {
        "/api/v1/topics": ["order.paid", "order.sent", "user.created", "orders"],
        "/api/v1/tenants": tenants,
        "/api/v1/tenants/taken-one/destinations": [hook, queue, off],
        "/api/v1/tenants/taken-two/destinations": [],
    }
    _serves(talk, "outpost.example", answers)
    kinds = ("order.paid", "order.sent", "user.created", "orders")
    expected = [*(("event type", each, "made") for each in kinds), ("application", "taken-one", "made")]
    expected += [
        ("endpoint", f"taken-one/{each}", outcome)
        for each, outcome in (("des_1", "made"), ("des_2", "left"), ("des_3", "made"))
    ]
    _thrice(talk, "outpost", [*expected, ("application", "taken-two", "made")])
    shown = {"eventTypes": ["order.paid", "order.sent", "user.created"], "metadata": {"team": "x"}, "disabled": False}
    talk.ask("GET", "/app/taken-one/endpoint/des_1", shows={**shown, "url": config["url"]})
    talk.ask("GET", "/app/taken-one/endpoint/des_3", shows={"disabled": True})
    got = _sent(talk, "taken-one", "order.paid", came)
    signed = {"x-outpost-signature": f"v0={_hex(OUTPOST_SECRET, got.body)}", "x-outpost-topic": "order.paid"}
    talk.came("as Outpost signs", {**signed, "x-key": "k"}, got.headers)
    config["url"] = "https://taken-b.example/in"
    changed = ("endpoint", "taken-one/des_1", "changed")
    talk.is_so("what differs", True, changed in _copied(talk, "outpost"))
    talk.ask("GET", "/app/taken-one/endpoint/des_1", shows={"url": config["url"]})
    talk.is_so(
        "of one alone", False, "taken-two" in {name for _, name, _ in _copied(talk, "outpost", "--app", "taken-one")}
    )
    _gone(talk, "taken-one", "taken-two", kinds=kinds)


def _convoy(talk: Talk) -> None:
    """Endpoints of an owner, their subscriptions, a scheme of the project's, rates, headers, and what is paused."""
    came = talk.listen("taken-c.example", lambda _: (200, b""))
    secrets = [
        {"uid": "s0", "value": "old-convoy-secret", "expires_at": "2026-01-01T00:00:00Z"},
        {"uid": "s1", "value": CONVOY_SECRET, "expires_at": None},
    ]
    key = {"type": "api_key", "api_key": {"header_name": "X-Key", "header_value": "k"}}
    first: dict[str, Any] = {
        "uid": "ep-1",
        "owner_id": "taken-acme",
        "url": "https://taken-c.example/in",
        "name": "crm",
        "status": "active",
    }
    first |= {
        "secrets": secrets,
        "advanced_signatures": True,
        "rate_limit": 120,
        "rate_limit_duration": "1m0s",
        "authentication": key,
    }
    second = {
        **first,
        "uid": "ep-2",
        "url": "https://taken-d.example/in",
        "status": "paused",
        "advanced_signatures": False,
    }
    alone = {
        **second,
        "uid": "ep-3",
        "owner_id": "",
        "title": "solo",
        "name": "",
        "authentication": None,
        "status": "active",
    }
    root = "/api/v1/projects/p1"

    def endpoints(query: Mapping[str, str]) -> dict[str, Any]:
        more = query.get("next_page_cursor") == "c1"
        paged = {"has_next_page": not more, "next_page_cursor": "" if more else "c1"}
        return {"status": True, "data": {"content": [second, alone] if more else [first], "pagination": paged}}

    subscriptions = [
        {"uid": "sub-1", "endpoint_metadata": {"uid": "ep-1"}, "filter_config": {"event_types": ["order.paid"]}},
        {"uid": "sub-2", "endpoint_metadata": {"uid": "ep-2"}, "filter_config": {"event_types": ["*"]}},
    ]
    scheme = {"header": "X-Acme-Sign", "versions": [{"hash": "SHA256", "encoding": "hex"}]}
    _serves(
        talk,
        "convoy.example",
        {
            root: {"data": {"config": {"signature": scheme}}},
            f"{root}/endpoints": endpoints,
            f"{root}/subscriptions": {"data": {"content": subscriptions, "pagination": {"has_next_page": False}}},
        },
    )
    expected = [("event type", "order.paid", "made"), ("application", "taken-acme", "made")]
    expected += [("endpoint", f"taken-acme/{each}", "made") for each in ("ep-1", "ep-2")]
    expected += [("application", "ep-3", "made"), ("endpoint", "ep-3/ep-3", "made")]
    _thrice(talk, "convoy", expected, "--project", "p1")
    talk.ask(
        "GET",
        "/app/taken-acme/endpoint/ep-1",
        shows={"eventTypes": ["order.paid"], "throttleRate": 2, "disabled": False},
    )
    for path in ("taken-acme/endpoint/ep-2", "ep-3/endpoint/ep-3"):
        # One is paused there, and the other one has no subscription: neither gets anything
        talk.ask("GET", f"/app/{path}", shows={"disabled": True})
    talk.ask("GET", "/app/ep-3", shows={"name": "solo"})
    got = _sent(talk, "taken-acme", "order.paid", came)
    at = got.headers["webhook-timestamp"]
    sign = _hex(CONVOY_SECRET, f"{at},".encode() + got.body)
    talk.came("as Convoy signs", {"x-acme-sign": f"t={at},v1={sign}", "x-key": "k"}, got.headers)
    _gone(talk, "taken-acme", "ep-3", kinds=("order.paid",))


def _hook0(talk: Talk) -> None:
    """Subscriptions of applications; labels become a channel, and other methods are left."""
    came = talk.listen("taken-e.example", lambda _: (200, b""))
    target = {
        "type": "http",
        "method": "POST",
        "url": "https://taken-e.example/in",
        "headers": {"X-Key": ["k"], "X-Region": "1"},
    }
    first: dict[str, Any] = {
        "subscription_id": "s-1",
        "is_enabled": True,
        "event_types": ["order.paid"],
        "description": "crm",
    }
    first |= {"secret": HOOK0_SECRET, "metadata": {"a": "b"}, "labels": {"tenant": "acme"}, "target": target}
    put = {**first, "subscription_id": "s-2", "target": {**target, "method": "PUT"}}
    off = {**first, "subscription_id": "s-3", "is_enabled": False}
    _serves(
        talk,
        "hook0.example",
        {
            "/api/v1/applications": [{"application_id": "taken-app", "name": "Shop"}],
            "/api/v1/event_types": [{"event_type_name": "order.paid"}],
            "/api/v1/subscriptions": [first, put, off],
        },
    )
    expected = [("event type", "order.paid", "made"), ("application", "taken-app", "made")]
    expected += [("endpoint", f"taken-app/s-{n}", outcome) for n, outcome in ((1, "made"), (2, "left"), (3, "made"))]
    _thrice(talk, "hook0", expected, "--project", "o-1")
    talk.ask("GET", "/app/taken-app", shows={"name": "Shop"})
    shown = {"channels": ["tenant:acme"], "description": "crm", "metadata": {"a": "b"}, "disabled": False}
    talk.ask("GET", "/app/taken-app/endpoint/s-1", shows=shown)
    talk.ask("GET", "/app/taken-app/endpoint/s-3", shows={"disabled": True})
    got = _sent(talk, "taken-app", "order.paid", came, channels=["tenant:acme"], eventId="evt-1")
    at, delivery = got.headers["webhook-timestamp"], got.headers["x-delivery-id"]
    sign = _hex(HOOK0_SECRET, f"{at}.x-event-id x-delivery-id.evt-1.{delivery}.".encode() + got.body)
    ends: Callable[[str], bool] = lambda each: each.endswith(f",v1={sign}")  # noqa: E731 (a name for a check)
    talk.came("as Hook0 signs", {"x-hook0-signature": ends, "x-key": "k", "x-region": "1"}, got.headers)
    _gone(talk, "taken-app", kinds=("order.paid",))


def _qstash(talk: Talk) -> None:
    """A queue of each group of URLs; what has no counterpart is named."""
    endpoints = [{"name": "crm", "url": "https://taken-f.example/in"}, {"url": "https://taken-g.example"}]
    schedule = {"scheduleId": "scd_1", "cron": "* * * * *", "destination": "https://taken-f.example"}
    _serves(
        talk,
        "qstash.example",
        {
            "/v2/topics": [{"name": "taken-group", "endpoints": endpoints}],
            "/v2/queues": [{"name": "slow", "parallelism": 2}],
            "/v2/schedules": [schedule],
        },
    )
    expected = [("queue", "taken-group", "made"), ("queue", "slow", "left"), ("schedule", "scd_1", "left")]
    _thrice(talk, "qstash", expected)
    queues = _iron(talk)
    subscribers = [{"name": "crm", "url": endpoints[0]["url"]}, {"url": endpoints[1]["url"]}]
    queues.ask(
        "GET", "/queues/taken-group", shows={"queue": {"type": "multicast", "push": {"subscribers": subscribers}}}
    )
    queues.ask("DELETE", "/queues/taken-group")


def _iron(talk: Talk) -> Talk:
    """The same project's queues."""
    return talk.at(f"/3/projects/{talk.project}").with_headers(authorization=f"OAuth {talk.token}")


def _wrongly(talk: Talk) -> None:
    """What is missing is said, and nothing is copied from who does not answer as documented."""
    for words in (
        ("--from", "outpost"),
        ("--from", "convoy", "--url", "https://convoy.example"),
        ("--from", "hook0"),
        ("--from", "ironmq"),
        ("--from", "nobody"),
        ("--from", "qstash", "--url", "ftp://x"),
    ):
        talk.typed("import", *words, "--token", "theirs", code=WRONG_USAGE)
    talk.typed("import", "--from", "outpost", "--url", "https://nowhere.example", "--token", "t", code=3)
    for odd in ({"models": "x"}, {"models": [7]}, "x"):
        _serves(talk, "outpost.example", {"/api/v1/topics": [], "/api/v1/tenants": odd})
        _copied(talk, "outpost", code=REFUSED)


def queues_taken_over(mine: Talk, theirs: Talk) -> None:
    """Queues of another hub, with their settings and subscribers; one with secrets is paused until they are set."""

    def copied(talk: Talk) -> None:
        _queues(talk, theirs)

    mine.through(copied)


def _queues(mine: Talk, theirs: Talk) -> None:
    open_one, secret = ({"name": each, "url": f"https://taken-{each}.example/in"} for each in ("open", "secret"))
    push = {
        "subscribers": [open_one, {**secret, "headers": {"X-Key": "hush"}}],
        "retries": 7,
        "error_queue": "taken-dead",
    }
    alert = {"type": "fixed", "direction": "asc", "trigger": 3, "queue": "taken-dead", "snooze": 60}
    settings: dict[str, dict[str, Any]] = {
        "taken-pull": {
            "message_timeout": 77,
            "alerts": [alert],
            "dead_letter": {"queue_name": "taken-dead", "max_reservations": 7},
        },
        "taken-push": {"push": push, "message_expiration": 7_777},
    }
    for name, queue in settings.items():
        theirs.ask("PUT", f"/queues/{name}", {"queue": queue})
    words = ("import", "--from", "ironmq", "--url", HUB, "--project", theirs.project, "--token", theirs.token)
    ours = ("taken-dead", "taken-pull", "taken-push")

    def outcomes(*more: str) -> dict[str, str]:
        return {each["name"]: each["outcome"] for each in mine.typed(*words, *more) if each["name"] in ours}

    copied = dict.fromkeys(settings, "made")
    mine.is_so("what would come", copied, outcomes("--dry-run"))
    mine.ask("GET", "/queues/taken-push", status=404)
    mine.is_so("what came", copied, outcomes())
    mine.ask("GET", "/queues/taken-pull", shows={"queue": {"type": "pull", **settings["taken-pull"]}})
    both = [open_one, {**secret, "paused": True}]
    shown = {"type": "multicast", "message_expiration": 7_777, "push": {**push, "subscribers": both}}
    mine.ask("GET", "/queues/taken-push", shows={"queue": shown})
    mine.is_so("nothing differs", set(), {*outcomes().values()} - {"same"})
    # What is set here again stays, however often it is copied
    mine.ask("POST", "/queues/taken-push/subscribers", {"subscribers": [{**secret, "headers": {"X-Key": "hush"}}]})
    mine.ask("POST", "/queues/taken-push/resume", {"subscriber": "secret"})
    mine.is_so("nor then", set(), {*outcomes().values()} - {"same"})
    came = mine.listen("taken-secret.example", lambda _: (200, b""))
    mine.listen("taken-open.example", lambda _: (200, b""))
    mine.sleep(2)
    mine.ask("POST", "/queues/taken-push/messages", {"messages": [{"body": "x"}]}, status=201)
    mine.sleep(20 + mine.put_off_s)
    mine.came("it is sent with it", [{"x-key": "hush"}], [each.headers for each in came])
    theirs.ask("PATCH", "/queues/taken-pull", {"queue": {"message_timeout": 78}})
    mine.is_so("what differs", "changed", outcomes().get("taken-pull"))
    mine.ask("GET", "/queues/taken-pull", shows={"queue": {"message_timeout": 78}})
    for talk in (mine, theirs):
        for name in ours:
            talk.ask("DELETE", f"/queues/{name}")


__all__ = ["queues_taken_over", "taken_over"]
