"""Webhooks API: polling messages in order."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from pushhub.web.api import Body, Route
from pushhub.web.http import Response
from pushhub.webhooks.api.call import APP, WebhooksCall
from pushhub.webhooks.messages.poller import Choice, Polled
from pushhub.webhooks.model.page import DEFAULT_LIMIT
from pushhub.webhooks.model.redaction import Redaction
from pushhub.webhooks.wire.fields import moment_in_query
from pushhub.webhooks.wire.message import message_view
from pushhub.webhooks.wire.page import parse_limit

if TYPE_CHECKING:
    from pushhub.webhooks.api.use_cases import WebhooksUseCases

SINK = APP + "/poller/{sink}"
CONSUMER = SINK + "/consumer/{consumer}"


def _poll(hub: WebhooksUseCases, call: WebhooksCall) -> Response:
    after = moment_in_query(call.query, "after")
    iterator = call.query.get("iterator", "")
    polled = hub.poller.poll(call.project, call.app, call.names["sink"], _choice(call), iterator=iterator, after=after)
    return _view(hub, polled)


def _consume(hub: WebhooksUseCases, call: WebhooksCall) -> Response:
    names = call.names["sink"], call.names["consumer"]
    iterator = call.query.get("iterator", "")
    return _view(hub, hub.poller.consume(call.project, call.app, *names, _choice(call), iterator=iterator))


def _seek(hub: WebhooksUseCases, call: WebhooksCall) -> Response:
    after = call.fields.required_moment("after")
    place = hub.poller.seek(call.project, call.app, call.names["sink"], call.names["consumer"], after)
    return Response(status=200, body={"iterator": place})


def _choice(call: WebhooksCall) -> Choice:
    limit = parse_limit(call.query) if call.query.get("limit") else DEFAULT_LIMIT
    return Choice(limit=limit, event_types=call.listed("event_type"), channel=call.query.get("channel", ""))


def _view(hub: WebhooksUseCases, polled: Polled) -> Response:
    data: list[Mapping[str, object]] = [
        message_view(each, hub.messages.payload(each, Redaction())) for each in polled.messages
    ]
    return Response(status=200, body={"data": data, "iterator": polled.iterator, "done": polled.done})


ROUTES: tuple[Route[WebhooksUseCases, WebhooksCall], ...] = (
    Route(
        "GET",
        SINK,
        _poll,
        name="webhooks.poll",
        summary="Read messages in order, with an iterator",
        query=("limit", "iterator", "event_type", "channel", "after"),
        takes=True,
    ),
    Route(
        "GET",
        CONSUMER,
        _consume,
        name="webhooks.consume",
        summary="Read messages in order, from a consumer's stored place",
        query=("limit", "iterator"),
        takes=True,
    ),
    Route(
        "POST",
        CONSUMER + "/seek",
        _seek,
        name="webhooks.seek",
        settings=False,
        summary="Move the place of a consumer",
        body=Body.JSON,
    ),
)
