"""Webhooks API: access for the owners of applications."""

from __future__ import annotations

import base64
from functools import partial
from typing import TYPE_CHECKING

from pushhub.base import json_text
from pushhub.web.api import Auth, Body, Route
from pushhub.web.http import Response
from pushhub.webhooks.api.call import APP, ROOT, WebhooksCall
from pushhub.webhooks.model.portal import PortalAsk
from pushhub.webhooks.model.refusals import Refused
from pushhub.webhooks.wire.application import brought_application
from pushhub.webhooks.wire.portal import parse_expire, parse_origins, parse_portal_ask

if TYPE_CHECKING:
    from pushhub.webhooks.api.use_cases import WebhooksUseCases
    from pushhub.webhooks.applications.portal import Opened

NOTHING = Response(status=204, body={})


def _access(hub: WebhooksUseCases, call: WebhooksCall) -> Response:
    ask = parse_portal_ask(call.fields)
    application = hub.applications.named_or_brought(call.project, call.app, brought_application(call.fields))
    return opened_view(hub, application.app_id, hub.portal.open(application, ask))


def _dashboard(hub: WebhooksUseCases, call: WebhooksCall) -> Response:
    application = hub.applications.application(call.project, call.app)
    return opened_view(hub, application.app_id, hub.portal.open(application, PortalAsk()))


def opened_view(hub: WebhooksUseCases, app_id: str, opened: Opened) -> Response:
    """The answer that has a new token, and a link that opens its portal."""
    # In the fragment, so that the token never appears in a server's log.
    key = base64.b64encode(json_text.write({"appId": app_id, "token": opened.token}).encode()).decode()
    page = f"/console/p/{opened.frame}" if opened.frame else "/console"
    return Response(status=200, body={"url": f"{hub.base_url}{page}#key={key}", "token": opened.token})


def _frame(hub: WebhooksUseCases, call: WebhooksCall) -> Response:
    return Response(status=200, body={"origins": list(hub.portal.origins(call.project, _framed(hub, call)))})


def _set_frame(hub: WebhooksUseCases, call: WebhooksCall) -> Response:
    origins, app_id = parse_origins(call.fields), _framed(hub, call)
    hub.portal.set_origins(call.project, app_id, origins)
    return Response(status=200, body={"origins": list(origins)})


def _framed(hub: WebhooksUseCases, call: WebhooksCall) -> str:
    """Id of the application in the path; empty if there is none in it."""
    return hub.applications.application(call.project, call.app).app_id if "app" in call.names else ""


def _logout(hub: WebhooksUseCases, call: WebhooksCall) -> Response:
    if call.caller.app_id is None:
        raise Refused(403, "insufficient access", "Only the token of an application can be ended in this way")
    hub.portal.close(call.request.headers["authorization"].strip().partition(" ")[2].strip())
    return NOTHING


def _expire(hub: WebhooksUseCases, call: WebhooksCall) -> Response:
    grace_s, sessions = parse_expire(call.fields)
    application = hub.applications.application(call.project, call.app)
    hub.portal.expire(application, grace_s=grace_s, sessions=sessions)
    return NOTHING


UNKEPT = frozenset({"webhooks.portal_access", "webhooks.dashboard_access"})
"""Routes whose answers contain a token that is not stored: a repeated request gets a new token, which is harmless."""

_route = partial(Route, "POST")

ROUTES: tuple[Route[WebhooksUseCases, WebhooksCall], ...] = (
    _route(
        ROOT + "/auth/app-portal-access/{app}",
        _access,
        name="webhooks.portal_access",
        summary="Create a token that opens one application",
        body=Body.JSON,
    ),
    _route(
        ROOT + "/auth/dashboard-access/{app}",
        _dashboard,
        name="webhooks.dashboard_access",
        summary="Create a token that opens one application (old clients)",
    ),
    _route(
        ROOT + "/auth/logout",
        _logout,
        name="webhooks.logout",
        summary="End the token of this request",
        auth=Auth.PROJECT_OR_CAPABILITY,
        status=204,
    ),
    _route(
        ROOT + "/auth/app/{app}/expire-all",
        _expire,
        name="webhooks.expire_portal",
        summary="End the tokens of an application",
        body=Body.JSON,
        status=204,
    ),
    Route(
        "GET",
        ROOT + "/portal/frame",
        _frame,
        name="webhooks.show_portal_frame",
        summary="Show who may show portals in frames",
    ),
    Route(
        "PUT",
        ROOT + "/portal/frame",
        _set_frame,
        name="webhooks.set_portal_frame",
        summary="Say who may show portals in frames",
        body=Body.JSON,
    ),
    Route(
        "GET",
        APP + "/portal/frame",
        _frame,
        name="webhooks.show_application_frame",
        summary="Show who may show an application's portal in a frame",
    ),
    Route(
        "PUT",
        APP + "/portal/frame",
        _set_frame,
        name="webhooks.set_application_frame",
        summary="Say who may show an application's portal in a frame",
        body=Body.JSON,
    ),
)
