"""How full queues are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pushhub.cloud.calls import aws_call
from pushhub.engine.flow.ports import QueueLevel

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient

_MESSAGES: Final = "ApproximateNumberOfMessages"
_IN_FLIGHT: Final = "ApproximateNumberOfMessagesNotVisible"


def queue_level(client: SQSClient, url: str) -> QueueLevel:
    """Ask for the level of a queue."""
    with aws_call("sqs:GetQueueAttributes"):
        answer = client.get_queue_attributes(QueueUrl=url, AttributeNames=[_MESSAGES, _IN_FLIGHT])
    found = answer["Attributes"]
    return QueueLevel(messages=int(found[_MESSAGES]), in_flight=int(found[_IN_FLIGHT]))
