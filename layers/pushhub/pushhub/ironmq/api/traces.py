"""Queue API: where a project exports the spans of its attempts to."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pushhub.ironmq.wire.span_settings import parse_span_export, render_span_export
from pushhub.web.api import Body, Route
from pushhub.web.http import Response

if TYPE_CHECKING:
    from pushhub.ironmq.api.call import IronCall
    from pushhub.ironmq.api.use_cases import IronUseCases

TRACES = "/3/projects/{project}/traces"


def _shown(hub: IronUseCases, call: IronCall) -> Response:
    return Response(status=200, body={"traces": render_span_export(hub.spans().show(call.project))})


def _set(hub: IronUseCases, call: IronCall) -> Response:
    hub.spans().set(parse_span_export(call.project, call.fields))
    return _shown(hub, call)


def _remove(hub: IronUseCases, call: IronCall) -> Response:
    hub.spans().remove(call.project)
    return Response(status=200, body={"msg": "Deleted"})


ROUTES: tuple[Route[IronUseCases, IronCall], ...] = (
    Route("GET", TRACES, _shown, name="ironmq.show_span_export", summary="Show where spans are exported to"),
    Route("PUT", TRACES, _set, name="ironmq.set_span_export", summary="Export the spans of attempts", body=Body.JSON),
    Route("DELETE", TRACES, _remove, name="ironmq.delete_span_export", summary="Export no spans any more"),
)
