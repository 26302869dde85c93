"""Webhooks API: endpoints for operational events, which the hub itself sends."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from pushhub.web.api import Body, Route
from pushhub.web.http import Response
from pushhub.webhooks.api.call import ROOT, WebhooksCall
from pushhub.webhooks.api.endpoints import created, secret_answer
from pushhub.webhooks.model.ids import Kind
from pushhub.webhooks.model.internal_queues import OPERATIONAL_APP as APP
from pushhub.webhooks.wire.endpoint import (
    endpoint_view,
    headers_view,
    parse_all_headers,
    parse_endpoint,
    parse_rotation,
)
from pushhub.webhooks.wire.page import page_view, parse_window
from pushhub.webhooks.wire.signatures import parse_signatures

if TYPE_CHECKING:
    from pushhub.webhooks.api.use_cases import WebhooksUseCases
    from pushhub.webhooks.model.endpoint import Endpoint

ENDPOINTS = ROOT + "/operational-webhook/endpoint"
ENDPOINT = ENDPOINTS + "/{endpoint}"
HEADERS = ENDPOINT + "/headers"
SIGNATURES = ENDPOINT + "/signatures"
NOTHING = Response(status=204, body={})


def _view(endpoint: Endpoint) -> dict[str, object]:
    shown = dict(endpoint_view(endpoint, url_as_shown=str))
    del shown["channels"]
    return shown


def _create(hub: WebhooksUseCases, call: WebhooksCall) -> Response:
    hub.operational.ensure(call.project)
    fields = call.fields
    made = created(hub, call, hub.applications.application(call.project, APP), fields)
    return Response(status=201, body=_view(made))


def _list(hub: WebhooksUseCases, call: WebhooksCall) -> Response:
    window = parse_window(call.query, kind=Kind.ENDPOINT, ascending=False)
    hub.operational.ensure(call.project)
    return Response(status=200, body=page_view(hub.endpoints.page(call.project, APP, window), _view))


def _show(hub: WebhooksUseCases, call: WebhooksCall) -> Response:
    return Response(status=200, body=_view(hub.endpoints.endpoint(call.project, APP, call.endpoint)))


def _replace(hub: WebhooksUseCases, call: WebhooksCall) -> Response:
    there, wanted = hub.endpoints.endpoint(call.project, APP, call.endpoint), parse_endpoint(call.fields)
    application = hub.applications.application(call.project, APP)
    replaced = hub.endpoints.update(application, there, wanted, call.rights)
    return Response(status=200, body=_view(replaced))


def _delete(hub: WebhooksUseCases, call: WebhooksCall) -> Response:
    hub.endpoints.delete(call.project, APP, call.endpoint)
    return NOTHING


def _secret(hub: WebhooksUseCases, call: WebhooksCall) -> Response:
    return secret_answer(hub, hub.endpoints.endpoint(call.project, APP, call.endpoint))


def _rotate(hub: WebhooksUseCases, call: WebhooksCall) -> Response:
    hub.endpoints.rotate(call.project, APP, call.endpoint, parse_rotation(call.fields))
    return NOTHING


def _signatures(hub: WebhooksUseCases, call: WebhooksCall) -> Response:
    return Response(status=200, body=hub.signature_defaults().of_endpoint(call.project, APP, call.endpoint))


def _set_signatures(hub: WebhooksUseCases, call: WebhooksCall) -> Response:
    wanted = parse_signatures(call.fields, required=True)
    body = hub.signature_defaults().set_of_endpoint(call.project, APP, call.endpoint, wanted)
    return Response(status=200, body=body)


def _headers(hub: WebhooksUseCases, call: WebhooksCall) -> Response:
    return Response(status=200, body=headers_view(hub.endpoints.headers(call.project, APP, call.endpoint)))


def _set_headers(hub: WebhooksUseCases, call: WebhooksCall) -> Response:
    hub.endpoints.change_headers(call.project, APP, call.endpoint, parse_all_headers(call.fields))
    return NOTHING


_bodied = partial(Route, body=Body.JSON)

ROUTES: tuple[Route[WebhooksUseCases, WebhooksCall], ...] = (
    _bodied(
        "POST",
        ENDPOINTS,
        _create,
        name="webhooks.create_operational_endpoint",
        summary="Create an operational endpoint, which gets the hub's own events",
        status=201,
    ),
    Route(
        "GET",
        ENDPOINTS,
        _list,
        name="webhooks.list_operational_endpoints",
        summary="List the operational endpoints",
        query=("limit", "iterator", "order"),
    ),
    Route("GET", ENDPOINT, _show, name="webhooks.show_operational_endpoint", summary="Show an operational endpoint"),
    _bodied(
        "PUT",
        ENDPOINT,
        _replace,
        name="webhooks.replace_operational_endpoint",
        summary="Replace an operational endpoint",
    ),
    Route(
        "DELETE",
        ENDPOINT,
        _delete,
        name="webhooks.delete_operational_endpoint",
        summary="Delete an operational endpoint",
        status=204,
    ),
    Route(
        "GET",
        ENDPOINT + "/secret",
        _secret,
        name="webhooks.show_operational_secret",
        summary="Show the signing key of an operational endpoint",
    ),
    _bodied(
        "POST",
        ENDPOINT + "/secret/rotate",
        _rotate,
        name="webhooks.rotate_operational_secret",
        summary="Rotate the signing key of an operational endpoint",
        status=204,
    ),
    Route(
        "GET",
        SIGNATURES,
        _signatures,
        name="webhooks.show_operational_signatures",
        summary="Show how the requests of an operational endpoint are signed",
    ),
    _bodied(
        "PUT",
        SIGNATURES,
        _set_signatures,
        name="webhooks.set_operational_signatures",
        summary="Choose how the requests of an operational endpoint are signed",
    ),
    Route(
        "GET",
        HEADERS,
        _headers,
        name="webhooks.show_operational_headers",
        summary="Show the headers of an operational endpoint",
    ),
    _bodied(
        "PUT",
        HEADERS,
        _set_headers,
        name="webhooks.replace_operational_headers",
        summary="Replace the headers of an operational endpoint",
        status=204,
    ),
)
