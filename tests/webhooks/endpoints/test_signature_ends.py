"""Signature schemes that end: refused if none would stay, used until then, and told of before."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.webhooks.endpoints.test_signatures import GITHUB, OWN, STANDARD, STRIPE, URL, lowered, sent
from tests.webhooks.world import WebhooksWorld

from pushhub.base.times import epoch_ms, iso_time
from pushhub.engine.ends import DAY_MS
from pushhub.webhooks.wiring import Webhooks

OPERATIONAL = "https://ops.example/in"
SCHEMES: tuple[dict[str, Any], ...] = (OWN, STANDARD)


def at(world: WebhooksWorld, days: float) -> str:
    return iso_time(world.clock.now() + round(days * DAY_MS))


def tick(world: WebhooksWorld) -> int:
    """Go on to the next hour, and look for ends."""
    world.clock.set((world.clock.now() // 3_600_000 + 1) * 3_600_000)
    return world.hub.part(Webhooks).signature_ends.run(lambda: 55_000)


def warnings(world: WebhooksWorld) -> list[dict[str, Any]]:
    world.run(seconds=5)
    found = [json.loads(each.body) for each in world.sender.requests_to(OPERATIONAL)]
    return [each["data"] for each in found if each["type"] == "signature.ending"]


def test_a_scheme_signs_until_its_end_and_no_longer(world: WebhooksWorld, app: str) -> None:
    # Given an endpoint whose receiver moves from Stripe's scheme to Standard Webhooks within an hour
    end = at(world, 1 / 24)
    endpoint = world.make_endpoint(app, signatures=[{**STRIPE, "endsAt": end}, STANDARD])
    path = f"/app/{app}/endpoint/{endpoint}"
    assert world.ask("GET", f"{path}/signatures")["signatures"][0]["endsAt"] == end
    # When a message is sent before the end, and one right at it
    assert "stripe-signature" in lowered(sent(world, app))
    world.clock.set(epoch_ms(end) - 2_000)
    assert "stripe-signature" in lowered(sent(world, app))
    world.clock.set(epoch_ms(end))
    headers = lowered(sent(world, app))
    # Then the second is signed by what stays alone, and nothing is shown of the other
    assert "stripe-signature" not in headers
    assert headers["webhook-signature"] == headers["svix-signature"]
    shown = world.ask("GET", f"{path}/signatures")
    assert [each["preset"] for each in shown["signatures"]] == ["standard-webhooks"]
    # And its header is free for the endpoint's own use, and its secret is gone
    world.ask("PUT", f"{path}/headers", {"headers": {"Stripe-Signature": "x"}})
    stored = world.ports.applications.endpoint(world.ports.config.projects()[0].project_id, app, endpoint)
    assert stored is not None
    assert (len(stored.signatures), stored.scheme_secrets) == (1, b"")


def test_a_retry_after_the_end_carries_what_stays(world: WebhooksWorld, app: str) -> None:
    world.make_endpoint(app, signatures=[{**GITHUB, "endsAt": at(world, 3 / 86_400)}, STRIPE])
    world.sender.script(URL, 503, 200)
    world.ask("POST", f"/app/{app}/msg", {"eventType": "order.paid", "payload": {}})
    world.run(seconds=60)
    first, second = map(lowered, world.sender.requests_to(URL))
    assert {"x-hub-signature-256", "x-github-event", "stripe-signature"} <= set(first)
    assert not {"x-hub-signature-256", "x-github-event"} & set(second)
    assert "stripe-signature" in second


def test_when_standard_webhooks_ends_its_headers_end_too(world: WebhooksWorld, app: str) -> None:
    path = f"/app/{app}/endpoint/" + world.make_endpoint(app, signatures=[{**STANDARD, "endsAt": at(world, 1)}, STRIPE])
    assert world.ask("GET", f"{path}/secret")["key"].startswith("whsec_")
    world.clock.advance(ms=DAY_MS)
    headers = lowered(sent(world, app))
    assert not {"webhook-signature", "svix-id", "svix-timestamp", "svix-signature"} & set(headers)
    assert "stripe-signature" in headers
    # And what clients are shown, and may rotate, is what signs
    assert world.ask("GET", f"{path}/secret") == {"key": STRIPE["secret"]}
    assert world.call("POST", f"{path}/secret/rotate", {}).status == 400


@pytest.mark.parametrize(
    ("ends", "place"),
    [
        ((-1, None), ["0", "endsAt"]),
        ((0, None), ["0", "endsAt"]),
        ((401, None), ["0", "endsAt"]),
        ((None, 401), ["1", "endsAt"]),
        ((5, 6), ["1", "endsAt"]),
        ((5,), ["0", "endsAt"]),
        (("2027-01-01", None), ["0", "endsAt"]),
        (("2027-01-01T00:00:00", None), ["0", "endsAt"]),
        (("next year", None), ["0", "endsAt"]),
        (("0001-01-01T00:00:00+23:59", None), ["0", "endsAt"]),
        (("9999-12-31T23:59:59-23:59", None), ["0", "endsAt"]),
        ((True, None), ["0", "endsAt"]),
        (("2027-01-01T00:00:00Z" + " " * 60, None), ["0", "endsAt"]),
    ],
)
def test_an_end_that_cannot_be_is_refused_by_name(
    world: WebhooksWorld, ends: tuple[Any, ...], place: list[str]
) -> None:
    app = world.make_app()
    path = f"/app/{app}/endpoint/{world.make_endpoint(app)}/signatures"
    given: list[dict[str, Any]] = [
        {**scheme, "endsAt": at(world, end) if type(end) in (int, float) else end}
        for scheme, end in zip(SCHEMES, ends, strict=False)
    ]
    refused = world.call("PUT", path, {"signatures": given})
    assert (refused.status, refused.body["detail"][0]["loc"]) == (422, ["body", "signatures", *place])
    assert world.ask("GET", path) == {"signatures": [STANDARD]}


def test_the_furthest_end_is_400_days_away(world: WebhooksWorld, app: str) -> None:
    path = f"/app/{app}/endpoint/{world.make_endpoint(app)}/signatures"
    shown = world.ask("PUT", path, {"signatures": [{**OWN, "endsAt": at(world, 400)}, STANDARD]})
    # And what is shown may be sent back
    assert world.ask("PUT", path, shown) == shown
    # And an end that is taken away is none
    del shown["signatures"][0]["endsAt"]
    assert "endsAt" not in world.ask("PUT", path, shown)["signatures"][0]


def test_owners_are_told_a_week_and_a_day_before_an_end(world: WebhooksWorld) -> None:
    # Given somebody who gets operational events, and schemes that end in twenty days: of an endpoint, of an application
    world.ask("POST", "/operational-webhook/endpoint", {"url": OPERATIONAL})
    app = world.make_app(uid="acme")
    endpoint = world.make_endpoint(app, signatures=[{**STRIPE, "endsAt": at(world, 20)}, STANDARD])
    world.ask("PUT", f"/app/{app}/signatures", {"signatures": [{"preset": "slack", "endsAt": at(world, 20)}, STANDARD]})
    world.ask("PUT", "/signatures", {"signatures": [{"preset": "github", "endsAt": at(world, 20)}, STANDARD]})
    # When the days pass, hour by hour
    for _ in range(21 * 24):
        tick(world)
    # Then each warning is sent once
    found = warnings(world)
    assert [each["daysLeft"] for each in found] == [7, 7, 7, 1, 1, 1]
    assert {(each["appId"], each.get("appUid"), each["endpointId"], each["preset"]) for each in found} == {
        (app, "acme", endpoint, "stripe"),
        (app, "acme", None, "slack"),
        (None, None, None, "github"),
    }
    assert not world.ports.scheme_end_notes.notes


def test_an_end_that_was_moved_or_removed_is_not_told_of(world: WebhooksWorld) -> None:
    world.ask("POST", "/operational-webhook/endpoint", {"url": OPERATIONAL})
    app = world.make_app()
    ending = [{**STRIPE, "endsAt": at(world, 10)}, STANDARD]
    moved, removed, deleted, stays = (world.make_endpoint(app, signatures=ending) for _ in range(4))
    world.ask(
        "PUT",
        f"/app/{app}/endpoint/{moved}/signatures",
        {"signatures": [{**STRIPE, "endsAt": at(world, 300)}, STANDARD]},
    )
    world.ask("PUT", f"/app/{app}/endpoint/{removed}/signatures", {"signatures": [STRIPE]})
    world.ask("DELETE", f"/app/{app}/endpoint/{deleted}")
    world.clock.advance(ms=4 * DAY_MS)
    assert tick(world) == 1
    assert [each["endpointId"] for each in warnings(world)] == [stays]
    # And one that ends within a week already is told of a day before
    soon = world.make_endpoint(app, signatures=[{**STRIPE, "endsAt": at(world, 2)}, STANDARD])
    world.clock.advance(ms=DAY_MS)
    tick(world)
    assert (warnings(world)[-1]["endpointId"], warnings(world)[-1]["daysLeft"]) == (soon, 1)
