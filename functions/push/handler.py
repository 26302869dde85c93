"""Push function: attempts the deliveries that SQS hands over."""

from typing import Any

from pushhub.runtime.engine import push_batch
from pushhub.runtime.hub import start
from pushhub.runtime.invocation import LambdaContext, observed

# A setting that is wrong or missing fails the start of the function, by name.
hub = start("push")


@observed
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """See :func:`pushhub.runtime.engine.push_batch`."""
    return push_batch(hub, event, context)
