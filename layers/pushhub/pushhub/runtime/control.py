"""The control function: every HTTP route that has no function of its own, each API behind its prefix."""

from __future__ import annotations

from typing import Any

from pushhub.engine import wiring
from pushhub.runtime.invocation import LambdaContext

__all__ = ["answer"]


def answer(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:  # noqa: ARG001 (Lambda passes both)
    """Answer an HTTP API event by the API that its path belongs to; the queue API is for all the rest."""
    path: str = event.get("rawPath") or "/"
    if path.startswith("/api/"):
        # Imported when it is first asked for: a hub without stores does not pay for it at its cold starts.
        from pushhub.hub.wiring import hub_api  # noqa: PLC0415

        return hub_api().handle(event)
    if path == "/notification2" or path.startswith("/notification2/"):
        from pushhub.notifications.wiring import notifications_api  # noqa: PLC0415

        return notifications_api().handle(event)
    return wiring.iron_api().handle(event)
