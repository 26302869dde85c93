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

WORK = 2_500
"""Maximum number of lot attempts per simulation: about half a second of a function with 512 MB.

A comparison takes two simulations.
"""


def _simulate(hub: IronUseCases, call: IronCall) -> Response:
    # Rarely used, so other requests should not pay for its imports.
    from pushhub.ironmq.policy_simulation import replayed, simulate  # noqa: PLC0415

    fields, told = replayed(hub.history(), call.project, call.fields)
    return Response(status=200, body=simulate(fields, work=WORK, replayed=told).answer())


ROUTES: tuple[Route[IronUseCases, IronCall], ...] = (
    Route(
        "POST",
        "/3/projects/{project}/policies/simulate",
        _simulate,
        name="ironmq.simulate_policy",
        summary="Simulate what a retry policy would do in an outage",
        body=Body.JSON,
    ),
)
