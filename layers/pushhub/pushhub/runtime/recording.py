"""The records function as Lambda calls it."""

from __future__ import annotations

from typing import Any

from pushhub.engine import wiring
from pushhub.notifications import wiring as notification_wiring
from pushhub.runtime.invocation import LambdaContext
from pushhub.runtime.sqs_batch import failures

__all__ = ["record_changes"]


def record_changes(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:  # noqa: ARG001
    """Streams of the tables: one object of records per batch and hour.

    When S3 fails, the error is raised: the stream hands out the batch again, and the same batch writes the same objects.
    """
    table = event["Records"][0]["eventSourceARN"].split("/")[1]
    about_notifications = table == wiring.settings().text("BACKLOGS_TABLE")
    records = notification_wiring.records() if about_notifications else wiring.records()
    records.run(event["Records"], table=table)
    return failures([])
