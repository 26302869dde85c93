"""Webhooks API: access for the owners of applications."""

from __future__ import annotations

import base64
import json
from functools import partial
from typing import TYPE_CHECKING

from pushhub.web.api import Auth, Body, Route
from pushhub.web.http import Response
from pushhub.webhooks.api.call import ROOT, WebhooksCall
from pushhub.webhooks.model.refusals import Refused
from pushhub.webhooks.portal import PortalAsk, parse_expire, parse_portal_ask

if TYPE_CHECKING:
    from pushhub.webhooks.api.use_cases import WebhooksUseCases

NOTHING = Response(status=204, body={})


def _access(hub: WebhooksUseCases, call: WebhooksCall) -> Response:
    ask = parse_portal_ask(call.fields)
    application = hub.applications.named_or_brought(call.project, call.app, call.fields.section("application"))
    return _opened(hub, application.app_id, hub.portal.open(application, ask))


def _dashboard(hub: WebhooksUseCases, call: WebhooksCall) -> Response:
    application = hub.applications.application(call.project, call.app)
    return _opened(hub, application.app_id, hub.portal.open(application, PortalAsk()))


def _opened(hub: WebhooksUseCases, app_id: str, token: str) -> Response:
    # In the fragment, so that the token never appears in a server's log.
    key = base64.b64encode(json.dumps({"appId": app_id, "token": token}).encode()).decode()
    return Response(status=200, body={"url": f"{hub.base_url}/console#key={key}", "token": token})


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
)
