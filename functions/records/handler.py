"""Records function: writes what happened to messages and deliveries to S3."""

from typing import Any

from pushhub.runtime.hub import start
from pushhub.runtime.invocation import LambdaContext, observed
from pushhub.runtime.recording import record_changes

# A setting that is wrong or missing fails the start of the function, by name.
hub = start("records")


@observed
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """See :func:`pushhub.runtime.recording.record_changes`."""
    return record_changes(hub, event, context)
