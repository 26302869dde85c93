"""Redaction rules of an application: what is shown of payloads, what is stored of answers, and that deliveries are
still complete.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.engine.world import PROJECT
from tests.fakes import Reply
from tests.webhooks.world import WebhooksWorld

from pushhub.webhooks.model.page import KeyRange
from pushhub.webhooks.model.redaction import WITHHELD

URL = "https://a.example/in"
RULES = {"payload": ["user.email"], "answers": ["**.token"]}
PAYLOAD = {"user": {"email": "a@b.example", "name": "n"}}
SHOWN = {"user": {"email": WITHHELD, "name": "n"}}


def delivered(
    world: WebhooksWorld, answer: bytes = b'{"session": {"token": "s3cret"}}', **fields: Any
) -> tuple[str, str, str]:
    """Deliver a message to an endpoint that gives this answer; ids of the application, the endpoint, the message."""
    world.sender.script(URL, Reply(status_code=200, body=answer))
    app = world.make_app(redaction=RULES)
    endpoint = world.make_endpoint(app)
    posted = world.ask("POST", f"/app/{app}/msg", {"eventType": "a", "payload": PAYLOAD, **fields})
    world.run(seconds=5)
    return app, endpoint, str(posted["id"])


def test_an_endpoint_gets_everything_and_people_are_shown_the_rest(world: WebhooksWorld) -> None:
    app, endpoint, message = delivered(world)
    assert json.loads(world.sender.requests[0].body) == PAYLOAD
    assert world.ask("GET", f"/app/{app}/msg/{message}")["payload"] == SHOWN
    assert world.ask("GET", f"/app/{app}/msg")["data"][0]["payload"] == SHOWN
    assert world.ask("GET", f"/app/{app}/endpoint/{endpoint}/msg")["data"][0]["payload"] == SHOWN
    # A consumer gets everything, too
    polled = world.ask("GET", f"/app/{app}/poller/{endpoint}", after="2026-01-01T00:00:00Z")
    assert polled["data"][0]["payload"] == PAYLOAD


def test_numbers_beside_what_is_withheld_are_shown_as_they_were_posted(world: WebhooksWorld) -> None:
    app = world.make_app(redaction=RULES)
    payload = '{"total": 1.0, "n": 12345678901234567890, "user": {"email": 1e2, "age": 1e2}}'
    world.text("POST", f"/app/{app}/msg", f'{{"eventType": "a", "payload": {payload}}}')
    shown = payload.replace('"email": 1e2', f'"email": "{WITHHELD}"')
    assert f'"payload": {shown}' in world.text("GET", f"/app/{app}/msg")


def test_a_repeated_request_is_answered_without_what_is_withheld(world: WebhooksWorld) -> None:
    app = world.make_app(redaction=RULES)
    body, key = {"eventType": "a", "payload": PAYLOAD}, {"Idempotency-Key": "k"}
    first, again = (world.ask("POST", f"/app/{app}/msg", body, headers=key) for _ in range(2))
    assert first["id"] == again["id"]
    assert again["payload"] == SHOWN


@pytest.mark.parametrize(
    ("answer", "kept"),
    [
        (b'{"session": {"token": "s3cret"}}', '{"session":{"token":"[redacted]"}}'),
        (b"token=s3cret", WITHHELD),
        (b'"s3cret"', WITHHELD),
        (b"\xff s3cret", WITHHELD),
        (b'{"token": "s3cret", "more": "' + b"x" * 20_000, WITHHELD),
        (b"", ""),
    ],
)
def test_of_an_answer_the_rest_is_stored(world: WebhooksWorld, answer: bytes, kept: str) -> None:
    app, endpoint, _ = delivered(world, answer)
    [attempt] = world.ports.attempt_log.attempts(PROJECT, endpoint, KeyRange())
    assert attempt.response == kept
    assert world.ask("GET", f"/app/{app}/attempt/endpoint/{endpoint}")["data"][0]["response"] == kept


@pytest.mark.parametrize(
    ("url", "headers", "answer", "kept"),
    [
        # What a page of an error repeats of the request: a header that is shown by its name only, and a password
        (
            URL,
            {"X-Api-Key": "s3cret-key"},
            '{"headers": {"x-api-key": "s3cret-key"}}',
            '{"headers": {"x-api-key": "%s"}}',
        ),
        (URL.replace("://", "://shop:pass%2Fword@"), {}, "no pass/word", "no %s"),
        # What is no secret stays, and whoever has none is told all
        (URL, {"X-Shop": "shop-seven", "X-Api-Key": "s3cret-key"}, "not for shop-seven", "not for shop-seven"),
        (URL, {"X-Shop": "shop-seven"}, "Bearer authentication", "Bearer authentication"),
    ],
)
def test_an_answer_that_repeats_what_its_endpoint_hides_is_kept_without_it(
    world: WebhooksWorld, url: str, headers: dict[str, str], answer: str, kept: str
) -> None:
    # Given an endpoint that answers with what it was sent
    world.sender.script(url, Reply(status_code=500, body=answer.encode()))
    app = world.make_app()
    endpoint = world.make_endpoint(app, url, headers=headers)
    # When it is sent a message
    world.ask("POST", f"/app/{app}/msg", {"eventType": "a", "payload": {}})
    world.run(seconds=1)
    # Then its secrets are neither stored with the attempt nor shown to who may see attempts
    [attempt] = world.ports.attempt_log.attempts(PROJECT, endpoint, KeyRange())
    assert attempt.response == kept.replace("%s", "********")
    assert world.ask("GET", f"/app/{app}/attempt/endpoint/{endpoint}")["data"][0]["response"] == attempt.response


def test_what_went_wrong_is_told_as_before(world: WebhooksWorld) -> None:
    world.sender.script(URL, Reply(error_class="timeout", message="No answer within 30 s"))
    app = world.make_app(redaction=RULES)
    endpoint = world.make_endpoint(app)
    world.ask("POST", f"/app/{app}/msg", {"eventType": "a", "payload": {}})
    world.run(seconds=1)
    [attempt] = world.ask("GET", f"/app/{app}/attempt/endpoint/{endpoint}")["data"]
    assert attempt["response"] == "No answer within 30 s"


def test_rules_are_shown_changed_and_taken_away(world: WebhooksWorld) -> None:
    app = world.make_app(redaction=RULES)
    assert world.ask("GET", f"/app/{app}")["redaction"] == RULES
    assert world.ask("PATCH", f"/app/{app}", {"name": "x"})["redaction"] == RULES
    changed = world.ask("PATCH", f"/app/{app}", {"redaction": {"answers": ["*"]}})
    assert changed["redaction"] == {"payload": [], "answers": ["*"]}
    assert "redaction" not in world.ask("PATCH", f"/app/{app}", {"redaction": None})


@pytest.mark.parametrize(
    "given",
    [
        *("user.email", 1, ["user.email"], {"payload": "user.email"}, {"payload": [1]}, {"answers": [""]}),
        *({"payload": ["a" * 201]}, {"payload": ["**"]}, {"payload": [f"a{number}" for number in range(21)]}),
    ],
)
def test_anything_else_is_refused(world: WebhooksWorld, given: object) -> None:
    answer = world.call("POST", "/app", {"name": "Acme", "redaction": given})
    assert answer.status == 422
    assert answer.body["detail"][0]["loc"][:2] == ["body", "redaction"]
