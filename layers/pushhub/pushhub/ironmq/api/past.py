"""Queue API: searches of a project's past, whatever protocol its messages used. They run in a function of their own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pushhub.ironmq.wire.past import parse_past, parse_past_cursor, render_past, render_started
from pushhub.web.api import Body, Function, Route
from pushhub.web.http import Response

if TYPE_CHECKING:
    from collections.abc import Callable

    from pushhub.engine.records.past import PastSearches
    from pushhub.ironmq.api.call import IronCall

PAST = "/3/projects/{project}/past"


@dataclass(frozen=True, slots=True, kw_only=True)
class PastUseCases:
    """What the handlers of these routes call."""

    past: Callable[[], PastSearches]


def _start(hub: PastUseCases, call: IronCall) -> Response:
    past = hub.past()
    query = parse_past(call.project, call.fields, past.now())
    return Response(status=202, body=render_started(past.start(query), query))


def _look(hub: PastUseCases, call: IronCall) -> Response:
    past = hub.past()
    page = past.look(call.project, call.names["search"], parse_past_cursor(call.request.query))
    return Response(status=200, body=render_past(page, past.shown))


ROUTES: tuple[Route[PastUseCases, IronCall], ...] = (
    Route(
        "POST",
        PAST,
        _start,
        name="ironmq.start_past_search",
        settings=False,
        summary="Search the delivery records of the past",
        function=Function.PAST,
        body=Body.JSON,
        status=202,
    ),
    Route(
        "GET",
        PAST + "/{search}",
        _look,
        name="ironmq.show_past_search",
        summary="Show what a search of the past has found",
        function=Function.PAST,
        query=("after",),
    ),
)
