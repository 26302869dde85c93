"""Consumers function: the routes of the WebSocket API."""

from typing import Any

from pushhub.runtime.hub import start
from pushhub.runtime.invocation import LambdaContext, observed
from pushhub.runtime.notifications import answer_consumer

# A setting that is wrong or missing fails the start of the function, by name.
hub = start("consumers")


@observed
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """See :func:`pushhub.runtime.notifications.answer_consumer`."""
    return answer_consumer(hub, event, context)
