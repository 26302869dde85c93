"""What a customer of a tenant cannot do with a portal's token, tried with the client that a portal uses."""

from __future__ import annotations

import secrets
import threading
from typing import Any

from svix.models import ApplicationIn, AppPortalAccessIn, EndpointIn, EndpointPatch, MessageIn
from tests.stack.webhooks.judge.receiver import Answer
from tests.stack.webhooks.judge.stage import TYPES, Stage, refused, types_of, unprocessable, until

QUESTIONS = 40
"""Endpoints of one portal that are asked for their consent at the same time and do not answer."""


def portal_of(stage: Stage, app: Any, *flags: str) -> tuple[Any, str]:
    """A portal's client, and its token."""
    asked = AppPortalAccessIn(feature_flags=list(flags)) if flags else AppPortalAccessIn()
    token = str(stage.svix.authentication.app_portal_access(app.id, asked).token)
    return stage.client(token), token


def inner_urls() -> list[str]:
    """URLs of every kind that lead to what a project's token opens."""
    name = secrets.token_hex(8)
    return [
        f"ironmq:///{name}",
        f"ironmq://5f0000000000000000000001:t0ken@/{name}",
        f"IRONMQ://5f0000000000000000000001:t0ken@hub.example/{name}",
        f"ironworker://5f0000000000000000000001:t0ken@worker.example/{name}",
        f"notification2://{name}",
    ]


def check_43_a_portal_reaches_public_urls_alone(stage: Stage) -> None:
    app = stage.app()
    endpoint, inbox = stage.endpoint(app)
    portal, _ = portal_of(stage, app)
    for url in inner_urls():
        for call, arguments in (
            (portal.endpoint.create, (app.id, EndpointIn(url=url))),
            (portal.endpoint.patch, (app.id, endpoint.id, EndpointPatch(url=url))),
        ):
            [problem] = unprocessable(call, *arguments)
            assert problem.loc == ["body", "url"], problem
        [problem] = stage.raw(
            "PUT", f"/app/{app.id}/endpoint/{endpoint.id}", {"url": url}, token=portal_of(stage, app)[1]
        ).json["detail"]
        assert problem["loc"] == ["body", "url"], problem
    # What is stored is as it was, and gets what is posted
    assert [each.url for each in stage.svix.endpoint.list(app.id).data] == [inbox.url]
    message = stage.post(app)
    inbox.of(message.id)


def check_43_a_portal_neither_changes_nor_uses_an_endpoint_out_of_its_reach(stage: Stage) -> None:
    app = stage.app()
    portal, token = portal_of(stage, app)
    for url in inner_urls()[1:3]:
        inner = stage.svix.endpoint.create(app.id, EndpointIn(url=url))
        message = stage.post(app)
        attempts = stage.attempts(app, message)
        seen = url.replace("5f0000000000000000000001:t0ken@", "********@")
        assert attempts[0].url == seen
        # It sees that the endpoint is there, and not what opens the place behind it
        shown = [portal.endpoint.get(app.id, inner.id), *portal.endpoint.list(app.id).data]
        shown += portal.message_attempt.list_by_msg(app.id, message.id).data
        assert {each.url.partition("://")[2] for each in shown} == {"hidden"}
        path = f"/app/{app.id}/endpoint/{inner.id}"
        for method, route, body in (
            ("PATCH", path, {"description": "mine"}),
            ("PUT", path, {"url": "http://127.0.0.1:9/"}),
            ("DELETE", path, None),
            ("GET", f"{path}/secret", None),
            ("GET", f"{path}/headers", None),
            ("PUT", f"{path}/headers", {"headers": {"X-Mine": "1"}}),
            ("POST", f"{path}/secret/rotate", {}),
            ("POST", f"{path}/recover", {"since": "2026-01-01T00:00:00Z"}),
            ("POST", f"/app/{app.id}/msg/{message.id}/endpoint/{inner.id}/resend", None),
        ):
            answer = stage.raw(method, route, body, token=token)
            assert answer.status == 403, (method, route, answer.content)
        refused(403, portal.endpoint.delete, app.id, inner.id)
        assert stage.svix.endpoint.get(app.id, inner.id).url == seen
        stage.svix.endpoint.delete(app.id, inner.id)


