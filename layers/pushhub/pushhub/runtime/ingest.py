"""The ingest function: the routes that producers of all protocols call."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pushhub.runtime.apis import handle

if TYPE_CHECKING:
    from pushhub.runtime.hub import Pushhub
    from pushhub.runtime.invocation import LambdaContext


def answer(hub: Pushhub, event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:  # noqa: ARG001 (Lambda passes both)
    """Answer an HTTP API event with the API that its path belongs to."""
    return handle((each.producer_apis for each in hub.engine.protocols), event)
