"""Consent that portals ask endpoints for, through the client that a portal uses. (What else a portal's token reaches:
tests/webhooks/test_reach.py.)
"""

from __future__ import annotations

import threading
from typing import Any

from svix.models import ApplicationIn, AppPortalAccessIn, EndpointIn, MessageIn
from tests.stack.webhooks.judge.receiver import Answer
from tests.stack.webhooks.judge.stage import Stage, until

QUESTIONS = 40
"""Endpoints of one portal that are asked for their consent at the same time and do not answer."""


def portal_token(stage: Stage, app: Any) -> str:
    """The token of a portal."""
    return str(stage.svix.authentication.app_portal_access(app.id, AppPortalAccessIn()).token)


def check_68_consent_is_asked_later_works_once_and_stays_on(stage: Stage) -> None:
    app = stage.app()
    token = portal_token(stage, app)
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
    token = portal_token(stage, app)
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
