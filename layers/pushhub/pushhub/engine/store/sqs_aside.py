"""Sets aside what cannot be processed, where an operator sees it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pushhub.cloud.calls import aws_call

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient


def send_aside(client: SQSClient, url: str, text: str) -> None:
    """Send one text to a failure queue.

    Args:
        text: What could not be processed, at most 1 MiB.
    """
    with aws_call("sqs:SendMessage"):
        client.send_message(QueueUrl=url, MessageBody=text)
