"""Queue API: who changed what in the project, from the hub's audit trail (docs/decisions/security.md)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from pushhub.base.errors import Invalid
from pushhub.web.api import Route
from pushhub.web.audit import audit, joined
from pushhub.web.http import Response

if TYPE_CHECKING:
    from pushhub.ironmq.api.call import IronCall
    from pushhub.ironmq.api.use_cases import IronUseCases

MOST: Final = 20
"""Changes in an answer: each is two objects in S3."""
_CURSOR = re.compile(r"[0-9]{4}-[0-9T:.-]{6,30}Z-[0-9a-f]{16}")


def _changes(_: IronUseCases, call: IronCall) -> Response:
    after = call.request.query.get("after", "")
    if after and not _CURSOR.fullmatch(after):
        raise Invalid("after must be the cursor of an answer")
    if audit.trail is None:
        return Response(status=200, body={"kept": False, "changes": [], "after": None})
    entries, further = audit.trail.newest(call.project, after, MOST)
    # What the project's own folder says of itself is the same for each.
    changes = [{name: value for name, value in each.items() if name != "project"} for each in joined(entries)]
    return Response(status=200, body={"kept": True, "changes": changes, "after": further or None})


ROUTES: tuple[Route[IronUseCases, IronCall], ...] = (
    Route(
        "GET",
        "/3/projects/{project}/changes",
        _changes,
        name="ironmq.list_changes",
        summary="Show who changed what in the project",
        query=("after",),
    ),
)
