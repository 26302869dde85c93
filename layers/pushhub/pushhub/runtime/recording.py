"""The records function as Lambda calls it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pushhub.runtime.invocation import failures

if TYPE_CHECKING:
    from pushhub.runtime.hub import Pushhub
    from pushhub.runtime.invocation import LambdaContext


def record_changes(hub: Pushhub, event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:  # noqa: ARG001
    """Streams of the tables: one object of records per batch and hour.

    When S3 fails, the error is raised: the stream hands out the batch again, and the same batch writes the same
    objects.
    """
    table = event["Records"][0]["eventSourceARN"].split("/")[1]
    hub.engine.records(table).run(event["Records"], table=table)
    return failures([])
