"""Webhooks API: integrations."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pushhub.web.api import Body, Route
from pushhub.web.http import Response
from pushhub.webhooks.api.call import APP, WebhooksCall
from pushhub.webhooks.model.ids import IdPrefix
from pushhub.webhooks.wire.integration import integration_view, parse_integration
from pushhub.webhooks.wire.page import page_view, parse_window

if TYPE_CHECKING:
    from pushhub.webhooks.api.use_cases import WebhooksUseCases
    from pushhub.webhooks.model.application import Application

ALL = APP + "/integration"
ONE = ALL + "/{integration}"


def _application(hub: WebhooksUseCases, call: WebhooksCall) -> Application:
    return hub.applications.application(call.project, call.app)


def _create(hub: WebhooksUseCases, call: WebhooksCall) -> Response:
    wanted = parse_integration(call.fields)
    return Response(status=201, body=integration_view(hub.integrations().create(_application(hub, call), wanted)))


def _list(hub: WebhooksUseCases, call: WebhooksCall) -> Response:
    window = parse_window(call.query, kind=IdPrefix.INTEGRATION, ascending=True)
    page = hub.integrations().page(_application(hub, call), window)
    return Response(status=200, body=page_view(page, integration_view))


def _show(hub: WebhooksUseCases, call: WebhooksCall) -> Response:
    found = hub.integrations().integration(_application(hub, call), call.names["integration"])
    return Response(status=200, body=integration_view(found))


def _replace(hub: WebhooksUseCases, call: WebhooksCall) -> Response:
    wanted = parse_integration(call.fields)
    changed = hub.integrations().replace(_application(hub, call), call.names["integration"], wanted)
    return Response(status=200, body=integration_view(changed))


def _delete(hub: WebhooksUseCases, call: WebhooksCall) -> Response:
    hub.integrations().delete(_application(hub, call), call.names["integration"])
    return Response(status=204, body={})


def _rotate(hub: WebhooksUseCases, call: WebhooksCall) -> Response:
    key = hub.integrations().rotate_key(_application(hub, call), call.names["integration"])
    return Response(status=200, body={"key": key})


SECRET_ANSWERS = frozenset({"webhooks.rotate_integration_key"})
"""POSTs whose answers hold what opens something: they are kept sealed for repeated requests."""

ROUTES: tuple[Route[WebhooksUseCases, WebhooksCall], ...] = (
    Route(
        "POST",
        ALL,
        _create,
        name="webhooks.create_integration",
        summary="Create an integration",
        body=Body.JSON,
        status=201,
    ),
    Route(
        "GET",
        ALL,
        _list,
        name="webhooks.list_integrations",
        summary="List the integrations of an application",
        query=("limit", "iterator", "order"),
    ),
    Route("GET", ONE, _show, name="webhooks.show_integration", summary="Show an integration"),
    Route("PUT", ONE, _replace, name="webhooks.replace_integration", summary="Replace an integration", body=Body.JSON),
    Route("DELETE", ONE, _delete, name="webhooks.delete_integration", summary="Delete an integration", status=204),
    Route(
        "POST",
        ONE + "/key/rotate",
        _rotate,
        name="webhooks.rotate_integration_key",
        summary="Give an integration a new key",
    ),
)
