"""What is specific to a work queue on SQS: batches, failing entries, groups, and the in-flight count."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, cast

import pytest
from mypy_boto3_sqs import SQSClient
from tests.cloud import aws_services as aws
from tests.cloud.aws_services import Intercepted
from tests.contract.samples import full_message, message, order
from tests.fakes import FakeClock

from pushhub.base.errors import Unavailable
from pushhub.engine.model.work import WorkOrder
from pushhub.engine.store.sqs_work import SqsWorkQueue

Answer = Callable[[Callable[..., Any], dict[str, Any]], Any]
MEBIBYTE = 1_048_576


class Bench:
    """A queue whose calls are recorded."""

    def __init__(self, client: SQSClient, url: str) -> None:
        self.client = Intercepted(client)
        self.clock = FakeClock(jitter=1.0)
        self.queue = SqsWorkQueue(cast(SQSClient, self.client), url, self.clock)
        self._sqs, self._url = client, url

    def batches(self) -> list[list[dict[str, Any]]]:
        return [parameters["Entries"] for name, parameters in self.client.calls if name == "send_message_batch"]

    def receive(self) -> list[Any]:
        found: list[Any] = []
        while some := self._sqs.receive_message(QueueUrl=self._url, MaxNumberOfMessages=10).get("Messages"):
            found += some
        return found


@pytest.fixture
def bench() -> Iterator[Bench]:
    with aws.sqs() as (client, url):
        yield Bench(client, url)


def refuses(*ids: str, sender_fault: bool = False) -> Answer:
    """The service fails for some entries."""

    def answer(real: Callable[..., Any], parameters: dict[str, Any]) -> Any:
        entries = [entry for entry in parameters["Entries"] if entry["Id"] not in ids]
        done = real(**{**parameters, "Entries": entries}) if entries else {"Successful": []}
        failed = [{"Id": each, "SenderFault": sender_fault, "Code": "InternalError"} for each in ids]
        return {**done, "Failed": failed}

    return answer


def test_ten_orders_are_one_call_and_eleven_are_two(bench: Bench) -> None:
    bench.queue.send([(order(message()), 0) for _ in range(11)])
    assert [len(batch) for batch in bench.batches()] == [10, 1]


def test_a_call_carries_a_mebibyte_at_most(bench: Bench) -> None:
    # Given orders whose text is non-ASCII, so that bytes and characters differ
    bench.queue.send([(order(message(body="é".encode() * 100_000)), 0) for _ in range(12)])
    sizes = [sum(len(entry["MessageBody"].encode()) for entry in batch) for batch in bench.batches()]
    assert len(sizes) == 3
    assert max(sizes) <= MEBIBYTE
    assert len(bench.receive()) == 12


def test_each_order_names_its_group_and_delay(bench: Bench) -> None:
    first, second = order(message()), order(full_message())
    bench.queue.send([(first, 0), (second, 900)])
    ((one, other),) = bench.batches()
    assert (one["MessageGroupId"], one["DelaySeconds"]) == (first.group, 0)
    assert (other["MessageGroupId"], other["DelaySeconds"]) == (second.group, 900)


def test_only_what_was_left_undone_is_sent_again(bench: Bench) -> None:
    # Given a service that leaves two of five undone, then one
    bench.client.next("send_message_batch", refuses("1", "3"))
    bench.client.next("send_message_batch", refuses("3"))
    sent = [order(message()) for _ in range(5)]
    # When five orders are sent
    bench.queue.send([(each, 0) for each in sent])
    # Then each arrived once
    assert [[entry["Id"] for entry in batch] for batch in bench.batches()] == [list("01234"), ["1", "3"], ["3"]]
    arrived = [WorkOrder.decode(each["Body"]).key.message_id for each in bench.receive()]
    assert sorted(arrived) == sorted(each.key.message_id for each in sent)
    assert bench.clock.slept == [0.05, 0.1]


def test_what_stays_undone_is_unavailable(bench: Bench) -> None:
    for _ in range(5):
        bench.client.next("send_message_batch", refuses("0"))
    with pytest.raises(Unavailable, match="sqs:SendMessageBatch failed: InternalError"):
        bench.queue.send([(order(message()), 0)])
    assert len(bench.batches()) == 5


def test_an_entry_that_is_our_fault_is_not_sent_again(bench: Bench) -> None:
    bench.client.next("send_message_batch", refuses("0", sender_fault=True))
    with pytest.raises(Unavailable):
        bench.queue.send([(order(message()), 0)])
    assert len(bench.batches()) == 1


def test_a_failing_call_is_unavailable(bench: Bench) -> None:
    bench.client.next("send_message_batch", aws.fails)
    with pytest.raises(Unavailable, match="sqs:SendMessageBatch"):
        bench.queue.send([(order(message()), 0)])


def test_deferring_names_each_failure_and_goes_on(bench: Bench) -> None:
    # Given 25 received messages, a call that refuses one, a call that fails, and one that works
    bench.queue.send([(order(message()), 0) for _ in range(25)])
    handles = [each["ReceiptHandle"] for each in bench.receive()]
    bench.client.next("change_message_visibility_batch", refuses("4"))
    bench.client.next("change_message_visibility_batch", aws.fails)
    # When all are deferred by zero seconds
    failed = bench.queue.defer([(handle, 0) for handle in handles])
    # Then the refused one and those of the failed call are reported; the others came back
    assert failed == {handles[4], *handles[10:20]}
    assert len(bench.receive()) == 14
