"""REST API: publishing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pushhub.notifications.api.call import ROOT, NotificationsCall
from pushhub.notifications.wire.publish import parse_drafts
from pushhub.notifications.wire.requests import parse_idempotency_key
from pushhub.web.api import Body, Function, Route
from pushhub.web.http import Response

if TYPE_CHECKING:
    from pushhub.notifications.api.use_cases import Publishing


def _publish(hub: Publishing, call: NotificationsCall) -> Response:
    key = parse_idempotency_key(call.request.headers)
    ids = hub.publishing.publish(call.project, parse_drafts(call.request.body), key=key)
    return Response(status=201, body={"ids": ids})


ROUTES: tuple[Route[Publishing, NotificationsCall], ...] = (
    Route(
        "POST",
        ROOT + "/notifications",
        _publish,
        name="notifications.publish",
        settings=False,
        summary="Publish notifications",
        function=Function.INGEST,
        body=Body.JSON,
        status=201,
    ),
)
