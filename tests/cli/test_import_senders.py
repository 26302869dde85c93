"""``pushhub import`` from other senders, each a server that answers what its API is documented to answer."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from collections.abc import Iterator
from contextlib import ExitStack
from http.server import BaseHTTPRequestHandler
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
import requests
from cli.migration.senders import _matches
from tests.cli.conftest import Typed
from tests.cli.served_hub import TOKEN as HUB_TOKEN
from tests.cli.served_hub import ServedHub
from tests.engine.world import PROJECT
from tests.fakes.loopback import serving
from tests.webhooks.served import ServedWorld
from tests.webhooks.world import WebhooksWorld

TOKEN = "their-token"
OUTPOST_SECRET = "whsec_a1b2c3d4e5f6"
CONVOY_SECRET = "convoy-webhook-secret"
HOOK0_SECRET = "6f5c1d2e-8a5b-4a1f-9d59-0a4f1b7f2c11"


class Sender:
    """Another sender.

    Attributes:
        answers: By path: an answer, or a list of pages in the order of their cursors.
        asked: Method and path of each request.
        shown: Each way in which the token was shown.
        has_svix_api: Whether it is taken for a hub like this one, too, which is shown the token in two headers.
    """

    has_svix_api = False

    def __init__(self) -> None:
        self.answers: dict[str, Any] = {}
        self.refused: dict[str, int] = {}
        self.asked: list[str] = []
        self.shown: set[str] = set()
        sender = self

        class Handler(BaseHTTPRequestHandler):
            def handle_any(self) -> None:
                place = urlsplit(self.path)
                sender.asked.append(f"{self.command} {place.path}")
                sender.shown.add(self.headers["Authorization"])
                assert sender.has_svix_api or not self.headers.get("X-Augury-Token")
                status, answer = sender.answer(place.path, parse_qs(place.query))
                content = json.dumps(answer).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = handle_any  # noqa: N815 (the base class's names)

        self._open = ExitStack()
        self.url = self._open.enter_context(serving(Handler))

    def answer(self, path: str, query: dict[str, list[str]]) -> tuple[int, Any]:
        if path in self.refused:
            return self.refused[path], {"message": "refused"}
        if path not in self.answers:
            return 404, {"message": "not found"}
        found = self.answers[path]
        if callable(found):
            return 200, found({name: values[0] for name, values in query.items()})
        return 200, found

    def close(self) -> None:
        self._open.close()


@pytest.fixture
def sender(monkeypatch: pytest.MonkeyPatch) -> Iterator[Sender]:
    monkeypatch.setenv("PUSHHUB_THERE_TOKEN", TOKEN)
    started = Sender()
    yield started
    started.close()


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> Iterator[WebhooksWorld]:
    """A hub with webhooks that the command line belongs to."""
    created = WebhooksWorld()
    with ServedWorld(created) as served:
        for name, value in {
            "PUSHHUB_CONFIG": str(tmp_path / "config"),
            "PUSHHUB_URL": served.base_url,
            "PUSHHUB_PROJECT": PROJECT,
            "PUSHHUB_TOKEN": created.token,
        }.items():
            monkeypatch.setenv(name, value)
        monkeypatch.delenv("PUSHHUB_PROFILE", raising=False)
        yield created


def imported(typed: Typed, source: str, sender: Sender, *words: str, code: int = 0) -> list[tuple[str, str, str]]:
    """Kind, name and outcome of each thing that the command reports."""
    printed = typed("import", "--from", source, "--url", sender.url, "--json", *words, code=code)
    return [(each["kind"], each["name"], each["outcome"]) for each in map(json.loads, printed.splitlines())]


def noted(typed: Typed, source: str, sender: Sender, *words: str) -> dict[str, str]:
    """What the command says a person has to do, by the name of the thing."""
    printed = typed("import", "--from", source, "--url", sender.url, "--json", *words)
    return {each["name"]: each["note"] for each in map(json.loads, printed.splitlines()) if each["note"]}


def pushed(world: WebhooksWorld, app: str, url: str, **message: Any) -> tuple[dict[str, str], bytes]:
    """Headers and body of the request to an endpoint for a message that is posted now."""
    world.ask("POST", f"/app/{app}/msg", {"eventType": "order.paid", "payload": {"a": 1}, **message})
    world.run(seconds=1)
    request = world.sender.requests_to(url)[-1]
    return {name.lower(): value for name, value in request.headers.items()}, request.body


def hexed(secret: str, content: bytes) -> str:
    return hmac.new(secret.encode(), content, hashlib.sha256).hexdigest()


def outpost(sender: Sender) -> dict[str, Any]:
    """Two tenants on two pages; the destination of the first, which may be changed."""
    destination = {
        "id": "des_1",
        "type": "webhook",
        "topics": ["order.*", "user.created"],
        "config": {"url": "https://a.example/in", "custom_headers": '{"X-Key": "k"}'},
        "credentials": {"secret": OUTPOST_SECRET},
        "disabled_at": None,
        "metadata": {"team": "x"},
    }
    queue = {"id": "des_2", "type": "aws_sqs", "topics": ["*"], "config": {}, "credentials": {}}
    sender.answers = {
        "/api/v1/topics": ["order.paid", "order.sent", "user.created"],
        "/api/v1/tenants": lambda query: (
            {"models": [{"id": "two"}], "pagination": {"next": None}}
            if query.get("next") == "n1"
            else {"models": [{"id": "one"}], "pagination": {"next": "n1"}}
        ),
        "/api/v1/tenants/one/destinations": [destination, queue],
        "/api/v1/tenants/two/destinations": [],
    }
    return destination


def convoy(sender: Sender) -> dict[str, Any]:
    """Two endpoints of an owner on two pages, and one without an owner; the first may be changed."""
    first = {
        "uid": "ep-1",
        "owner_id": "acme",
        "url": "https://a.example/in",
        "name": "crm",
        "status": "active",
        "secrets": [
            {"uid": "s0", "value": "old-convoy-secret", "expires_at": "2026-01-01T00:00:00Z"},
            {"uid": "s1", "value": CONVOY_SECRET, "expires_at": None},
        ],
        "advanced_signatures": True,
        "rate_limit": 120,
        "rate_limit_duration": "1m0s",
        "authentication": {"type": "api_key", "api_key": {"header_name": "X-Key", "header_value": "k"}},
    }
    secrets = [{"uid": "s2", "value": CONVOY_SECRET, "expires_at": None}]
    others = {**first, "secrets": secrets, "advanced_signatures": False}
    second = {**others, "uid": "ep-2", "url": "https://b.example/in", "status": "paused"}
    alone = {**others, "uid": "ep-3", "owner_id": "", "title": "solo", "name": "", "authentication": None}
    root = "/api/v1/projects/p1"

    def endpoints(query: dict[str, str]) -> dict[str, Any]:
        more = query.get("next_page_cursor") == "c1"
        content = [second, alone] if more else [first]
        paged = {"has_next_page": not more, "next_page_cursor": "" if more else "c1"}
        return {"status": True, "data": {"content": content, "pagination": paged}}

    subscriptions = [
        {"uid": "sub-1", "endpoint_metadata": {"uid": "ep-1"}, "filter_config": {"event_types": ["order.paid"]}},
        {"uid": "sub-2", "endpoint_metadata": {"uid": "ep-2"}, "filter_config": {"event_types": ["*"]}},
    ]
    sender.answers = {
        root: {
            "data": {
                "config": {"signature": {"header": "X-Acme-Sign", "versions": [{"hash": "SHA256", "encoding": "hex"}]}}
            }
        },
        f"{root}/endpoints": endpoints,
        f"{root}/subscriptions": {"data": {"content": subscriptions, "pagination": {"has_next_page": False}}},
    }
    return first


def hook0(sender: Sender) -> dict[str, Any]:
    """An application with one subscription, which may be changed."""
    subscription = {
        "subscription_id": "b1d6bb2f-0000-4000-8000-000000000001",
        "is_enabled": True,
        "event_types": ["order.paid"],
        "description": "crm",
        "secret": HOOK0_SECRET,
        "metadata": {"a": "b"},
        "labels": {"tenant": "acme"},
        "target": {
            "type": "http",
            "method": "POST",
            "url": "https://a.example/in",
            "headers": {"X-Key": ["k"], "X-Region": "1"},
        },
    }
    other = {**subscription, "subscription_id": "s-2", "target": {**subscription["target"], "method": "PUT"}}  # type: ignore[dict-item]
    sender.answers = {
        "/api/v1/applications": [{"application_id": "app-1", "name": "Shop"}],
        "/api/v1/event_types": [{"event_type_name": "order.paid"}],
        "/api/v1/subscriptions": [subscription, other],
    }
    return subscription


def queue(hub: ServedHub, name: str) -> dict[str, Any]:
    """A queue of the hub's."""
    url, shown = f"{hub.base_url}/3/projects/{PROJECT}/queues/{name}", {"Authorization": f"OAuth {HUB_TOKEN}"}
    found: dict[str, Any] = requests.get(url, headers=shown, timeout=40).json()["queue"]
    return found


