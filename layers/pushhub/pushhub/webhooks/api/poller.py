"""Webhooks API: polling messages in order."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from pushhub.web.api import Auth, Body, Route
from pushhub.web.http import Response
from pushhub.webhooks.api.call import APP, WebhooksCall
from pushhub.webhooks.messages.poller import Choice, Polled
from pushhub.webhooks.model.consumer import DEFAULT_LEASE_MS, MOST_LEASE_MS
from pushhub.webhooks.model.ids import IdPrefix, is_id
from pushhub.webhooks.model.page import DEFAULT_LIMIT
from pushhub.webhooks.model.redaction import Redaction
from pushhub.webhooks.model.refusals import not_found, unprocessable
from pushhub.webhooks.wire.fields import moment_in_query, whole_in_query
from pushhub.webhooks.wire.message import message_view
from pushhub.webhooks.wire.page import parse_limit

if TYPE_CHECKING:
    from pushhub.webhooks.api.use_cases import WebhooksUseCases
    from pushhub.webhooks.model.endpoint import Endpoint

SINK = APP + "/poller/{sink}"
CONSUMER = SINK + "/consumer/{consumer}"
LEASED = APP + "/polling-endpoint/{sink}/consumer/{consumer}"

MOST_OFFSET = 2**53 - 1
"""The largest number that every client can say exactly."""

STARTS = ("earliest", "latest")
"""Where a new consumer begins: with its polling endpoint, or now."""


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


def _polling_endpoint(hub: WebhooksUseCases, call: WebhooksCall) -> Endpoint:
    application = hub.applications.application(call.project, call.app)
    found = hub.destinations().destination(application, call.names["sink"])
    holder = call.caller.holder
    if is_id(IdPrefix.AUTOCONFIG, holder):
        own = hub.autoconfigs().autoconfig(application, holder).endpoint_id
        if own != found.endpoint_id:
            raise not_found()
    if not found.polls:
        raise not_found()
    return found


def _lease(hub: WebhooksUseCases, call: WebhooksCall) -> Response:
    limit = parse_limit(call.query) if call.query.get("limit") else DEFAULT_LIMIT
    lease_ms = whole_in_query(call.query, "lease_duration_ms", least=0, most=MOST_LEASE_MS)
    start = call.query.get("starting_position") or STARTS[0]
    if start not in STARTS:
        raise unprocessable(f"It must be one of {', '.join(STARTS)}", "query", "starting_position")
    leased = hub.consumers().poll(
        _polling_endpoint(hub, call),
        call.names["consumer"],
        limit=limit,
        lease_ms=DEFAULT_LEASE_MS if lease_ms is None else lease_ms,
        latest=start == "latest",
    )
    redaction = hub.messages.redaction(call.project, call.app)
    data = [
        {"offset": offset, **message_view(each, hub.messages.payload(each, redaction))}
        for offset, each in leased.messages
    ]
    return Response(status=200, body={"data": data, "done": leased.done})


def _acknowledge(hub: WebhooksUseCases, call: WebhooksCall) -> Response:
    offset = call.fields.whole("offset", least=0, most=MOST_OFFSET)
    if offset is None:
        raise call.fields.refuse("A number is required", "offset")
    hub.consumers().acknowledge(_polling_endpoint(hub, call), call.names["consumer"], offset)
    return Response(status=204, body={})


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
    Route(
        "GET",
        LEASED,
        _lease,
        name="webhooks.lease",
        summary="Give a consumer of a polling endpoint messages to work on",
        query=("limit", "lease_duration_ms", "starting_position"),
        takes=True,
        auth=Auth.PROJECT_OR_CAPABILITY,
    ),
    Route(
        "POST",
        LEASED + "/commit",
        _acknowledge,
        name="webhooks.acknowledge",
        settings=False,
        summary="Acknowledge what a consumer was given, up to an offset",
        body=Body.JSON,
        status=204,
        auth=Auth.PROJECT_OR_CAPABILITY,
    ),
)
