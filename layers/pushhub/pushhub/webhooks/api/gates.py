"""Webhooks API: what an endpoint's receiver demands before it looks at a request. The routes are Svix's; those of
operational endpoints are ours.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from pushhub.base.gates import CertificateRequest
from pushhub.web.api import Auth, Body, Route
from pushhub.web.http import Response
from pushhub.webhooks.api.call import ENDPOINT, WebhooksCall
from pushhub.webhooks.api.endpoints import OPERATIONAL
from pushhub.webhooks.model.refusals import not_found
from pushhub.webhooks.wire.grant import asked_grant

if TYPE_CHECKING:
    from pushhub.webhooks.api.use_cases import WebhooksUseCases

NOTHING = Response(status=204, body={})


def _oauth(hub: WebhooksUseCases, call: WebhooksCall) -> Response:
    found = hub.gates().oauth(call.project, call.app, call.endpoint)
    if found is None:
        raise not_found()
    return Response(status=200, body=found)


def _oauth_config(hub: WebhooksUseCases, call: WebhooksCall) -> Response:
    found = hub.gates().oauth(call.project, call.app, call.endpoint)
    return Response(status=200, body={"enabled": False} if found is None else {"enabled": True, "config": found})


def _set_oauth(hub: WebhooksUseCases, call: WebhooksCall) -> Response:
    hub.gates().set_oauth(call.project, call.app, call.endpoint, asked_grant(call.fields), call.rights)
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
    app, fields = call.app, call.fields
    asked = CertificateRequest(identity=fields.raw("identity"), ca=fields.raw("ca"))
    hub.gates().set_certificate(call.project, app, call.endpoint, asked)
    return NOTHING


def _remove_mtls(hub: WebhooksUseCases, call: WebhooksCall) -> Response:
    hub.gates().remove_certificate(call.project, call.app, call.endpoint)
    return NOTHING


def _routes(
    endpoint: str, an: str, kind: str = "", auth: Auth = Auth.PROJECT
) -> tuple[Route[WebhooksUseCases, WebhooksCall], ...]:
    """The routes of endpoints of a kind.

    Args:
        endpoint: Path of one.
        an: What it is called, with an article.
        kind: What the routes' names have before the gate's.
        auth: Who may.
    """
    oauth, mtls, route = endpoint + "/oauth", endpoint + "/mtls", partial(Route, auth=auth)
    return (
        route(
            "GET",
            oauth,
            _oauth,
            name=f"webhooks.show_{kind}oauth",
            summary=f"Show how {an}'s tokens are obtained",
        ),
        route(
            "PUT",
            oauth,
            _set_oauth,
            name=f"webhooks.set_{kind}oauth",
            summary=f"Send {an} OAuth tokens",
            body=Body.JSON,
            status=204,
        ),
        route(
            "DELETE",
            oauth,
            _remove_oauth,
            name=f"webhooks.remove_{kind}oauth",
            summary=f"Send {an} no OAuth tokens any more",
            status=204,
        ),
        route(
            "GET",
            endpoint + "/oauth-config",
            _oauth_config,
            name=f"webhooks.show_{kind}oauth_config",
            summary=f"Show whether and how {an}'s tokens are obtained",
        ),
        route("GET", mtls, _mtls, name=f"webhooks.show_{kind}mtls", summary=f"Show {an}'s client certificate"),
        route(
            "PUT",
            mtls,
            _set_mtls,
            name=f"webhooks.set_{kind}mtls",
            summary=f"Send {an}'s requests with a client certificate",
            body=Body.JSON,
            status=204,
        ),
        route(
            "DELETE",
            mtls,
            _remove_mtls,
            name=f"webhooks.remove_{kind}mtls",
            summary=f"Send {an} no client certificate any more",
            status=204,
        ),
        route(
            "GET",
            endpoint + "/mtls-config",
            _mtls_config,
            name=f"webhooks.show_{kind}mtls_config",
            summary=f"Show whether {an}'s requests are sent with a client certificate",
        ),
    )


ROUTES: tuple[Route[WebhooksUseCases, WebhooksCall], ...] = (
    *_routes(ENDPOINT, "an endpoint", auth=Auth.PROJECT_OR_CAPABILITY),
    *_routes(OPERATIONAL, "an operational endpoint", "operational_"),
)
