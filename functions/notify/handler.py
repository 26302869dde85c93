"""Notify function: sends notifications to the consumers of the subscribers it is woken for; each minute it looks for idle connections."""

from typing import Any

from pushhub.notifications.wiring import idle_connections, pump_batch
from pushhub.runtime.invocation import LambdaContext, observed
from pushhub.runtime.notifications import notify

__all__ = ["handler"]

# A setting that is wrong or missing fails the start of the function, by name.
pump_batch()
idle_connections()


@observed
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """See :func:`pushhub.runtime.notifications.notify`."""
    return notify(event, context)
