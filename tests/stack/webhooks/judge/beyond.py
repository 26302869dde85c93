"""What Svix keeps for its cloud and this hub has: the portal's tokens, operational webhooks, replays and their tasks,
and what it has not.
"""

from __future__ import annotations

import json
import secrets
import time
from datetime import UTC, datetime, timedelta
from typing import Any

from svix import Webhook, models
from svix.models import ApplicationTokenExpireIn, AppPortalAccessIn, BulkReplayIn, EndpointIn, ReplayIn
from tests.stack.webhooks.judge.receiver import Answer, Inbox
from tests.stack.webhooks.judge.stage import (
    OLD,
    TYPES,
    Stage,
    is_invalid,
    options,
    refused,
    today,
    unprocessable,
    until,
)

MISSING = (
    ("GET", "/stream"),
    ("POST", "/stream"),
    ("GET", "/connector"),
    ("POST", "/connector"),
    ("GET", "/app/{}/integration"),
    ("POST", "/app/{}/integration"),
    ("GET", "/app/{}/destination"),
    ("POST", "/app/{}/autoconfig"),
    ("GET", "/app/{}/endpoint/{}/transformation"),
    ("PATCH", "/app/{}/endpoint/{}/transformation"),
    ("PUT", "/app/{}/endpoint/{}/auto-config"),
    ("POST", "/auth/stream-logout"),
)


def value(of: Any) -> str:
    """The text of an enum's member."""
    return str(getattr(of, "value", of))


def check_43_a_portal_token_opens_its_own_application_only(stage: Stage) -> None:
    app, neighbour = stage.app(), stage.app()
    endpoint, inbox = stage.endpoint(app)
    message = stage.post(app)
    inbox.one()
    access = stage.svix.authentication.app_portal_access(app.id, AppPortalAccessIn())
    assert access.url.startswith("http")
    assert access.token
    portal = stage.client(access.token)
    assert portal.application.get(app.id).id == app.id
    assert [each.id for each in portal.endpoint.list(app.id).data] == [endpoint.id]
    made = portal.endpoint.create(app.id, EndpointIn(url=stage.receiver.inbox().url))
    assert portal.endpoint.get_secret(app.id, made.id).key
    portal.endpoint.delete(app.id, made.id)
    assert portal.message.get(app.id, message.id).id == message.id
    portal.message_attempt.resend(app.id, message.id, endpoint.id)
    portal.event_type.list()
    for call, arguments in (
        (portal.application.list, ()),
        (portal.application.delete, (app.id,)),
        (portal.application.create, (models.ApplicationIn(name="x"),)),
        (portal.message.create, (app.id, models.MessageIn(event_type="a", payload={}))),
        (portal.message.expunge_content, (app.id, message.id)),
        (portal.event_type.create, (models.EventTypeIn(name="portal.made", description="x"),)),
        (portal.authentication.app_portal_access, (app.id, AppPortalAccessIn())),
    ):
        refused(403, call, *arguments)
    refused(404, portal.application.get, neighbour.id)
    refused(404, portal.endpoint.list, neighbour.id)
    assert stage.raw("POST", f"/auth/dashboard-access/{app.id}").json["token"]
    if OLD:
        assert stage.svix.authentication.dashboard_access(app.id).token
    for wrong in ({"expiry": 3599}, {"expiry": 604_801}, {"sessionId": "a b"}, {"capabilities": ["Everything"]}):
        is_invalid(stage.raw("POST", f"/auth/app-portal-access/{app.id}", wrong))
    refused(404, stage.svix.authentication.app_portal_access, "app_000000000000000000000000000", AppPortalAccessIn())


def check_43_a_portal_token_does_no_more_than_it_may(stage: Stage) -> None:
    app = stage.app()
    endpoint, _ = stage.endpoint(app)
    body = {"capabilities": ["ViewBase"]}
    token = stage.raw("POST", f"/auth/app-portal-access/{app.id}", body).json["token"]
    viewer = stage.client(token)
    assert viewer.endpoint.get(app.id, endpoint.id).id == endpoint.id
    refused(403, viewer.endpoint.get_secret, app.id, endpoint.id)
    refused(403, viewer.endpoint.delete, app.id, endpoint.id)
    refused(403, viewer.endpoint.create, app.id, EndpointIn(url="http://127.0.0.1:9/"))
    read_only = stage.raw("POST", f"/auth/app-portal-access/{app.id}", {"readOnly": True}).json["token"]
    refused(403, stage.client(read_only).endpoint.delete, app.id, endpoint.id)


