"""Queue API: the policy simulator. It reads nothing of the project, and its code is imported when it is asked for."""

from __future__ import annotations

from pushhub.ironmq.api.call import IronCall
from pushhub.ironmq.api.use_cases import IronUseCases
from pushhub.web.api import Body, Route
from pushhub.web.http import Response

WORK = 2_500
"""Attempts of lots that a simulation may take here: about half a second of a function with 512 MB. There are two with a comparison."""


def _simulate(_: IronUseCases, call: IronCall) -> Response:
    # Few ask for it: no other request should pay for its imports.
    from pushhub.engine.forecast import forecast  # noqa: PLC0415
    from pushhub.ironmq.wire.policies import notes, parse_simulation, render_forecast, render_plan  # noqa: PLC0415

    asked = parse_simulation(call.fields)
    found = forecast(asked.plan, work=WORK)
    body: dict[str, object] = {
        "plan": render_plan(asked.plan),
        "forecast": render_forecast(found),
        "compared": None,
        "notes": notes(found),
    }
    if asked.compared is not None:
        other = render_forecast(forecast(asked.compared, work=WORK))
        body["compared"] = {"with": asked.compared_with, "forecast": other}
    return Response(status=200, body=body)


ROUTES: tuple[Route[IronUseCases, IronCall], ...] = (
    Route(
        "POST",
        "/3/projects/{project}/policies/simulate",
        _simulate,
        name="ironmq.simulate_policy",
        summary="Simulate what a retry policy would do to an outage",
        body=Body.JSON,
    ),
)
