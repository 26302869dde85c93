"""Hub API: notifications to the operator."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pushhub.hub.api.call import STORE, HubCall
from pushhub.hub.wire.views import notification_view
from pushhub.web.api import Route
from pushhub.web.http import Response

if TYPE_CHECKING:
    from pushhub.hub.api.use_cases import HubUseCases


def _list(hub: HubUseCases, call: HubCall) -> Response:
    found = hub.notices.page(call.store, call.notification_query())
    rows = [notification_view(each) for each in found.notifications]
    if call.bare:
        return Response(status=200, body=rows)
    return Response(status=200, body={"page": found.page, "pages": found.pages, "notifications": rows})


ROUTES: tuple[Route[HubUseCases, HubCall], ...] = (
    Route(
        "GET",
        STORE + "/notifications",
        _list,
        name="hub.list_notifications",
        summary="List notifications, newest first",
        query=("page", "level", "reference_type", "reference_token", "start_date", "end_date"),
    ),
)