def check_43_portal_tokens_are_revoked(stage: Stage) -> None:
    app = stage.app()
    access = stage.svix.authentication.app_portal_access
    tokens = [access(app.id, AppPortalAccessIn(session_id=name)).token for name in ("one", "two", "three")]
    one, two, three = map(stage.client, tokens)
    one.authentication.logout()
    assert refused(401, one.endpoint.list, app.id).code == "authentication_failed"
    two.endpoint.list(app.id)
    stage.svix.authentication.expire_all(app.id, ApplicationTokenExpireIn(expiry=0, session_ids=["two"]))
    refused(401, two.endpoint.list, app.id)
    three.endpoint.list(app.id)
    stage.svix.authentication.expire_all(app.id, ApplicationTokenExpireIn(expiry=0))
    refused(401, three.endpoint.list, app.id)
    stage.client(access(app.id, AppPortalAccessIn()).token).endpoint.list(app.id)
    refused(403, stage.svix.authentication.logout)


def operational(stage: Stage) -> tuple[str, str, Inbox]:
    """A new operational endpoint: its id, secret and deliveries."""
    inbox = stage.receiver.inbox()
    body = {"url": inbox.url, "description": "operations"}
    made = stage.raw("POST", "/operational-webhook/endpoint", body)
    assert made.status == 201, made.content
    key = stage.raw("GET", f"/operational-webhook/endpoint/{made.json['id']}/secret").json["key"]
    return made.json["id"], key, inbox


def told(inbox: Inbox, event: str, endpoint_id: str) -> dict[str, Any]:
    """The operational event of a kind about an endpoint."""

    def found() -> dict[str, Any] | None:
        for each in (json.loads(delivery.body) for delivery in inbox.came):
            if each["type"] == event and each["data"].get("endpointId") == endpoint_id:
                data: dict[str, Any] = each["data"]
                return data
        return None

    return until(found, lambda: f"{event} of {endpoint_id} among {[each.body for each in inbox.came]}")


def check_44_operational_events_are_told(stage: Stage) -> None:
    key_id, key, inbox = operational(stage)
    uid = f"u-{secrets.token_hex(4)}"
    app = stage.app(uid=uid)
    endpoint, _ = stage.endpoint(app, Answer(status=410), uid="e")
    wanted = {"appId": app.id, "appUid": uid, "endpointId": endpoint.id, "endpointUid": "e"}
    assert told(inbox, "endpoint.created", endpoint.id) == wanted
    stage.patch_endpoint(app, endpoint, description="new")
    assert told(inbox, "endpoint.updated", endpoint.id) == wanted
    message = stage.post(app)
    disabled = told(inbox, "endpoint.disabled", endpoint.id)
    assert {name: disabled[name] for name in ("appId", "appUid", "endpointId")} == {
        name: wanted[name] for name in ("appId", "appUid", "endpointId")
    }
    exhausted = told(inbox, "message.attempt.exhausted", endpoint.id)
    assert (exhausted["appId"], exhausted["msgId"]) == (app.id, message.id)
    assert exhausted["lastAttempt"]["responseStatusCode"] == 410
    assert {"id", "timestamp"} <= set(exhausted["lastAttempt"])
    stage.svix.endpoint.delete(app.id, endpoint.id)
    assert told(inbox, "endpoint.deleted", endpoint.id) == wanted
    for delivery in inbox.came:
        Webhook(key).verify(delivery.body, delivery.headers)
    kinds = [json.loads(each.body)["type"] for each in inbox.came if endpoint.id in each.body.decode()]
    assert len(kinds) == len(set(kinds)), f"each is said once: {kinds}"
    assert stage.raw("DELETE", f"/operational-webhook/endpoint/{key_id}").status == 204


def check_44_operational_endpoints_are_a_resource(stage: Stage) -> None:
    client = stage.svix.operational_webhook_endpoint if OLD else stage.svix.operational_webhook.endpoint
    made = client.create(
        models.OperationalWebhookEndpointIn(url="http://127.0.0.1:9/", **{TYPES: ["endpoint.created"]})
    )
    assert getattr(made, TYPES) == ["endpoint.created"]
    assert client.get(made.id).id == made.id
    assert made.id in [each.id for each in client.list().data]
    secret = client.get_secret(made.id).key
    assert secret.startswith("whsec_")
    path = f"/operational-webhook/endpoint/{made.id}"
    assert stage.raw("POST", f"{path}/secret/rotate", {}).status in (200, 204)
    assert client.get_secret(made.id).key != secret
    put = stage.raw("PUT", path, {"url": "http://127.0.0.1:9/put"})
    assert (put.status, put.json["url"]) == (200, "http://127.0.0.1:9/put")
    assert stage.raw("PUT", f"{path}/headers", {"headers": {"X-Op": "1"}}).status in (200, 204)
    assert stage.raw("GET", f"{path}/headers").json["headers"] == {"X-Op": "1"}
    is_invalid(stage.raw("POST", "/operational-webhook/endpoint", {"url": "nonsense"}))
    client.delete(made.id)
    refused(404, client.get, made.id)
    assert stage.raw("GET", f"/app/{made.id}").status == 404


