"""Endpoints: their fields, secrets and headers."""

from __future__ import annotations

import base64
import re
import secrets

from svix import Webhook, WebhookVerificationError, models
from svix.models import EndpointHeadersPatchIn, EndpointIn, EndpointSecretRotateIn
from tests.stack.webhooks.judge.receiver import Delivery
from tests.stack.webhooks.judge.stage import OLD, Stage, is_invalid, refused, today, types_of, unprocessable

URL = "http://127.0.0.1:9/nobody"


def verifies(secret: str, delivery: Delivery) -> bool:
    """Whether the client's own verifier accepts a delivery."""
    try:
        Webhook(secret).verify(delivery.body, delivery.headers)
    except WebhookVerificationError:
        return False
    return True


def check_12_an_endpoint_needs_only_a_url(stage: Stage) -> None:
    app = stage.app()
    nulls = dict.fromkeys(("metadata", "channels", "secret", "uid", "throttle_rate", "headers"))
    types = {"filter_types" if OLD else "event_types": None}
    for fields in ({}, {**nulls, **types}):
        created = stage.svix.endpoint.create(app.id, EndpointIn(url=URL, **fields))
        assert re.fullmatch(r"ep_[0-9A-Za-z]{27}", created.id)
        assert (created.url, created.description, created.metadata, created.disabled) == (URL, "", {}, False)
        assert (created.uid, created.throttle_rate, created.channels, types_of(created)) == (None, None, None, None)
        assert created.updated_at >= created.created_at
        assert stage.svix.endpoint.get(app.id, created.id) == created
    for field in ("description", "disabled", "url"):
        is_invalid(stage.raw("PATCH", f"/app/{app.id}/endpoint/{created.id}", {field: None}))
    kept = stage.svix.endpoint.create(app.id, EndpointIn(url="http://localhost/webhook/receiver"))
    assert kept.url == "http://localhost/webhook/receiver"


def check_17_upsert_replaces_or_creates(stage: Stage) -> None:
    app, name = stage.app(), stage.event_type()
    built, _ = stage.endpoint(app, types=[name], channels=["c"], metadata={"a": "b"}, description="d", throttle_rate=4)
    secret = stage.secret(app, built)
    put = stage.upsert_endpoint(app.id, built.id, url=URL)
    assert (put.id, put.url, put.description, put.metadata, put.throttle_rate) == (built.id, URL, "", {}, None)
    assert (put.channels, types_of(put)) == (None, None)
    assert stage.secret(app, built) == secret, "the secret is no part of what is replaced"
    path = f"/app/{app.id}/endpoint"
    assert stage.raw("PUT", f"{path}/{built.id}", {"url": URL}).status == 200
    created = stage.raw("PUT", f"{path}/ep_000000000000000000000000000", {"url": URL, "uid": "new"})
    assert created.status == 201, created.content
    assert stage.svix.endpoint.get(app.id, "new").id == created.json["id"]


def check_18_secrets_are_generated_or_given(stage: Stage) -> None:
    app = stage.app()
    created, _ = stage.endpoint(app)
    kind, _, encoded = stage.secret(app, created).partition("_")
    assert kind == "whsec"
    assert len(base64.b64decode(encoded, validate=True)) == 24
    for size in (24, 75):
        given = "whsec_" + base64.b64encode(secrets.token_bytes(size)).decode()
        assert stage.secret(app, stage.endpoint(app, secret=given)[0]) == given
    for wrong in (
        "whsec_" + base64.b64encode(bytes(23)).decode(),
        "whsec_" + base64.b64encode(bytes(76)).decode(),
        "other_" + base64.b64encode(bytes(24)).decode(),
        "whsec_????????????????????????????????",
    ):
        unprocessable(stage.endpoint, app, secret=wrong)


def check_19_a_rotated_key_signs_on_for_its_time(stage: Stage) -> None:
    app = stage.app()
    endpoint, inbox = stage.endpoint(app)
    first = stage.secret(app, endpoint)
    second = "whsec_" + base64.b64encode(secrets.token_bytes(32)).decode()
    answer = stage.raw("POST", f"/app/{app.id}/endpoint/{endpoint.id}/secret/rotate", {"key": second})
    assert answer.status == 200, answer.content
    assert answer.json["key"] == second
    assert stage.secret(app, endpoint) == second
    both = inbox.of(stage.post(app).id)[0]
    assert len(both.signatures) == 2
    assert verifies(first, both)
    assert verifies(second, both)
    assert Webhook(second).sign(both.id, _at(both), both.body.decode()) == both.signatures[0], "the current key first"
    # With no time of grace the old keys end at once; a key that was replaced with some signs on.
    third = stage.rotate(app, endpoint, grace_period_seconds=0)
    alone = inbox.of(stage.post(app).id)[0]
    assert verifies(third, alone)
    assert not verifies(second, alone)
    for wrong in (-1, 604_801):
        unprocessable(
            stage.svix.endpoint.rotate_secret, app.id, endpoint.id, EndpointSecretRotateIn(grace_period_seconds=wrong)
        )
    # Ten old keys at most are live.
    crowded, _ = stage.endpoint(app)
    for _ in range(10):
        stage.rotate(app, crowded)
    error = refused(400, stage.svix.endpoint.rotate_secret, app.id, crowded.id, EndpointSecretRotateIn())
    assert error.code == "limit_reached"


