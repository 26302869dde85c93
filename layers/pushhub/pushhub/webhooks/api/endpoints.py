"""Webhooks API: endpoints, their secrets and headers."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from pushhub.web.api import Auth, Body, Route
from pushhub.web.http import Response
from pushhub.webhooks.api.call import APP, ENDPOINT, ROOT, WebhooksCall
from pushhub.webhooks.model.ids import Kind
from pushhub.webhooks.model.refusals import not_found
from pushhub.webhooks.wire.endpoint import (
    endpoint_view,
    headers_view,
    parse_all_headers,
    parse_endpoint,
    parse_endpoint_patch,
    parse_header_change,
    parse_new_endpoint,
    parse_rotation,
)
from pushhub.webhooks.wire.page import page_view, parse_window
from pushhub.webhooks.wire.public_keys import public_keys_url
from pushhub.webhooks.wire.signatures import parse_defaults, parse_signatures

if TYPE_CHECKING:
    from pushhub.webhooks.api.use_cases import WebhooksUseCases
    from pushhub.webhooks.model.application import Application
    from pushhub.webhooks.model.endpoint import Endpoint
    from pushhub.webhooks.wire.fields import Fields

ENDPOINTS = APP + "/endpoint"
NOTHING = Response(status=204, body={})


def _shown(hub: WebhooksUseCases, call: WebhooksCall, endpoint: Endpoint) -> Response:
    return Response(status=200, body=endpoint_view(endpoint, hub.endpoints.url_as_shown(call.caller.reach)))


def created(hub: WebhooksUseCases, call: WebhooksCall, application: Application, fields: Fields) -> Endpoint:
    """Make the endpoint of a request."""
    return hub.endpoints.create(application, parse_new_endpoint(fields), partial(parse_signatures, fields), call.rights)


def _create(hub: WebhooksUseCases, call: WebhooksCall) -> Response:
    app, fields = call.app, call.fields
    made = created(hub, call, hub.applications.application(call.project, app), fields)
    return replace(_shown(hub, call, made), status=201)


def _list(hub: WebhooksUseCases, call: WebhooksCall) -> Response:
    window = parse_window(call.query, kind=Kind.ENDPOINT, ascending=False)
    page, url_as_shown = hub.endpoints.page(call.project, call.app, window), hub.endpoints.url_as_shown
    view = partial(endpoint_view, url_as_shown=url_as_shown(call.caller.reach))
    return Response(status=200, body=page_view(page, view))


def _show(hub: WebhooksUseCases, call: WebhooksCall) -> Response:
    return _shown(hub, call, hub.endpoints.endpoint(call.project, call.app, call.endpoint))


def _replace(hub: WebhooksUseCases, call: WebhooksCall) -> Response:
    app, fields = call.app, call.fields
    application = hub.applications.application(call.project, app)
    wanted, there = parse_endpoint(fields), hub.endpoints.find(application, call.endpoint)
    if there is None:
        return replace(_shown(hub, call, created(hub, call, application, fields)), status=201)
    return _shown(hub, call, hub.endpoints.update(application, there, wanted, call.rights))


def _patch(hub: WebhooksUseCases, call: WebhooksCall) -> Response:
    app, fields = call.app, call.fields
    application = hub.applications.application(call.project, app)
    there = hub.endpoints.find(application, call.endpoint)
    if there is None:
        raise not_found()
    return _shown(hub, call, hub.endpoints.update(application, there, parse_endpoint_patch(fields), call.rights))


def _delete(hub: WebhooksUseCases, call: WebhooksCall) -> Response:
    hub.endpoints.delete(call.project, call.app, call.endpoint)
    return NOTHING


def _secret(hub: WebhooksUseCases, call: WebhooksCall) -> Response:
    return secret_answer(hub, hub.endpoints.endpoint(call.project, call.app, call.endpoint))


def secret_answer(hub: WebhooksUseCases, endpoint: Endpoint) -> Response:
    """An endpoint's key as shown to its owner; for an Ed25519 key, with the URL where receivers fetch the public
    half.
    """
    signs = hub.signatures()
    public = signs.signs_with_keys(endpoint) and signs.keys(endpoint).current.public
    where = {"publicKeysUrl": public_keys_url(hub.base_url, endpoint)} if public else {}
    return Response(status=200, body={"key": signs.secret(endpoint), **where})


def _rotate(hub: WebhooksUseCases, call: WebhooksCall) -> Response:
    _, key = hub.endpoints.rotate(call.project, call.app, call.endpoint, parse_rotation(call.fields))
    return Response(status=200, body={"key": key.shown})


def _signatures(hub: WebhooksUseCases, call: WebhooksCall) -> Response:
    return Response(status=200, body=hub.signature_defaults().of_endpoint(call.project, call.app, call.endpoint))


def _set_signatures(hub: WebhooksUseCases, call: WebhooksCall) -> Response:
    app, wanted = call.app, parse_signatures(call.fields, required=True)
    body = hub.signature_defaults().set_of_endpoint(call.project, app, call.endpoint, wanted)
    return Response(status=200, body=body)


def _application_signatures(hub: WebhooksUseCases, call: WebhooksCall) -> Response:
    return Response(status=200, body=hub.signature_defaults().of_application(call.project, call.app))


def _set_application_signatures(hub: WebhooksUseCases, call: WebhooksCall) -> Response:
    app, schemes = call.app, parse_defaults(call.fields, hub.clock.now())
    body = hub.signature_defaults().set_of_application(call.project, app, schemes)
    return Response(status=200, body=body)


def _project_signatures(hub: WebhooksUseCases, call: WebhooksCall) -> Response:
    return Response(status=200, body=hub.signature_defaults().of_project(call.project))


def _set_project_signatures(hub: WebhooksUseCases, call: WebhooksCall) -> Response:
    schemes = parse_defaults(call.fields, hub.clock.now())
    return Response(status=200, body=hub.signature_defaults().set_of_project(call.project, schemes))


def _headers(hub: WebhooksUseCases, call: WebhooksCall) -> Response:
    return Response(status=200, body=headers_view(hub.endpoints.headers(call.project, call.app, call.endpoint)))


def _set_headers(hub: WebhooksUseCases, call: WebhooksCall) -> Response:
    hub.endpoints.change_headers(call.project, call.app, call.endpoint, parse_all_headers(call.fields))
    return NOTHING


def _change_headers(hub: WebhooksUseCases, call: WebhooksCall) -> Response:
    hub.endpoints.change_headers(call.project, call.app, call.endpoint, parse_header_change(call.fields))
    return NOTHING


SECRET_ANSWERS = frozenset({"webhooks.rotate_secret"})
"""Routes whose answers hold a secret."""

_route = partial(Route, auth=Auth.PROJECT_OR_CAPABILITY)
HEADERS = ENDPOINT + "/headers"
SECRET = ENDPOINT + "/secret"
SIGNATURES = ENDPOINT + "/signatures"
APP_SIGNATURES = APP + "/signatures"
PROJECT_SIGNATURES = ROOT + "/signatures"

ROUTES: tuple[Route[WebhooksUseCases, WebhooksCall], ...] = (
    _route(
        "POST",
        ENDPOINTS,
        _create,
        name="webhooks.create_endpoint",
        summary="Create an endpoint",
        body=Body.JSON,
        status=201,
    ),
    _route(
        "GET",
        ENDPOINTS,
        _list,
        name="webhooks.list_endpoints",
        summary="List the endpoints of an application",
        query=("limit", "iterator", "order"),
    ),
    _route("GET", ENDPOINT, _show, name="webhooks.show_endpoint", summary="Show an endpoint"),
    _route("PUT", ENDPOINT, _replace, name="webhooks.replace_endpoint", summary="Replace an endpoint", body=Body.JSON),
    _route("PATCH", ENDPOINT, _patch, name="webhooks.patch_endpoint", summary="Change an endpoint", body=Body.JSON),
    _route("DELETE", ENDPOINT, _delete, name="webhooks.delete_endpoint", summary="Delete an endpoint", status=204),
    _route("GET", SECRET, _secret, name="webhooks.show_secret", summary="Show an endpoint's signing secret"),
    _route(
        "POST",
        SECRET + "/rotate",
        _rotate,
        name="webhooks.rotate_secret",
        summary="Rotate an endpoint's signing secret",
        body=Body.JSON,
    ),
    _route(
        "GET",
        SIGNATURES,
        _signatures,
        name="webhooks.show_signatures",
        summary="Show how an endpoint's requests are signed",
    ),
    _route(
        "PUT",
        SIGNATURES,
        _set_signatures,
        name="webhooks.set_signatures",
        summary="Choose how an endpoint's requests are signed",
        body=Body.JSON,
    ),
    # Only tokens of the project: what a portal sets would be every endpoint's.
    Route(
        "GET",
        APP_SIGNATURES,
        _application_signatures,
        name="webhooks.show_application_signatures",
        summary="Show the signature schemes that an application's endpoints inherit",
    ),
    Route(
        "PUT",
        APP_SIGNATURES,
        _set_application_signatures,
        name="webhooks.set_application_signatures",
        summary="Choose the signature schemes that an application's endpoints inherit",
        body=Body.JSON,
    ),
    Route(
        "GET",
        PROJECT_SIGNATURES,
        _project_signatures,
        name="webhooks.show_project_signatures",
        summary="Show the signature schemes that the project's receivers inherit",
    ),
    Route(
        "PUT",
        PROJECT_SIGNATURES,
        _set_project_signatures,
        name="webhooks.set_project_signatures",
        summary="Choose the signature schemes that the project's receivers inherit",
        body=Body.JSON,
    ),
    _route("GET", HEADERS, _headers, name="webhooks.show_headers", summary="Show an endpoint's headers"),
    _route(
        "PUT",
        HEADERS,
        _set_headers,
        name="webhooks.set_headers",
        summary="Replace an endpoint's headers",
        body=Body.JSON,
        status=204,
    ),
    _route(
        "PATCH",
        HEADERS,
        _change_headers,
        name="webhooks.change_headers",
        summary="Change some of an endpoint's headers",
        body=Body.JSON,
        status=204,
    ),
)
