"""Webhooks API: sources, in the paths of Svix's ingest, and their endpoints, which are those of any application."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from pushhub.web.api import Body, Route
from pushhub.web.http import Response
from pushhub.webhooks.api import transformations
from pushhub.webhooks.api.portal import opened_view
from pushhub.webhooks.model.ids import IdPrefix
from pushhub.webhooks.model.refusals import unprocessable
from pushhub.webhooks.wire.endpoint import (
    headers_view,
    parse_all_headers,
    parse_endpoint,
    parse_new_endpoint,
    parse_rotation,
)
from pushhub.webhooks.wire.page import page_view, parse_window
from pushhub.webhooks.wire.portal import parse_portal_ask
from pushhub.webhooks.wire.source import (
    IN,
    parse_source,
    source_endpoint_view,
    source_view,
    turned_away_view,
)

if TYPE_CHECKING:
    from pushhub.webhooks.api.call import WebhooksCall
    from pushhub.webhooks.api.use_cases import WebhooksUseCases
    from pushhub.webhooks.model.application import Application
    from pushhub.webhooks.model.endpoint import Endpoint
    from pushhub.webhooks.wire.fields import Fields

SOURCES = "/ingest/api/v1/source"
SOURCE = SOURCES + "/{source}"
ENDPOINTS = SOURCE + "/endpoint"
ENDPOINT = ENDPOINTS + "/{endpoint}"
NOTHING = Response(status=204, body={})


def _source(hub: WebhooksUseCases, call: WebhooksCall) -> Application:
    return hub.sources().source(call.project, call.names["source"])


def _shown(hub: WebhooksUseCases, application: Application, status: int = 200) -> Response:
    return Response(status=status, body=source_view(application, hub.sources().url(application)))


def _create(hub: WebhooksUseCases, call: WebhooksCall) -> Response:
    return _shown(hub, hub.sources().create(call.project, parse_source(call.fields)), 201)


def _list(hub: WebhooksUseCases, call: WebhooksCall) -> Response:
    window = parse_window(call.query, kind=IdPrefix.SOURCE, ascending=True)
    page = hub.sources().page(call.project, window)
    return Response(status=200, body=page_view(page, lambda each: source_view(each, hub.sources().url(each))))


def _show(hub: WebhooksUseCases, call: WebhooksCall) -> Response:
    return _shown(hub, _source(hub, call))


def _replace(hub: WebhooksUseCases, call: WebhooksCall) -> Response:
    application, created = hub.sources().replace(call.project, call.names["source"], parse_source(call.fields))
    return _shown(hub, application, 201 if created else 200)


def _delete(hub: WebhooksUseCases, call: WebhooksCall) -> Response:
    # First: nothing finds the keys of a source that is not there any more.
    hub.portal.close_all(_source(hub, call))
    hub.sources().delete(call.project, call.names["source"])
    return NOTHING


def _rotate_token(hub: WebhooksUseCases, call: WebhooksCall) -> Response:
    application = hub.sources().rotate(call.project, call.names["source"])
    return Response(status=200, body={"ingestUrl": hub.sources().url(application)})


def _stats(hub: WebhooksUseCases, call: WebhooksCall) -> Response:
    return Response(status=200, body=turned_away_view(hub.arrivals().turned_away(_source(hub, call))))


def _dashboard(hub: WebhooksUseCases, call: WebhooksCall) -> Response:
    application = _source(hub, call)
    return opened_view(hub, application.app_id, hub.portal.open(application, parse_portal_ask(call.fields)))


def _endpoint(hub: WebhooksUseCases, call: WebhooksCall) -> tuple[Application, Endpoint]:
    application = _source(hub, call)
    return application, hub.endpoints.endpoint(call.project, application.app_id, call.endpoint)


def _check_url(hub: WebhooksUseCases, application: Application, url: str) -> None:
    """Refuse the plainest of loops; longer ones end by their hops."""
    from pushhub.egress.url import InvalidTarget, leads_below  # noqa: PLC0415 (only registration needs it)

    try:
        own = leads_below(url, f"{hub.base_url}{IN}/{application.project}/{application.app_id}")
    except InvalidTarget:
        # A queue's, for example
        return
    if own:
        raise unprocessable("This is the source's own URL: it would send itself what comes to it", "body", "url")


def _create_endpoint(hub: WebhooksUseCases, call: WebhooksCall) -> Response:
    return _created(hub, call, _source(hub, call), call.fields)


def _created(hub: WebhooksUseCases, call: WebhooksCall, application: Application, fields: Fields) -> Response:
    wanted = parse_new_endpoint(fields)
    _check_url(hub, application, wanted.fields.url)
    endpoint = hub.endpoints.create(application, wanted, lambda: (), call.rights)
    return Response(status=201, body=source_endpoint_view(endpoint))


def _list_endpoints(hub: WebhooksUseCases, call: WebhooksCall) -> Response:
    window = parse_window(call.query, kind=IdPrefix.ENDPOINT, ascending=False)
    page = hub.endpoints.page(call.project, _source(hub, call).app_id, window)
    return Response(status=200, body=page_view(page, source_endpoint_view))


def _show_endpoint(hub: WebhooksUseCases, call: WebhooksCall) -> Response:
    return Response(status=200, body=source_endpoint_view(_endpoint(hub, call)[1]))


def _replace_endpoint(hub: WebhooksUseCases, call: WebhooksCall) -> Response:
    application, fields = _source(hub, call), call.fields
    wanted, there = parse_endpoint(fields), hub.endpoints.find(application, call.endpoint)
    if there is None:
        return _created(hub, call, application, fields)
    _check_url(hub, application, wanted.apply(there.fields).url)
    endpoint = hub.endpoints.update(application, there, wanted, call.rights)
    return Response(status=200, body=source_endpoint_view(endpoint))


def _delete_endpoint(hub: WebhooksUseCases, call: WebhooksCall) -> Response:
    hub.endpoints.delete(call.project, _source(hub, call).app_id, call.endpoint)
    return NOTHING


def _secret(hub: WebhooksUseCases, call: WebhooksCall) -> Response:
    return Response(status=200, body={"key": hub.signatures().secret(_endpoint(hub, call)[1])})


def _rotate_secret(hub: WebhooksUseCases, call: WebhooksCall) -> Response:
    hub.endpoints.rotate(call.project, _source(hub, call).app_id, call.endpoint, parse_rotation(call.fields))
    return NOTHING


def _headers(hub: WebhooksUseCases, call: WebhooksCall) -> Response:
    headers = hub.endpoints.headers(call.project, _source(hub, call).app_id, call.endpoint)
    return Response(status=200, body=headers_view(headers))


def _set_headers(hub: WebhooksUseCases, call: WebhooksCall) -> Response:
    wanted, app_id = parse_all_headers(call.fields), _source(hub, call).app_id
    hub.endpoints.change_headers(call.project, app_id, call.endpoint, wanted)
    return NOTHING


def _transformation(hub: WebhooksUseCases, call: WebhooksCall) -> Response:
    return transformations.show(hub, (call.project, _source(hub, call).app_id, call.endpoint))


def _set_transformation(hub: WebhooksUseCases, call: WebhooksCall) -> Response:
    transformations.change(hub, call, (call.project, _source(hub, call).app_id, call.endpoint))
    return NOTHING


SECRET_ANSWERS = frozenset({"webhooks.create_source", "webhooks.rotate_source_token"})
"""Routes whose answers hold a URL that opens its source."""

UNKEPT = frozenset({"webhooks.source_access"})
"""Routes whose answers contain a token that is not stored: a repeated request gets a new token, which is harmless."""

_bodied = partial(Route, body=Body.JSON)
_LIST = ("limit", "iterator", "order")

ROUTES: tuple[Route[WebhooksUseCases, WebhooksCall], ...] = (
    _bodied("POST", SOURCES, _create, name="webhooks.create_source", summary="Create a source", status=201),
    Route("GET", SOURCES, _list, name="webhooks.list_sources", summary="List sources", query=_LIST),
    Route("GET", SOURCE, _show, name="webhooks.show_source", summary="Show a source"),
    _bodied("PUT", SOURCE, _replace, name="webhooks.replace_source", summary="Replace a source"),
    Route("DELETE", SOURCE, _delete, name="webhooks.delete_source", summary="Delete a source", status=204),
    Route(
        "POST",
        SOURCE + "/token/rotate",
        _rotate_token,
        name="webhooks.rotate_source_token",
        summary="Give a source another URL; the previous one goes on for 48 hours",
    ),
    Route(
        "GET",
        SOURCE + "/stats",
        _stats,
        name="webhooks.show_source_stats",
        summary="Show what a source has turned away",
    ),
    _bodied(
        "POST",
        SOURCE + "/dashboard",
        _dashboard,
        name="webhooks.source_access",
        summary="Create a token that opens one source",
    ),
    _bodied(
        "POST",
        ENDPOINTS,
        _create_endpoint,
        name="webhooks.create_source_endpoint",
        summary="Create an endpoint of a source",
        status=201,
    ),
    Route(
        "GET",
        ENDPOINTS,
        _list_endpoints,
        name="webhooks.list_source_endpoints",
        summary="List the endpoints of a source",
        query=_LIST,
    ),
    Route(
        "GET", ENDPOINT, _show_endpoint, name="webhooks.show_source_endpoint", summary="Show an endpoint of a source"
    ),
    _bodied(
        "PUT",
        ENDPOINT,
        _replace_endpoint,
        name="webhooks.replace_source_endpoint",
        summary="Replace an endpoint of a source",
    ),
    Route(
        "DELETE",
        ENDPOINT,
        _delete_endpoint,
        name="webhooks.delete_source_endpoint",
        summary="Delete an endpoint of a source",
        status=204,
    ),
    Route(
        "GET",
        ENDPOINT + "/secret",
        _secret,
        name="webhooks.show_source_secret",
        summary="Show the signing secret of a source's endpoint",
    ),
    _bodied(
        "POST",
        ENDPOINT + "/secret/rotate",
        _rotate_secret,
        name="webhooks.rotate_source_secret",
        summary="Rotate the signing secret of a source's endpoint",
        status=204,
    ),
    Route(
        "GET",
        ENDPOINT + "/headers",
        _headers,
        name="webhooks.show_source_headers",
        summary="Show the headers of a source's endpoint",
    ),
    _bodied(
        "PUT",
        ENDPOINT + "/headers",
        _set_headers,
        name="webhooks.set_source_headers",
        summary="Replace the headers of a source's endpoint",
        status=204,
    ),
    Route(
        "GET",
        ENDPOINT + "/transformation",
        _transformation,
        name="webhooks.show_source_transformation",
        summary="Show the transformation of a source's endpoint",
    ),
    _bodied(
        "PATCH",
        ENDPOINT + "/transformation",
        _set_transformation,
        name="webhooks.patch_source_transformation",
        summary="Change the transformation of a source's endpoint",
        status=204,
    ),
)
