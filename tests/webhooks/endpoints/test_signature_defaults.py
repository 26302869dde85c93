"""Signature schemes that endpoints inherit, of their application or project, through the API and the real push path."""

from __future__ import annotations

import base64
import hashlib
import hmac
from typing import Any

import pytest
from tests.fakes.verifier import new_asymmetric, verified
from tests.webhooks.endpoints.test_signatures import OWN, STANDARD, STRIPE, hexed, lowered, sent
from tests.webhooks.world import WebhooksWorld

from pushhub.base.times import iso_time


def presets(shown: Any) -> list[str]:
    return [each["preset"] for each in shown["signatures"]]


def test_own_beats_application_beats_project(world: WebhooksWorld, app: str) -> None:
    # Given an endpoint of an application, each without anything of its own
    endpoint = world.make_endpoint(app)
    path, secret = f"/app/{app}/endpoint/{endpoint}", world.ask("GET", f"/app/{app}/endpoint/{endpoint}/secret")["key"]
    # When the project has a scheme, then it signs at once, with the endpoint's own secret in its own writing
    world.ask("PUT", "/signatures", {"signatures": [{"preset": "stripe"}]})
    request = sent(world, app)
    headers = lowered(request)
    stamp = headers["webhook-timestamp"]
    assert headers["stripe-signature"] == f"t={stamp},v1=" + hexed(secret, stamp.encode() + b"." + request.body)
    assert not {"webhook-signature", "svix-signature"} & set(headers)
    shown = world.ask("GET", f"{path}/signatures")
    assert (presets(shown), shown["inheritedFrom"]) == (["stripe"], "project")
    assert world.ask("GET", f"{path}/secret") == {"key": secret}
    # When the application has another, then that one signs
    world.ask("PUT", f"/app/{app}/signatures", {"signatures": [{"preset": "github"}]})
    request = sent(world, app)
    assert lowered(request)["x-hub-signature-256"] == "sha256=" + hexed(secret, request.body)
    assert "stripe-signature" not in lowered(request)
    assert world.ask("GET", f"{path}/signatures")["inheritedFrom"] == "application"
    # When the endpoint has its own, then only that one signs
    world.ask("PUT", f"{path}/signatures", {"signatures": [OWN]})
    assert {"x-acme-sign"} == {"x-acme-sign", "x-hub-signature-256", "stripe-signature"} & set(
        lowered(sent(world, app))
    )
    assert "inheritedFrom" not in world.ask("GET", f"{path}/signatures")
    # And Standard Webhooks, too, may be an endpoint's own
    world.ask("PUT", f"{path}/signatures", {"signatures": [STANDARD]})
    headers = lowered(sent(world, app))
    assert headers["webhook-signature"] == headers["svix-signature"]
    assert "x-hub-signature-256" not in headers
    # When each is emptied, then the next one signs
    world.ask("PUT", f"{path}/signatures", {"signatures": []})
    assert "x-hub-signature-256" in lowered(sent(world, app))
    world.ask("PUT", f"/app/{app}/signatures", {"signatures": []})
    assert "stripe-signature" in lowered(sent(world, app))
    world.ask("PUT", "/signatures", {"signatures": []})
    assert "webhook-signature" in lowered(sent(world, app))
    assert world.ask("GET", "/signatures") == {"signatures": []}


def test_other_applications_and_projects_are_signed_as_before(world: WebhooksWorld) -> None:
    app, other = world.make_app(), world.make_app("Other")
    world.make_endpoint(other)
    world.ask("PUT", f"/app/{app}/signatures", {"signatures": [{"preset": "stripe"}]})
    assert "webhook-signature" in lowered(sent(world, other))
    world.ask("PUT", "/signatures", {"signatures": [{"preset": "github"}]}, token=world.other_token)
    assert world.ask("GET", "/signatures") == {"signatures": []}
    assert "webhook-signature" in lowered(sent(world, other))
    assert world.call("GET", f"/app/{app}/signatures", token=world.other_token).status == 404


def test_a_rotation_of_the_own_secret_rotates_what_is_inherited(world: WebhooksWorld, app: str) -> None:
    path = f"/app/{app}/endpoint/{world.make_endpoint(app)}"
    world.ask("PUT", f"/app/{app}/signatures", {"signatures": [{"preset": "stripe"}, STANDARD]})
    before = world.ask("GET", f"{path}/secret")["key"]
    after = world.ask("POST", f"{path}/secret/rotate", {"gracePeriodSeconds": 60})["key"]
    request = sent(world, app)
    headers = lowered(request)
    content = headers["webhook-timestamp"].encode() + b"." + request.body
    assert headers["stripe-signature"].split(",")[1:] == [f"v1={hexed(each, content)}" for each in (after, before)]
    assert verified(after, request.headers, request.body)
    world.run(seconds=61)
    assert lowered(sent(world, app))["stripe-signature"].count("v1=") == 1


def test_a_scheme_may_decode_the_secret(world: WebhooksWorld, app: str) -> None:
    secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
    world.make_endpoint(app, secret=secret)
    decoding = {"content": "{body}", "header": {"name": "X-Sign"}, "key": {"prefix": "whsec_", "encoding": "base64"}}
    world.ask("PUT", f"/app/{app}/signatures", {"signatures": [decoding]})
    request = sent(world, app)
    key = base64.b64decode(secret.removeprefix("whsec_"))
    assert lowered(request)["x-sign"] == hmac.digest(key, request.body, hashlib.sha256).hex()