def check_48_what_is_missing_says_so_at_once(stage: Stage) -> None:
    app = stage.app()
    for method, path in MISSING:
        began = time.monotonic()
        answer = stage.raw(method, path.format(app.id, "ep_x"), {} if method != "GET" else None)
        assert answer.status == 404, (method, path, answer.status)
        assert answer.json["code"]
        assert answer.json["detail"]
        assert time.monotonic() - began < 20
    refused(404, stage.svix.connector.list)
    refused(404, stage.svix.integration.list, app.id)
    refused(404, stage.svix.ingest.source.list)


def check_52_replay_missing_delivers_what_was_never_sent(stage: Stage) -> None:
    app = stage.app()
    began = datetime.now(UTC) - timedelta(minutes=1)
    first, first_inbox = stage.endpoint(app)
    messages = [stage.post(app, payload={"n": number}) for number in range(3)]
    first_inbox.wait(3)
    late, inbox = stage.endpoint(app)
    seen = stage.post(app)
    inbox.of(seen.id)
    stage.attempts(app, seen, 2)
    task = stage.svix.endpoint.replay_missing(app.id, late.id, ReplayIn(since=began))
    assert (value(task.task), value(task.status)) == ("endpoint.replay", "running")

    def finished() -> Any:
        found = stage.svix.background_task.get(task.id)
        assert value(found.status) != "failed", found
        return found if value(found.status) == "finished" else None

    done = until(finished, f"{task.id} to finish")
    assert done.data["messagesSent"] == 3
    for message in messages:
        inbox.of(message.id)
    assert len(inbox.came) == 4
    listed = stage.svix.background_task.list(options("BackgroundTaskListOptions", task="endpoint.replay"))
    assert task.id in [each.id for each in listed.data]
    refused(404, stage.svix.background_task.get, "qtask_000000000000000000000000000")
    refused(404, stage.other.background_task.get, task.id)
    long_ago = datetime.now(UTC) - timedelta(days=15)
    unprocessable(stage.svix.endpoint.replay_missing, app.id, late.id, ReplayIn(since=long_ago))
    again = stage.svix.endpoint.bulk_replay(app.id, first.id, BulkReplayIn(since=began, event_types=["check.posted"]))
    assert value(again.task) == "endpoint.bulk-replay"
    for message in (*messages, seen):
        first_inbox.of(message.id, 2)


@today
def check_40_attempt_stats_count_too(stage: Stage) -> None:
    app = stage.app()
    endpoint, inbox = stage.endpoint(app)
    stage.post(app)
    inbox.one()

    def counted() -> Any:
        stats = stage.svix.endpoint.get_attempt_stats(app.id, endpoint.id)
        return stats if stats.success == 1 else None

    assert until(counted, "one attempt").fail == 0


def check_52_messages_are_polled(stage: Stage) -> None:
    app = stage.app()
    path = f"/app/{app.id}/poller/poll_sink"
    first = stage.raw("GET", path)
    assert first.status == 200, first.content
    assert (first.json["data"], first.json["done"]) == ([], True)
    posted_at = datetime.now(UTC)
    posted = [stage.post(app, payload={"n": number}).id for number in range(3)]
    came: list[str] = []
    iterator = first.json["iterator"]

    def all_came() -> dict[str, Any] | None:
        nonlocal iterator
        page: dict[str, Any] = stage.raw("GET", f"{path}?limit=2&iterator={iterator}").json
        assert len(page["data"]) <= 2
        iterator = page["iterator"]
        came.extend(each["id"] for each in page["data"])
        return page if len(set(came)) >= 3 and page["done"] else None

    assert until(all_came, lambda: f"three messages to be polled: {came}")["done"] is True
    # One that a busy hub stored late is listed again at a later place: nothing is passed over (docs/webhooks.md).
    assert set(came) == set(posted), f"{came} of {posted}"
    # A consumer's place is kept for it, and may be moved.
    consumer = f"{path}/consumer/one"
    place = stage.raw("GET", consumer).json["iterator"]
    assert stage.raw("GET", f"{consumer}?iterator={place}").json["data"] == []
    moved = stage.raw("POST", f"{consumer}/seek", {"after": (posted_at - timedelta(seconds=5)).isoformat()})
    assert isinstance(moved.json["iterator"], str)
    assert [each["id"] for each in stage.raw("GET", consumer).json["data"]] == posted
    assert [each["id"] for each in stage.raw("GET", consumer).json["data"]] == posted, "until it is acknowledged"
