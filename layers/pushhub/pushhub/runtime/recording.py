"""The Lambda entry point of the records function."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pushhub.base.errors import Unavailable
from pushhub.cloud.observability import telemetry
from pushhub.runtime.invocation import behind, failures

if TYPE_CHECKING:
    from pushhub.runtime.hub import Pushhub
    from pushhub.runtime.invocation import LambdaContext

BEHIND_MS = 900_000
"""How old a change is at most when it becomes a delivery record."""


LEFT_OUT_MS = 6 * 3_600_000
"""How old a change is from which on its record does not wait for the catalogue any more: a stream keeps it for a day,
and what has no record by then has none for good."""


def record_changes(hub: Pushhub, event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:  # noqa: ARG001
    """Streams of the tables: one object of records per batch and hour; what was accepted is entered into the catalogue.

    If S3 fails, the error is raised and the stream redelivers the batch; the same batch writes the same objects. So it
    is if the catalogue's table fails, but not for long: records behind it would be lost with the stream.
    """
    behind_ms = behind(event, hub.engine.ports.clock.now())
    if behind_ms > BEHIND_MS:
        telemetry.count("RecordsBehind")
        telemetry.event("records_behind", behind_ms=behind_ms)
    table = event["Records"][0]["eventSourceARN"].split("/")[1]
    hub.engine.records(table).run(event["Records"], table=table)
    try:
        hub.engine.cataloguer(table).run(event["Records"], table=table)
    except Unavailable as error:
        if behind_ms < LEFT_OUT_MS:
            raise
        telemetry.count("CallsFailed")
        telemetry.event("not_catalogued", table=table, error=str(error))
    return failures([])
