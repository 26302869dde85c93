"""The queue of wake-ups on SQS: FIFO, one group per subscriber, repeated wake-ups dropped by SQS itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from pushhub.base import json_text
from pushhub.base.errors import Unavailable
from pushhub.cloud.calls import ROUNDS, aws_call, pause
from pushhub.notifications.model.topic import Topic
from pushhub.notifications.ports import WakeUp

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient

    from pushhub.base.ports import Clock


_ENTRIES_PER_CALL = 10


class SqsWakeQueue:
    """Implements :class:`pushhub.notifications.ports.WakeQueue`."""

    def __init__(self, client: SQSClient, url: str, clock: Clock) -> None:
        self._client = client
        self._url = url
        self._clock = clock

    def wake(self, wakes: Sequence[WakeUp]) -> None:
        """Only the entries that SQS failed to take are sent again."""
        for start in range(0, len(wakes), _ENTRIES_PER_CALL):
            batch: list[Any] = [
                {
                    "Id": str(index),
                    "MessageBody": encode_wake(wake),
                    "MessageGroupId": wake.subscriber_uid,
                    "MessageDeduplicationId": f"{wake.subscriber_uid}.{wake.version}",
                }
                for index, wake in enumerate(wakes[start : start + _ENTRIES_PER_CALL])
            ]
            self._send(batch)

    def defer(self, waits: Mapping[str, int]) -> None:
        entries: list[Any] = [
            {"Id": str(index), "ReceiptHandle": handle, "VisibilityTimeout": seconds}
            for index, (handle, seconds) in enumerate(waits.items())
        ]
        for start in range(0, len(entries), _ENTRIES_PER_CALL):
            with suppress(Unavailable), aws_call("sqs:ChangeMessageVisibilityBatch"):
                batch = entries[start : start + _ENTRIES_PER_CALL]
                self._client.change_message_visibility_batch(QueueUrl=self._url, Entries=batch)

    def _send(self, batch: list[Any]) -> None:
        for round_number in range(1, ROUNDS + 1):
            with aws_call("sqs:SendMessageBatch"):
                answer = self._client.send_message_batch(QueueUrl=self._url, Entries=batch)
            failed = {entry["Id"] for entry in answer.get("Failed", [])}
            if not failed:
                return
            if round_number == ROUNDS:
                raise Unavailable("sqs:SendMessageBatch")
            batch = [entry for entry in batch if entry["Id"] in failed]
            pause(self._clock, round_number)


def encode_wake(wake: WakeUp) -> str:
    """The SQS message body."""
    topic = wake.topic
    fields = [topic.project, topic.name, topic.non_persistent, wake.subscriber, wake.subscriber_uid, wake.version]
    return json_text.write(fields)


def decode_wake(body: str) -> WakeUp:
    """Read an SQS message body.

    Raises:
        ValueError: It is not a wake-up.
    """
    fields = json_text.stored(body)
    if not isinstance(fields, list) or [type(each) for each in fields] != [str, str, bool, str, str, int]:
        raise ValueError("not a wake-up")
    project, name, non_persistent, subscriber, uid, version = fields
    return WakeUp(
        topic=Topic(project=project, name=name, non_persistent=non_persistent),
        subscriber=subscriber,
        subscriber_uid=uid,
        version=version,
    )
