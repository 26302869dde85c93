"""What deliveries cost at list prices, estimated from counts. Pure.

Same rules and prices as the delivery report (``glue_jobs/delivery_report/usage.py``, ``list_prices.py``); a test
compares the two.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """Work done for the messages of one push queue with one subscriber, with bodies in the table.

    Attributes:
        body_bytes: Bytes per body.
        retries: Requests beyond the first of each message.
        changes: Writes of deliveries: attempts, and ends without an attempt.
        scheduled: Waits spent in DynamoDB.
        busy_ms: Total milliseconds of all requests.
    """

    messages: float
    body_bytes: int
    attempts: float
    retries: float
    changes: float
    scheduled: float
    busy_ms: float

    @property
    def inline_bytes(self) -> float:
        """Total bytes of all bodies."""
        return self.messages * self.body_bytes


PRICES: Final[Mapping[str, float]] = {
    "http_api_request": 1.00 / 1e6,
    "dynamodb_write_unit": 0.625 / 1e6,
    "dynamodb_read_unit": 0.125 / 1e6,
    "sqs_standard_request": 0.40 / 1e6,
    "lambda_request": 0.20 / 1e6,
    "lambda_gb_second_arm64": 0.0000133334,
    "logs_gb": 0.50,
    "s3_put": 5.00 / 1e6,
    "data_out_gb": 0.09,
}
"""US dollars for one unit, us-east-1, on demand, November 2026."""

UNITS: Final[Mapping[str, Callable[[Counts], float]]] = {
    "http_api_request": lambda of: of.messages + math.ceil(of.inline_bytes / 524_288),
    "dynamodb_write_unit": lambda of: of.messages + of.inline_bytes / 1024 + of.changes + of.scheduled * 2,
    "dynamodb_read_unit": lambda of: of.messages * 0.1 + of.retries * 2 + of.scheduled,
    "sqs_standard_request": lambda of: (of.messages * 3 + of.retries * 2) / 10 + of.inline_bytes / 65_536,
    "lambda_request": lambda of: of.messages * 1.1 + of.attempts / 10 + of.changes / 100,
    "lambda_gb_second_arm64": lambda of: of.messages * 0.0075 + (of.busy_ms / 10_000 + of.attempts * 0.005) * 0.5,
    "logs_gb": lambda of: of.attempts * 0.6 / 1_048_576,
    "s3_put": lambda of: (of.messages + of.changes) / 100,
    "data_out_gb": lambda of: of.attempts * of.body_bytes / 1_073_741_824,
}
"""Units used. Posts of several messages cost less than this says, because each message counts as a request here."""


def dollars(counts: Counts) -> float:
    """Total cost in US dollars."""
    return sum(PRICES[name] * units(counts) for name, units in UNITS.items())