def check_43_a_portal_subscribes_to_no_type_whose_flag_it_lacks(stage: Stage) -> None:
    app = stage.app()
    flag, name = f"flag-{secrets.token_hex(4)}", f"check.{secrets.token_hex(6)}"
    body = {"name": name, "description": "behind a flag", "featureFlags": [flag]}
    assert stage.raw("POST", "/event-type", body).status == 201
    without, _ = portal_of(stage, app)
    other, _ = portal_of(stage, app, "other")
    having, _ = portal_of(stage, app, flag)
    inbox, allowed = stage.receiver.inbox(), stage.receiver.inbox()
    created = without.endpoint.create(app.id, EndpointIn(url=inbox.url))
    for portal in (without, other):
        unprocessable(portal.endpoint.create, app.id, EndpointIn(url=inbox.url, **{TYPES: [name]}))
        unprocessable(portal.endpoint.patch, app.id, created.id, EndpointPatch(**{TYPES: [name]}))
    chosen = having.endpoint.create(app.id, EndpointIn(url=allowed.url, **{TYPES: [name]}))
    assert types_of(chosen) == [name]
    # And all types are those that its token shows
    behind, open_one = stage.post(app, name), stage.post(app)
    allowed.of(behind.id)
    inbox.of(open_one.id)
    assert [each.id for each in inbox.came] == [open_one.id]


def check_68_consent_is_asked_later_works_once_and_stays_on(stage: Stage) -> None:
    app = stage.app()
    _, token = portal_of(stage, app)
    inbox = stage.receiver.inbox(Answer(status=405), Answer())
    asked = {"mode": "binary", "consent": True, "callback": True}
    path = f"/app/{app.id}/endpoint"
    created = stage.raw("POST", path, {"url": inbox.url, "cloudEvents": asked}, token=token)
    assert (created.status, created.json["cloudEvents"]["consented"]) == (201, False)
    one = f"{path}/{created.json['id']}"
    callback = inbox.one().headers["webhook-request-callback"].partition("/api/v1")[2]
    for body in ({"cloudEvents": None}, {"cloudEvents": {"mode": "binary"}}):
        assert stage.raw("PATCH", one, body, token=token).status == 422
    assert stage.raw("PUT", one, {"url": inbox.url}, token=token).status == 422
    # Of eight who use the callback at once, one consents
    statuses: list[int] = []
    users = [
        threading.Thread(target=lambda: statuses.append(stage.raw("POST", callback, token="").status)) for _ in range(8)
    ]
    for each in users:
        each.start()
    for each in users:
        each.join()
    assert sorted(statuses) == [200] + [404] * 7, statuses
    assert stage.raw("GET", callback, token="").status == 404
    assert stage.raw("GET", one).json["cloudEvents"]["consented"] is True
    message = stage.post(app)
    until(lambda: [each for each in inbox.came if each.headers.get("webhook-id") == message.id], "the message")


def stack_questions_of_one_portal_delay_no_other_project(stage: Stage) -> None:
    app = stage.app()
    _, token = portal_of(stage, app)
    end = threading.Event()
    silent = [stage.receiver.inbox(Answer(after=end)) for _ in range(QUESTIONS)]
    asked = {"mode": "binary", "consent": True}
    try:
        # Given one portal's endpoints, none of which answers whether it consents
        for inbox in silent:
            created = stage.raw(
                "POST", f"/app/{app.id}/endpoint", {"url": inbox.url, "cloudEvents": asked}, token=token
            )
            assert (created.status, created.json["cloudEvents"]["consented"]) == (201, False)
        until(lambda: any(inbox.came for inbox in silent), "a question")
        # When another project works with the hub, then it does before any of them has answered
        theirs = stage.other.application.create(ApplicationIn(name="another"))
        heard = stage.receiver.inbox()
        stage.other.endpoint.create(theirs.id, EndpointIn(url=heard.url))
        for _ in range(10):
            posted = stage.other.message.create(theirs.id, MessageIn(event_type="check.posted", payload={"n": 1}))
            heard.of(posted.id)
        assert not end.is_set()
    finally:
        end.set()
        stage.svix.application.delete(app.id)
