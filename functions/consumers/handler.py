"""Consumers function: the routes of the WebSocket API."""

from typing import Any

from pushhub.notifications.wiring import consumers
from pushhub.runtime.invocation import LambdaContext, observed
from pushhub.runtime.notifications import answer_consumer

__all__ = ["handler"]

# A setting that is wrong or missing fails the start of the function, by name.
consumers()


@observed
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """See :func:`pushhub.runtime.notifications.answer_consumer`."""
    return answer_consumer(event, context)
