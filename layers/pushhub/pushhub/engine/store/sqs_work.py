"""A work queue on SQS: a standard queue with message groups by project, which make it fair."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pushhub.base.errors import Unavailable
from pushhub.cloud.calls import ROUNDS, aws_call, pause
from pushhub.engine.model.received import Received
from pushhub.engine.model.work import WorkOrder, decode_pack, pack

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from mypy_boto3_sqs import SQSClient

    from pushhub.base.ports import Clock

_ENTRIES_PER_CALL = 10
_BYTES_PER_CALL = 1_048_576


class SqsWorkQueue:
    """Implements :class:`pushhub.engine.ports.WorkQueue`."""

    def __init__(self, client: SQSClient, url: str, clock: Clock) -> None:
        self._client = client
        self._url = url
        self._clock = clock

    @property
    def name(self) -> str:
        return self._url.rpartition("/")[2]

    def send(self, orders: Sequence[tuple[WorkOrder, int]]) -> None:
        """Entries that SQS rejects are sent again, and only those."""
        for batch in _batches((order.group, order.encode(), delay_s) for order, delay_s in orders):
            self._send_batch(batch)

    def send_packed(self, orders: Sequence[WorkOrder], delay_s: int = 0) -> None:
        for batch in _batches((group, text, delay_s) for group, text in pack(orders)):
            self._send_batch(batch)

    def defer(self, waits: Iterable[tuple[str, int]]) -> set[str]:
        """Never raises: a message that could not be deferred comes back after the queue's own timeout."""
        rest = list(waits)
        failed: set[str] = set()
        for start in range(0, len(rest), _ENTRIES_PER_CALL):
            chunk = rest[start : start + _ENTRIES_PER_CALL]
            failed |= self._defer_batch(chunk)
        return failed

    def receive(self, wait_s: int) -> list[Received]:
        """An unreadable message stays hidden for the queue's timeout, then goes where it is counted as poison."""
        count: Any = "ApproximateReceiveCount"
        sent: Any = "SentTimestamp"
        with aws_call("sqs:ReceiveMessage"):
            answer = self._client.receive_message(
                QueueUrl=self._url,
                MaxNumberOfMessages=_ENTRIES_PER_CALL,
                WaitTimeSeconds=wait_s,
                MessageSystemAttributeNames=[count, sent],
            )
        now = self._clock.now()
        received: list[Received] = []
        for message in answer.get("Messages", []):
            try:
                orders = decode_pack(message["Body"])
            except ValueError:
                continue
            received += [
                Received(
                    order=order,
                    sqs_id=message["MessageId"],
                    receipt_handle=message["ReceiptHandle"],
                    received_at=now,
                    receive_count=int(message["Attributes"][count]),
                    sent_at=int(message["Attributes"][sent]),
                )
                for order in orders
            ]
        return received

    def delete(self, handles: Sequence[str]) -> None:
        for start in range(0, len(handles), _ENTRIES_PER_CALL):
            chunk = handles[start : start + _ENTRIES_PER_CALL]
            entries: list[Any] = [{"Id": str(index), "ReceiptHandle": each} for index, each in enumerate(chunk)]
            with aws_call("sqs:DeleteMessageBatch"):
                answer = self._client.delete_message_batch(QueueUrl=self._url, Entries=entries)
            codes = sorted({each["Code"] for each in answer.get("Failed", []) if not each["SenderFault"]})
            if codes:
                raise Unavailable("sqs:DeleteMessageBatch", ", ".join(codes))

    def _send_batch(self, batch: list[Any]) -> None:
        for round_number in range(1, ROUNDS + 1):
            with aws_call("sqs:SendMessageBatch"):
                answer = self._client.send_message_batch(QueueUrl=self._url, Entries=batch)
            failed = {entry["Id"]: entry for entry in answer.get("Failed", [])}
            if not failed:
                return
            if any(entry["SenderFault"] for entry in failed.values()) or round_number == ROUNDS:
                codes = sorted({entry["Code"] for entry in failed.values()})
                raise Unavailable("sqs:SendMessageBatch", ", ".join(codes))
            batch = [entry for entry in batch if entry["Id"] in failed]
            pause(self._clock, round_number)

    def _defer_batch(self, chunk: list[tuple[str, int]]) -> set[str]:
        entries: list[Any] = [
            {"Id": str(index), "ReceiptHandle": handle, "VisibilityTimeout": seconds}
            for index, (handle, seconds) in enumerate(chunk)
        ]
        try:
            with aws_call("sqs:ChangeMessageVisibilityBatch"):
                answer = self._client.change_message_visibility_batch(QueueUrl=self._url, Entries=entries)
        except Unavailable:
            return {handle for handle, _ in chunk}
        return {chunk[int(entry["Id"])][0] for entry in answer.get("Failed", [])}


def _batches(messages: Iterable[tuple[str, str, int]]) -> Iterator[list[Any]]:
    """Entries for SendMessageBatch, from (group, body, delay): at most ten, and at most 1 MiB in total."""
    batch: list[Any] = []
    size = 0
    for index, (group, body, delay_s) in enumerate(messages):
        body_size = len(body.encode())
        if batch and (len(batch) == _ENTRIES_PER_CALL or size + body_size > _BYTES_PER_CALL):
            yield batch
            batch, size = [], 0
        batch.append({"Id": str(index), "MessageBody": body, "DelaySeconds": delay_s, "MessageGroupId": group})
        size += body_size
    if batch:
        yield batch