def test_outposts_receivers_notice_nothing(world: WebhooksWorld, sender: Sender, typed: Typed) -> None:
    outpost(sender)
    # When it is copied
    assert imported(typed, "outpost", sender) == [
        ("event type", "order.paid", "made"),
        ("event type", "order.sent", "made"),
        ("event type", "user.created", "made"),
        ("application", "one", "made"),
        ("endpoint", "one/des_1", "made"),
        ("endpoint", "one/des_2", "left"),
        ("application", "two", "made"),
    ]
    # Then what it sends is signed by its scheme and secret, with its headers
    headers, body = pushed(world, "one", "https://a.example/in")
    assert headers["x-outpost-signature"] == f"v0={hexed(OUTPOST_SECRET, body)}"
    assert headers["x-outpost-topic"] == "order.paid"
    assert headers["x-key"] == "k"
    shown = world.ask("GET", "/app/one/endpoint/des_1")
    assert (shown["eventTypes"], shown["metadata"]) == (["order.paid", "order.sent", "user.created"], {"team": "x"})
    # And the other side was only read, with its token
    assert {each.partition(" ")[0] for each in sender.asked} == {"GET"}
    assert sender.shown == {f"Bearer {TOKEN}"}


def test_convoys_receivers_notice_nothing(world: WebhooksWorld, sender: Sender, typed: Typed) -> None:
    convoy(sender)
    assert imported(typed, "convoy", sender, "--project", "p1") == [
        ("event type", "order.paid", "made"),
        ("application", "acme", "made"),
        ("endpoint", "acme/ep-1", "made"),
        ("endpoint", "acme/ep-2", "made"),
        ("application", "ep-3", "made"),
        ("endpoint", "ep-3/ep-3", "made"),
    ]
    headers, body = pushed(world, "acme", "https://a.example/in")
    at = headers["webhook-timestamp"]
    signed = hexed(CONVOY_SECRET, f"{at},".encode() + body)
    assert headers["x-acme-sign"] == f"t={at},v1={signed}"
    assert headers["x-key"] == "k"
    first, second = (world.ask("GET", f"/app/acme/endpoint/{each}") for each in ("ep-1", "ep-2"))
    assert (first["eventTypes"], first["throttleRate"], first["disabled"]) == (["order.paid"], 2, False)
    assert (second.get("eventTypes"), second["disabled"]) == (None, True)
    # And what no subscription belongs to gets nothing here either
    assert world.ask("GET", "/app/ep-3/endpoint/ep-3")["disabled"] is True
    assert world.ask("GET", "/app/ep-3")["name"] == "solo"


