"""What is spread over several keys stays spread when much comes at once, counted as DynamoDB does: by partition key and
second.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from simulation.dynamodb import DynamoDB
from simulation.items import Pace
from simulation.outage import Outage, endure, report
from simulation.template import stack
from tests.contract.notification_samples import a_connection
from tests.contract.samples import NOW, PROJECT, message
from tests.fakes import FakeClock

from pushhub.base.ids import MessageIds
from pushhub.engine.model.delivery import DeliveryState, opening
from pushhub.engine.store._delivery_items import MANY_SHARDS
from pushhub.engine.store.dynamodb_messages import DynamoDBMessageStore
from pushhub.engine.store.dynamodb_schedule import SHARDS, DynamoDBSchedule
from pushhub.hub.model.log import HubState, Location, LoggedMessage
from pushhub.hub.store._keys import SHARDS as LIST_SHARDS
from pushhub.hub.store.dynamodb_log import DynamoDBHubLog
from pushhub.notifications.store.dynamodb_backlogs import IDLE_SHARDS, DynamoDBConnectionStore
from simulation import dynamodb as models

MANY = 1_600
HOUR_MS = 3_600_000
WRITES = 20
"""What a key takes in a second where keys are hot: a fiftieth of what it does."""


@pytest.fixture
def clock() -> FakeClock:
    """Stands still, so that all comes within a second."""
    return FakeClock()


@pytest.fixture
def service(clock: FakeClock) -> DynamoDB:
    return DynamoDB(stack().tables, now_ms=clock.now)


def writes(service: DynamoDB, name: str) -> Pace:
    """What came to the keys of a table, or of an index."""
    return next(written for table in service.tables.values() for named, written, _ in table.paces() if named == name)


def schedules(service: Any, clock: FakeClock) -> None:
    schedule = DynamoDBSchedule(service, "ScheduleTable", clock)
    for _ in range(MANY):
        waiting = replace(opening(message(), "s"), due_at=NOW + HOUR_MS, version=1, state=DeliveryState.RETRYING)
        schedule.enter(waiting)


def fails(service: Any, clock: FakeClock) -> None:
    messages = DynamoDBMessageStore(service, "MessagesTable", clock, lambda: DynamoDBSchedule(service, "S", clock))
    for _ in range(MANY):
        opened = opening(message(), "s")
        messages.save(replace(opened, due_at=NOW + 5_000, version=1, attempts=1, state=DeliveryState.RETRYING))


def lists(service: Any, clock: FakeClock) -> None:
    log, ids = DynamoDBHubLog(service, "HubTable", clock), MessageIds(1)
    for number in range(MANY):
        log.put(
            LoggedMessage(
                project=PROJECT,
                message_id=ids.next(NOW + number),
                type="order:new",
                mapping_id="5" * 24,
                parent_id=None,
                location=Location.ACCEPTED,
                state=HubState.FAILING,
                created_at=NOW,
                version=1,
            )
        )


def connects(service: Any, clock: FakeClock) -> None:
    connections = DynamoDBConnectionStore(service, "BacklogsTable", clock)
    for number in range(MANY):
        connections.open(a_connection(f"c{number}="), check_at=NOW + HOUR_MS)


@pytest.mark.parametrize(
    ("write", "name", "keys"),
    [
        (schedules, "ScheduleTable", SHARDS),
        (fails, "MessagesTable, index unsettled", MANY_SHARDS),
        (lists, "HubTable, index listed", LIST_SHARDS),
        (connects, "BacklogsTable, index idle", IDLE_SHARDS),
    ],
)
def test_no_key_takes_twice_its_share(
    write: Callable[[Any, FakeClock], None], name: str, keys: int, service: DynamoDB, clock: FakeClock
) -> None:
    # When much is written within a second: waits that end in one minute, failures of one queue, messages of one store
    # in one list, connections
    write(service, clock)
    # Then each of its keys has had about as much
    found = writes(service, name)
    assert found.total == MANY
    assert found.most < 2 * MANY / keys


def test_an_outage_is_delivered_whole_and_its_retries_do_not_each_read_their_queue() -> None:
    # Given an outage in which each of 1,000 deliveries fails once, and ends in time for the second try
    outage = Outage(messages=100, subscribers=10, posted_within_s=10, lasts_s=600, retries_delay_s=1_200)
    watch, account, back_at = endure(outage)
    # Then all of them arrived with that, as late as wake's minute makes them, and nothing waited in flight
    assert dict(watch.tries) == {"down": 1_000, "well": 1_000}
    assert max(late for counts in watch.late.values() for late in counts) <= 60
    assert account.queues["RetryQueue"].stopped == 0
    # And for each delivery two writes of its item and one entry were made
    messages, schedule = (writes(account.dynamodb, name) for name in ("MessagesTable", "ScheduleTable"))
    # (and one of each mark of a queue whose failing deliveries are spread, and spread further)
    assert messages.total == 2 * 1_000 + 100 + 2
    assert 1_000 <= schedule.total < 1_500
    # And no key of the index of failing deliveries had what one of eight would have had
    assert writes(account.dynamodb, "MessagesTable, index unsettled").most < 100
    # And the queue's and the project's items, and the notes of changes, were read for runs, not for deliveries
    reads = dict(account.paces())["units read, ConfigTable"]
    assert reads.total < 300
    assert reads.most < 100
    # And the report tells of the most that came to a key
    reported = "\n".join(report(outage, watch, account, back_at))
    assert f"units written, ScheduleTable: {schedule.total:.0f}" in reported
    assert f"at most {schedule.most:.0f} in a second to {schedule.key}" in reported


def test_an_outage_that_hits_hot_keys_is_delivered_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    # Given keys that take so little that a failing queue's eight keys of its index are too few
    monkeypatch.setattr(models, "WRITES_PER_KEY", WRITES)
    outage = Outage(messages=100, subscribers=4, posted_within_s=10, lasts_s=600, retries_delay_s=1_200)
    watch, account, _ = endure(outage)
    # Then writes are refused, some again and again, and everything arrives
    assert account.dynamodb.tables["MessagesTable"].refused > 0
    assert watch.arrived >= 400
    assert (
        max(pace.most for name, pace in account.paces() if name == "units written, MessagesTable, index unsettled")
        <= WRITES + 1
    )
