"""Webhooks API: whether it is there."""

from __future__ import annotations

from pushhub.web.api import Auth, Route
from pushhub.web.http import Response
from pushhub.webhooks.api.call import ROOT, WebhooksCall
from pushhub.webhooks.api.use_cases import WebhooksUseCases


def _health(hub: WebhooksUseCases, call: WebhooksCall) -> Response:
    del hub, call
    return Response(status=200, body={})


def _ping(hub: WebhooksUseCases, call: WebhooksCall) -> Response:
    del hub, call
    return Response(status=204, body={})


ROUTES: tuple[Route[WebhooksUseCases, WebhooksCall], ...] = (
    Route("GET", ROOT + "/health", _health, name="webhooks.health", summary="See that it is there", auth=Auth.NONE),
    Route(
        "GET",
        ROOT + "/health/ping",
        _ping,
        name="webhooks.ping",
        summary="See that it answers",
        auth=Auth.NONE,
        status=204,
    ),
)