def test_convoys_signature_is_not_guessed(world: WebhooksWorld, sender: Sender, typed: Typed) -> None:
    convoy(sender)
    sender.refused["/api/v1/projects/p1"] = 403
    typed("import", "--from", "convoy", "--url", sender.url, "--project", "p1", code=1)
    assert "personal API key" in typed.errors
    assert world.ask("GET", "/app")["data"] == []


def test_hook0s_receivers_notice_nothing(world: WebhooksWorld, sender: Sender, typed: Typed) -> None:
    subscription = hook0(sender)
    uid = subscription["subscription_id"]
    assert imported(typed, "hook0", sender, "--project", "org-1") == [
        ("event type", "order.paid", "made"),
        ("application", "app-1", "made"),
        ("endpoint", f"app-1/{uid}", "made"),
        ("endpoint", "app-1/s-2", "left"),
    ]
    # Then its messages have what its labels became
    assert world.ask("GET", f"/app/app-1/endpoint/{uid}")["channels"] == ["tenant:acme"]
    headers, body = pushed(world, "app-1", "https://a.example/in", channels=["tenant:acme"], eventId="evt-1")
    at, delivery = headers["webhook-timestamp"], headers["x-delivery-id"]
    content = f"{at}.x-event-id x-delivery-id.evt-1.{delivery}.".encode() + body
    assert headers["x-hook0-signature"].endswith(f",v1={hexed(HOOK0_SECRET, content)}")
    assert headers["x-key"] == "k"


