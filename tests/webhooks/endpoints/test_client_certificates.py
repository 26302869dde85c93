"""Endpoints that are sent a client certificate, through the API and the real push path, on fakes."""

from __future__ import annotations

import datetime
import json
from typing import Any

import pytest
from tests.engine.world import PROJECT
from tests.fakes.private_keys import identity
from tests.webhooks.world import WebhooksWorld

from pushhub.engine.ends import DAY_MS, EndNote
from pushhub.webhooks.wiring import Webhooks

URL = "https://a.example/in"
OPERATIONAL = "https://ops.example/in"
PEM = identity()
KEY, CERTIFICATE = PEM[: PEM.index("-----BEGIN CERTIFICATE")], PEM[PEM.index("-----BEGIN CERTIFICATE") :]


def certified(world: WebhooksWorld, app: str, pem: str = PEM, url: str = URL, **more: Any) -> str:
    endpoint = world.make_endpoint(app, url)
    world.ask("PUT", f"/app/{app}/endpoint/{endpoint}/mtls", {"identity": pem, **more})
    return endpoint


def post(world: WebhooksWorld, app: str) -> None:
    world.ask("POST", f"/app/{app}/msg", {"eventType": "order.paid", "payload": {}})
    world.run(seconds=0.5)


def test_requests_are_sent_with_the_certificate_and_nobody_sees_its_key(world: WebhooksWorld, app: str) -> None:
    # Given an endpoint with a certificate, and one without
    endpoint = certified(world, app, ca=CERTIFICATE)
    world.make_endpoint(app, "https://b.example/in")
    path = f"/app/{app}/endpoint/{endpoint}"
    # When a message is pushed, then it is sent with it, and the other one without
    post(world, app)
    (request,) = world.sender.requests_to(URL)
    assert request.identity is not None
    assert (request.identity.pem, request.identity.ca) == (PEM, CERTIFICATE)
    assert world.sender.requests_to("https://b.example/in")[0].identity is None
    # And what is told of it is neither key nor certificate
    shown = world.ask("GET", f"{path}/mtls")
    assert shown == {"subject": "pushhub.example", "endsAt": "2046-01-01T00:00:00.000Z", "privateCa": True}
    assert world.ask("GET", f"{path}/mtls-config") == {"enabled": True, "config": shown}
    stored = world.ports.endpoints.endpoint(PROJECT, app, endpoint)
    assert stored is not None
    assert stored.identity
    assert KEY.encode()[40:80] not in stored.identity
    assert KEY[40:80] not in json.dumps([world.telemetry.events, repr(stored), repr(request)], default=repr)
    # And a PUT of the endpoint leaves it, and DELETE does not
    world.ask("PUT", path, {"url": URL})
    assert world.ask("GET", f"{path}/mtls-config")["enabled"] is True
    assert world.call("DELETE", f"{path}/mtls").status == 204
    assert world.call("DELETE", f"{path}/mtls").status == 404
    assert world.call("GET", f"{path}/mtls").status == 404
    assert world.ask("GET", f"{path}/mtls-config") == {"enabled": False}
    post(world, app)
    assert world.sender.requests_to(URL)[-1].identity is None


def test_only_https_shows_a_certificate(world: WebhooksWorld, app: str) -> None:
    plain = world.make_endpoint(app, "http://a.example/in")
    assert world.call("PUT", f"/app/{app}/endpoint/{plain}/mtls", {"identity": PEM}).status == 422
    path = f"/app/{app}/endpoint/{certified(world, app)}"
    for url in ("http://a.example/in", "notification2://alarms?api=alarms"):
        refused = world.call("PATCH", path, {"url": url})
        assert (refused.status, refused.body["detail"][0]["loc"]) == (422, ["body", "url"])


def test_who_may(world: WebhooksWorld) -> None:
    app, other = world.make_app(), world.make_app("Other")
    path = f"/app/{app}/endpoint/{certified(world, app)}"
    body = {"identity": PEM}
    for capability, statuses in (
        ("ManageEndpoint", (403, 403, 403, 403)),
        ("ViewEndpointSecret", (200, 200, 403, 403)),
        ("ManageEndpointSecret", (403, 403, 204, 204)),
    ):
        access = world.ask("POST", f"/auth/app-portal-access/{app}", {"capabilities": ["ViewBase", capability]})
        got = tuple(
            world.call(method, f"{path}/{place}", body if method == "PUT" else None, token=access["token"]).status
            for method, place in (("GET", "mtls"), ("GET", "mtls-config"), ("PUT", "mtls"), ("DELETE", "mtls"))
        )
        assert got == statuses
    portal = world.ask("POST", f"/auth/app-portal-access/{other}", {})["token"]
    for method in ("GET", "PUT", "DELETE"):
        for token in (portal, world.other_token):
            given = body if method == "PUT" else None
            assert world.call(method, f"{path}/mtls", given, token=token).status == 404


