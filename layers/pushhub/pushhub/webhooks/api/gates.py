"""Webhooks API: what an endpoint's receiver demands before it looks at a request. The routes are Svix's."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from pushhub.web.api import Auth, Body, Route
from pushhub.web.http import Response
from pushhub.webhooks.api.call import ENDPOINT, WebhooksCall
from pushhub.webhooks.model.refusals import not_found

if TYPE_CHECKING:
    from pushhub.webhooks.api.use_cases import WebhooksUseCases

NOTHING = Response(status=204, body={})
OAUTH = ENDPOINT + "/oauth"
MTLS = ENDPOINT + "/mtls"


def _oauth(hub: WebhooksUseCases, call: WebhooksCall) -> Response:
    found = hub.gates().oauth(call.project, call.app, call.endpoint)
    if found is None:
        raise not_found()
    return Response(status=200, body=found)


def _oauth_config(hub: WebhooksUseCases, call: WebhooksCall) -> Response:
    found = hub.gates().oauth(call.project, call.app, call.endpoint)
    return Response(status=200, body={"enabled": False} if found is None else {"enabled": True, "config": found})


def _set_oauth(hub: WebhooksUseCases, call: WebhooksCall) -> Response:
    hub.gates().set_oauth(call.project, call.app, call.endpoint, call.fields, call.rights)
    return NOTHING


def _remove_oauth(hub: WebhooksUseCases, call: WebhooksCall) -> Response:
    hub.gates().remove_oauth(call.project, call.app, call.endpoint)
    return NOTHING


def _mtls(hub: WebhooksUseCases, call: WebhooksCall) -> Response:
    found = hub.gates().certificate(call.project, call.app, call.endpoint)
    if found is None:
        raise not_found()
    return Response(status=200, body=found)


def _mtls_config(hub: WebhooksUseCases, call: WebhooksCall) -> Response:
    found = hub.gates().certificate(call.project, call.app, call.endpoint)
    return Response(status=200, body={"enabled": False} if found is None else {"enabled": True, "config": found})


def _set_mtls(hub: WebhooksUseCases, call: WebhooksCall) -> Response:
    hub.gates().set_certificate(call.project, call.app, call.endpoint, call.fields)
    return NOTHING


def _remove_mtls(hub: WebhooksUseCases, call: WebhooksCall) -> Response:
    hub.gates().remove_certificate(call.project, call.app, call.endpoint)
    return NOTHING


_route = partial(Route, auth=Auth.PROJECT_OR_CAPABILITY)

ROUTES: tuple[Route[WebhooksUseCases, WebhooksCall], ...] = (
    _route("GET", OAUTH, _oauth, name="webhooks.show_oauth", summary="Show how an endpoint's tokens are obtained"),
    _route(
        "PUT",
        OAUTH,
        _set_oauth,
        name="webhooks.set_oauth",
        summary="Send an endpoint OAuth tokens",
        body=Body.JSON,
        status=204,
    ),
    _route(
        "DELETE",
        OAUTH,
        _remove_oauth,
        name="webhooks.remove_oauth",
        summary="Send an endpoint no OAuth tokens any more",
        status=204,
    ),
    _route(
        "GET",
        ENDPOINT + "/oauth-config",
        _oauth_config,
        name="webhooks.show_oauth_config",
        summary="Show whether and how an endpoint's tokens are obtained",
    ),
    _route("GET", MTLS, _mtls, name="webhooks.show_mtls", summary="Show an endpoint's client certificate"),
    _route(
        "PUT",
        MTLS,
        _set_mtls,
        name="webhooks.set_mtls",
        summary="Send an endpoint's requests with a client certificate",
        body=Body.JSON,
        status=204,
    ),
    _route(
        "DELETE",
        MTLS,
        _remove_mtls,
        name="webhooks.remove_mtls",
        summary="Send an endpoint no client certificate any more",
        status=204,
    ),
    _route(
        "GET",
        ENDPOINT + "/mtls-config",
        _mtls_config,
        name="webhooks.show_mtls_config",
        summary="Show whether an endpoint's requests are sent with a client certificate",
    ),
)
