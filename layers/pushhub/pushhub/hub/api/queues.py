"""Hub API: queues and what is in them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pushhub.base.errors import NotFound
from pushhub.hub.api.answers import icon_of
from pushhub.hub.api.call import STORE, HubCall
from pushhub.hub.model.log import Location, LoggedMessage
from pushhub.hub.wire.views import row_view
from pushhub.web.api import Route
from pushhub.web.http import Response

if TYPE_CHECKING:
    from pushhub.hub.api.use_cases import HubUseCases

QUEUES = STORE + "/queues"


def _counts(hub: HubUseCases, call: HubCall) -> Response:
    return Response(status=200, body=hub.messages.counts(call.store))


def _show(hub: HubUseCases, call: HubCall) -> Response:
    if call.names["id"] not in list(Location):
        raise NotFound("Queue not found.")
    page = hub.messages.page(call.store, call.query(Location(call.names["id"])))
    mappings = {each.mapping_id: each for each in hub.settings.mappings(call.store)}
    integrations = hub.settings.integrations(call.store)

    def row(entry: LoggedMessage) -> dict[str, Any]:
        mapping = mappings.get(entry.mapping_id or "")
        return row_view(entry, mapping, icon_of(mapping, integrations), page.open.get(entry.message_id))

    rows = [row(each) for each in page.entries]
    if call.bare:
        return Response(status=200, body=rows)
    return Response(
        status=200,
        body={
            "page": page.page,
            "pages": page.pages,
            "available_messages": hub.settings.types(call.store),
            "available_consumers": [[each.name, each.mapping_id] for each in mappings.values()],
            "messages": rows,
        },
    )


ROUTES: tuple[Route[HubUseCases, HubCall], ...] = (
    Route("GET", QUEUES, _counts, name="hub.count_messages", summary="Count the messages of each queue"),
    Route(
        "GET",
        QUEUES + "/{id}",
        _show,
        name="hub.show_queue",
        summary="List the messages of a queue",
        query=(
            "page",
            "message",
            "filter_state",
            "state",
            "mapping_id",
            "consumer_class",
            "source",
            "message_id",
            "start_date",
            "end_date",
        ),
    ),
)
