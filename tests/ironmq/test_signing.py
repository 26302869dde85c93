"""Signed subscribers of push queues, beside what every dialect promises (``tests/dialects``): queues, workers and
topics among them, their limits, and who is told of ends.
"""

from __future__ import annotations

import hmac
import json
from dataclasses import replace
from typing import Any

import pytest
from tests.engine.world import PROJECT
from tests.fakes.verifier import symmetric, verified
from tests.ironmq.api.hub import Hub

from pushhub.base.signature_schemes import PRESETS
from pushhub.base.times import epoch_ms, iso_time
from pushhub.ironmq.wire.subscribers import MAX_SIGNED
from pushhub.ironmq.wiring import Ironmq
from pushhub.webhooks.wiring import Webhooks

URL = "https://a.example/in"
FIRST, SECOND = symmetric("1"), symmetric("2")


def signed(secret: str = FIRST, *, name: str = "s0", url: str = URL, **more: object) -> dict[str, object]:
    return {"name": name, "url": url, "signing": {"secret": secret, **more}}


def subscribe(hub: Hub, *given: dict[str, object], method: str = "PUT") -> None:
    result = hub.call(method, "/queues/q/subscribers", {"subscribers": list(given)})
    assert result.status == 200, result


def sent(hub: Hub, body: str = "x") -> dict[str, str]:
    """The headers that a message posted now is pushed with; each name once."""
    hub.post("q", body)
    hub.world.run(seconds=5)
    headers = hub.world.sender.requests[-1].headers
    assert len({name.lower() for name in headers}) == len(headers)
    return {name.lower(): value for name, value in headers.items()}


@pytest.mark.parametrize("method", ["POST", "PUT"])
def test_a_subscriber_that_moves_stays_signed(hub: Hub, method: str) -> None:
    hub.make("q", push={"subscribers": [signed()]})
    subscribe(hub, {"name": "s0", "url": "https://moved.example/"}, method=method)
    assert verified(FIRST, sent(hub), b"x")


def test_a_producers_headers_cannot_forge_a_signature(hub: Hub) -> None:
    hub.make("q", push={"subscribers": [signed()]})
    hub.post("q", "x", push_headers={"Webhook-Signature": "v1,forged", "WEBHOOK-ID": "forged"})
    hub.world.run(seconds=5)
    headers = hub.world.sender.requests[-1].headers
    assert verified(FIRST, headers, b"x")
    assert len({name.lower() for name in headers}) == len(headers)
    assert "forged" not in str(headers)


def test_a_queue_hands_the_signature_of_the_one_before_it_on(hub: Hub) -> None:
    # Given a signed subscriber that is a queue, whose own subscriber is not signed
    hub.make("q", push={"subscribers": [signed(url="ironmq:///next")]})
    hub.make_push("next", URL)
    headers = sent(hub)
    assert verified(FIRST, headers, b"x")
    # And a queue of another hub gets the signature in a form that it passes on, too
    subscribe(hub, signed(url="ironmq://P:T@elsewhere.example/far"))
    headers = sent(hub)
    passed = {name.removeprefix("x-subscribers-"): value for name, value in headers.items()}
    assert verified(FIRST, passed, b"x")


def test_a_task_of_a_worker_is_signed(hub: Hub) -> None:
    hub.make("q", push={"subscribers": [signed(url="ironworker://P:T@worker.example/code")]})
    assert verified(FIRST, sent(hub), b"x")


def test_a_topic_cannot_be_signed_for(hub: Hub) -> None:
    refused = hub.call("PUT", "/queues/q", {"queue": {"push": {"subscribers": [signed(url="notification2://t")]}}})
    assert refused.status == 400
    assert "cannot be signed" in refused.msg
    # Nor can a signed subscriber become a topic unnoticed
    hub.make("q", push={"subscribers": [signed()]})
    moved = {"subscribers": [{"name": "s0", "url": "notification2://t"}]}
    assert hub.call("PUT", "/queues/q/subscribers", moved).status == 400


def test_a_topic_gets_no_headers(hub: Hub) -> None:
    topic = {"name": "t", "url": "notification2://t"}
    refused = hub.call("PUT", "/queues/q", {"queue": {"push": {"subscribers": [{**topic, "headers": {"a": "b"}}]}}})
    assert refused.status == 400
    assert "headers" in refused.msg
    # Nor does one that had them when it was something else
    hub.make("q", push={"subscribers": [{**topic, "url": URL, "headers": {"a": "b"}}]})
    moved = {"subscribers": [{**topic, "headers": {"a": "b"}}]}
    assert hub.call("PUT", "/queues/q/subscribers", moved).status == 400
    assert hub.call("PUT", "/queues/q/subscribers", {"subscribers": [topic]}).status == 200


