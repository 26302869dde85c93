"""Sweep function: finds accepted messages and waiting deliveries that were lost track of, and requeues them."""

from typing import Any

from pushhub.runtime.engine import sweep_part
from pushhub.runtime.hub import start
from pushhub.runtime.invocation import LambdaContext, observed

# A setting that is wrong or missing fails the start of the function, by name.
hub = start("sweep")


@observed
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """See :func:`pushhub.runtime.engine.sweep_part`."""
    return sweep_part(hub, event, context)
