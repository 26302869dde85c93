"""Queue API: alerts that a project sets."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pushhub.ironmq.wire.project_alerts import parse_alert, render_alert
from pushhub.web.api import Body, Route
from pushhub.web.http import Response

if TYPE_CHECKING:
    from pushhub.ironmq.api.call import IronCall
    from pushhub.ironmq.api.use_cases import IronUseCases

ALERTS = "/3/projects/{project}/alerts"
ALERT = ALERTS + "/{alert}"


def _list(hub: IronUseCases, call: IronCall) -> Response:
    return Response(status=200, body={"alerts": [render_alert(each) for each in hub.alerts().all(call.project)]})


def _create(hub: IronUseCases, call: IronCall) -> Response:
    alert = hub.alerts().create(call.project, parse_alert(call.fields))
    return Response(status=201, body={"alert": render_alert(alert)})


def _change(hub: IronUseCases, call: IronCall) -> Response:
    alert = hub.alerts().change(call.project, call.names["alert"], parse_alert(call.fields))
    return Response(status=200, body={"alert": render_alert(alert)})


def _remove(hub: IronUseCases, call: IronCall) -> Response:
    hub.alerts().remove(call.project, call.names["alert"])
    return Response(status=200, body={"msg": "Deleted"})


def _test(hub: IronUseCases, call: IronCall) -> Response:
    hub.alerts().test(call.project, call.names["alert"])
    return Response(status=200, body={"msg": "Sent"})


ROUTES: tuple[Route[IronUseCases, IronCall], ...] = (
    Route("GET", ALERTS, _list, name="ironmq.list_project_alerts", summary="List the project's alerts"),
    Route(
        "POST",
        ALERTS,
        _create,
        name="ironmq.create_project_alert",
        summary="Create an alert",
        body=Body.JSON,
        status=201,
    ),
    Route("PUT", ALERT, _change, name="ironmq.change_project_alert", summary="Change an alert", body=Body.JSON),
    Route("DELETE", ALERT, _remove, name="ironmq.delete_project_alert", summary="Delete an alert"),
    Route(
        "POST", ALERT + "/test", _test, name="ironmq.test_project_alert", summary="Send a test notification of an alert"
    ),
)