def test_a_queue_has_no_more_signed_subscribers_than_it_may(hub: Hub) -> None:
    names = [f"n{number}" for number in range(MAX_SIGNED)]
    hub.make("q", push={"subscribers": [signed(name=each, url=f"https://a.example/{each}") for each in names]})
    one_more = {"subscribers": [signed(name="one more", url="https://b.example/")]}
    assert hub.call("POST", "/queues/q/subscribers", one_more).status == 400
    too_many = [signed(name=f"m{number}", url="https://c.example/") for number in range(MAX_SIGNED + 1)]
    assert hub.call("PUT", "/queues/q/subscribers", {"subscribers": too_many}).status == 400
    # In place of one it may be
    subscribe(hub, signed(SECOND, name="n0", url="https://a.example/n0"), method="POST")


def test_too_many_old_secrets_are_refused(hub: Hub) -> None:
    hub.make("q", push={"subscribers": [signed()]})
    for letter in "abcdefghij":
        subscribe(hub, signed(symmetric(letter)))
    refused = hub.call("PUT", "/queues/q/subscribers", {"subscribers": [signed(symmetric("k"))]})
    assert refused.status == 400
    # Setting the same one again is not a rotation
    subscribe(hub, signed(symmetric("j")))


STRIPE = {"preset": "stripe", "secret": "whsec_test_stripe_0123456789"}


def schemed(*signatures: object, **more: Any) -> dict[str, object]:
    return {"name": "s0", "url": URL, **more, "signing": {"signatures": list(signatures)}}


def test_a_queues_name_is_escaped_where_a_scheme_has_an_event_type(hub: Hub) -> None:
    github = {"preset": "github", "secret": "hush"}
    hub.call("PUT", "/queues/bestell%20%C3%BC", {"queue": {"push": {"subscribers": [schemed(github)]}}})
    hub.call("POST", "/queues/bestell%20%C3%BC/messages", {"messages": [{"body": "x"}]})
    hub.world.run(seconds=5)
    headers = hub.world.sender.requests[-1].headers
    assert headers["X-GitHub-Event"] == "bestell %C3%BC"
    assert headers["X-Hub-Signature-256"] == f"sha256={hmac.digest(b'hush', b'x', 'sha256').hex()}"


@pytest.mark.parametrize(
    ("subscriber", "place"),
    [
        (schemed({"preset": "twilio", "secret": "12345"}), "signing.signatures.0.preset"),
        (schemed(STRIPE, headers={"stripe-signature": "x"}), "signing.signatures"),
        (schemed(STRIPE, url="ironmq:///next"), "signing.signatures"),
        (schemed({"content": "{body}" + "x" * 490, "header": {"name": "X-A"}, "secret": "12345678"}), ""),
        (
            schemed(
                *(
                    {"content": "{body}" + "x" * 490, "header": {"name": f"X-{each}" + "y" * 200}, "secret": "k" * 250}
                    for each in "ab"
                )
            ),
            "signing.signatures",
        ),
    ],
)
def test_a_scheme_that_could_not_be_right_is_refused(hub: Hub, subscriber: dict[str, Any], place: str) -> None:
    result = hub.call("PUT", "/queues/q", {"queue": {"push": {"subscribers": [subscriber]}}})
    assert (result.status, place in str(result.body)) == (400 if place else 200, True), result


def test_headers_that_are_added_later_do_not_hide_a_signature(hub: Hub) -> None:
    hub.make("q", push={"subscribers": [schemed(STRIPE)]})
    later = {"name": "s0", "url": URL, "headers": {"Stripe-Signature": "x"}}
    assert hub.call("PUT", "/queues/q/subscribers", {"subscribers": [later]}).status == 400


def ends(hub: Hub, seconds: float) -> str:
    return iso_time(hub.world.clock.now() + round(seconds * 1000))


