"""Webhooks API: streams and their events, in the paths of Svix's ``/stream``."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from pushhub.web.api import Auth, Body, Route
from pushhub.web.http import Response
from pushhub.webhooks.api.call import ROOT, WebhooksCall
from pushhub.webhooks.api.messages import message_query
from pushhub.webhooks.model.ids import IdPrefix
from pushhub.webhooks.model.redaction import Redaction
from pushhub.webhooks.wire.hops import hops_of
from pushhub.webhooks.wire.message import message_view
from pushhub.webhooks.wire.page import page_view, parse_times, parse_window
from pushhub.webhooks.wire.stream import brought_stream, parse_events, parse_stream, parse_stream_patch, stream_view

if TYPE_CHECKING:
    from pushhub.webhooks.api.use_cases import WebhooksUseCases
    from pushhub.webhooks.model.application import Application

STREAMS = ROOT + "/stream"
STREAM = STREAMS + "/{stream}"
EVENTS = STREAM + "/events"


def _shown(stream: Application, status: int = 200) -> Response:
    return Response(status=status, body=stream_view(stream))


def _create(hub: WebhooksUseCases, call: WebhooksCall) -> Response:
    return _shown(hub.streams().create(call.project, parse_stream(call.fields)), 201)


def _list(hub: WebhooksUseCases, call: WebhooksCall) -> Response:
    window = parse_window(call.query, kind=IdPrefix.STREAM, ascending=True)
    return Response(status=200, body=page_view(hub.streams().page(call.project, window), stream_view))


def _show(hub: WebhooksUseCases, call: WebhooksCall) -> Response:
    return _shown(hub.streams().stream(call.project, call.stream))


def _replace(hub: WebhooksUseCases, call: WebhooksCall) -> Response:
    stream, created = hub.streams().replace(call.project, call.stream, parse_stream(call.fields))
    return _shown(stream, 201 if created else 200)


def _patch(hub: WebhooksUseCases, call: WebhooksCall) -> Response:
    # One that is not there is told before anything that is wrong with the request.
    there = hub.streams().stream(call.project, call.stream)
    return _shown(hub.streams().patch(call.project, there.app_id, parse_stream_patch(call.fields)))


def _delete(hub: WebhooksUseCases, call: WebhooksCall) -> Response:
    # First: nothing finds the keys of a stream that is not there any more.
    hub.portal.close_all(hub.streams().stream(call.project, call.stream))
    hub.streams().delete(call.project, call.stream)
    return Response(status=204, body={})


def _events(hub: WebhooksUseCases, call: WebhooksCall) -> Response:
    stream = hub.streams().stream(call.project, call.stream)
    window = parse_window(call.query, kind=IdPrefix.MESSAGE, ascending=False, ordered=False)
    window = parse_times(call.query, window, hub.clock.now())
    page = hub.messages.page(call.project, stream.app_id, window, message_query(call))
    return Response(
        status=200,
        body=page_view(page, lambda each: message_view(each, hub.messages.payload(each, Redaction()))),
    )


def _expunge(hub: WebhooksUseCases, call: WebhooksCall) -> Response:
    stream = hub.streams().stream(call.project, call.stream)
    hub.messages.expunge(call.project, stream.app_id, call.message)
    return Response(status=204, body={})


def _external_id(hub: WebhooksUseCases, call: WebhooksCall) -> Response:
    stream = hub.streams().stream(call.project, call.stream)
    return Response(
        status=200, body={"externalId": hub.sinks().external_id(stream), "principal": hub.sinks().principal}
    )


def _post(hub: WebhooksUseCases, call: WebhooksCall) -> Response:
    fields, hops = call.fields, hops_of(call.request.headers)
    events = [replace(each, hops=hops) for each in parse_events(fields)]
    hub.stream_events().post(call.project, call.stream, events, brought_stream(fields))
    return Response(status=202, body={})


_bodied = partial(Route, body=Body.JSON)

ROUTES: tuple[Route[WebhooksUseCases, WebhooksCall], ...] = (
    _bodied("POST", STREAMS, _create, name="webhooks.create_stream", summary="Create a stream", status=201),
    Route(
        "GET",
        STREAMS,
        _list,
        name="webhooks.list_streams",
        summary="List streams",
        query=("limit", "iterator", "order"),
    ),
    Route(
        "GET",
        STREAM + "/external-id",
        _external_id,
        name="webhooks.show_stream_external_id",
        summary="Show what a role has to demand that a stream's sinks are reached with",
        auth=Auth.PROJECT_OR_CAPABILITY,
    ),
    Route(
        "GET",
        EVENTS,
        _events,
        name="webhooks.list_stream_events",
        summary="List the events of a stream, the last ones first",
        query=("limit", "iterator", "channel", "before", "after", "event_types"),
        auth=Auth.PROJECT_OR_CAPABILITY,
    ),
    Route(
        "DELETE",
        EVENTS + "/{message}/content",
        _expunge,
        name="webhooks.expunge_stream_event",
        summary="Delete the payload of an event",
        status=204,
    ),
    Route(
        "GET",
        STREAM,
        _show,
        name="webhooks.show_stream",
        summary="Show a stream",
        auth=Auth.PROJECT_OR_CAPABILITY,
    ),
    _bodied("PUT", STREAM, _replace, name="webhooks.replace_stream", summary="Replace a stream"),
    _bodied("PATCH", STREAM, _patch, name="webhooks.patch_stream", summary="Change a stream"),
    Route("DELETE", STREAM, _delete, name="webhooks.delete_stream", summary="Delete a stream", status=204),
    _bodied(
        "POST",
        EVENTS,
        _post,
        name="webhooks.create_stream_events",
        settings=False,
        summary="Post events to a stream",
        status=202,
    ),
)
