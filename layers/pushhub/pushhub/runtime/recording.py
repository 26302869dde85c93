"""The Lambda entry point of the records function."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pushhub.runtime.invocation import failures

if TYPE_CHECKING:
    from pushhub.runtime.hub import Pushhub
    from pushhub.runtime.invocation import LambdaContext


def record_changes(hub: Pushhub, event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:  # noqa: ARG001
    """Streams of the tables: one object of records per batch and hour; what was accepted is entered into the catalogue.

    If S3 fails, the error is raised and the stream redelivers the batch; the same batch writes the same objects.
    """
    table = event["Records"][0]["eventSourceARN"].split("/")[1]
    hub.engine.records(table).run(event["Records"], table=table)
    hub.engine.cataloguer(table).run(event["Records"], table=table)
    return failures([])
