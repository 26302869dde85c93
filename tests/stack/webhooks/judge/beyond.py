"""What Svix keeps for its cloud and this hub has: the portal's tokens, operational webhooks, replays and their tasks,
and what it has not.
"""

from __future__ import annotations

import json
import secrets
from datetime import UTC, datetime, timedelta
from typing import Any

from svix import Webhook, models
from svix.models import AppPortalAccessIn, BulkReplayIn, EndpointIn, ReplayIn
from tests.stack.webhooks.judge.receiver import Answer, Inbox
from tests.stack.webhooks.judge.stage import (
    OLD,
    Stage,
    is_invalid,
    options,
    refused,
    today,
    unprocessable,
    until,
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
    created = portal.endpoint.create(app.id, EndpointIn(url=stage.receiver.inbox().url))
    assert portal.endpoint.get_secret(app.id, created.id).key
    portal.endpoint.delete(app.id, created.id)
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


@today
def check_45_a_consumer_sets_up_its_endpoint_with_nothing_but_a_token(stage: Stage) -> None:
    from svix.autoconfig import AutoConfig  # noqa: PLC0415 (older clients have none)

    app, inbox = stage.app(), stage.receiver.inbox()
    calls = stage.svix.autoconfig_subscription
    created = calls.create(app.id, models.CreateAutoConfigSubscriptionIn())
    consumer = AutoConfig(created.token, EndpointIn(url=inbox.url))
    endpoint = consumer.subscribe()
    assert stage.svix.endpoint.get(app.id, endpoint.id).url == inbox.url
    stage.post(app)
    delivered = inbox.one()
    consumer.verify(delivered.body, delivered.headers)
    # Again, at another URL, it is the same endpoint
    other = stage.receiver.inbox()
    assert AutoConfig(created.token, EndpointIn(url=other.url)).subscribe().id == endpoint.id
    # With a new token, what comes is verified by its secret, and for a day by the one before
    rotated = calls.rotate(app.id, created.id, models.RotateSubscriptionIn2())
    newer = AutoConfig(rotated.token, EndpointIn(url=other.url))
    refused(401, consumer.subscribe)
    assert newer.subscribe().id == endpoint.id
    stage.post(app)
    delivered = other.one()
    newer.verify(delivered.body, delivered.headers)
    consumer.verify(delivered.body, delivered.headers)
    calls.delete(app.id, created.id)
    refused(401, newer.subscribe)


@today
def check_45_a_consumer_sets_up_a_polling_endpoint_and_reads_it(stage: Stage) -> None:
    from svix.autoconfig import AutoConfigConsumer  # noqa: PLC0415 (older clients have none)

    app = stage.app()
    calls = stage.svix.autoconfig_subscription
    created = calls.create(app.id, models.CreateAutoConfigSubscriptionIn())
    consumer = AutoConfigConsumer(created.token, models.SinkInCommon(metadata={"team": "orders"}))
    destination = consumer.subscribe()
    assert (value(destination.type), destination.metadata) == ("pollingEndpoint", {"team": "orders"})
    posted = [stage.post(app, payload={"n": number}).id for number in range(3)]
    given = until(lambda: consumer.receive("worker").data or None, "what a consumer is given")
    consumer.commit("worker", given[0].offset)
    # Another process of that name, which was not told the destination's id, goes on behind what is acknowledged
    again, read = AutoConfigConsumer(created.token, models.SinkInCommon()), [given[0].id]

    def rest() -> bool | None:
        found = again.receive("worker").data
        if found:
            again.commit("worker", found[-1].offset)
        # One that was stored more than two seconds after it was accepted has two places, and is read at both.
        read.extend(each.id for each in found if each.id not in read)
        return len(read) >= len(posted) or None

    until(rest, "the rest of what was posted")
    assert read == posted
    assert again.receive("worker").done


def operational(stage: Stage) -> tuple[str, str, Inbox]:
    """A new operational endpoint: its id, secret and deliveries."""
    inbox = stage.receiver.inbox()
    body = {"url": inbox.url, "description": "operations"}
    created = stage.raw("POST", "/operational-webhook/endpoint", body)
    assert created.status == 201, created.content
    key = stage.raw("GET", f"/operational-webhook/endpoint/{created.json['id']}/secret").json["key"]
    return created.json["id"], key, inbox


def notice(inbox: Inbox, event: str, endpoint_id: str) -> dict[str, Any]:
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
    assert notice(inbox, "endpoint.created", endpoint.id) == wanted
    stage.patch_endpoint(app, endpoint, description="new")
    assert notice(inbox, "endpoint.updated", endpoint.id) == wanted
    message = stage.post(app)
    disabled = notice(inbox, "endpoint.disabled", endpoint.id)
    assert {name: disabled[name] for name in ("appId", "appUid", "endpointId")} == {
        name: wanted[name] for name in ("appId", "appUid", "endpointId")
    }
    exhausted = notice(inbox, "message.attempt.exhausted", endpoint.id)
    assert (exhausted["appId"], exhausted["msgId"]) == (app.id, message.id)
    assert exhausted["lastAttempt"]["responseStatusCode"] == 410
    assert {"id", "timestamp"} <= set(exhausted["lastAttempt"])
    stage.svix.endpoint.delete(app.id, endpoint.id)
    assert notice(inbox, "endpoint.deleted", endpoint.id) == wanted
    for delivery in inbox.came:
        Webhook(key).verify(delivery.body, delivery.headers)
    kinds = [json.loads(each.body)["type"] for each in inbox.came if endpoint.id in each.body.decode()]
    assert len(kinds) == len(set(kinds)), f"each is said once: {kinds}"
    assert stage.raw("DELETE", f"/operational-webhook/endpoint/{key_id}").status == 204


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
def check_55_a_transformation_changes_what_is_signed_and_sent(stage: Stage) -> None:
    from svix.models import EndpointTransformationPatch  # noqa: PLC0415

    # Given an endpoint to which the client gives code
    app = stage.app()
    endpoint, inbox = stage.endpoint(app)
    transformation = stage.svix.endpoint.transformation
    assert not transformation.get(app.id, endpoint.id).enabled
    code = "function handler(webhook) { webhook.payload.by = webhook.env.KEY; return webhook }"
    given = EndpointTransformationPatch(code=code, enabled=True, variables={"KEY": "code"})
    transformation.patch(app.id, endpoint.id, given)
    shown = transformation.get(app.id, endpoint.id)
    assert (shown.code, shown.enabled) == (code, True)
    # When it is tried, and a message is sent
    trial = {"code": code, "eventType": "user.created", "payload": {"n": 1}, "variables": {"KEY": "trial"}}
    tried = stage.raw("POST", f"/app/{app.id}/endpoint/{endpoint.id}/transformation/simulate", trial)
    assert (tried.status, tried.json["payload"], tried.json["cancel"]) == (200, '{"n":1,"by":"trial"}', False)
    message = stage.post(app, payload={"n": 1})
    # Then it arrives as the code made it, and its signature is right
    [got] = inbox.of(message.id)
    assert got.body == b'{"n":1,"by":"code"}'
    Webhook(stage.svix.endpoint.get_secret(app.id, endpoint.id).key).verify(got.body, got.headers)
    # And one that is cancelled does not, which is no failure
    transformation.patch(
        app.id, endpoint.id, EndpointTransformationPatch(code="function handler() { return { cancel: true } }")
    )
    cancelled = stage.post(app, payload={"n": 2})

    def ended() -> bool | None:
        answer = stage.raw("GET", f"/app/{app.id}/msg/{cancelled.id}/endpoint")
        return [each["statusText"] for each in answer.json["data"]] == ["canceled"] or None

    until(ended, "the cancelled message is not shown as such")
    assert len(inbox.wait()) == 1
