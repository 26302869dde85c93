"""Poll function: polls endpoints for the results of messages they accepted for later (hub protocol)."""

from typing import Any

from pushhub.runtime.engine import poll_batch
from pushhub.runtime.hub import start
from pushhub.runtime.invocation import LambdaContext, observed

# A setting that is wrong or missing fails the start of the function, by name.
hub = start("poll")


@observed
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """See :func:`pushhub.runtime.engine.poll_batch`."""
    return poll_batch(hub, event, context)
