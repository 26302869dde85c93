"""Webhooks API: whether the service is up, and the health of endpoints."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pushhub.web.api import Auth, Route
from pushhub.web.http import Response
from pushhub.webhooks.api.call import ENDPOINT, ROOT, WebhooksCall
from pushhub.webhooks.endpoints.health import MOST_SHOWN
from pushhub.webhooks.wire.health import checkup_view, troubled_view

if TYPE_CHECKING:
    from pushhub.webhooks.api.use_cases import WebhooksUseCases


def _health(hub: WebhooksUseCases, call: WebhooksCall) -> Response:
    del hub, call
    return Response(status=200, body={})


def _ping(hub: WebhooksUseCases, call: WebhooksCall) -> Response:
    del hub, call
    return Response(status=204, body={})


def _endpoint(hub: WebhooksUseCases, call: WebhooksCall) -> Response:
    return Response(status=200, body=checkup_view(hub.health.checkup(call.project, call.app, call.endpoint)))


def _troubled(hub: WebhooksUseCases, call: WebhooksCall) -> Response:
    return Response(status=200, body=troubled_view(hub.health.troubled(call.project), MOST_SHOWN))


ROUTES: tuple[Route[WebhooksUseCases, WebhooksCall], ...] = (
    Route("GET", ROOT + "/health", _health, name="webhooks.health", summary="Check that the hub is up", auth=Auth.NONE),
    Route(
        "GET",
        ROOT + "/health/ping",
        _ping,
        name="webhooks.ping",
        summary="Check that the hub answers",
        auth=Auth.NONE,
        status=204,
    ),
    Route(
        "GET",
        ROOT + "/health/endpoints",
        _troubled,
        name="webhooks.list_troubled_endpoints",
        summary="List the endpoints that get no messages, or not all of them",
    ),
    Route(
        "GET",
        ENDPOINT + "/health",
        _endpoint,
        name="webhooks.show_endpoint_health",
        summary="Show the state of an endpoint",
        auth=Auth.PROJECT_OR_CAPABILITY,
    ),
)
