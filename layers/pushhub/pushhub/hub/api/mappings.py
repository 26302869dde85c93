"""Hub API: mappings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pushhub.hub.api.answers import NOTHING, listed
from pushhub.hub.api.call import STORE, HubCall
from pushhub.hub.wire.mapping import mapping_view
from pushhub.web.api import Body, Route
from pushhub.web.http import Response

if TYPE_CHECKING:
    from pushhub.hub.api.use_cases import HubUseCases

MAPPINGS = STORE + "/mappings"
MAPPING = MAPPINGS + "/{id}"


def list_mappings(hub: HubUseCases, call: HubCall) -> Response:
    """All mappings of the store."""
    return listed([mapping_view(each, call.store) for each in hub.settings.mappings(call.store)])


def _make(hub: HubUseCases, call: HubCall) -> Response:
    mapping = hub.of_store.make_mapping(call.store, call.wrapped("mapping"))
    return Response(status=201, body=mapping_view(mapping, call.store))


def _show(hub: HubUseCases, call: HubCall) -> Response:
    return Response(status=200, body=mapping_view(hub.of_store.mapping(call.store, call.id), call.store))


def _change(hub: HubUseCases, call: HubCall) -> Response:
    mapping = hub.of_store.change_mapping(call.store, call.id, call.wrapped("mapping"))
    return Response(status=200, body=mapping_view(mapping, call.store))


def _delete(hub: HubUseCases, call: HubCall) -> Response:
    hub.of_store.delete_mapping(call.store, call.id)
    return NOTHING


ROUTES: tuple[Route[HubUseCases, HubCall], ...] = (
    Route("GET", MAPPINGS, list_mappings, name="hub.list_mappings", summary="List mappings"),
    Route(
        "POST", MAPPINGS, _make, name="hub.make_mapping", summary="Create a mapping", body=Body.JSON_OR_FORM, status=201
    ),
    Route("GET", MAPPING, _show, name="hub.show_mapping", summary="Show a mapping"),
    Route("PUT", MAPPING, _change, name="hub.change_mapping", summary="Change a mapping", body=Body.JSON_OR_FORM),
    Route("DELETE", MAPPING, _delete, name="hub.delete_mapping", summary="Delete a mapping"),
)
