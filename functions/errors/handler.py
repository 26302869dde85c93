"""Errors function: posts exhausted deliveries to their error queues."""

from typing import Any

from pushhub.runtime.engine import handle_errors
from pushhub.runtime.hub import start
from pushhub.runtime.invocation import LambdaContext, observed

# A setting that is wrong or missing fails the start of the function, by name.
hub = start("errors")


@observed
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """See :func:`pushhub.runtime.engine.handle_errors`."""
    return handle_errors(hub, event, context)
