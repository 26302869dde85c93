"""Hub API: schedulers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pushhub.hub.api.answers import NOTHING, listed
from pushhub.hub.api.call import STORE, HubCall
from pushhub.hub.wire.views import scheduler_view
from pushhub.web.api import Body, Route
from pushhub.web.http import Response

if TYPE_CHECKING:
    from pushhub.hub.api.use_cases import HubUseCases

SCHEDULERS = STORE + "/schedulers"
SCHEDULER = SCHEDULERS + "/{id}"


def _list(hub: HubUseCases, call: HubCall) -> Response:
    return listed([scheduler_view(each) for each in hub.settings.schedulers(call.store)])


def _make(hub: HubUseCases, call: HubCall) -> Response:
    scheduler = hub.of_store.make_scheduler(call.store, call.wrapped("scheduler"))
    return Response(status=201, body=scheduler_view(scheduler))


def _show(hub: HubUseCases, call: HubCall) -> Response:
    return Response(status=200, body=scheduler_view(hub.of_store.scheduler(call.store, call.id)))


def _change(hub: HubUseCases, call: HubCall) -> Response:
    scheduler = hub.of_store.change_scheduler(call.store, call.id, call.wrapped("scheduler"))
    return Response(status=200, body=scheduler_view(scheduler))


def _delete(hub: HubUseCases, call: HubCall) -> Response:
    hub.of_store.delete_scheduler(call.store, call.id)
    return NOTHING


ROUTES: tuple[Route[HubUseCases, HubCall], ...] = (
    Route("GET", SCHEDULERS, _list, name="hub.list_schedulers", summary="List schedulers"),
    Route(
        "POST",
        SCHEDULERS,
        _make,
        name="hub.make_scheduler",
        summary="Create a scheduler",
        body=Body.JSON_OR_FORM,
        status=201,
    ),
    Route("GET", SCHEDULER, _show, name="hub.show_scheduler", summary="Show a scheduler"),
    Route("PUT", SCHEDULER, _change, name="hub.change_scheduler", summary="Change a scheduler", body=Body.JSON_OR_FORM),
    Route("DELETE", SCHEDULER, _delete, name="hub.delete_scheduler", summary="Delete a scheduler"),
)
