"""What all invocations share: the request id on log lines, and metrics written at the end."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Protocol, TypeVar

from pushhub.cloud.observability import logger, telemetry

R = TypeVar("R")


class LambdaContext(Protocol):
    """The part of Lambda's context object that the hub uses."""

    aws_request_id: str

    def get_remaining_time_in_millis(self) -> int:
        """Milliseconds until the function is stopped."""


def observed(handler: Callable[[dict[str, Any], LambdaContext], R]) -> Callable[[dict[str, Any], LambdaContext], R]:
    """Wrap a handler: put the request id on log lines, flush metrics, log unexpected errors before raising
    them.
    """

    @functools.wraps(handler)
    def wrapper(event: dict[str, Any], context: LambdaContext) -> R:
        telemetry.start(context.aws_request_id)
        try:
            return handler(event, context)
        except Exception:
            logger.exception("invocation_failed")
            raise
        finally:
            telemetry.flush()

    return wrapper


def behind(event: Mapping[str, Any], now: int) -> int:
    """How far a function is behind its table's stream: milliseconds since the oldest change of a batch was made."""
    # What is no record of a stream is told of elsewhere.
    made_at = (each.get("dynamodb", {}).get("ApproximateCreationDateTime") for each in event["Records"])
    return max((now - int(float(each) * 1000) for each in made_at if each is not None), default=0)


def failures(sqs_ids: Iterable[str]) -> dict[str, list[dict[str, str]]]:
    """The partial batch response that keeps these messages in the queue (needs ``ReportBatchItemFailures``)."""
    return {"batchItemFailures": [{"itemIdentifier": each} for each in sorted(sqs_ids)]}
