"""What a message, a delivery and an attempt use of each service, as the report estimates it from records.

Counted by running the hub (``docs/architecture.md``: one write per acceptance and one per change of a delivery, batches
of ten). ``bench/cost.py`` measures the same on the real code. ``notified``: notifications sent to consumers, each of
which is acknowledged by a frame of its own; ``bench/notifications_cost.py`` measures what they use when they are
published one at a time. Prices are in :mod:`.list_prices`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

INLINE_BODY_BYTES: Final = 24_576
"""Bodies up to this size lie in the table, larger ones in S3: a body of JSON takes 8 KiB there, compressed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """One line of the bill.

    Attributes:
        item: What is paid for.
        price: Its name in the price table.
        units: SQL expression of the units used, over the sums of a project (see :func:`.cost.used`).
    """

    item: str
    price: str
    units: str


USAGE: Final = (
    # One request per message at most: a post of 100 messages is one request, so this is the upper bound.
    Usage(item="HTTP API requests", price="http_api_request", units="messages + ceil(body_bytes / 524288.0)"),
    # A message is one item of its body, compressed to a third, and some 0.5 KB; a delivery's item is rewritten by each
    # change, and scheduling writes an index too.
    Usage(
        item="DynamoDB writes",
        price="dynamodb_write_unit",
        units="messages + inline_bytes / 3072.0 + changes + parks * 2 + notified",
    ),
    # Ingest and push read a queue's settings from a cache; a retry reads its delivery.
    Usage(
        item="DynamoDB reads", price="dynamodb_read_unit", units="messages * 0.1 + retries * 2 + parks + notified * 8"
    ),
    # Sent, received and deleted in tens, with bodies as they are stored, in base64; a retry changes queue or visibility
    # besides.
    Usage(
        item="SQS requests",
        price="sqs_standard_request",
        units="(deliveries * 3 + retries * 2) / 10.0 + inline_bytes / 147456.0",
    ),
    # Wake-ups of the sender: sent, received, deleted.
    Usage(item="SQS FIFO requests", price="sqs_fifo_request", units="notified * 3"),
    # One frame with the notification, one with its acknowledgement.
    Usage(item="WebSocket messages", price="websocket_message", units="notified * 2"),
    # Ingest per message, dispatch and push per ten, records per hundred changes; the sender and the acknowledgement per
    # notification.
    Usage(
        item="Lambda requests",
        price="lambda_request",
        units="messages * 1.1 + attempts / 10.0 + changes / 100.0 + notified * 2",
    ),
    # Ingest 15 ms of 512 MB; push 512 MB for the attempt's time, ten side by side, and 5 ms of work each; 100 ms for a
    # notification's whole way.
    Usage(
        item="Lambda GB-seconds",
        price="lambda_gb_second_arm64",
        units="messages * 0.015 * 0.5 + (busy_ms / 10000.0 + attempts * 0.005) * 0.5 + notified * 0.1 * 0.5",
    ),
    # One wide event of 0.6 KB per attempt.
    Usage(item="Logs GB", price="logs_gb", units="attempts * 0.6 / 1048576.0"),
    # Large bodies are put once and got once per attempt; records go out a hundred to an object.
    Usage(item="S3 puts", price="s3_put", units="large_bodies + (messages + changes) / 100.0"),
    Usage(item="S3 gets", price="s3_get", units="large_bodies * attempts / greatest(messages, 1)"),
    Usage(item="Data out GB", price="data_out_gb", units="bytes_out / 1073741824.0"),
)
