"""Queue API: what went on in a project, whatever protocol it came by."""

from __future__ import annotations

from pushhub.ironmq.api.call import IronCall
from pushhub.ironmq.api.use_cases import IronUseCases
from pushhub.ironmq.wire.activity import parse_hours, render_activity
from pushhub.web.api import Route
from pushhub.web.http import Response


def _show(hub: IronUseCases, call: IronCall) -> Response:
    return Response(
        status=200, body=render_activity(hub.activity.lately(call.project, parse_hours(call.request.query)))
    )


ROUTES: tuple[Route[IronUseCases, IronCall], ...] = (
    Route(
        "GET",
        "/3/projects/{project}/activity",
        _show,
        name="ironmq.show_activity",
        summary="Show what went on in the project, hour by hour",
        query=("hours",),
    ),
)
