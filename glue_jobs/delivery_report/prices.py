"""The price table: AWS list prices of us-east-1 in US dollars, and what a message, an attempt and a retry use of each service.

Prices: AWS price pages as of November 2026. Usage: counted by running the hub (``docs/architecture.md``: one write per acceptance and per
attempt, batches of ten). Change the numbers here when either changes; the report names them beside what they make.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

__all__ = ["USAGE", "Usage"]

MILLION: Final = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """One line of the bill.

    Attributes:
        item: What is paid for.
        unit_usd: Dollars per unit.
        units: SQL expression of the units used, over the sums of a project (see :func:`.cost.used`).
    """

    item: str
    unit_usd: float
    units: str


USAGE: Final = (
    # One request per message at most; a post of 100 messages is one request, so this is the upper bound.
    Usage(item="HTTP API requests", unit_usd=1.00 / MILLION, units="messages + ceil(body_bytes / 524288.0)"),
    # A message is one item of its body and some 0.5 KB; a delivery's item is rewritten by each attempt and settlement.
    Usage(
        item="DynamoDB writes", unit_usd=0.625 / MILLION, units="messages + body_bytes / 1024.0 + changes + parks * 2"
    ),
    # Ingest and push read the queue's settings from a cache; retries read their delivery.
    Usage(item="DynamoDB reads", unit_usd=0.125 / MILLION, units="messages * 0.1 + retries * 2 + parks"),
    # Sent, received and deleted in tens; a retry that waits in SQS moves queue once and changes its visibility after that.
    Usage(
        item="SQS requests",
        unit_usd=0.40 / MILLION,
        units="(deliveries * 3 + retries * 2) / 10.0 + body_bytes / 65536.0",
    ),
    # Ingest per message, dispatch and push per ten, records per hundred changes.
    Usage(item="Lambda requests", unit_usd=0.20 / MILLION, units="messages * 1.1 + attempts / 10.0 + changes / 100.0"),
    # arm64; ingest 15 ms at 512 MB; push 512 MB for the attempt's time, ten side by side, and 5 ms of work each.
    Usage(
        item="Lambda GB-seconds",
        unit_usd=0.0000133334,
        units="messages * 0.015 * 0.5 + (busy_ms / 10000.0 + attempts * 0.005) * 0.5",
    ),
    Usage(item="CloudWatch log GB", unit_usd=0.50, units="attempts * 0.6 / 1048576.0"),
    Usage(item="S3 record writes", unit_usd=5.00 / MILLION, units="(messages + changes) / 100.0"),
    # One transfer to the internet for every attempt's body.
    Usage(item="Data out GB", unit_usd=0.09, units="bytes_out / 1073741824.0"),
)
