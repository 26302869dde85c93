"""Webhooks API: transformations of endpoints, of destinations and of endpoints of sources. The routes are Svix's."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from pushhub.web.api import Auth, Body, Route
from pushhub.web.http import Response
from pushhub.webhooks.api.call import ENDPOINT, WebhooksCall
from pushhub.webhooks.api.destinations import DESTINATION
from pushhub.webhooks.model.refusals import unprocessable
from pushhub.webhooks.wire.destination import endpoint_name
from pushhub.webhooks.wire.transformation import parse_change, parse_trial, transformation_view, trial_view

if TYPE_CHECKING:
    from pushhub.webhooks.api.use_cases import WebhooksUseCases

OF_ENDPOINT = ENDPOINT + "/transformation"
OF_DESTINATION = DESTINATION + "/transformation"


def _names(hub: WebhooksUseCases, call: WebhooksCall) -> tuple[str, str, str]:
    """The endpoint in the path: project, application, id or uid."""
    if "destination" in call.names:
        application = hub.applications.application(call.project, call.app)
        there = hub.destinations().destination(application, call.names["destination"])
        if there.polls:
            raise unprocessable("A polling endpoint is read as messages were posted", "path", "destination")
        return call.project, call.app, endpoint_name(there.endpoint_id)
    return call.project, call.app, call.endpoint


def show(hub: WebhooksUseCases, names: tuple[str, str, str]) -> Response:
    """The transformation of an endpoint."""
    return Response(status=200, body=transformation_view(hub.transformations().transformation(*names)))


def change(hub: WebhooksUseCases, call: WebhooksCall, names: tuple[str, str, str], *, of_sink: bool = False) -> None:
    """Change the transformation of an endpoint."""
    hub.transformations().change(*names, parse_change(call.fields, of_sink=of_sink), call.rights)


def simulate(hub: WebhooksUseCases, call: WebhooksCall, names: tuple[str, str, str]) -> Response:
    """What code would make of a payload for an endpoint."""
    webhook, changes = hub.transformations().tried(*names, parse_trial(call.fields), call.rights)
    return Response(status=200, body=trial_view(webhook, changes))


def _show(hub: WebhooksUseCases, call: WebhooksCall) -> Response:
    return show(hub, _names(hub, call))


def _change(hub: WebhooksUseCases, call: WebhooksCall) -> Response:
    change(hub, call, _names(hub, call), of_sink="destination" in call.names)
    # Svix's clients want an object for destinations, and nothing for endpoints.
    return Response(status=200 if "destination" in call.names else 204, body={})


def _try(hub: WebhooksUseCases, call: WebhooksCall) -> Response:
    return simulate(hub, call, _names(hub, call))


UNKEPT = frozenset({"webhooks.simulate_transformation", "webhooks.simulate_sink_transformation"})
"""POSTs whose answers may hold values of variables: they are kept for nobody, and a repeated one is run again."""

_route = partial(Route, auth=Auth.PROJECT_OR_CAPABILITY)

ROUTES: tuple[Route[WebhooksUseCases, WebhooksCall], ...] = (
    _route(
        "GET",
        OF_ENDPOINT,
        _show,
        name="webhooks.show_transformation",
        summary="Show an endpoint's transformation",
    ),
    _route(
        "PATCH",
        OF_ENDPOINT,
        _change,
        name="webhooks.patch_transformation",
        summary="Change an endpoint's transformation",
        body=Body.JSON,
        status=204,
    ),
    _route(
        "POST",
        OF_ENDPOINT + "/simulate",
        _try,
        name="webhooks.simulate_transformation",
        summary="Try code on a payload for an endpoint",
        body=Body.JSON,
    ),
    _route(
        "GET",
        OF_DESTINATION,
        _show,
        name="webhooks.show_sink_transformation",
        summary="Show a destination's transformation",
    ),
    _route(
        "PATCH",
        OF_DESTINATION,
        _change,
        name="webhooks.set_sink_transformation",
        summary="Change a destination's transformation",
        body=Body.JSON,
    ),
    _route(
        "POST",
        OF_DESTINATION + "/simulate",
        _try,
        name="webhooks.simulate_sink_transformation",
        summary="Try code on a payload for a destination",
        body=Body.JSON,
    ),
)