def look(hub: Hub) -> int:
    """Go on to the next hour, and look for ends."""
    hub.world.clock.set((hub.world.clock.now() // 3_600_000 + 1) * 3_600_000)
    reported = hub.world.hub.part(Ironmq).ends.run(lambda: 55_000)
    if reported:
        hub.world.run(seconds=5)
    return reported


def alert(hub: Hub, name: str, **watches: str) -> None:
    created = {"name": name, "measure": "given_up", "threshold": 1, "url": f"https://alerts.example/{name}", **watches}
    result = hub.call("POST", "/alerts", {"alert": created})
    assert result.status == 201, result


def alerted(hub: Hub, name: str) -> list[tuple[object, ...]]:
    bodies = [json.loads(each.body) for each in hub.world.sender.requests_to(f"https://alerts.example/{name}")]
    assert not any("whsec_" in json.dumps(each) for each in bodies)
    named = [(each["state"], each["queue"], each["subscriber"], each["signature"]["header"]) for each in bodies]
    return [(*rest, each["value"]) for rest, each in zip(named, bodies, strict=True)]


def test_alerts_are_told_a_week_and_a_day_before_a_scheme_ends(hub: Hub) -> None:
    # Given two subscribers of a queue whose schemes end at the same time, and alerts that watch more or less
    end = ends(hub, 20 * 86_400)
    both = {"secret": FIRST, "signatures": [{**STRIPE, "endsAt": end}, {"preset": "standard-webhooks"}]}
    for queue in ("q", "other"):
        hub.make(queue, push={"subscribers": [{"name": "s0", "url": URL}, {"name": "s1", "url": URL}]})
    alert(hub, "all")
    alert(hub, "queue", queue="q")
    alert(hub, "one", queue="q", subscriber="s1")
    alert(hub, "other", queue="other")
    for name in ("s0", "s1"):
        subscribe(hub, {"name": name, "url": URL, "signing": both}, method="POST")
    # When the days pass, hour by hour, then each alert that it concerns is told of each subscriber, once each time
    for _ in range(21 * 24):
        look(hub)
    said = [("signature_ending", "q", name, "Stripe-Signature", days) for days in (7, 1) for name in ("s0", "s1")]
    assert sorted(alerted(hub, "all"), key=repr) == sorted(alerted(hub, "queue"), key=repr) == sorted(said, key=repr)
    assert alerted(hub, "one") == [each for each in said if each[2] == "s1"]
    assert alerted(hub, "other") == []
    [body] = [
        each for each in hub.world.sender.requests_to("https://alerts.example/one") if b'"value": 1,' in each.body
    ]
    text, link = (json.loads(body.body)[name] for name in ("text", "link"))
    assert text == "The signature Stripe-Signature for s1 of queue q ends in 1 day."
    assert link.endswith("/console#/queues/q")
    # And operators are told by the log, and nothing is left to be told
    events = hub.world.telemetry.named("signature_ending")
    assert sorted((each["subscriber"], each["days_left"]) for each in events) == sorted(each[2::2] for each in said)
    assert not hub.world.ports.ends_of("ironmq").notes


def test_alerts_are_told_of_the_end_of_what_subscribers_inherit(hub: Hub) -> None:
    # Given a project whose scheme ends, and alerts of all, of queues with signed subscribers, and of one without
    hub.make("signed", push={"subscribers": [signed(), {"name": "plain", "url": URL}]})
    hub.make("plain", push={"subscribers": [{"name": "plain", "url": URL}]})
    alert(hub, "all")
    alert(hub, "signed", queue="signed")
    alert(hub, "signed-plain", queue="signed", subscriber="plain")
    alert(hub, "plain", queue="plain")
    end = ends(hub, 10 * 86_400)
    schemes = (replace(PRESETS["stripe"], ends_at=epoch_ms(end)), PRESETS["standard-webhooks"])
    answer = hub.world.hub.part(Webhooks).signature_defaults.set_of_project(PROJECT, schemes)
    assert answer["signatures"][0]["endsAt"] == end
    # When the days pass, then those are told to whom it makes a difference
    for _ in range(12 * 24):
        look(hub)
    said = [("signature_ending", "", "", "Stripe-Signature", days) for days in (7, 1)]
    assert alerted(hub, "all") == alerted(hub, "signed") == said
    assert alerted(hub, "signed-plain") == alerted(hub, "plain") == []
    assert not hub.world.ports.ends_of("ironmq").notes


@pytest.mark.parametrize("then", ["removed", "deleted"])
def test_an_end_that_is_no_more_is_told_nothing_of(hub: Hub, then: str) -> None:
    def ending(days: float) -> dict[str, Any]:
        return schemed({**STRIPE, "endsAt": ends(hub, days * 86_400)}, {"preset": "github", "secret": "hush"})

    hub.make("q", push={"subscribers": [ending(9), {"name": "s1", "url": URL}]})
    alert(hub, "all")
    if then == "deleted":
        hub.call("DELETE", "/queues/q")
    else:
        hub.call("PUT", "/queues/q/subscribers", {"subscribers": [{"name": "s1", "url": URL}]})
    for _ in range(10 * 24):
        assert look(hub) == 0
    assert alerted(hub, "all") == []
