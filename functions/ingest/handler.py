"""Ingest function: accepts messages (``POST .../messages`` and ``.../webhook``)."""

from typing import Any

from pushhub.engine.wiring import iron_api
from pushhub.runtime.invocation import LambdaContext, observed

__all__ = ["handler"]

api = iron_api()


@observed
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:  # noqa: ARG001 (Lambda passes both)
    """See :meth:`pushhub.ironmq.api.api.IronApi.handle`."""
    return api.handle(event)
