"""Queue API: the policy simulator. It reads nothing of the project but how a subscriber failed, if that is asked for.

Its code is imported when somebody asks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pushhub.web.api import Body, Route
from pushhub.web.http import Response

if TYPE_CHECKING:
    from pushhub.ironmq.api.call import IronCall
    from pushhub.ironmq.api.use_cases import IronUseCases

WORK = 2_500
"""Attempts of lots that a simulation may take here: about half a second of a function with 512 MB.

There are two with a comparison.
"""


def _simulate(hub: IronUseCases, call: IronCall) -> Response:
    # Few ask for it: no other request should pay for its imports.
    from pushhub.ironmq.policy_simulation import replayed, simulate  # noqa: PLC0415

    fields, told = replayed(hub.history(), call.project, call.fields)
    return Response(status=200, body=simulate(fields, work=WORK, replayed=told).answer())


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
