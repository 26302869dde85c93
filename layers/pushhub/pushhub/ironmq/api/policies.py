"""Queue API: the policy simulator. Of the project it reads only a subscriber's failures, if that is requested.

Its code is imported on first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pushhub.web.api import Body, Route
from pushhub.web.http import Response

if TYPE_CHECKING:
    from pushhub.ironmq.api.call import IronCall
    from pushhub.ironmq.api.use_cases import IronUseCases

WORK = 300
"""Lot attempts that a request's one or two simulations share: with the runs that measure them, less than 100 ms of CPU,
as a request of one project must not hold up those of others. In a terminal a simulation takes more (``pushhub simulate
policy``).
"""


def _simulate(hub: IronUseCases, call: IronCall) -> Response:
    # Rarely used, so other requests should not pay for its imports.
    from pushhub.ironmq.policy_simulation import simulate  # noqa: PLC0415
    from pushhub.ironmq.wire.policies import MAX_WINDOWS, filled, parse_replay, parse_simulation  # noqa: PLC0415

    asked, told = parse_replay(call.fields), None
    if asked is not None:
        told = hub.history().told(
            call.project,
            asked.queue,
            asked.subscriber,
            since=asked.since,
            until=asked.until,
            most_windows=MAX_WINDOWS,
        )
    simulated = simulate(parse_simulation(filled(call.fields, told)), work=WORK, replayed=told)
    return Response(status=200, body=simulated.answer())


ROUTES: tuple[Route[IronUseCases, IronCall], ...] = (
    Route(
        "POST",
        "/3/projects/{project}/policies/simulate",
        _simulate,
        name="ironmq.simulate_policy",
        settings=False,
        summary="Simulate what a retry policy would do in an outage",
        body=Body.JSON,
    ),
)
