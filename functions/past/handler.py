"""Past function: searches of a project's past in the delivery records."""

from typing import Any

from pushhub.runtime.hub import start
from pushhub.runtime.invocation import LambdaContext, observed
from pushhub.runtime.past import answer

# A setting that is wrong or missing fails the start of the function, by name.
hub = start("past")


@observed
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """See :func:`pushhub.runtime.past.answer`."""
    return answer(hub, event, context)
