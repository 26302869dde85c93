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
