"""Hub API: the routes that producers call."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pushhub.engine.model.trace import Trace
from pushhub.hub.api.call import STORE, HubCall
from pushhub.hub.api.dialect import HubDialect
from pushhub.hub.api.use_cases import HubPosting
from pushhub.hub.model.object_ids import to_object_id
from pushhub.hub.wire.objects import read_pushed
from pushhub.web.api import Api, Body, Function, Route
from pushhub.web.http import Response

if TYPE_CHECKING:
    from pushhub.engine.ports import Projects

MESSAGES = STORE + "/messages"


def _push(hub: HubPosting, call: HubCall) -> Response:
    message, submitted = read_pushed(call.request.body)
    accepted = hub.intake.push(call.store, message, trace=Trace.of(call.request.headers))
    made = to_object_id(accepted.message_id)
    return Response(status=201, body={**submitted, "id": made, "message_id": made})


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


class HubPostingApi(Api[HubPosting, HubCall]):
    """The part of the hub's API that producers call."""

    def __init__(self, *, config: Projects, use_cases: HubPosting) -> None:
        super().__init__(routes=ROUTES, use_cases=use_cases, dialect=HubDialect(config))
