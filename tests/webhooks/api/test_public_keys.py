"""Public keys at a URL: with what a receiver fetches there it can verify its messages, and nobody learns more than
that.
"""

from __future__ import annotations

import base64
import hashlib
import json
from typing import Any
from urllib.parse import urlsplit

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from tests.engine.world import PROJECT
from tests.fakes.verifier import new_asymmetric, verified
from tests.webhooks.world import WebhooksWorld

from pushhub.base.ports import PushRequest


def raw(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def fetched(world: WebhooksWorld, url: str) -> list[dict[str, str]]:
    """What anyone gets at the URL."""
    parts = urlsplit(url)
    assert f"{parts.scheme}://{parts.netloc}" == world.ports.base_url
    answer = world.call("GET", parts.path.removeprefix("/api/v1"), token="")
    assert answer.status == 200
    assert answer.headers["Cache-Control"] == "public, max-age=300"
    return list(answer.body["keys"])


def verifies(key: dict[str, Any], request: PushRequest) -> bool:
    """Whether a key of the set made one of the signatures, checked as by a receiver that knows only RFC 7517 and
    Standard Webhooks.
    """
    headers = request.headers
    content = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + request.body
    for each in headers["webhook-signature"].split(" "):
        version, _, signature = each.partition(",")
        if version == "v1a":
            try:
                Ed25519PublicKey.from_public_bytes(raw(key["x"])).verify(base64.b64decode(signature), content)
            except InvalidSignature:
                continue
            return True
    return False


def sent(world: WebhooksWorld, app: str) -> PushRequest:
    world.ask("POST", f"/app/{app}/msg", {"eventType": "a", "payload": {"b": "ü"}})
    world.run(seconds=5)
    return world.sender.requests[-1]


def test_a_receiver_verifies_with_what_it_fetches_also_during_a_rotation(world: WebhooksWorld) -> None:
    # Given an endpoint with an Ed25519 key
    first, first_public = new_asymmetric()
    second, second_public = new_asymmetric()
    app = world.make_app(uid="acme")
    endpoint = world.make_endpoint(app, secret=first)
    shown = world.ask("GET", f"/app/acme/endpoint/{endpoint}/secret")
    assert shown["key"] == first_public
    # Then the key at its URL verifies its messages
    [key] = fetched(world, shown["publicKeysUrl"])
    assert key["whpk"] == first_public
    assert verifies(key, sent(world, app))
    # And during a rotation both keys do, the new one first, each identified by its thumbprint
    world.ask("POST", f"/app/{app}/endpoint/{endpoint}/secret/rotate", {"key": second, "gracePeriodSeconds": 600})
    keys = fetched(world, shown["publicKeysUrl"])
    assert [each["whpk"] for each in keys] == [second_public, first_public]
    request = sent(world, app)
    assert all(verifies(each, request) for each in keys)
    assert all(verified(each["whpk"], request.headers, request.body) for each in keys)
    for each in keys:
        needed = {name: each[name] for name in ("crv", "kty", "x")}
        digest = hashlib.sha256(json.dumps(needed, separators=(",", ":")).encode()).digest()
        assert raw(each["kid"]) == digest
        assert (each["kty"], each["crv"], each["alg"], each["use"]) == ("OKP", "Ed25519", "EdDSA", "sig")
    world.clock.advance(seconds=601)
    assert [each["whpk"] for each in fetched(world, shown["publicKeysUrl"])] == [second_public]


def test_symmetric_keys_are_never_in_it(world: WebhooksWorld, app: str) -> None:
    endpoint = world.make_endpoint(app)
    shown = world.ask("GET", f"/app/{app}/endpoint/{endpoint}/secret")
    assert "publicKeysUrl" not in shown
    assert world.ask("GET", f"/public-key/{PROJECT}/{app}/{endpoint}", token="") == {"keys": []}


def test_an_operational_endpoint_has_them_too(world: WebhooksWorld) -> None:
    private, public = new_asymmetric()
    created = world.ask("POST", "/operational-webhook/endpoint", {"url": "https://a.example/op", "secret": private})
    url = world.ask("GET", f"/operational-webhook/endpoint/{created['id']}/secret")["publicKeysUrl"]
    assert [each["whpk"] for each in fetched(world, url)] == [public]


def test_nothing_is_found_by_what_can_be_guessed(world: WebhooksWorld) -> None:
    app = world.make_app(uid="acme")
    endpoint = world.make_endpoint(app, uid="crm", secret=new_asymmetric()[0])
    gone = world.make_endpoint(app, secret=new_asymmetric()[0])
    world.ask("DELETE", f"/app/{app}/endpoint/{gone}")
    project = PROJECT
    for path in (
        *(
            f"{project}/acme/{endpoint}",
            f"{project}/{app}/crm",
            f"{'0' * 24}/{app}/{endpoint}",
            f"{project}/{app}/{gone}",
        ),
        *(
            f"{project}%23/{app}/{endpoint}",
            f"{project}/{app}%23x/{endpoint}",
            f"x/{app}/{endpoint}",
            f"{project}/ü/%00",
        ),
        *(f"{project}/{app}/{endpoint[:-1]}", f"{project}/{app}/{'e' * 9000}"),
    ):
        answer = world.call("GET", f"/public-key/{path}", token="")
        assert (answer.status, answer.body["code"]) == (404, "not_found"), path
