"""Control function: every HTTP route that the ingest function does not have."""

from typing import Any

from pushhub.engine.wiring import iron_api
from pushhub.runtime.control import answer
from pushhub.runtime.invocation import LambdaContext, observed

__all__ = ["handler"]

# A setting that is wrong or missing fails the start of the function, by name.
iron_api()


@observed
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """See :func:`pushhub.runtime.control.answer`."""
    return answer(event, context)
