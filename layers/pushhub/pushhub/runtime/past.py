"""The past function: searches of delivery records, apart from all others because only it may read them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pushhub.ironmq.wiring import Ironmq
from pushhub.runtime.apis import in_time

if TYPE_CHECKING:
    from pushhub.runtime.hub import Pushhub
    from pushhub.runtime.invocation import LambdaContext


def answer(hub: Pushhub, event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """Answer an HTTP API event."""
    with in_time(event, context):
        return hub.part(Ironmq).past_api.handle(event)
