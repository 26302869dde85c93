"""Wake function: queues scheduled deliveries that are due."""

from typing import Any

from pushhub.runtime.engine import wake_due
from pushhub.runtime.hub import start
from pushhub.runtime.invocation import LambdaContext, observed

# A setting that is wrong or missing fails the start of the function, by name.
hub = start("wake")


@observed
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """See :func:`pushhub.runtime.engine.wake_due`."""
    return wake_due(hub, event, context)
