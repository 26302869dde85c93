"""Hub API: notifications to the operator."""

from __future__ import annotations

from pushhub.hub.api.call import STORE, HubCall
from pushhub.hub.api.use_cases import HubUseCases
from pushhub.hub.model.log import Location
from pushhub.hub.model.notice import Notification
from pushhub.hub.wire.views import notification_view
from pushhub.web.api import Route
from pushhub.web.http import Response

NOTIFICATIONS_SHOWN = 250
"""Notifications looked at when they are listed, the newest first."""

PER_PAGE = 25


def _list(hub: HubUseCases, call: HubCall) -> Response:
    def wanted(each: Notification) -> bool:
        level, kind, token = (call.chosen(name) for name in ("level", "reference_type", "reference_token"))
        return (
            level in (None, each.level.value)
            and kind in (None, each.extra.get("reference_type"))
            and token in (None, each.extra.get("reference_token"))
        )

    listed = hub.log.notifications(call.store, limit=NOTIFICATIONS_SHOWN)
    found = [notification_view(each) for each in listed if wanted(each)]
    page = call.query(Location.ARCHIVED).page
    rows = found[(page - 1) * PER_PAGE : page * PER_PAGE]
    if call.bare:
        return Response(status=200, body=rows)
    pages = max(1, -(-len(found) // PER_PAGE))
    return Response(status=200, body={"page": page, "pages": pages, "notifications": rows})


ROUTES: tuple[Route[HubUseCases, HubCall], ...] = (
    Route(
        "GET",
        STORE + "/notifications",
        _list,
        name="hub.list_notifications",
        summary="List notifications, the newest first",
        query=("page", "level", "reference_type", "reference_token"),
    ),
)
