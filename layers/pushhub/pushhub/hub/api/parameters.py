"""Hub API: parameters."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pushhub.hub.api.answers import NOTHING, listed
from pushhub.hub.api.call import STORE, HubCall
from pushhub.hub.wire.views import parameter_view
from pushhub.web.api import Body, Route
from pushhub.web.http import Response

if TYPE_CHECKING:
    from pushhub.hub.api.use_cases import HubUseCases

PARAMETERS = STORE + "/parameters"
PARAMETER = PARAMETERS + "/{id}"


def _list(hub: HubUseCases, call: HubCall) -> Response:
    return listed([parameter_view(each) for each in hub.settings.parameters(call.store)])


def _make(hub: HubUseCases, call: HubCall) -> Response:
    parameter = hub.of_store.make_parameter(call.store, call.wrapped("parameter"))
    return Response(status=201, body=parameter_view(parameter))


def _show(hub: HubUseCases, call: HubCall) -> Response:
    return Response(status=200, body=parameter_view(hub.of_store.parameter(call.store, call.id)))


def _change(hub: HubUseCases, call: HubCall) -> Response:
    parameter = hub.of_store.change_parameter(call.store, call.id, call.wrapped("parameter"))
    return Response(status=200, body=parameter_view(parameter))


def _delete(hub: HubUseCases, call: HubCall) -> Response:
    hub.of_store.delete_parameter(call.store, call.id)
    return NOTHING


ROUTES: tuple[Route[HubUseCases, HubCall], ...] = (
    Route("GET", PARAMETERS, _list, name="hub.list_parameters", summary="List parameters"),
    Route(
        "POST",
        PARAMETERS,
        _make,
        name="hub.make_parameter",
        summary="Create a parameter",
        body=Body.JSON_OR_FORM,
        status=201,
    ),
    Route("GET", PARAMETER, _show, name="hub.show_parameter", summary="Show a parameter"),
    Route("PUT", PARAMETER, _change, name="hub.change_parameter", summary="Change a parameter", body=Body.JSON_OR_FORM),
    Route("DELETE", PARAMETER, _delete, name="hub.delete_parameter", summary="Delete a parameter"),
)
