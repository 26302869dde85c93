"""Ingest function: accepts messages and notifications from producers of all protocols."""

from typing import Any

from pushhub.runtime.hub import start
from pushhub.runtime.ingest import answer
from pushhub.runtime.invocation import LambdaContext, observed

# A setting that is wrong or missing fails the start of the function, by name.
hub = start("ingest")


@observed
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """See :func:`pushhub.runtime.ingest.answer`."""
    return answer(hub, event, context)
