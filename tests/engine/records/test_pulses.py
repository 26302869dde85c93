"""A pulse goes through every stream each five minutes, and comes out among the records of its table."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from cli.archive.holdings import NOBODY, owner
from tests.cloud import aws_services as aws
from tests.fakes.activity import FakeActivity
from tests.fakes.clock import FakeClock
from tests.fakes.ports import FakePulses
from tests.fakes.telemetry import FakeTelemetry

from pushhub.base.errors import Unavailable
from pushhub.engine.model.pulse import KEPT_S, Pulse, pulse_time
from pushhub.engine.records.pulses import SendPulses
from pushhub.engine.records.records import Records
from pushhub.engine.store.dynamodb_messages import DynamoDBMessageStore
from pushhub.engine.store.dynamodb_pulses import DynamoDBPulses, pulses_of_change

MINUTE = 60_000
AT = 1_795_000_200_000
"""A whole multiple of five minutes."""


@pytest.fixture
def dynamodb() -> Iterator[Any]:
    with aws.dynamodb() as client:
        yield client


def test_one_is_sent_in_each_five_minutes() -> None:
    # Given a minute's schedule that runs for half an hour, and fails for eight minutes
    clock, store = FakeClock(AT), FakePulses()
    pulses = SendPulses(store=store, clock=clock, telemetry=FakeTelemetry())
    for minute in range(30):
        store.failing = 8 <= minute < 16
        pulses.run()
        clock.sleep(60)
    # Then each five minutes had one, except those in which none could be sent; and it failed quietly
    assert store.sent == [AT + minute * MINUTE for minute in (0, 5, 15, 20, 25)]
    # And another environment sends the same
    SendPulses(store=store, clock=FakeClock(AT + 29 * MINUTE), telemetry=FakeTelemetry()).run()
    assert store.sent[-2:] == [AT + 25 * MINUTE] * 2


def test_the_same_pulse_is_one_item_in_each_table_which_goes_by_itself(dynamodb: Any) -> None:
    # When two environments send the same pulse
    store = DynamoDBPulses(dynamodb, [aws.MESSAGES_TABLE, aws.PULL_TABLE], FakeClock(AT))
    for _ in range(2):
        store.send(AT)
    # Then each table holds it once, and it belongs to nobody's project
    for table, name in ((aws.MESSAGES_TABLE, "MessagesTable"), (aws.PULL_TABLE, "PullTable")):
        [item] = dynamodb.scan(TableName=table)["Items"]
        assert int(item["ttl"]["N"]) == AT // 1000 + KEPT_S
        assert owner(name, item) == NOBODY
    # And whoever goes through the messages table passes it over
    messages = DynamoDBMessageStore(dynamodb, aws.MESSAGES_TABLE, FakeClock(AT), lambda: None)  # type: ignore[arg-type,return-value]
    assert list(messages.outstanding(0, 1)) == []


def test_a_table_that_is_away_costs_no_other_its_pulse(dynamodb: Any) -> None:
    store = DynamoDBPulses(dynamodb, ["lost", aws.MESSAGES_TABLE, aws.PULL_TABLE], FakeClock(AT))
    with pytest.raises(Unavailable):
        store.send(AT)
    assert [len(dynamodb.scan(TableName=each)["Items"]) for each in (aws.MESSAGES_TABLE, aws.PULL_TABLE)] == [1, 1]


def stream_record(dynamodb: Any, event: str) -> dict[str, Any]:
    """What the stream says when a pulse is written, written again, or gone."""
    DynamoDBPulses(dynamodb, [aws.MESSAGES_TABLE], FakeClock(AT)).send(AT)
    [item] = dynamodb.scan(TableName=aws.MESSAGES_TABLE)["Items"]
    images = {"INSERT": ("NewImage",), "MODIFY": ("OldImage", "NewImage"), "REMOVE": ("OldImage",)}
    return {"dynamodb": {"SequenceNumber": "7", **dict.fromkeys(images[event], item)}}


def test_it_comes_out_of_the_stream_once(dynamodb: Any) -> None:
    assert pulses_of_change(stream_record(dynamodb, "INSERT"), "t") == (Pulse(table="t", at=AT),)
    assert pulses_of_change(stream_record(dynamodb, "MODIFY"), "t") == ()
    assert pulses_of_change(stream_record(dynamodb, "REMOVE"), "t") == ()
    assert pulses_of_change({"dynamodb": {"NewImage": {"kind": {"S": "message"}}}}, "t") is None
    # Items of pull queues need no kind
    assert pulses_of_change({"dynamodb": {"NewImage": {"sk": {"S": "P"}}}}, "t") is None


def test_it_is_written_among_the_records_and_counted_nowhere(dynamodb: Any) -> None:
    # Given a batch of a pulse alone
    kept: list[tuple[list[Any], str]] = []

    class Store:
        def write(self, records: Any, *, table: str, first: str, last: str) -> bool:
            kept.append((list(records), f"{table}-{first}-{last}"))
            return True

    activity, telemetry = FakeActivity(), FakeTelemetry()
    recorder = Records(
        read=lambda each: pulses_of_change(each, "t"),
        store=Store(),  # type: ignore[arg-type]
        activity=activity,
        internal=lambda _: False,
        telemetry=telemetry,
    )
    # When it is recorded
    assert recorder.run([stream_record(dynamodb, "INSERT")], table="t") == 1
    # Then its line is in an object of its table and hour, and no number of records has changed
    assert kept == [([Pulse(table="t", at=AT)], "t-7-7")]
    assert kept[0][0][0].as_fields() == {
        "schema_version": 2,
        "record_id": "pulse/t/2026-11-18T11:10:00.000Z",
        "kind": "pulse",
        "at": "2026-11-18T11:10:00.000Z",
    }
    assert telemetry.counts.get("RecordsWritten", 0) == 0


def test_the_time_of_a_pulse_is_the_begin_of_its_five_minutes() -> None:
    assert {pulse_time(AT + n * MINUTE) for n in range(5)} == {AT}
    assert pulse_time(AT - 1) == AT - 5 * MINUTE
