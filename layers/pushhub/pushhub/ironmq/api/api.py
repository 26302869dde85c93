"""The queue API (IronMQ v3): its routes, its callers, its errors."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pushhub.ironmq.api import alerts as alert_routes
from pushhub.ironmq.api import changes as change_routes
from pushhub.ironmq.api import messages as message_routes
from pushhub.ironmq.api import past as past_routes
from pushhub.ironmq.api import project as project_routes
from pushhub.ironmq.api import queues as queue_routes
from pushhub.ironmq.api import traces as traces_routes
from pushhub.web.api import Auth, Route
from pushhub.web.http import Response

if TYPE_CHECKING:
    from pushhub.ironmq.api.call import IronCall
    from pushhub.ironmq.api.use_cases import IronUseCases

API_VERSION = "3"


def _version(_: IronUseCases, __: IronCall) -> Response:
    return Response(status=200, body={"version": API_VERSION})


ROUTES: tuple[Route[IronUseCases, IronCall], ...] = (
    Route("GET", "/version", _version, name="ironmq.version", summary="Show the API's version", auth=Auth.NONE),
    *queue_routes.ROUTES,
    *message_routes.ROUTES,
    *project_routes.ROUTES,
    *past_routes.ROUTES,
    *alert_routes.ROUTES,
    *change_routes.ROUTES,
    *traces_routes.ROUTES,
)
"""Every route of the queue API."""
