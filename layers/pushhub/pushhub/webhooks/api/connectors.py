"""Webhooks API: connectors. The routes are Svix's."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pushhub.web.api import Auth, Body, Route
from pushhub.web.http import Response
from pushhub.webhooks.api.call import ROOT, WebhooksCall
from pushhub.webhooks.model.ids import IdPrefix
from pushhub.webhooks.wire.connector import (
    connector_view,
    parse_connector,
    parse_connector_patch,
    parse_connector_replacement,
    parse_product,
)
from pushhub.webhooks.wire.page import page_view, parse_window

if TYPE_CHECKING:
    from pushhub.webhooks.api.use_cases import WebhooksUseCases

CONNECTORS = ROOT + "/connector"
CONNECTOR = CONNECTORS + "/{connector}"


def _create(hub: WebhooksUseCases, call: WebhooksCall) -> Response:
    created = hub.connectors().create(call.project, parse_connector(call.fields))
    return Response(status=201, body=connector_view(created))


def _list(hub: WebhooksUseCases, call: WebhooksCall) -> Response:
    window = parse_window(call.query, kind=IdPrefix.CONNECTOR, ascending=True)
    page = hub.connectors().page(call.project, window, product=parse_product(call.query), flags=call.caller.flags)
    return Response(status=200, body=page_view(page, connector_view))


def _show(hub: WebhooksUseCases, call: WebhooksCall) -> Response:
    found = hub.connectors().connector(call.project, call.names["connector"], flags=call.caller.flags)
    return Response(status=200, body=connector_view(found))


def _replace(hub: WebhooksUseCases, call: WebhooksCall) -> Response:
    wanted = parse_connector_replacement(call.fields)
    connector, created = hub.connectors().replace(call.project, call.names["connector"], wanted)
    return Response(status=201 if created else 200, body=connector_view(connector))


def _patch(hub: WebhooksUseCases, call: WebhooksCall) -> Response:
    # One that is not there is told before anything that is wrong with the request.
    found = hub.connectors().connector(call.project, call.names["connector"])
    changed = hub.connectors().patch(call.project, found.connector_id, parse_connector_patch(call.fields))
    return Response(status=200, body=connector_view(changed))


def _delete(hub: WebhooksUseCases, call: WebhooksCall) -> Response:
    hub.connectors().delete(call.project, call.names["connector"])
    return Response(status=204, body={})


ROUTES: tuple[Route[WebhooksUseCases, WebhooksCall], ...] = (
    Route(
        "POST",
        CONNECTORS,
        _create,
        name="webhooks.create_connector",
        summary="Create a connector",
        body=Body.JSON,
        status=201,
    ),
    Route(
        "GET",
        CONNECTORS,
        _list,
        name="webhooks.list_connectors",
        summary="List connectors",
        auth=Auth.PROJECT_OR_CAPABILITY,
        query=("limit", "iterator", "order", "product_type"),
    ),
    Route(
        "GET",
        CONNECTOR,
        _show,
        name="webhooks.show_connector",
        summary="Show a connector",
        auth=Auth.PROJECT_OR_CAPABILITY,
    ),
    Route("PUT", CONNECTOR, _replace, name="webhooks.replace_connector", summary="Replace a connector", body=Body.JSON),
    Route("PATCH", CONNECTOR, _patch, name="webhooks.patch_connector", summary="Change a connector", body=Body.JSON),
    Route("DELETE", CONNECTOR, _delete, name="webhooks.delete_connector", summary="Delete a connector", status=204),
)