@pytest.mark.parametrize(
    ("name", "fill", "words", "change"),
    [
        ("outpost", outpost, (), lambda each: each["credentials"].update(secret="whsec_another_one")),
        ("outpost", outpost, (), lambda each: each["config"].update(url="https://c.example/in")),
        ("convoy", convoy, ("--project", "p1"), lambda each: each["secrets"][1].update(value="another-secret")),
        ("convoy", convoy, ("--project", "p1"), lambda each: each.update(advanced_signatures=False)),
        ("hook0", hook0, ("--project", "o"), lambda each: each.update(secret="another-secret-of-hook0")),
        ("hook0", hook0, ("--project", "o"), lambda each: each["target"]["headers"].update({"X-Region": "2"})),
    ],
)
def test_a_second_run_changes_nothing_and_a_later_one_only_what_differs(
    world: WebhooksWorld, sender: Sender, typed: Typed, name: str, fill: Any, words: tuple[str, ...], change: Any
) -> None:
    theirs = fill(sender)
    # Given a dry run, which does nothing, and a run
    planned = imported(typed, name, sender, *words, "--dry-run")
    assert world.ask("GET", "/app")["data"] == []
    assert imported(typed, name, sender, *words) == planned

    def changed() -> list[str]:
        return [outcome for _, _, outcome in imported(typed, name, sender, *words) if outcome not in ("same", "left")]

    # Then a second one changes nothing, and one after a change there that alone
    assert changed() == []
    change(theirs)
    assert changed() == ["changed"]
    assert changed() == []