@today
def check_20_ed25519_keys_sign_v1a(stage: Stage) -> None:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey  # noqa: PLC0415
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat  # noqa: PLC0415

    private = Ed25519PrivateKey.generate()
    public = private.public_key()
    public_bytes = public.public_bytes(Encoding.Raw, PublicFormat.Raw)
    app = stage.app()
    key = "whsk_" + base64.b64encode(private.private_bytes_raw() + public_bytes).decode()
    endpoint, inbox = stage.endpoint(app, secret=key)
    assert stage.secret(app, endpoint) == "whpk_" + base64.b64encode(public_bytes).decode()
    delivery = inbox.of(stage.post(app).id)[0]
    (signature,) = delivery.signatures
    version, _, encoded = signature.partition(",")
    signed = f"{delivery.id}.{delivery.headers['webhook-timestamp']}.".encode() + delivery.body
    assert version == "v1a"
    public.verify(base64.b64decode(encoded), signed)
    # While the key is exchanged for a shared one, both kinds stand side by side.
    secret = stage.rotate(app, endpoint, key="whsec_" + base64.b64encode(secrets.token_bytes(24)).decode())
    both = inbox.of(stage.post(app).id)[0]
    assert [each.partition(",")[0] for each in both.signatures] == ["v1", "v1a"]
    assert verifies(secret, both)
    mismatched = "whsk_" + base64.b64encode(private.private_bytes_raw() + bytes(32)).decode()
    unprocessable(stage.endpoint, app, secret=mismatched)


def check_22_endpoint_headers_are_set_merged_and_deleted(stage: Stage) -> None:
    app = stage.app()
    endpoint, inbox = stage.endpoint(app)
    stage.set_headers(app, endpoint, {"X-My-Case": "1", "authorization": "Bearer hidden", "X-Other": "2"})
    shown = stage.svix.endpoint.get_headers(app.id, endpoint.id)
    assert shown.headers == {"X-My-Case": "1", "X-Other": "2"}
    assert shown.sensitive == ["authorization"]
    patch = stage.svix.endpoint.patch_headers
    patch(app.id, endpoint.id, EndpointHeadersPatchIn(headers={"X-New": "3", "X-My-Case": "1b"}))
    patch(app.id, endpoint.id, EndpointHeadersPatchIn(headers={}, delete_headers=["X-Other"]))
    path = f"/app/{app.id}/endpoint/{endpoint.id}/headers"
    assert stage.raw("PATCH", path, {"headers": {"X-New": None, "X-Last": "4"}}).status in (200, 204)
    assert stage.svix.endpoint.get_headers(app.id, endpoint.id).headers == {"X-My-Case": "1b", "X-Last": "4"}
    stage.post(app)
    delivery = inbox.one()
    assert {"X-My-Case", "X-Last"} <= set(delivery.names), "as they are spelled"
    assert (delivery.headers["x-my-case"], delivery.headers["authorization"]) == ("1b", "Bearer hidden")
    for name in ("User-Agent", "content-length", "Content-Type", "X-Amz-Date", "svix-id", "x-svix-y", "webhook-id"):
        is_invalid(stage.raw("PUT", path, {"headers": {name: "x"}}))
        is_invalid(stage.raw("PATCH", path, {"headers": {name: "x"}}))
    for name, value in (("X-A", "x" * 4097), ("X-A", "a\r\nb: c"), ("a b", "x"), ("", "x")):
        is_invalid(stage.raw("PUT", path, {"headers": {name: value}}))
    if not OLD:
        created = stage.svix.endpoint.create(app.id, models.EndpointIn(url=URL, headers={"X-At-Create": "5"}))
        assert stage.svix.endpoint.get_headers(app.id, created.id).headers == {"X-At-Create": "5"}


def _at(delivery: Delivery):  # type: ignore[no-untyped-def]
    from datetime import UTC, datetime  # noqa: PLC0415

    return datetime.fromtimestamp(int(delivery.headers["webhook-timestamp"]), UTC)
