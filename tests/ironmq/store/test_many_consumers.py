"""Several consumers of one pull queue: what they cost each other, with all calls to DynamoDB interleaved in virtual
time.
"""

from __future__ import annotations

import pytest
from tests.ironmq.store.consumers import consume
from tests.simulation import simulated_services

WRITES_A_MESSAGE = 1.5


@pytest.mark.parametrize(("at_a_time", "messages", "seed"), [(10, 400, 1), (1, 120, 2), (100, 250, 3)])
def test_sixteen_consumers_get_every_message_once_at_little_more_than_a_write_each(
    at_a_time: int, messages: int, seed: int
) -> None:
    # Given a queue that sixteen consumers reserve from at the same time
    with simulated_services.dynamodb() as client:
        seen = consume(client, consumers=16, at_a_time=at_a_time, messages=messages, seed=seed)
    # Then each message was handed out exactly once
    assert set(seen.times.values()) == {1}
    assert len(seen.times) == messages
    # And reserving wasted few writes, and no call took long
    assert seen.writes <= WRITES_A_MESSAGE * messages
    assert seen.longest_ms < 2_000


def test_a_consumer_alone_gets_strict_order_at_one_write_a_message() -> None:
    # Given a queue that one consumer reserves from
    with simulated_services.dynamodb() as client:
        seen = consume(client, consumers=1, at_a_time=10, messages=100, seed=3)
    # Then it gets the messages in the order they were posted, in full answers
    order = [message_id for answer in seen.handed_out for message_id in answer]
    assert order == sorted(order)
    assert [len(answer) for answer in seen.handed_out] == [10] * 10
    assert seen.writes == 100
