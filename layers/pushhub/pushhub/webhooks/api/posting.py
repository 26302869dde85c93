"""Webhooks API: the routes that producers call."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pushhub.engine.model.trace import Trace
from pushhub.web.api import Body, Function, Route
from pushhub.web.http import Response
from pushhub.webhooks.api.call import APP, WebhooksCall
from pushhub.webhooks.model.refusals import unprocessable
from pushhub.webhooks.wire.fields import NAME
from pushhub.webhooks.wire.hops import hops_of
from pushhub.webhooks.wire.message import message_view, parse_message

if TYPE_CHECKING:
    from pushhub.webhooks.api.use_cases import WebhooksPostingUseCases

MESSAGES = APP + "/msg"


def _post(hub: WebhooksPostingUseCases, call: WebhooksCall) -> Response:
    with_content = call.flag("with_content", default=True)
    trace, app = Trace.of(call.request.headers), call.app
    if NAME.fullmatch(app) is None:
        raise unprocessable(
            "An application's id may have letters, digits, hyphens, underscores and dots", "path", "app"
        )
    hops = hops_of(call.request.headers)
    new = replace(parse_message(call.request.body, hub.clock.now()), trace=trace, hops=hops)
    posted = hub.posting.post(call.project, app, new, key=call.repeatable)
    if not with_content:
        return Response(status=202, body=message_view(posted.message, {}))
    payload = posted.payload or hub.messages.payload(
        posted.message, hub.messages.redaction(call.project, posted.message.app_id)
    )
    return Response(status=202, body=message_view(posted.message, payload))


ROUTES: tuple[Route[WebhooksPostingUseCases, WebhooksCall], ...] = (
    Route(
        "POST",
        MESSAGES,
        _post,
        name="webhooks.create_message",
        settings=False,
        summary="Send a message to the endpoints of an application",
        function=Function.INGEST,
        body=Body.JSON,
        query=("with_content",),
        status=202,
    ),
)
