"""Hub API: the routes that producers call."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pushhub.engine.model.trace import Trace
from pushhub.hub.api.call import STORE, HubCall
from pushhub.hub.model.object_ids import to_object_id
from pushhub.hub.wire.hops import hops_of
from pushhub.hub.wire.objects import read_pushed
from pushhub.web.api import Body, Function, Route
from pushhub.web.http import Response

if TYPE_CHECKING:
    from pushhub.hub.api.use_cases import HubPosting

MESSAGES = STORE + "/messages"


def _push(hub: HubPosting, call: HubCall) -> Response:
    hops = hops_of(call.request.headers)
    message, submitted = read_pushed(call.request.body)
    accepted = hub.intake.push(call.store, message, hops=hops, trace=Trace.of(call.request.headers))
    message_id = to_object_id(accepted.message_id)
    return Response(status=201, body={**submitted, "id": message_id, "message_id": message_id})


ROUTES: tuple[Route[HubPosting, HubCall], ...] = (
    Route(
        "POST",
        MESSAGES,
        _push,
        name="hub.push_message",
        settings=False,
        summary="Push a message",
        function=Function.INGEST,
        body=Body.JSON,
        status=201,
    ),
)