def test_queues_of_ironmq_are_made_with_their_subscribers(hub: ServedHub, sender: Sender, typed: Typed) -> None:
    # Given 100 queues and one more, as IronMQ shows them
    names = [f"q{number:03d}" for number in range(101)]
    push = {
        "retries": 5,
        "retries_delay": 30,
        "subscribers": [
            {"name": "crm", "url": "https://a.example/in", "headers": {"Accept": "text/plain", "X-Token": "********"}}
        ],
    }
    for name in names:
        shown = {"project_id": "p", "name": name, "size": 3, "total_messages": 9, "message_timeout": 77}
        shown |= {"type": "multicast", "push": push} if name == "q100" else {"type": "pull"}
        sender.answers[f"/3/projects/p/queues/{name}"] = {"queue": shown}

    def page(query: dict[str, str]) -> dict[str, Any]:
        after = [each for each in names if each > query.get("previous", "")]
        return {"queues": [{"name": each} for each in after[: int(query["per_page"])]]}

    sender.answers["/3/projects/p/queues"] = page
    # When they are copied
    assert imported(typed, "ironmq", sender, "--project", "p") == [("queue", each, "made") for each in names]
    assert sender.shown == {f"OAuth {TOKEN}"}
    # Then they are here, and a second run changes nothing
    created = queue(hub, "q100")["push"]
    assert created["retries"] == 5
    assert created["subscribers"][0]["headers"] == {"Accept": "text/plain"}
    assert queue(hub, "q000")["message_timeout"] == 77
    before = len(hub.writes)
    again = imported(typed, "ironmq", sender, "--project", "p")
    assert {outcome for _, _, outcome in again} == {"same"}
    assert len(hub.writes) == before
    # And a subscriber that was changed there is changed here
    push["subscribers"][0]["url"] = "https://b.example/in"  # type: ignore[index]
    assert ("queue", "q100", "changed") in imported(typed, "ironmq", sender, "--project", "p")


def test_qstashs_groups_become_queues_and_the_rest_is_named(hub: ServedHub, sender: Sender, typed: Typed) -> None:
    group = {
        "name": "orders",
        "endpoints": [{"name": "crm", "url": "https://a.example/in"}, {"url": "https://b.example"}],
    }
    sender.answers = {
        "/v2/topics": [group],
        "/v2/queues": [{"name": "slow", "parallelism": 2}],
        "/v2/schedules": [{"scheduleId": "scd_1", "cron": "* * * * *", "destination": "https://a.example"}],
    }
    expected = [("queue", "orders", "made"), ("queue", "slow", "left"), ("schedule", "scd_1", "left")]
    assert imported(typed, "qstash", sender, "--dry-run") == expected
    assert hub.writes == []
    assert imported(typed, "qstash", sender) == expected
    subscribers = queue(hub, "orders")["push"]["subscribers"]
    assert [(each["name"], each["url"]) for each in subscribers] == [
        ("crm", "https://a.example/in"),
        ("endpoint-2", "https://b.example"),
    ]
    # And what receivers must do is said, as its signature cannot be kept
    printed = typed("import", "--from", "qstash", "--url", sender.url)
    assert "Upstash-Signature" in printed


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("--from", "outpost"), "--url"),
        (("--from", "convoy", "--url", "http://127.0.0.1:9"), "--project"),
        (("--from", "hook0"), "--project"),
        (("--from", "ironmq"), "--project"),
        (("--from", "nobody"), "outpost, convoy"),
        (("--from", "qstash", "--url", "ftp://x"), "http://"),
    ],
)
def test_what_is_missing_is_named(
    hub: ServedHub, sender: Sender, typed: Typed, words: tuple[str, ...], reason: str
) -> None:
    typed("import", *words, code=2)
    assert reason in typed.errors
    assert sender.asked == []


