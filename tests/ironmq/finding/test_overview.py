"""What one look at all queues asks of the tables."""

from __future__ import annotations

from typing import Any, cast

from mypy_boto3_dynamodb import DynamoDBClient
from tests.cloud import aws_services as aws
from tests.cloud.aws_services import Intercepted
from tests.contract.samples import NOW, PROJECT, SUBSCRIBER, first, message, queue
from tests.fakes import FakeClock, FakeConfigStore
from tests.fakes.ports import InlineExecutor
from tests.simulation import simulated_services

from pushhub.base.verdict import Verdict
from pushhub.engine.model.queue import PushSettings, QueueType, Subscriber
from pushhub.engine.store.dynamodb_messages import DynamoDBMessageStore
from pushhub.ironmq.finding.overview import Overviews
from pushhub.ironmq.queues.queue_changes import pull_queue
from pushhub.ironmq.queues.queues import Queues
from pushhub.ironmq.store.dynamodb_pull import DynamoDBPullStore

EACH = 50
"""So many pull queues, and so many push queues."""

PUSH = PushSettings(subscribers=(Subscriber(subscriber_id=SUBSCRIBER, name="a", url="https://a.example/in"),))

NOT_ASKED = cast(Any, None)


class _Fronts:
    """Shows no message: only what counting costs is of interest."""

    def peek(self, *_: object, **__: object) -> list[Any]:
        return []


def test_a_look_at_all_queues_asks_little_more_than_once_for_each() -> None:
    # Given fifty pull queues with a message each, and fifty push queues with a subscriber that fails in each
    with simulated_services.dynamodb() as tables:
        client, clock, config = Intercepted(tables), FakeClock(), FakeConfigStore()
        recorded = cast(DynamoDBClient, client)
        messages = DynamoDBMessageStore(recorded, aws.MESSAGES_TABLE, clock, NOT_ASKED)
        pull = DynamoDBPullStore(recorded, aws.PULL_TABLE, clock)
        for number in range(EACH):
            waits = pull_queue(PROJECT, f"pull-{number}", NOW)
            config.create_queue(waits)
            pull.put([message(queue_uid=waits.pull_uid)])
            pushes = queue(f"push-{number}", uid=f"u{number}", type=QueueType.MULTICAST, push=PUSH)
            config.create_queue(pushes)
            messages.save(first(message(queue_uid=pushes.uid), Verdict.FAILED))
        client.calls.clear()
        queues = Queues(
            config=config,
            messages=messages,
            pull=pull,
            alerts=NOT_ASKED,
            registration=NOT_ASKED,
            quiet=NOT_ASKED,
            senders=NOT_ASKED,
            clock=clock,
        )
        fronts = cast(Any, _Fronts())
        # When all are looked at
        seen = Overviews(
            config=config,
            queues=queues,
            subscribers=NOT_ASKED,
            push_messages=fronts,
            pull=fronts,
            executor=InlineExecutor,
            clock=clock,
        ).run(PROJECT, "")
        # Then each is counted exactly, by a read of its own and a few for many together
        assert (seen.counted, {each.size for each in seen.waiting}, len(seen.waiting)) == (2 * EACH, {1}, 2 * EACH)
        assert client.count("query") == 2 * EACH
        assert len(client.calls) / (2 * EACH) <= 1.25
