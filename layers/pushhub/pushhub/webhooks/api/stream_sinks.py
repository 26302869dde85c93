"""Webhooks API: the sinks of streams, in the paths of Svix's ``/stream/{stream}/sink``."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from pushhub.web.api import Auth, Body, Route
from pushhub.web.http import Response
from pushhub.webhooks.api import transformations
from pushhub.webhooks.api.streams import STREAM
from pushhub.webhooks.model.ids import IdPrefix
from pushhub.webhooks.model.page import DEFAULT_LIMIT
from pushhub.webhooks.model.refusals import unprocessable
from pushhub.webhooks.wire.destination import as_endpoint
from pushhub.webhooks.wire.endpoint import headers_view, parse_header_change, parse_rotation
from pushhub.webhooks.wire.fields import moment_in_query
from pushhub.webhooks.wire.page import page_view, parse_limit, parse_window
from pushhub.webhooks.wire.stream_sink import parse_sink, read_view, sink_view

if TYPE_CHECKING:
    from pushhub.webhooks.api.call import WebhooksCall
    from pushhub.webhooks.api.use_cases import WebhooksUseCases
    from pushhub.webhooks.model.application import Application
    from pushhub.webhooks.model.endpoint import Endpoint
    from pushhub.webhooks.wire.stream_sink import GivenSink

SINKS = STREAM + "/sink"
SINK = SINKS + "/{sink}"
TRANSFORMATION = SINK + "/transformation"


def _stream(hub: WebhooksUseCases, call: WebhooksCall) -> Application:
    return hub.streams().stream(call.project, call.stream)


def _there(hub: WebhooksUseCases, call: WebhooksCall) -> Endpoint:
    return hub.sinks().sink(_stream(hub, call), call.names["sink"])


def _shown(hub: WebhooksUseCases, stream: Application, sink: Endpoint, status: int = 200) -> Response:
    return Response(status=status, body=_view(hub, stream, sink))


def _view(hub: WebhooksUseCases, stream: Application, sink: Endpoint) -> dict[str, object]:
    sinks = hub.sinks()
    return sink_view(sink, sinks.reader(sink), sinks.external_id(stream), hub.clock.now())


def _create(hub: WebhooksUseCases, call: WebhooksCall) -> Response:
    stream = _stream(hub, call)
    return _shown(hub, stream, hub.sinks().create(stream, parse_sink(call.fields, whole=True), call.rights), 201)


def _list(hub: WebhooksUseCases, call: WebhooksCall) -> Response:
    iterator = call.query.get("iterator", "")
    kept = {**call.query, "iterator": as_endpoint(iterator)} if iterator else call.query
    window = parse_window(kept, kind=IdPrefix.ENDPOINT, ascending=True)
    stream = _stream(hub, call)
    page = hub.sinks().page(stream, window)
    return Response(status=200, body=page_view(page, lambda each: _view(hub, stream, each)))


def _show(hub: WebhooksUseCases, call: WebhooksCall) -> Response:
    return _shown(hub, _stream(hub, call), _there(hub, call))


def _replace(hub: WebhooksUseCases, call: WebhooksCall) -> Response:
    stream, given = _stream(hub, call), parse_sink(call.fields, whole=True)
    there = hub.sinks().find(stream, call.names["sink"])
    if there is None:
        return _shown(hub, stream, hub.sinks().create(stream, given, call.rights), 201)
    return _changed(hub, call, stream, there, given, whole=True)


def _patch(hub: WebhooksUseCases, call: WebhooksCall) -> Response:
    stream, there = _stream(hub, call), _there(hub, call)
    given = parse_sink(call.fields, whole=False)
    return _changed(hub, call, stream, there, given, whole=False)


def _changed(
    hub: WebhooksUseCases, call: WebhooksCall, stream: Application, there: Endpoint, given: GivenSink, *, whole: bool
) -> Response:
    changed = hub.sinks().update(stream, there, given, call.rights, whole=whole)
    if changed.polls != there.polls:
        # What read it as a poller reads nothing any more, nor if it is one again.
        hub.portal.close_key(stream, changed.endpoint_id)
    return _shown(hub, stream, changed)


def _delete(hub: WebhooksUseCases, call: WebhooksCall) -> Response:
    stream, sink = _stream(hub, call), _there(hub, call)
    hub.portal.close_key(stream, sink.endpoint_id)
    hub.sinks().delete(stream, call.names["sink"])
    return Response(status=204, body={})


def _retry(hub: WebhooksUseCases, call: WebhooksCall) -> Response:
    sink = _there(hub, call)
    hub.sinks().retry(sink)
    return _shown(hub, _stream(hub, call), sink)


def _skip(hub: WebhooksUseCases, call: WebhooksCall) -> Response:
    sink = _there(hub, call)
    hub.sinks().skip(sink)
    return _shown(hub, _stream(hub, call), sink)


def _read(hub: WebhooksUseCases, call: WebhooksCall) -> Response:
    limit = parse_limit(call.query) if call.query.get("limit") else DEFAULT_LIMIT
    after = moment_in_query(call.query, "after")
    read = hub.sinks().read(_there(hub, call), limit=limit, iterator=call.query.get("iterator", ""), after=after)
    data = [read_view(message, body) for message, body in read.events]
    return Response(status=200, body={"data": data, "iterator": read.iterator, "done": read.done})


def _formed(hub: WebhooksUseCases, call: WebhooksCall) -> Endpoint:
    """The sink in the path, if it is one whose batches code can change."""
    sink = _there(hub, call)
    if sink.polls:
        raise unprocessable("A sink of the type poller is read as events were posted", "path", "sink")
    return sink


def _transformation(hub: WebhooksUseCases, call: WebhooksCall) -> Response:
    return transformations.show(hub, _there(hub, call).place)


def _set_transformation(hub: WebhooksUseCases, call: WebhooksCall) -> Response:
    sink = _formed(hub, call)
    transformations.change(hub, call, sink.place, of_sink=True)
    hub.sinks().retry(sink)
    return Response(status=200, body={})


def _simulate(hub: WebhooksUseCases, call: WebhooksCall) -> Response:
    return transformations.simulate(hub, call, _formed(hub, call).place)


def _http(hub: WebhooksUseCases, call: WebhooksCall) -> Endpoint:
    return hub.sinks().http_sink(_stream(hub, call), call.names["sink"])


def _headers(hub: WebhooksUseCases, call: WebhooksCall) -> Response:
    return Response(status=200, body=headers_view(_http(hub, call).headers))


def _change_headers(hub: WebhooksUseCases, call: WebhooksCall) -> Response:
    sink = _http(hub, call)
    names = sink.place
    hub.endpoints.change_headers(*names, parse_header_change(call.fields))
    hub.sinks().retry(sink)
    return Response(status=200, body=headers_view(hub.endpoints.headers(*names)))


def _secret(hub: WebhooksUseCases, call: WebhooksCall) -> Response:
    return Response(status=200, body={"key": hub.signatures().secret(_http(hub, call))})


def _rotate(hub: WebhooksUseCases, call: WebhooksCall) -> Response:
    sink, rotation = _http(hub, call), parse_rotation(call.fields)
    rotated, _ = hub.endpoints.rotate(*sink.place, rotation)
    hub.sinks().retry(rotated)
    return Response(status=200, body={"key": hub.signatures().secret(rotated)})


SECRET_ANSWERS = frozenset({"webhooks.rotate_stream_secret"})
"""Routes whose answers hold a secret."""

UNKEPT = frozenset({"webhooks.simulate_stream_transformation"})
"""POSTs whose answers may hold values of variables."""

_route = partial(Route, auth=Auth.PROJECT_OR_CAPABILITY)
_bodied = partial(_route, body=Body.JSON)

ROUTES: tuple[Route[WebhooksUseCases, WebhooksCall], ...] = (
    _bodied("POST", SINKS, _create, name="webhooks.create_stream_sink", summary="Create a sink", status=201),
    _route(
        "GET",
        SINKS,
        _list,
        name="webhooks.list_stream_sinks",
        summary="List the sinks of a stream",
        query=("limit", "iterator", "order"),
    ),
    _route("GET", SINK, _show, name="webhooks.show_stream_sink", summary="Show a sink"),
    _bodied("PUT", SINK, _replace, name="webhooks.replace_stream_sink", summary="Replace a sink"),
    _bodied("PATCH", SINK, _patch, name="webhooks.patch_stream_sink", summary="Change a sink"),
    _route("DELETE", SINK, _delete, name="webhooks.delete_stream_sink", summary="Delete a sink", status=204),
    _route(
        "POST",
        SINK + "/force-retry",
        _retry,
        name="webhooks.retry_stream_sink",
        summary="Have a sink tried again at once",
    ),
    _route(
        "POST",
        SINK + "/skip",
        _skip,
        name="webhooks.skip_stream_sink",
        summary="Leave out the batch that a sink is to write next",
    ),
    _route(
        "GET",
        SINK + "/events",
        _read,
        name="webhooks.read_stream_sink",
        summary="Read the events of a sink of the type poller, in order",
        query=("limit", "iterator", "after"),
        takes=True,
    ),
    _route(
        "GET",
        SINK + "/headers",
        _headers,
        name="webhooks.show_stream_headers",
        summary="Show the headers of a sink of the type http",
    ),
    _bodied(
        "PATCH",
        SINK + "/headers",
        _change_headers,
        name="webhooks.patch_stream_headers",
        summary="Change the headers of a sink of the type http",
    ),
    _route(
        "GET",
        SINK + "/secret",
        _secret,
        name="webhooks.show_stream_secret",
        summary="Show the signing secret of a sink of the type http",
    ),
    _bodied(
        "POST",
        SINK + "/secret/rotate",
        _rotate,
        name="webhooks.rotate_stream_secret",
        summary="Rotate the signing secret of a sink of the type http",
    ),
    _route(
        "GET",
        TRANSFORMATION,
        _transformation,
        name="webhooks.show_stream_transformation",
        summary="Show the transformation of a sink",
    ),
    _bodied(
        "PATCH",
        TRANSFORMATION,
        _set_transformation,
        name="webhooks.set_stream_transformation",
        summary="Change the transformation of a sink",
    ),
    _bodied(
        "POST",
        TRANSFORMATION + "/simulate",
        _simulate,
        name="webhooks.simulate_stream_transformation",
        summary="Try code on an event for a sink",
    ),
)