def test_a_token_of_svix_is_shown_to_nobody_else(
    hub: ServedHub, sender: Sender, typed: Typed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PUSHHUB_THERE_TOKEN")
    monkeypatch.setenv("SVIX_TOKEN", "svix-secret")
    typed("import", "--from", "qstash", "--url", sender.url, code=2)
    assert "SVIX_TOKEN" in typed.errors
    assert sender.asked == []


@pytest.mark.parametrize("answer", [None, 7, "x", [], {"models": "x"}, {"models": [7]}, {"models": [{"id": 7}]}])
def test_an_answer_of_another_form_ends_with_a_sentence(
    world: WebhooksWorld, sender: Sender, typed: Typed, answer: Any
) -> None:
    sender.answers = {"/api/v1/topics": answer, "/api/v1/tenants": answer}
    code = 0 if answer in (None, []) else 1
    typed("import", "--from", "outpost", "--url", sender.url, code=code)
    assert "Traceback" not in typed.errors


def test_basic_authentication_of_convoy_becomes_a_header(world: WebhooksWorld, sender: Sender, typed: Typed) -> None:
    theirs = convoy(sender)
    theirs["authentication"] = {"type": "basic_auth", "basic_auth": {"username": "u", "password": "p"}}
    imported(typed, "convoy", sender, "--project", "p1", "--app", "acme")
    headers, _ = pushed(world, "acme", "https://a.example/in")
    assert headers["authorization"] == f"Basic {base64.b64encode(b'u:p').decode()}"
    assert [each["uid"] for each in world.ask("GET", "/app")["data"]] == ["acme"]


def test_queues_of_another_hub_differ_by_no_number(hub: ServedHub, sender: Sender, typed: Typed) -> None:
    # Given a queue and an alert that have numbers there, which are others here
    alert = {"id": "0123456789ab", "type": "fixed", "direction": "asc", "trigger": 3, "queue": "told", "snooze": 60}
    shown = {"id": "5f0c", "name": "q", "type": "pull", "alerts": [alert]}
    sender.answers = {"/3/projects/p/queues": {"queues": [{"name": "q"}]}, "/3/projects/p/queues/q": {"queue": shown}}
    assert imported(typed, "ironmq", sender, "--project", "p") == [("queue", "q", "made")]
    # When it is copied again, then nothing is written, but for what differs there
    writes = len(hub.writes)
    assert imported(typed, "ironmq", sender, "--project", "p") == []
    assert len(hub.writes) == writes
    alert["trigger"] = 4
    assert imported(typed, "ironmq", sender, "--project", "p") == [("queue", "q", "changed")]
    assert queue(hub, "q")["alerts"][0]["trigger"] == 4


def test_headers_that_another_hub_hides_stay_as_they_were_set_here(
    hub: ServedHub, sender: Sender, typed: Typed
) -> None:
    # Given a hub that does not show the value of a header, which is set here after the queue was copied
    headers = {"X-Token": "********", "Accept": "text/plain"}
    subscriber = {"name": "crm", "url": "https://a.example/in", "headers": headers}
    shown = {"id": "5f0c", "name": "q", "type": "multicast", "push": {"subscribers": [subscriber]}}
    sender.answers = {"/3/projects/p/queues": {"queues": [{"name": "q"}]}, "/3/projects/p/queues/q": {"queue": shown}}
    imported(typed, "ironmq", sender, "--project", "p")
    here = f"{hub.base_url}/3/projects/{PROJECT}/queues/q/subscribers"
    again = {"subscribers": [{**subscriber, "headers": {**headers, "X-Token": "hush"}}]}
    assert (
        requests.post(here, json=again, headers={"Authorization": f"OAuth {HUB_TOKEN}"}, timeout=40).status_code == 200
    )
    # When it is copied again, then nothing differs, and the header is still sent
    assert {outcome for _, _, outcome in imported(typed, "ironmq", sender, "--project", "p")} == {"same"}
    assert queue(hub, "q")["push"]["subscribers"][0]["headers"] == headers
    # And one of another host is not given it
    subscriber["url"] = "https://b.example/in"
    assert ("queue", "q", "changed") in imported(typed, "ironmq", sender, "--project", "p")
    assert queue(hub, "q")["push"]["subscribers"][0]["headers"] == {"Accept": "text/plain"}


def test_headers_of_queues_that_are_hidden_here_are_written_each_time(
    hub: ServedHub, sender: Sender, typed: Typed
) -> None:
    # Given a subscriber whose header opens something, so that nobody is shown it here
    subscriber = {"name": "crm", "url": "https://a.example/in", "headers": {"Authorization": "Bearer one"}}
    shown = {"name": "q", "type": "multicast", "push": {"subscribers": [subscriber]}}
    sender.answers = {"/3/projects/p/queues": {"queues": [{"name": "q"}]}, "/3/projects/p/queues/q": {"queue": shown}}
    imported(typed, "ironmq", sender, "--project", "p")
    writes = len(hub.writes)
    # When it is copied again, then it counts as the same, and is what it is there
    assert imported(typed, "ironmq", sender, "--project", "p") == []
    assert len(hub.writes) == writes + 1


@pytest.mark.parametrize(
    ("pattern", "topic", "fits"),
    [
        ("order.*", "order.paid", True),
        ("order.*", "orders", False),
        ("*", "", True),
        ("order", "order.paid", False),
        ("a*b*c", "a--b--c", True),
        ("a*b*c", "a--c--b", False),
        ("ab*ba", "aba", False),
        ("*.p?id", "order.paid", False),
        ("a*" * 200 + "b", "a" * 5_000, False),
    ],
)
def test_asterisks_in_another_senders_topics_stand_for_anything(pattern: str, topic: str, fits: bool) -> None:
    # Given a pattern of topics that another server sent, which may be made to take Python's engine for ever
    assert _matches(pattern, topic) is fits


NOT_ALL: dict[str, dict[str, Any]] = {
    "a filter of all its types": {"filter_config": {"event_types": ["*"], "filter": {"body": {"amount": {"$gte": 5}}}}},
    "a filter of headers": {"filter_config": {"event_types": ["*"], "filter": {"headers": {"x-a": "1"}}}},
    "a filter of one type": {"uid": "filtered"},
    "a function": {"function": "function transform(payload) { return {}; }"},
}


@pytest.mark.parametrize("change", NOT_ALL.values(), ids=NOT_ALL)
def test_an_endpoint_of_convoy_that_would_get_more_is_disabled(
    world: WebhooksWorld, sender: Sender, typed: Typed, change: dict[str, Any]
) -> None:
    # Given an endpoint whose subscription lets some messages through, or makes others of them
    convoy(sender)
    [first, _] = sender.answers["/api/v1/projects/p1/subscriptions"]["data"]["content"]
    first.update(change)
    found = [{"uid": "f1", "event_type": "order.paid", "headers": {}, "body": {"amount": {"$gte": 5}}}]
    sender.answers["/api/v1/projects/p1/subscriptions/filtered/filters"] = {"status": True, "data": found}
    # When it is copied
    reported = noted(typed, "convoy", sender, "--project", "p1")
    # Then it gets nothing, and why is said
    assert "is not copied, so it is disabled" in reported["acme/ep-1"]
    assert world.ask("GET", "/app/acme/endpoint/ep-1")["disabled"] is True
    # And once somebody has enabled it with a filter, a later run leaves both
    filters = [{"path": "amount", "operator": "gt", "value": 5}]
    world.ask("PATCH", "/app/acme/endpoint/ep-1", {"payloadFilters": filters, "disabled": False})
    assert "acme/ep-1" in noted(typed, "convoy", sender, "--project", "p1")
    shown = world.ask("GET", "/app/acme/endpoint/ep-1")
    assert (shown["disabled"], shown["payloadFilters"]) == (False, filters)
    # But without one it is disabled again
    world.ask("PATCH", "/app/acme/endpoint/ep-1", {"payloadFilters": None})
    imported(typed, "convoy", sender, "--project", "p1")
    assert world.ask("GET", "/app/acme/endpoint/ep-1")["disabled"] is True


def test_filters_of_convoy_that_let_everything_through_are_none(
    world: WebhooksWorld, sender: Sender, typed: Typed
) -> None:
    convoy(sender)
    [first, _] = sender.answers["/api/v1/projects/p1/subscriptions"]["data"]["content"]
    first["filter_config"]["filter"] = {"headers": {}, "body": {}, "is_flattened": True}
    sender.answers["/api/v1/projects/p1/subscriptions/sub-1/filters"] = {"data": None}
    shown = noted(typed, "convoy", sender, "--project", "p1")
    assert "acme/ep-1" not in shown
    assert world.ask("GET", "/app/acme/endpoint/ep-1")["disabled"] is False


def test_what_convoy_has_and_this_hub_has_not_is_named(world: WebhooksWorld, sender: Sender, typed: Typed) -> None:
    theirs = convoy(sender)
    theirs |= {"http_timeout": 10, "slack_webhook_url": "https://hooks.example", "content_type": "text/plain"}
    [first, _] = sender.answers["/api/v1/projects/p1/subscriptions"]["data"]["content"]
    first["retry_config"] = {"type": "linear", "duration": "3s", "retry_count": 3}
    shown = noted(typed, "convoy", sender, "--project", "p1")["acme/ep-1"]
    assert "not copied: retries, timeout, Slack address" in shown
    assert "text/plain" in shown
    assert world.ask("GET", "/app/acme/endpoint/ep-1")["disabled"] is False


def test_a_later_run_keeps_filters_that_were_set_here(world: WebhooksWorld, sender: Sender, typed: Typed) -> None:
    # Given a copied endpoint that somebody has given a filter here
    theirs = hook0(sender)
    path = f"/app/app-1/endpoint/{theirs['subscription_id']}"
    imported(typed, "hook0", sender, "--project", "o")
    filters = [{"path": "a", "operator": "eq", "value": 1}]
    world.ask("PATCH", path, {"payloadFilters": filters})
    # When something else changes there, and a setting goes
    theirs["target"]["url"] = "https://c.example/in"
    theirs["labels"] = theirs["description"] = None
    imported(typed, "hook0", sender, "--project", "o")
    # Then that is changed, and the filter stays
    shown = world.ask("GET", path)
    assert (shown["url"], shown.get("channels"), shown["description"]) == ("https://c.example/in", None, "")
    assert shown["payloadFilters"] == filters


@pytest.mark.parametrize(
    ("name", "fill", "words", "change", "endpoint"),
    [
        ("outpost", outpost, (), {"filter": {"data": {"amount": {"$gte": 100}}}}, "one/des_1"),
        ("outpost", outpost, (), {"topics": []}, "one/des_1"),
        ("outpost", outpost, (), {"topics": ["nothing.*"]}, "one/des_1"),
        ("hook0", hook0, ("--project", "o"), {"event_types": []}, "app-1/b1d6bb2f-0000-4000-8000-000000000001"),
        ("hook0", hook0, ("--project", "o"), {"labels": {"tenant": 7}}, "app-1/b1d6bb2f-0000-4000-8000-000000000001"),
    ],
)
def test_other_senders_endpoints_that_would_get_more_are_disabled(
    world: WebhooksWorld,
    sender: Sender,
    typed: Typed,
    name: str,
    fill: Any,
    words: tuple[str, ...],
    change: dict[str, Any],
    endpoint: str,
) -> None:
    fill(sender).update(change)
    assert "so it is disabled" in noted(typed, name, sender, *words)[endpoint]
    app, _, uid = endpoint.partition("/")
    assert world.ask("GET", f"/app/{app}/endpoint/{uid}")["disabled"] is True


def test_a_label_of_hook0_in_its_former_fields_is_its_channel(
    world: WebhooksWorld, sender: Sender, typed: Typed
) -> None:
    theirs = hook0(sender)
    del theirs["labels"]
    theirs |= {"label_key": "tenant", "label_value": "acme"}
    imported(typed, "hook0", sender, "--project", "o")
    assert world.ask("GET", f"/app/app-1/endpoint/{theirs['subscription_id']}")["channels"] == ["tenant:acme"]


@pytest.mark.parametrize("root", ["/2025-07-01", "/api/v1", "/behind/a/proxy"])
def test_an_address_of_outpost_with_a_path_is_taken_as_it_is(
    world: WebhooksWorld, sender: Sender, typed: Typed, root: str
) -> None:
    # Given Outpost where its managed service has it, below a date
    outpost(sender)
    sender.answers = {root + path.removeprefix("/api/v1"): answer for path, answer in sender.answers.items()}
    typed("import", "--from", "outpost", "--url", sender.url + root + "/", "--json")
    assert world.ask("GET", "/app/one/endpoint/des_1")["url"] == "https://a.example/in"
