"""Hub API: integrations and the endpoints behind them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pushhub.hub.api.answers import NOTHING, listed
from pushhub.hub.api.call import STORE, HubCall
from pushhub.hub.api.settings import MAPPINGS
from pushhub.hub.wire.fields import CheckedFields, InvalidObject
from pushhub.hub.wire.objects import read_integration, read_sign_up
from pushhub.hub.wire.views import integration_view
from pushhub.web.api import Body, Route
from pushhub.web.http import Response

if TYPE_CHECKING:
    from pushhub.hub.api.use_cases import HubUseCases

INTEGRATIONS = STORE + "/integrations"
INTEGRATION = INTEGRATIONS + "/{id}"


def _list(hub: HubUseCases, call: HubCall) -> Response:
    # There is no shared catalogue of integrations (``global=1``): each store registers its own.
    own = [] if call.chosen("global") else hub.settings.integrations(call.store)
    return listed([integration_view(each, call.store) for each in own])


def _register(hub: HubUseCases, call: HubCall) -> Response:
    fields = CheckedFields(call.wrapped("integration"))
    integration = hub.integrations.register(call.store, read_integration(fields, hub.integrations.new()))
    return Response(status=201, body=integration_view(integration, call.store, created=True))


def _show(hub: HubUseCases, call: HubCall) -> Response:
    integration = hub.integrations.integration(call.store, call.id)
    return Response(status=200, body=integration_view(integration, call.store))


def _change(hub: HubUseCases, call: HubCall) -> Response:
    found, fields = call.id, CheckedFields(call.wrapped("integration"))
    before = hub.integrations.integration(call.store, found)
    integration = hub.integrations.change(call.store, read_integration(fields, before), before)
    return Response(status=200, body=integration_view(integration, call.store))


def _delete(hub: HubUseCases, call: HubCall) -> Response:
    hub.integrations.delete(call.store, call.id)
    return NOTHING


def _sign_up(hub: HubUseCases, call: HubCall) -> Response:
    parameters, enabled = call.exact_fields.get("parameters") or {}, call.fields.get("enabled") or []
    if not isinstance(parameters, dict):
        raise InvalidObject({"parameters": ["must be names and values"]})
    services = [enabled] if isinstance(enabled, str) else enabled
    if not isinstance(services, list) or not all(isinstance(each, str) for each in services):
        raise InvalidObject({"enabled": ["must be names of services"]})
    integration = hub.integrations.integration(call.store, call.id)
    signed = read_sign_up(integration, parameters, call.store, hub.settings.parameters)
    hub.integrations.sign_up(call.store, integration, signed, services)
    return Response(status=200, body=integration_view(integration, call.store))


def _enable_mappings(hub: HubUseCases, call: HubCall) -> Response:
    hub.integrations.set_enabled(call.store, call.id, enabled=True)
    return MAPPINGS.list(hub, call)


def _disable_mappings(hub: HubUseCases, call: HubCall) -> Response:
    hub.integrations.set_enabled(call.store, call.id, enabled=False)
    return MAPPINGS.list(hub, call)


ROUTES: tuple[Route[HubUseCases, HubCall], ...] = (
    Route("GET", INTEGRATIONS, _list, name="hub.list_integrations", summary="List integrations", query=("global",)),
    Route(
        "POST",
        INTEGRATIONS,
        _register,
        name="hub.register_integration",
        summary="Register an endpoint",
        body=Body.JSON_OR_FORM,
        status=201,
    ),
    Route("GET", INTEGRATION, _show, name="hub.show_integration", summary="Show an integration"),
    Route(
        "PUT",
        INTEGRATION,
        _change,
        name="hub.change_integration",
        summary="Change an integration",
        body=Body.JSON_OR_FORM,
    ),
    Route(
        "DELETE", INTEGRATION, _delete, name="hub.delete_integration", summary="Delete an integration with its mappings"
    ),
    Route(
        "POST",
        INTEGRATION + "/signup",
        _sign_up,
        name="hub.sign_up",
        summary="Sign up for services of an integration",
        body=Body.JSON_OR_FORM,
    ),
    Route(
        "GET",
        INTEGRATION + "/enable_mappings",
        _enable_mappings,
        name="hub.enable_mappings",
        summary="Enable all mappings of an integration",
    ),
    Route(
        "GET",
        INTEGRATION + "/disable_mappings",
        _disable_mappings,
        name="hub.disable_mappings",
        summary="Disable all mappings of an integration",
    ),
)
