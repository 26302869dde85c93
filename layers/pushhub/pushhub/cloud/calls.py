"""Shared by all AWS adapters: translates the errors of a call, and waits between rounds."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from botocore.exceptions import BotoCoreError, ClientError

from pushhub.base.errors import Contended, Unavailable

if TYPE_CHECKING:
    from pushhub.base.ports import Clock

ROUNDS = 5
"""Rounds of a batch call while some entries are unprocessed, including the first; 0.4 to 0.75 s of waiting in total."""

_FIRST_PAUSE_S = 0.05


class ConditionRefused(Exception):
    """A conditional write was refused.

    Args:
        stored: The item as stored; empty when there is none, or when it was not requested.
    """

    def __init__(self, stored: dict[str, Any]) -> None:
        super().__init__("condition not met")
        self.stored = stored


@contextmanager
def aws_call(operation: str) -> Iterator[None]:
    """Run an SDK call.

    Args:
        operation: Name for the error, e.g. ``"dynamodb:UpdateItem"``.

    Raises:
        ConditionRefused: A condition of a DynamoDB write was not met.
        Unavailable: Anything else went wrong; the SDK's error is its cause.
    """
    try:
        yield
    except ClientError as error:
        answer: dict[str, Any] = {**error.response}
        if answer["Error"]["Code"] == "ConditionalCheckFailedException":
            raise ConditionRefused(answer.get("Item", {})) from error
        raise Unavailable(operation, str(answer["Error"]["Code"])) from error
    except BotoCoreError as error:
        raise Unavailable(operation, type(error).__name__) from error


def code_of(unavailable: Unavailable) -> str:
    """What AWS calls the error of a call; empty if it did not answer."""
    cause = unavailable.__cause__
    return str(cause.response.get("Error", {}).get("Code", "")) if isinstance(cause, ClientError) else ""


def cancellation_reasons(unavailable: Unavailable) -> list[str]:
    """Why each write of a transaction was not made; the string ``None`` for those that did not cause the failure."""
    cause = unavailable.__cause__
    answer: dict[str, Any] = {**cause.response} if isinstance(cause, ClientError) else {}
    return [each.get("Code", "None") for each in answer.get("CancellationReasons", [])]


def passing(unavailable: Unavailable) -> Unavailable | None:
    """A cancelled transaction that may be made a little later, as what it is; None if that will not help."""
    reasons = cancellation_reasons(unavailable)
    each_alone = (Unavailable(unavailable.operation, reason) for reason in reasons)
    if throttled := next((each for each in each_alone if each.throttled), None):
        return throttled
    conflict = "TransactionConflict"
    return Contended(unavailable.operation, conflict) if conflict in reasons else None


def pause(clock: Clock, round_number: int) -> None:
    """Wait before the next round: doubling from 50 ms, half of it jitter.

    Args:
        clock: Provides the wait and the jitter.
        round_number: Rounds made so far, from 1.
    """
    clock.sleep(_FIRST_PAUSE_S * 2 ** (round_number - 1) * (0.5 + clock.jitter() / 2))