def test_an_asymmetric_key_goes_on_signing_as_standard_webhooks(world: WebhooksWorld, app: str) -> None:
    # Given an Ed25519 key, whose private half no receiver has
    private, public = new_asymmetric()
    endpoint = world.make_endpoint(app, secret=private)
    # When the application has a scheme, then this endpoint is signed as before, and told so
    world.ask("PUT", f"/app/{app}/signatures", {"signatures": [{"preset": "stripe"}]})
    request = sent(world, app)
    assert "stripe-signature" not in lowered(request)
    assert verified(public, request.headers, request.body)
    assert world.ask("GET", f"/app/{app}/endpoint/{endpoint}/signatures") == {"signatures": [STANDARD]}


def test_what_an_endpoint_sends_anyway_gives_way_to_what_it_inherits(world: WebhooksWorld, app: str) -> None:
    world.make_endpoint(app, headers={"STRIPE-signature": "fixed"})
    world.ask("PUT", f"/app/{app}/signatures", {"signatures": [{"preset": "stripe"}]})
    request = sent(world, app)
    names = [name.lower() for name in request.headers]
    assert names.count("stripe-signature") == 1
    assert lowered(request)["stripe-signature"].startswith("t=")


def test_the_hubs_own_events_are_signed_as_before(world: WebhooksWorld) -> None:
    operational = "https://ops.example/in"
    world.ask("POST", "/operational-webhook/endpoint", {"url": operational})
    world.ask("PUT", "/signatures", {"signatures": [{"preset": "stripe"}]})
    world.make_endpoint(world.make_app())
    world.run(seconds=2)
    headers = lowered(world.sender.requests_to(operational)[-1])
    assert "webhook-signature" in headers
    assert "stripe-signature" not in headers


def test_a_client_that_replaces_an_application_leaves_its_scheme(world: WebhooksWorld, app: str) -> None:
    world.ask("PUT", f"/app/{app}/signatures", {"signatures": [{"preset": "stripe"}]})
    world.ask("PUT", f"/app/{app}", {"name": "Acme 2"})
    assert presets(world.ask("GET", f"/app/{app}/signatures")) == ["stripe"]


@pytest.mark.parametrize("path", ["/signatures", "/app/{app}/signatures"])
@pytest.mark.parametrize(
    ("signatures", "place"),
    [
        ([STRIPE], ["0", "secret"]),
        ([{"preset": "twilio"}], ["0", "preset"]),
        ([{"preset": "strip"}], ["0", "preset"]),
        ([{**OWN, "secret": None, "key": {"encoding": "hex"}}], ["0", "key"]),
        ([{**OWN, "secret": None, "key": {"encoding": "base64"}}], ["0", "key"]),
        ([{**OWN, "secret": None, "key": {"prefix": "key_"}}], ["0", "key"]),
        ([{"preset": "stripe"}, {"preset": "stripe"}], ["1", "header", "name"]),
        ([{"preset": "stripe", "endsAt": iso_time(10**12)}, STANDARD], ["0", "endsAt"]),
        ([{"preset": "stripe", "endsAt": "2040-01-01T00:00:00Z"}, STANDARD], ["0", "endsAt"]),
        ([{"preset": "stripe", "endsAt": "2027-01-01T00:00:00Z"}], ["0", "endsAt"]),
        ("stripe", []),
    ],
)
def test_what_could_not_be_right_for_any_endpoint_is_refused_by_name(
    world: WebhooksWorld, path: str, signatures: Any, place: list[str]
) -> None:
    path = path.format(app=world.make_app())
    refused = world.call("PUT", path, {"signatures": signatures})
    assert (refused.status, refused.body["detail"][0]["loc"]) == (422, ["body", "signatures", *place])
    assert world.call("PUT", path, {}).status == 422
    assert world.ask("GET", path) == {"signatures": []}


def test_an_inherited_scheme_ends_too(world: WebhooksWorld, app: str) -> None:
    world.make_endpoint(app)
    ending = [{"preset": "github", "endsAt": iso_time(world.clock.now() + 60_000)}, {"preset": "stripe"}]
    world.ask("PUT", f"/app/{app}/signatures", {"signatures": ending})
    assert {"x-hub-signature-256", "stripe-signature"} <= set(lowered(sent(world, app)))
    world.run(seconds=60)
    assert {"stripe-signature"} == {"x-hub-signature-256", "stripe-signature"} & set(lowered(sent(world, app)))
    assert presets(world.ask("GET", f"/app/{app}/signatures")) == ["stripe"]


def test_portals_may_not_set_what_others_inherit(world: WebhooksWorld, app: str) -> None:
    token = world.ask("POST", f"/auth/app-portal-access/{app}", {})["token"]
    for path in ("/signatures", f"/app/{app}/signatures"):
        for method, body in (("GET", None), ("PUT", {"signatures": [{"preset": "stripe"}]})):
            assert world.call(method, path, body, token=token).status in (401, 403)
