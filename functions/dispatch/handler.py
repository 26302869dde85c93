"""Dispatch function: queues the deliveries of messages that were just stored."""

from typing import Any

from pushhub.runtime.engine import dispatch_inserted
from pushhub.runtime.hub import start
from pushhub.runtime.invocation import LambdaContext, observed

# A setting that is wrong or missing fails the start of the function, by name.
hub = start("dispatch")


@observed
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """See :func:`pushhub.runtime.engine.dispatch_inserted`."""
    return dispatch_inserted(hub, event, context)
