"""Webhooks API: export and import of a project's configuration."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from pushhub.web.api import Body, Route
from pushhub.web.http import Response
from pushhub.webhooks.api.call import ROOT, WebhooksCall
from pushhub.webhooks.wire.connector import parse_connectors
from pushhub.webhooks.wire.event_type import parse_event_types

if TYPE_CHECKING:
    from pushhub.webhooks.api.use_cases import WebhooksUseCases


def _export(hub: WebhooksUseCases, call: WebhooksCall) -> Response:
    return Response(status=200, body=hub.environments.export(call.project))


def _import(hub: WebhooksUseCases, call: WebhooksCall) -> Response:
    hub.environments.take_in(call.project, parse_event_types(call.fields), parse_connectors(call.fields))
    return Response(status=204, body={})


_route = partial(Route, "POST")

ROUTES: tuple[Route[WebhooksUseCases, WebhooksCall], ...] = (
    _route(
        ROOT + "/environment/export",
        _export,
        name="webhooks.export_environment",
        summary="Export event types and connectors",
    ),
    _route(
        ROOT + "/environment/import",
        _import,
        name="webhooks.import_environment",
        summary="Import event types and connectors",
        body=Body.JSON,
        status=204,
    ),
)
