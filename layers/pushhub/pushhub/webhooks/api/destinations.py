"""Webhooks API: destinations, Svix's name for endpoints on AWS; and the external id that their roles demand."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from pushhub.web.api import Auth, Body, Route
from pushhub.web.http import Response
from pushhub.webhooks.api.call import APP, WebhooksCall
from pushhub.webhooks.model.ids import IdPrefix
from pushhub.webhooks.wire.destination import as_endpoint, destination_view, parse_destination
from pushhub.webhooks.wire.endpoint import parse_rotation
from pushhub.webhooks.wire.page import page_view, parse_window

if TYPE_CHECKING:
    from pushhub.engine.model.subscriber_health import SubscriberHealth
    from pushhub.webhooks.api.use_cases import WebhooksUseCases
    from pushhub.webhooks.model.application import Application
    from pushhub.webhooks.model.endpoint import Endpoint

DESTINATIONS = APP + "/destination"
DESTINATION = DESTINATIONS + "/{destination}"


def _application(hub: WebhooksUseCases, call: WebhooksCall) -> Application:
    return hub.applications.application(call.project, call.app)


def _there(hub: WebhooksUseCases, call: WebhooksCall) -> Endpoint:
    return hub.destinations().destination(_application(hub, call), call.names["destination"])


def _view(hub: WebhooksUseCases, endpoint: Endpoint, health: SubscriberHealth | None = None) -> dict[str, object]:
    return destination_view(endpoint, hub.destinations().external_id(endpoint.project, endpoint.app_id), health)


def _shown(hub: WebhooksUseCases, endpoint: Endpoint, status: int = 200) -> Response:
    return Response(status=status, body=_view(hub, endpoint))


def _create(hub: WebhooksUseCases, call: WebhooksCall) -> Response:
    application = _application(hub, call)
    given = parse_destination(call.fields, whole=True)
    return _shown(hub, hub.destinations().create(application, given, call.rights), 201)


def _list(hub: WebhooksUseCases, call: WebhooksCall) -> Response:
    iterator = call.query.get("iterator", "")
    kept = {**call.query, "iterator": as_endpoint(iterator)} if iterator else call.query
    window = parse_window(kept, kind=IdPrefix.ENDPOINT, ascending=False)
    page = hub.destinations().page(call.project, call.app, window)
    healths = hub.health.of_endpoints(call.project, call.app, page.items)
    health_of = {each.endpoint_id: health for each, health in zip(page.items, healths, strict=True)}
    return Response(status=200, body=page_view(page, lambda each: _view(hub, each, health_of[each.endpoint_id])))


def _show(hub: WebhooksUseCases, call: WebhooksCall) -> Response:
    there = _there(hub, call)
    [health] = hub.health.of_endpoints(call.project, call.app, [there])
    return Response(status=200, body=_view(hub, there, health))


def _replace(hub: WebhooksUseCases, call: WebhooksCall) -> Response:
    application = _application(hub, call)
    given = parse_destination(call.fields, whole=True)
    there = hub.destinations().find(application, call.names["destination"])
    if there is None:
        return _shown(hub, hub.destinations().create(application, given, call.rights), 201)
    return _shown(hub, hub.destinations().update(application, there, given, call.rights, whole=True))


def _patch(hub: WebhooksUseCases, call: WebhooksCall) -> Response:
    application, there = _application(hub, call), _there(hub, call)
    given = parse_destination(call.fields, whole=False)
    return _shown(hub, hub.destinations().update(application, there, given, call.rights, whole=False))


def _delete(hub: WebhooksUseCases, call: WebhooksCall) -> Response:
    hub.endpoints.delete(call.project, call.app, _there(hub, call).endpoint_id)
    return Response(status=204, body={})


def _rotate(hub: WebhooksUseCases, call: WebhooksCall) -> Response:
    there, rotation = _there(hub, call), parse_rotation(call.fields)
    endpoint, _ = hub.endpoints.rotate(call.project, call.app, there.endpoint_id, rotation)
    return Response(status=200, body={"key": hub.signatures().secret(endpoint)})


def _external_id(hub: WebhooksUseCases, call: WebhooksCall) -> Response:
    application, ids = _application(hub, call), hub.destinations()
    external_id = ids.external_id(application.project, application.app_id)
    return Response(status=200, body={"externalId": external_id, "principal": ids.principal})


SECRET_ANSWERS = frozenset({"webhooks.rotate_sink_secret"})
"""Routes whose answers hold a secret."""

_route = partial(Route, auth=Auth.PROJECT_OR_CAPABILITY)

ROUTES: tuple[Route[WebhooksUseCases, WebhooksCall], ...] = (
    _route(
        "GET",
        APP + "/external-id",
        _external_id,
        name="webhooks.show_external_id",
        summary="Show what a role has to demand that an application's destinations are reached with",
    ),
    _route(
        "POST",
        DESTINATIONS,
        _create,
        name="webhooks.create_sink",
        summary="Create a destination on AWS",
        body=Body.JSON,
        status=201,
    ),
    _route(
        "GET",
        DESTINATIONS,
        _list,
        name="webhooks.list_sinks",
        summary="List the destinations of an application",
        query=("limit", "iterator", "order"),
    ),
    _route("GET", DESTINATION, _show, name="webhooks.show_sink", summary="Show a destination"),
    _route("PUT", DESTINATION, _replace, name="webhooks.replace_sink", summary="Replace a destination", body=Body.JSON),
    _route("PATCH", DESTINATION, _patch, name="webhooks.patch_sink", summary="Change a destination", body=Body.JSON),
    _route("DELETE", DESTINATION, _delete, name="webhooks.delete_sink", summary="Delete a destination", status=204),
    _route(
        "POST",
        DESTINATION + "/secret/rotate",
        _rotate,
        name="webhooks.rotate_sink_secret",
        summary="Rotate a destination's signing secret",
        body=Body.JSON,
    ),
)
