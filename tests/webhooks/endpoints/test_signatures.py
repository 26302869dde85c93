"""Signatures of endpoints through the API and the real push path, on fakes: what is refused, and what is sent."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from typing import Any

import pytest
from tests.webhooks.world import WebhooksWorld

from pushhub.web.signatures import read_signatures, scheme_view

URL = "https://a.example/in"
STANDARD = {"preset": "standard-webhooks"}
STRIPE = {"preset": "stripe", "secret": "whsec_test_stripe_0123456789"}
GITHUB = {"preset": "github", "secret": "It's a Secret to Everybody"}
OWN = {
    "content": "{ts}|{event_type}|{body}",
    "header": {"name": "X-Acme-Sign", "value": "t={ts};{signatures}", "each": "s={signature}", "joiner": ";"},
    "secret": "acme-secret",
}


def sent(world: WebhooksWorld, app: str, url: str = URL) -> Any:
    """The request to an endpoint for a message that is posted now."""
    world.ask("POST", f"/app/{app}/msg", {"eventType": "order.paid", "payload": {"note": "café"}})
    world.run(seconds=1)
    return world.sender.requests_to(url)[-1]


def lowered(request: Any) -> dict[str, str]:
    return {name.lower(): value for name, value in request.headers.items()}


def hexed(secret: str, content: bytes) -> str:
    return hmac.digest(secret.encode(), content, hashlib.sha256).hex()


def test_without_schemes_nothing_is_different(world: WebhooksWorld, app: str) -> None:
    endpoint = world.make_endpoint(app)
    assert world.ask("GET", f"/app/{app}/endpoint/{endpoint}/signatures") == {"signatures": [STANDARD]}
    headers = lowered(sent(world, app))
    assert headers["webhook-signature"] == headers["svix-signature"]


def test_an_endpoint_is_signed_by_its_scheme_instead(world: WebhooksWorld, app: str) -> None:
    # Given an endpoint made with a scheme
    endpoint = world.make_endpoint(app, signatures=[STRIPE])
    # When a message is pushed, then Stripe's receivers accept it, and nothing else claims to be a signature
    request = sent(world, app)
    headers = lowered(request)
    at = headers["webhook-timestamp"]
    assert headers["stripe-signature"] == f"t={at},v1=" + hexed(STRIPE["secret"], at.encode() + b"." + request.body)
    assert headers["webhook-id"].startswith("msg_")
    assert not {"webhook-signature", "svix-id", "svix-timestamp", "svix-signature"} & set(headers)
    # And a PUT by a client that knows nothing of schemes leaves them
    path = f"/app/{app}/endpoint/{endpoint}"
    world.ask("PUT", path, {"url": URL})
    assert "stripe-signature" in lowered(sent(world, app))
    # And its secret is shown to clients in its own writing, and nowhere else
    assert world.ask("GET", f"{path}/secret") == {"key": STRIPE["secret"]}
    shown = world.ask("GET", f"{path}/signatures")["signatures"][0]
    assert STRIPE["secret"] not in json.dumps([shown, world.ask("GET", path)])
    # And a rotation of the key that signs nothing is refused
    refused = world.call("POST", f"{path}/secret/rotate", {})
    assert (refused.status, refused.body["code"]) == (400, "own_signatures")
    # When the list is emptied, then it is signed as before
    assert world.ask("PUT", f"{path}/signatures", {"signatures": []}) == {"signatures": [STANDARD]}
    headers = lowered(sent(world, app))
    assert "stripe-signature" not in headers
    assert headers["webhook-signature"].startswith("v1,")
    assert world.ask("GET", f"{path}/secret")["key"].startswith("whsec_")


def test_two_schemes_sign_the_same_bytes_at_the_same_time(world: WebhooksWorld, app: str) -> None:
    world.make_endpoint(app, signatures=[OWN, STANDARD])
    request = sent(world, app)
    headers = lowered(request)
    at = headers["webhook-timestamp"]
    expected = hexed("acme-secret", f"{at}|order.paid|".encode() + request.body)
    assert headers["x-acme-sign"] == f"t={at};s={expected}"
    assert headers["webhook-signature"] == headers["svix-signature"]


def test_a_retry_is_signed_anew(world: WebhooksWorld, app: str) -> None:
    world.make_endpoint(app, signatures=[STRIPE])
    world.sender.script(URL, 503, 200)
    world.ask("POST", f"/app/{app}/msg", {"eventType": "order.paid", "payload": {}})
    world.run(seconds=60)
    first, second = map(lowered, world.sender.requests_to(URL))
    assert first["webhook-id"] == second["webhook-id"]
    for headers in (first, second):
        at = headers["webhook-timestamp"]
        assert headers["stripe-signature"] == f"t={at},v1=" + hexed(STRIPE["secret"], f"{at}.".encode() + b"{}")
    assert first["webhook-timestamp"] < second["webhook-timestamp"]


def test_a_new_secret_replaces_the_one_of_the_same_header(world: WebhooksWorld, app: str) -> None:
    path = f"/app/{app}/endpoint/{world.make_endpoint(app, signatures=[STRIPE])}/signatures"
    # When what is shown is sent back, then nothing changes
    shown = world.ask("GET", path)
    assert world.ask("PUT", path, shown) == shown
    # When a new secret is given, then both sign for the time that is asked for
    (changed,) = world.ask("PUT", path, {"signatures": [{**STRIPE, "secret": "new", "gracePeriodSeconds": 60}]})[
        "signatures"
    ]
    assert len(changed["oldSecretsEnd"]) == 1
    request = sent(world, app)
    headers = lowered(request)
    content = headers["webhook-timestamp"].encode() + b"." + request.body
    signatures = [f"v1={hexed(each, content)}" for each in ("new", STRIPE["secret"])]
    assert headers["stripe-signature"].split(",")[1:] == signatures
    world.run(seconds=61)
    assert lowered(sent(world, app))["stripe-signature"].count("v1=") == 1
    # And a header that holds one value gets the new one at once
    world.ask("PUT", path, {"signatures": [GITHUB]})
    world.ask("PUT", path, {"signatures": [{**GITHUB, "secret": "other"}]})
    request = sent(world, app)
    assert lowered(request)["x-hub-signature-256"] == "sha256=" + hexed("other", request.body)


def test_twilio_signs_the_url_as_it_is_called(world: WebhooksWorld, app: str) -> None:
    endpoint = world.make_endpoint(
        app, "https://user:word@A.example:443/ü?x=1#part", signatures=[{"preset": "twilio", "secret": "12345"}]
    )
    world.ask("POST", f"/app/{app}/msg", {"eventType": "order.paid", "payload": {}})
    world.run(seconds=1)
    (request,) = world.sender.requests
    digest = hashlib.sha256(request.body).hexdigest()
    assert request.url.endswith(f"@a.example/ü?x=1&bodySHA256={digest}")
    seen = f"https://a.example/%C3%BC?x=1&bodySHA256={digest}"
    expected = base64.b64encode(hmac.digest(b"12345", seen.encode(), "sha1")).decode()
    assert lowered(request)["x-twilio-signature"] == expected
    # And a URL that already has that parameter is refused
    refused = world.call("PATCH", f"/app/{app}/endpoint/{endpoint}", {"url": f"{URL}?bodySHA256=x"})
    assert (refused.status, refused.body["detail"][0]["loc"]) == (422, ["body", "url"])


def changed(base: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {**base, **more}


def header(**more: Any) -> dict[str, Any]:
    return {**OWN, "header": {"name": "X-Acme-Sign", **more}}


@pytest.mark.parametrize(
    ("signatures", "place"),
    [
        ("stripe", []),
        ([STRIPE] * 3, []),
        (["stripe"], ["0"]),
        ([{"preset": "strip", "secret": "x"}], ["0", "preset"]),
        ([{"preset": "stripe"}], ["0", "secret"]),
        ([{**STANDARD, "secret": "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"}], ["0", "secret"]),
        ([{**STRIPE, "contnet": "{body}"}], ["0", "contnet"]),
        ([{**STRIPE, "content": "{body}"}], ["0", "content"]),
        ([{**STRIPE, "header": {"name": "X-Other"}}], ["0", "header", "name"]),
        ([{**STRIPE, "headers": {"X-Other": "x"}}], ["0", "headers"]),
        ([{**STRIPE, "query": {"a": "{sha256:body}"}}], ["0", "query"]),
        ([{**STRIPE, "secret": ""}], ["0", "secret"]),
        ([{**STRIPE, "secret": "x" * 257}], ["0", "secret"]),
        ([{**STRIPE, "secret": "pasted\n"}], ["0", "secret"]),
        ([{**STRIPE, "secret": 5}], ["0", "secret"]),
        ([{**STRIPE, "gracePeriodSeconds": 604_801}], ["0", "gracePeriodSeconds"]),
        ([{**STRIPE, "gracePeriodSeconds": True}], ["0", "gracePeriodSeconds"]),
        ([{**GITHUB, "gracePeriodSeconds": 60}], ["0", "gracePeriodSeconds"]),
        ([{"preset": "shopify", "secret": "hush"}], ["0", "headers", "x-shopify-shop-domain"]),
        ([{"preset": "hmac-body", "secret": "x"}], ["0", "header", "name"]),
        ([STRIPE, STRIPE], ["1", "header", "name"]),
        (
            [{"preset": "convoy-simple", "secret": "x"}, {"preset": "convoy-advanced", "secret": "x"}],
            ["1", "header", "name"],
        ),
        ([changed(OWN, secret="1234567")], ["0", "secret"]),
        ([changed(OWN, content=None)], ["0", "content"]),
        ([changed(OWN, content="{ts}")], ["0", "content"]),
        ([changed(OWN, content="{body}{body}")], ["0", "content"]),
        ([changed(OWN, content="{body}{secret}")], ["0", "content"]),
        ([changed(OWN, content="{body}{header:x-none}")], ["0", "content"]),
        ([changed(OWN, content="{body}{")], ["0", "content"]),
        ([changed(OWN, content="{body}{}")], ["0", "content"]),
        ([changed(OWN, content="{body}" + "x" * 495)], ["0", "content"]),
        ([changed(OWN, hash="md5")], ["0", "hash"]),
        ([changed(OWN, hash="sha1")], ["0", "hash"]),
        ([changed(OWN, legacy="yes")], ["0", "legacy"]),
        ([changed(OWN, encoding="base32")], ["0", "encoding"]),
        ([changed(OWN, key={"encoding": "hex"})], ["0", "secret"]),
        ([changed(OWN, key={"prefix": "key_"})], ["0", "secret"]),
        ([changed(OWN, key={"prefix": "x" * 33}, secret="x" * 50)], ["0", "key", "prefix"]),
        ([changed(OWN, key="utf8")], ["0", "key"]),
        ([changed(OWN, key={"size": "8"})], ["0", "key", "size"]),
        ([changed(OWN, header="X-Sign")], ["0", "header"]),
        ([header(name="")], ["0", "header", "name"]),
        ([header(name="X Sign")], ["0", "header", "name"]),
        ([header(name="webhook-signature")], ["0", "header", "name"]),
        ([header(name="Content-Type")], ["0", "header", "name"]),
        ([header(name="Host")], ["0", "header", "name"]),
        ([header(value="v1")], ["0", "header", "value"]),
        ([header(value="{signatures}{signatures}")], ["0", "header", "value"]),
        ([header(value="{signatures}{body}")], ["0", "header", "value"]),
        ([header(value="ü{signatures}")], ["0", "header", "value"]),
        ([header(value="a\r\nX: {signatures}")], ["0", "header", "value"]),
        ([header(value=" {signatures}")], ["0", "header", "value"]),
        ([header(each="v1")], ["0", "header", "each"]),
        ([header(each="{signature}" + "x" * 480, keys="all")], ["0", "header", "value"]),
        ([header(joiner="")], ["0", "header", "joiner"]),
        ([header(joiner="\n")], ["0", "header", "joiner"]),
        ([header(keys="some")], ["0", "header", "keys"]),
        ([changed(OWN, headers=["x"])], ["0", "headers"]),
        ([changed(OWN, headers={"X-A": "1", "x-a": "2"})], ["0", "headers"]),
        ([changed(OWN, headers={"X-Acme-Sign": "1"})], ["0", "headers"]),
        ([changed(OWN, headers={"X-A": "{body}"})], ["0", "headers", "X-A"]),
        ([changed(OWN, headers={"X-A": "é"})], ["0", "headers", "X-A"]),
        ([changed(OWN, headers={"svix-id": "{id}"})], ["0", "headers", "svix-id"]),
        ([changed(OWN, headers={f"X-{number}": "1" for number in range(11)})], ["0", "headers"]),
    ],
)
def test_what_could_not_be_right_is_refused_by_name(world: WebhooksWorld, signatures: Any, place: list[str]) -> None:
    app = world.make_app()
    endpoint = world.make_endpoint(app)
    path = f"/app/{app}/endpoint/{endpoint}"
    for method, where, body in (
        ("PUT", f"{path}/signatures", {"signatures": signatures}),
        ("POST", f"/app/{app}/endpoint", {"url": URL, "signatures": signatures}),
    ):
        refused = world.call(method, where, body)
        assert refused.status == 422, refused
        assert refused.body["detail"][0]["loc"] == ["body", "signatures", *place]
    assert world.ask("GET", f"{path}/signatures") == {"signatures": [STANDARD]}


def test_signatures_url_and_headers_go_together_whichever_is_set_last(world: WebhooksWorld, app: str) -> None:
    endpoint = world.make_endpoint(app, headers={"x-hub-signature-256": "fixed"})
    path = f"/app/{app}/endpoint/{endpoint}"
    # Given a header of the endpoint's own that a scheme sets, then the scheme is refused
    refused = world.call("PUT", f"{path}/signatures", {"signatures": [GITHUB]})
    assert (refused.status, refused.body["detail"][0]["loc"]) == (422, ["body", "signatures"])
    # And the other way round
    world.ask("PUT", f"{path}/signatures", {"signatures": [STRIPE]})
    for method in ("PUT", "PATCH"):
        refused = world.call(method, f"{path}/headers", {"headers": {"STRIPE-Signature": "x"}})
        assert (refused.status, refused.body["detail"][0]["loc"]) == (422, ["body", "headers"])
    # And an endpoint that is signed stays an HTTP one
    refused = world.call("PATCH", path, {"url": "topic://acme/orders"})
    assert (refused.status, refused.body["detail"][0]["loc"]) == (422, ["body", "url"])
    # And a secret that would sign nothing is refused
    body = {"url": URL, "secret": "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "signatures": [STRIPE]}
    assert world.call("POST", f"/app/{app}/endpoint", body).status == 422


def test_a_portal_needs_the_secrets_capability(world: WebhooksWorld, app: str) -> None:
    path = f"/app/{app}/endpoint/{world.make_endpoint(app)}/signatures"
    for capability, statuses in (("ManageEndpoint", (403, 403)), ("ManageEndpointSecret", (403, 200))):
        access = world.ask("POST", f"/auth/app-portal-access/{app}", {"capabilities": ["ViewBase", capability]})
        got = (
            world.call("GET", path, token=access["token"]),
            world.call("PUT", path, {"signatures": [STRIPE]}, token=access["token"]),
        )
        assert tuple(each.status for each in got) == statuses


@pytest.mark.parametrize(
    "given",
    [
        STANDARD,
        STRIPE,
        GITHUB,
        {"preset": "slack", "secret": "s"},
        {"preset": "twilio", "secret": "s"},
        {"preset": "outpost", "secret": "s", "encoding": "base64"},
        {"preset": "hook0", "secret": "s", "header": {"name": "X-Mine"}},
        {"preset": "convoy-simple", "secret": "s", "hash": "sha512", "encoding": "base64"},
        {"preset": "convoy-advanced", "secret": "s"},
        {
            "preset": "shopify",
            "secret": "hush",
            "headers": {"X-Shopify-Shop-Domain": "acme.example", "X-Shopify-API-Version": "2026-10"},
        },
        {
            "preset": "hmac-body",
            "secret": "73",
            "header": {"name": "X-Sign", "value": "sha1={signatures}"},
            "hash": "sha1",
            "legacy": True,
            "key": {"encoding": "hex"},
        },
        {**OWN, "headers": {"X-Kind": "{event_type}"}, "content": "{header:x-kind}{{}}{url}{body}"},
    ],
)
def test_what_is_shown_may_be_sent_back(given: dict[str, Any]) -> None:
    (read,) = read_signatures([given])
    (again,) = read_signatures([scheme_view(read.scheme)])
    assert again.scheme == read.scheme
