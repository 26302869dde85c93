"""Control function: the rest of the queue API (every route that the ingest function does not have)."""

from typing import Any

from pushhub.runtime.invocation import LambdaContext, observed
from pushhub.runtime.wiring import iron_api

__all__ = ["handler"]

api = iron_api()


@observed
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:  # noqa: ARG001 (Lambda passes both)
    """See :meth:`pushhub.runtime.ironmq_api.IronApi.handle`."""
    return api.handle(event)