def ending_in(world: WebhooksWorld, days: float) -> str:
    ends = datetime.datetime.fromtimestamp(world.clock.now() // 1000 + round(days * 86_400), datetime.UTC)
    return identity(ends=ends)


def tick(world: WebhooksWorld) -> int:
    """Go on to the next hour, and look for ends."""
    world.clock.set((world.clock.now() // 3_600_000 + 1) * 3_600_000)
    return world.hub.part(Webhooks).certificate_ends.run(lambda: 55_000)


def warnings(world: WebhooksWorld) -> list[int]:
    """The days left that were told, and nothing that should not have been."""
    world.run(seconds=5)
    answer = [json.loads(each.body) for each in world.sender.requests_to(OPERATIONAL)]
    return [each["data"]["daysLeft"] for each in answer if each["type"] == "endpoint.certificate_ending"]


def test_a_certificate_that_ends_in_five_days_is_told_of_within_a_minute_and_shows_in_health(
    world: WebhooksWorld,
) -> None:
    # Given somebody who gets operational events, and an endpoint that is given a certificate for five days
    world.ask("POST", "/operational-webhook/endpoint", {"url": OPERATIONAL})
    app = world.make_app()
    ends = ending_in(world, 5)
    endpoint = certified(world, app, ends)
    # When a minute has passed, then the owner is told, once
    for _ in range(3):
        world.clock.advance(seconds=60)
        world.hub.part(Webhooks).certificate_ends.run(lambda: 55_000)
    assert warnings(world) == [5]
    # And its health has the end
    health = world.ask("GET", f"/app/{app}/endpoint/{endpoint}/health")
    assert health["certificateDaysLeft"] == 5
    assert health["certificateEndsAt"] == world.ask("GET", f"/app/{app}/endpoint/{endpoint}/mtls")["endsAt"]
    # And the next warnings come as ever
    for _ in range(6 * 24):
        tick(world)
    assert warnings(world) == [5, 1, 0]
    assert world.ask("GET", f"/app/{app}/endpoint/{endpoint}/health")["certificateDaysLeft"] == 0
    assert "certificateEndsAt" not in world.ask("GET", f"/app/{app}/endpoint/{world.make_endpoint(app)}/health")


def test_a_certificate_that_is_set_again_is_not_told_of_again(world: WebhooksWorld) -> None:
    # Given an endpoint whose owner was told that its certificate ends
    world.ask("POST", "/operational-webhook/endpoint", {"url": OPERATIONAL})
    app = world.make_app()
    ends = ending_in(world, 5)
    endpoint = certified(world, app, ends)
    tick(world)
    # When the same certificate is set again
    world.ask("PUT", f"/app/{app}/endpoint/{endpoint}/mtls", {"identity": ends})
    tick(world)
    # Then only its next warnings come
    assert warnings(world) == [5]
    for _ in range(5 * 24):
        tick(world)
    assert warnings(world) == [5, 1, 0]


def test_a_look_between_a_note_and_its_certificate_loses_no_warning(
    world: WebhooksWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Given that ends are looked at after the note of a certificate was written, and before the certificate is
    world.ask("POST", "/operational-webhook/endpoint", {"url": OPERATIONAL})
    app = world.make_app()
    looks: list[int] = []
    notes = world.ports.end_notes
    real = notes.note_end

    def note_end(note: EndNote) -> None:
        real(note)
        if not looks:
            looks.append(world.hub.part(Webhooks).certificate_ends.run(lambda: 55_000))

    monkeypatch.setattr(notes, "note_end", note_end)
    certified(world, app, ending_in(world, 5))
    assert looks == [0]
    # Then the next look tells
    world.clock.advance(seconds=60)
    world.hub.part(Webhooks).certificate_ends.run(lambda: 55_000)
    assert warnings(world) == [5]


def test_a_certificate_that_was_replaced_or_removed_is_not_warned_of(world: WebhooksWorld) -> None:
    world.ask("POST", "/operational-webhook/endpoint", {"url": OPERATIONAL})
    app = world.make_app()
    replaced, removed = certified(world, app, ending_in(world, 20)), certified(world, app, ending_in(world, 20))
    deleted, reported = certified(world, app, ending_in(world, 20)), certified(world, app, ending_in(world, 20))
    world.ask("PUT", f"/app/{app}/endpoint/{replaced}/mtls", {"identity": ending_in(world, 300)})
    world.ask("DELETE", f"/app/{app}/endpoint/{removed}/mtls")
    world.ask("DELETE", f"/app/{app}/endpoint/{deleted}")
    world.clock.advance(ms=14 * DAY_MS)
    assert tick(world) == 1
    assert warnings(world) == [6]
    assert json.loads(world.sender.requests_to(OPERATIONAL)[-1].body)["data"]["endpointId"] == reported
    # One that ends sooner than its first warning is told of at its next one
    certified(world, app, ending_in(world, 0.5))
    world.clock.advance(ms=DAY_MS)
    tick(world)
    assert 0 in warnings(world)
