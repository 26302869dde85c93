"""Webhooks API: event types in the paths of Svix's ``/stream/event-type``. A project has one list of event types, for
streams and for webhooks.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from pushhub.web.api import Body, Route
from pushhub.web.http import Response
from pushhub.webhooks.api.call import ROOT, WebhooksCall
from pushhub.webhooks.model.refusals import not_found
from pushhub.webhooks.wire.fields import NAME
from pushhub.webhooks.wire.page import page_view, parse_window
from pushhub.webhooks.wire.stream import (
    parse_stream_event_type,
    parse_stream_event_type_patch,
    stream_event_type_view,
)

if TYPE_CHECKING:
    from pushhub.webhooks.api.use_cases import WebhooksUseCases
    from pushhub.webhooks.model.event_type import EventType

TYPES = ROOT + "/stream/event-type"
TYPE = TYPES + "/{event_type}"


def _shown(event_type: EventType, status: int = 200) -> Response:
    return Response(status=status, body=stream_event_type_view(event_type))


def _create(hub: WebhooksUseCases, call: WebhooksCall) -> Response:
    fields = call.fields
    return _shown(hub.event_types.create(call.project, fields.name("name"), parse_stream_event_type(fields)), 201)


def _list(hub: WebhooksUseCases, call: WebhooksCall) -> Response:
    page = hub.event_types.page(
        call.project,
        parse_window(call.query, kind=None, ascending=True, ordered=False),
        include_archived=call.flag("include_archived", default=False),
        flags=None,
    )
    return Response(status=200, body=page_view(page, stream_event_type_view))


def _show(hub: WebhooksUseCases, call: WebhooksCall) -> Response:
    return _shown(hub.event_types.event_type(call.project, call.names["event_type"], flags=None))


def _replace(hub: WebhooksUseCases, call: WebhooksCall) -> Response:
    name = call.names["event_type"]
    if NAME.fullmatch(name) is None:
        raise not_found()
    if call.fields.raw("name") is not None:
        call.fields.name("name")
    event_type, created = hub.event_types.replace(call.project, name, parse_stream_event_type(call.fields))
    return _shown(event_type, 201 if created else 200)


def _patch(hub: WebhooksUseCases, call: WebhooksCall) -> Response:
    # One that is not there is told before anything that is wrong with the request.
    name = hub.event_types.event_type(call.project, call.names["event_type"], flags=None).name
    return _shown(hub.event_types.patch(call.project, name, parse_stream_event_type_patch(call.fields)))


def _delete(hub: WebhooksUseCases, call: WebhooksCall) -> Response:
    hub.event_types.delete(call.project, call.names["event_type"], expunge=call.flag("expunge", default=False))
    return Response(status=204, body={})


_bodied = partial(Route, body=Body.JSON)

ROUTES: tuple[Route[WebhooksUseCases, WebhooksCall], ...] = (
    _bodied(
        "POST",
        TYPES,
        _create,
        name="webhooks.create_stream_event_type",
        summary="Create an event type (streams)",
        status=201,
    ),
    Route(
        "GET",
        TYPES,
        _list,
        name="webhooks.list_stream_event_types",
        summary="List event types (streams)",
        query=("limit", "iterator", "order", "include_archived"),
    ),
    Route("GET", TYPE, _show, name="webhooks.show_stream_event_type", summary="Show an event type (streams)"),
    _bodied(
        "PUT", TYPE, _replace, name="webhooks.replace_stream_event_type", summary="Replace an event type (streams)"
    ),
    _bodied("PATCH", TYPE, _patch, name="webhooks.patch_stream_event_type", summary="Change an event type (streams)"),
    Route(
        "DELETE",
        TYPE,
        _delete,
        name="webhooks.delete_stream_event_type",
        summary="Archive or delete an event type (streams)",
        query=("expunge",),
        status=204,
    ),
)
