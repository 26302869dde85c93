"""Endpoints: their fields, secrets and headers."""

from __future__ import annotations

import re

from svix import models
from svix.models import EndpointHeadersPatchIn, EndpointIn
from tests.stack.webhooks.judge.stage import OLD, Stage, is_invalid, types_of

URL = "http://127.0.0.1:9/nobody"


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
