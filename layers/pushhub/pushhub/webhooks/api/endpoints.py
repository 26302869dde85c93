"""Webhooks API: endpoints, their secrets and headers. The paths of operational endpoints, which get the hub's own
events, name no application.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from pushhub.web.api import Auth, Body, Route
from pushhub.web.health import health_view
from pushhub.web.http import Response
from pushhub.webhooks.api.call import APP, ENDPOINT, ROOT, WebhooksCall
from pushhub.webhooks.model.ids import IdPrefix
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


def _view(hub: WebhooksUseCases, call: WebhooksCall, endpoint: Endpoint) -> dict[str, object]:
    if "app" in call.names:
        return endpoint_view(endpoint, hub.endpoints.url_as_shown(call.caller.reach))
    return {name: each for name, each in endpoint_view(endpoint, str).items() if name != "channels"}


def _shown(hub: WebhooksUseCases, call: WebhooksCall, endpoint: Endpoint) -> Response:
    return Response(status=200, body=_view(hub, call, endpoint))


def _ensured(hub: WebhooksUseCases, call: WebhooksCall) -> str:
    """Id or uid of the endpoints' application; that of operational endpoints is made when it is first needed."""
    if "app" not in call.names:
        hub.operational.ensure(call.project)
    return call.app


def _created(hub: WebhooksUseCases, call: WebhooksCall, application: Application, fields: Fields) -> Response:
    signatures = partial(parse_signatures, fields)
    endpoint = hub.endpoints.create(application, parse_new_endpoint(fields), signatures, call.rights)
    return replace(_shown(hub, call, endpoint), status=201)


def _create(hub: WebhooksUseCases, call: WebhooksCall) -> Response:
    app, fields = _ensured(hub, call), call.fields
    return _created(hub, call, hub.applications.application(call.project, app), fields)


def _list(hub: WebhooksUseCases, call: WebhooksCall) -> Response:
    window = parse_window(call.query, kind=IdPrefix.ENDPOINT, ascending=False)
    app = _ensured(hub, call)
    page = hub.endpoints.page(call.project, app, window)
    healths = hub.health.of_endpoints(call.project, app, page.items)
    views = {each.endpoint_id: health_view(health) for each, health in zip(page.items, healths, strict=True)}

    def view(endpoint: Endpoint) -> dict[str, object]:
        return {**_view(hub, call, endpoint), "health": views[endpoint.endpoint_id]}

    return Response(status=200, body=page_view(page, view))


def _show(hub: WebhooksUseCases, call: WebhooksCall) -> Response:
    return _shown(hub, call, hub.endpoints.endpoint(call.project, call.app, call.endpoint))


def _replace(hub: WebhooksUseCases, call: WebhooksCall) -> Response:
    app, fields = call.app, call.fields
    application = hub.applications.application(call.project, app)
    wanted, there = parse_endpoint(fields), hub.endpoints.find(application, call.endpoint)
    if there is None:
        return _created(hub, call, application, fields)
    return _shown(hub, call, hub.endpoints.update(application, there, wanted, call.rights))


def _replace_operational(hub: WebhooksUseCases, call: WebhooksCall) -> Response:
    there, wanted = hub.endpoints.endpoint(call.project, call.app, call.endpoint), parse_endpoint(call.fields)
    application = hub.applications.application(call.project, call.app)
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
    """The key as shown to its owner; for an Ed25519 key, with the URL where receivers fetch the public half."""
    endpoint, signs = hub.endpoints.endpoint(call.project, call.app, call.endpoint), hub.signatures()
    public = signs.signs_with_keys(endpoint) and signs.keys(endpoint).current.public
    where = {"publicKeysUrl": public_keys_url(hub.base_url, endpoint)} if public else {}
    return Response(status=200, body={"key": signs.secret(endpoint), **where})


def _rotate(hub: WebhooksUseCases, call: WebhooksCall) -> Response:
    _, key = hub.endpoints.rotate(call.project, call.app, call.endpoint, parse_rotation(call.fields))
    return Response(status=200, body={"key": key.shown}) if "app" in call.names else NOTHING


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
OPERATIONALS = ROOT + "/operational-webhook/endpoint"
OPERATIONAL = OPERATIONALS + "/{endpoint}"

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

_bodied = partial(Route, body=Body.JSON)

OPERATIONAL_ROUTES: tuple[Route[WebhooksUseCases, WebhooksCall], ...] = (
    _bodied(
        "POST",
        OPERATIONALS,
        _create,
        name="webhooks.create_operational_endpoint",
        summary="Create an operational endpoint, which gets the hub's own events",
        status=201,
    ),
    Route(
        "GET",
        OPERATIONALS,
        _list,
        name="webhooks.list_operational_endpoints",
        summary="List the operational endpoints",
        query=("limit", "iterator", "order"),
    ),
    Route("GET", OPERATIONAL, _show, name="webhooks.show_operational_endpoint", summary="Show an operational endpoint"),
    _bodied(
        "PUT",
        OPERATIONAL,
        _replace_operational,
        name="webhooks.replace_operational_endpoint",
        summary="Replace an operational endpoint",
    ),
    Route(
        "DELETE",
        OPERATIONAL,
        _delete,
        name="webhooks.delete_operational_endpoint",
        summary="Delete an operational endpoint",
        status=204,
    ),
    Route(
        "GET",
        OPERATIONAL + "/secret",
        _secret,
        name="webhooks.show_operational_secret",
        summary="Show the signing key of an operational endpoint",
    ),
    _bodied(
        "POST",
        OPERATIONAL + "/secret/rotate",
        _rotate,
        name="webhooks.rotate_operational_secret",
        summary="Rotate the signing key of an operational endpoint",
        status=204,
    ),
    Route(
        "GET",
        OPERATIONAL + "/signatures",
        _signatures,
        name="webhooks.show_operational_signatures",
        summary="Show how the requests of an operational endpoint are signed",
    ),
    _bodied(
        "PUT",
        OPERATIONAL + "/signatures",
        _set_signatures,
        name="webhooks.set_operational_signatures",
        summary="Choose how the requests of an operational endpoint are signed",
    ),
    Route(
        "GET",
        OPERATIONAL + "/headers",
        _headers,
        name="webhooks.show_operational_headers",
        summary="Show the headers of an operational endpoint",
    ),
    _bodied(
        "PUT",
        OPERATIONAL + "/headers",
        _set_headers,
        name="webhooks.replace_operational_headers",
        summary="Replace the headers of an operational endpoint",
        status=204,
    ),
)
