"""Notify function: sends notifications to the consumers of the subscribers it is woken for.

Each minute it looks for idle connections.
"""

from typing import Any

from pushhub.runtime.hub import start
from pushhub.runtime.invocation import LambdaContext, observed
from pushhub.runtime.notifications import notify

# A setting that is wrong or missing fails the start of the function, by name.
hub = start("notify")


@observed
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """See :func:`pushhub.runtime.notifications.notify`."""
    return notify(hub, event, context)
