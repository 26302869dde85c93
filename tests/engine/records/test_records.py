"""Stream batches become objects once, whatever fails or is repeated; an unreadable stream record is set aside as a
whole.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import boto3
import pytest
from botocore.stub import ANY, Stubber
from moto import mock_aws
from tests.contract.samples import first, message
from tests.fakes.activity import FakeActivity
from tests.fakes.telemetry import FakeTelemetry

from pushhub.base.errors import Unavailable
from pushhub.base.verdict import Verdict
from pushhub.engine.model.activity import ATTEMPTS_A_WRITE, HOUR_MS, Activity, SubscriberActivity
from pushhub.engine.model.pulse import Pulse
from pushhub.engine.model.record import DeliveryRecord
from pushhub.engine.model.records import record_of_delivery
from pushhub.engine.records.ports import ActivityStore
from pushhub.engine.records.records import Records
from pushhub.engine.store.dynamodb_changes import record_of_change
from pushhub.engine.store.s3_records import S3Records, S3RecordStore

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

ACCEPTED = 1_795_000_000_123
BUCKET = "records"
INTERNAL = "hub/incoming"


def an_inserted_message(sequence: int, *, accepted_at: int = ACCEPTED, message_id: str = "") -> dict[str, Any]:
    """A stream record as Lambda delivers it."""
    return {
        "eventID": f"e{sequence}",
        "eventName": "INSERT",
        "dynamodb": {
            "ApproximateCreationDateTime": accepted_at // 1000,
            "SequenceNumber": str(sequence),
            "NewImage": {
                "pk": {"S": f"p#u1#{message_id or 10**18 + sequence}"},
                "sk": {"S": "M"},
                "kind": {"S": "message"},
                "queue": {"S": "orders"},
                "body": {"B": "c2VjcmV0"},
                "body_size": {"N": "6"},
                "accepted_at": {"N": str(accepted_at)},
                "due_at": {"N": str(accepted_at)},
                "expires_at": {"N": str(accepted_at + 86_400_000)},
                "subscriber_ids": {"L": [{"S": "s0"}]},
            },
        },
    }


@pytest.fixture
def client(monkeypatch: pytest.MonkeyPatch) -> Iterator[S3Client]:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    with mock_aws():
        s3: S3Client = boto3.client("s3")
        s3.create_bucket(Bucket=BUCKET)
        yield s3


@pytest.fixture
def telemetry() -> FakeTelemetry:
    return FakeTelemetry()


@pytest.fixture
def activity() -> FakeActivity:
    return FakeActivity()


def records_of(
    client: S3Client,
    telemetry: FakeTelemetry,
    activity: ActivityStore | None = None,
    read: Callable[[Mapping[str, Any]], DeliveryRecord | Sequence[DeliveryRecord] | None] = record_of_change,
) -> Records:
    return Records(
        read=read,
        store=S3RecordStore(client, BUCKET),
        activity=activity or FakeActivity(),
        internal=lambda queue: queue == INTERNAL,
        telemetry=telemetry,
    )


@pytest.fixture
def records(client: S3Client, telemetry: FakeTelemetry, activity: FakeActivity) -> Records:
    return records_of(client, telemetry, activity)


def stored(client: S3Client) -> dict[str, bytes]:
    listed = client.list_objects_v2(Bucket=BUCKET).get("Contents", [])
    return {each["Key"]: client.get_object(Bucket=BUCKET, Key=each["Key"])["Body"].read() for each in listed}


def lines(content: bytes) -> list[Mapping[str, Any]]:
    return [json.loads(line) for line in gzip.decompress(content).splitlines()]


def test_a_batch_becomes_one_object_named_by_its_sequence_numbers(records: Records, client: S3Client) -> None:
    # When a batch of three is recorded
    result = records.run([an_inserted_message(n) for n in (11, 12, 13)], table="messages")
    # Then one object of the event's hour holds them in order
    assert result == 3
    ((key, content),) = stored(client).items()
    assert key == "records/dt=2026-11-18/hour=11/messages-11-13-3.json.gz"
    assert [each["message_id"] for each in lines(content)] == [str(10**18 + n) for n in (11, 12, 13)]
    assert b"secret" not in gzip.decompress(content)


def test_a_batch_that_comes_again_changes_nothing(records: Records, client: S3Client) -> None:
    # Given a batch that was recorded, and a function that died before it returned
    batch = [an_inserted_message(n) for n in (11, 12)]
    records.run(batch, table="messages")
    before = stored(client)
    # When the batch comes again
    records.run(batch, table="messages")
    # Then the same object is there, byte for byte
    assert stored(client) == before


def test_the_bytes_depend_on_the_records_only(client: S3Client, monkeypatch: pytest.MonkeyPatch) -> None:
    batch = [record for n in (1, 2) if (record := record_of_change(an_inserted_message(n)))]
    contents = []
    for moment in (1_000_000_000, 2_000_000_000):
        monkeypatch.setattr("time.time", lambda at=moment: float(at))
        client.create_bucket(Bucket=f"at-{moment}")
        S3RecordStore(client, f"at-{moment}").write(batch, table="t", first="1", last="2")
        key = client.list_objects_v2(Bucket=f"at-{moment}")["Contents"][0]["Key"]
        contents.append(client.get_object(Bucket=f"at-{moment}", Key=key)["Body"].read())
    assert contents[0] == contents[1]


def test_a_batch_across_midnight_is_filed_under_both_days(records: Records, client: S3Client) -> None:
    midnight = 1_795_046_400_000
    records.run([an_inserted_message(n, accepted_at=midnight + (n - 2) * 1_000) for n in (1, 2, 3)], table="messages")
    assert list(stored(client)) == [
        "records/dt=2026-11-18/hour=23/messages-1-1-1.json.gz",
        "records/dt=2026-11-19/hour=00/messages-2-3-2.json.gz",
    ]


def test_a_poisoned_stream_record_is_set_aside_whole_and_the_others_are_recorded(
    records: Records, client: S3Client, telemetry: FakeTelemetry
) -> None:
    # Given a batch in which one image lacks a number and another entry is not a record at all
    poison = an_inserted_message(12)
    poison["dynamodb"]["NewImage"]["accepted_at"] = {"S": "yesterday"}
    batch = [an_inserted_message(11), poison, {"nonsense": True}, an_inserted_message(13)]
    # When it is recorded, twice because the first run's end was not noticed
    for _ in range(2):
        assert records.run(batch, table="messages") == 2
    # Then the good ones are recorded and the bad ones are kept unchanged
    objects = stored(client)
    aside = [json.loads(content) for key, content in objects.items() if key.startswith("records/quarantine/")]
    assert sorted(objects)[0] == "records/dt=2026-11-18/hour=11/messages-11-13-2.json.gz"
    assert [each["record"] for each in aside if "dynamodb" in each["record"]] == [poison]
    assert {"nonsense": True} in [each["record"] for each in aside]
    assert len(objects) == 3
    # And counted: what was there already is not written again
    assert telemetry.counts["RecordsQuarantined"] == 4
    assert telemetry.counts["RecordsWritten"] == 2


def test_an_unwritable_object_fails_the_batch_so_that_it_comes_again(
    client: S3Client, telemetry: FakeTelemetry
) -> None:
    # Given S3 answering 500 once
    with Stubber(client) as stubber:
        expected = {"Bucket": BUCKET, "Key": ANY, "Body": ANY, "ContentType": ANY, "IfNoneMatch": "*"}
        stubber.add_client_error("put_object", "InternalError", http_status_code=500, expected_params=expected)
        failing = records_of(client, telemetry)
        # Then the error reaches the caller, and nothing counts as written
        with pytest.raises(Unavailable):
            failing.run([an_inserted_message(1)], table="messages")
        assert telemetry.counts["RecordsWritten"] == 0
    # When the batch comes again, it is written
    again = records_of(client, telemetry)
    assert again.run([an_inserted_message(1)], table="messages") == 1


def links(client: S3Client) -> dict[str, list[str]]:
    """What each object names, by the numbers in its key."""
    return {
        key.rpartition("/")[2]: [str(each["record_id"]) for each in lines(content) if each["kind"] == "link"]
        for key, content in stored(client).items()
    }


def test_each_object_names_the_one_that_the_environment_wrote_before(records: Records, client: S3Client) -> None:
    # When an environment records three batches, one of them across an hour
    records.run([an_inserted_message(1)], table="messages")
    records.run([an_inserted_message(2), an_inserted_message(3, accepted_at=ACCEPTED + HOUR_MS)], table="lines")
    records.run([an_inserted_message(4)], table="messages")
    # Then each object names the one before, and the counts in the keys are those of the records
    assert links(client) == {
        "messages-1-1-1.json.gz": [],
        "lines-2-2-1.json.gz": ["link/dt=2026-11-18/hour=11/messages-1-1-1.json.gz"],
        "lines-3-3-1.json.gz": ["link/dt=2026-11-18/hour=11/lines-2-2-1.json.gz"],
        "messages-4-4-1.json.gz": ["link/dt=2026-11-18/hour=12/lines-3-3-1.json.gz"],
    }
    # And whoever reads records reads none of it
    assert len(list(S3Records(client, BUCKET).read("2026-11-18", pytest.fail))) == 4


def test_an_object_that_another_environment_wrote_before_is_named_and_stays_as_it_is(
    client: S3Client, telemetry: FakeTelemetry
) -> None:
    # Given two environments, and a batch that the first wrote before it died
    one, other = records_of(client, telemetry), records_of(client, telemetry)
    one.run([an_inserted_message(1)], table="messages")
    one.run([an_inserted_message(2)], table="messages")
    other.run([an_inserted_message(5)], table="messages")
    before = stored(client)
    # When the other one is given the batch again, and writes one more
    other.run([an_inserted_message(2)], table="messages")
    assert stored(client) == before
    other.run([an_inserted_message(3)], table="messages")
    # Then that names an object which is there
    assert links(client)["messages-3-3-1.json.gz"] == ["link/dt=2026-11-18/hour=11/messages-2-2-1.json.gz"]


def test_an_object_that_could_not_be_written_is_not_named(client: S3Client, telemetry: FakeTelemetry) -> None:
    records = records_of(client, telemetry)
    records.run([an_inserted_message(1)], table="messages")
    with Stubber(client) as stubber:
        stubber.add_client_error("put_object", "InternalError", http_status_code=500)
        with pytest.raises(Unavailable):
            records.run([an_inserted_message(2)], table="messages")
    records.run([an_inserted_message(3)], table="messages")
    assert links(client)["messages-3-3-1.json.gz"] == ["link/dt=2026-11-18/hour=11/messages-1-1-1.json.gz"]


def pulses(client: S3Client, *minutes: int, hour: int = 12) -> None:
    """A pulse of one table comes out of its stream, to an environment that has written nothing yet."""
    for minute in minutes:
        at = ACCEPTED // HOUR_MS * HOUR_MS + (hour - 11) * HOUR_MS + minute * 60_000
        sent = Pulse(table="messages", at=at)
        S3RecordStore(client, BUCKET).write([sent], table="messages", first=f"{hour}{minute:02}", last="9")


def test_what_no_later_object_of_an_environment_names_is_named_in_the_next_hour(
    client: S3Client, telemetry: FakeTelemetry
) -> None:
    # Given two environments that died, one of them after two objects
    records_of(client, telemetry).run([an_inserted_message(1)], table="messages")
    other = records_of(client, telemetry)
    other.run([an_inserted_message(2)], table="messages")
    other.run([an_inserted_message(3)], table="messages")
    # When the pulses of the next hour come out, Then the one ten past names all of the hour, and the others none
    pulses(client, 0, 5, 10, 15)
    named = {key: each for key, each in links(client).items() if key.startswith("messages-12")}
    hour = "link/dt=2026-11-18/hour=11"
    assert named == {
        "messages-1200-9-1.json.gz": [],
        "messages-1205-9-1.json.gz": [],
        "messages-1210-9-1.json.gz": [f"{hour}/messages-{n}-{n}-1.json.gz" for n in (1, 2, 3)],
        "messages-1215-9-1.json.gz": [],
    }


def test_an_hour_is_named_across_midnight_and_however_long_its_listing_is(client: S3Client) -> None:
    for n in range(3):
        key = f"records/dt=2026-11-18/hour=23/m-{n}-{n}-1.json.gz"
        client.put_object(Bucket=BUCKET, Key=key, Body=gzip.compress(b""))
    real = client.list_objects_v2
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(client, "list_objects_v2", lambda **query: real(MaxKeys=2, **query))
        pulses(client, 10, hour=24)
    named = [f"link/dt=2026-11-18/hour=23/m-{n}-{n}-1.json.gz" for n in range(3)]
    assert links(client)["messages-2410-9-1.json.gz"] == named


def test_a_listing_that_fails_holds_no_record_up(client: S3Client, telemetry: FakeTelemetry) -> None:
    records_of(client, telemetry).run([an_inserted_message(1)], table="messages")
    with Stubber(client) as stubber:
        stubber.add_client_error("list_objects_v2", "AccessDenied", http_status_code=403)
        stubber.add_response("put_object", {})
        pulses(client, 10)
        stubber.assert_no_pending_responses()


def test_changes_that_are_no_events_make_no_object(records: Records, client: S3Client) -> None:
    removed = an_inserted_message(5)
    removed["dynamodb"]["OldImage"] = removed["dynamodb"].pop("NewImage")
    assert records.run([removed], table="messages") == 0
    assert stored(client) == {}


HOUR = ACCEPTED - ACCEPTED % HOUR_MS


def counted(activity: FakeActivity, project: str = "p") -> dict[int, Activity]:
    return activity.activity(project, 0, 10 * ACCEPTED)


def test_a_batch_is_counted_once_by_project_and_hour(records: Records, activity: FakeActivity) -> None:
    # Given messages of two projects in two hours
    others = an_inserted_message(13)
    others["dynamodb"]["NewImage"]["pk"]["S"] = f"q#u1#{10**18}"
    batch = [an_inserted_message(11), an_inserted_message(12, accepted_at=ACCEPTED + HOUR_MS), others]
    # When they are recorded, twice because the first run's end was not noticed
    for _ in range(2):
        records.run(batch, table="messages")
    # Then each counts once
    assert counted(activity) == {HOUR: Activity(accepted=1), HOUR + HOUR_MS: Activity(accepted=1)}
    assert counted(activity, "q") == {HOUR: Activity(accepted=1)}


def test_what_the_hub_does_itself_is_accepted_but_delivered_to_nobody(
    client: S3Client, telemetry: FakeTelemetry, activity: FakeActivity
) -> None:
    routed = first(message(queue=INTERNAL, project="p"), Verdict.DELIVERED)
    pushed = first(message(project="p"), Verdict.DELIVERED)
    result = iter([record_of_delivery(None, each, ACCEPTED) for each in (routed, pushed)])
    records = records_of(client, telemetry, activity, read=lambda _: next(result))
    records.run([an_inserted_message(1), an_inserted_message(2)], table="messages")
    pushed_once = Activity(attempts=1, delivered=1, took={12: 1})
    assert [*counted(activity).values()] == [pushed_once]


def attempts_at(numbers: dict[str, int]) -> list[DeliveryRecord]:
    """Records of this many attempts at each subscriber, every other one failed."""
    record = record_of_delivery(None, first(message(project="p"), Verdict.DELIVERED), ACCEPTED)
    assert record is not None
    return [
        replace(
            record,
            record_id=f"{subscriber}/{number}",
            subscriber_id=subscriber,
            verdict="failed" if number % 2 else "delivered",
            duration_ms=10,
        )
        for subscriber, count in numbers.items()
        for number in range(count)
    ]


def test_attempts_are_counted_for_their_subscribers(
    client: S3Client, telemetry: FakeTelemetry, activity: FakeActivity
) -> None:
    result = attempts_at({"a": 3, "b": 1})
    records = records_of(client, telemetry, activity, read=lambda _: result)
    records.run([an_inserted_message(1)], table="messages")
    at = {each: [*activity.subscriber_activity("p", each, 0, 10 * ACCEPTED).values()] for each in ("a", "b", "c")}
    assert at == {
        "a": [SubscriberActivity(attempts=3, delivered=2, failed=1, took_ms=30, took={4: 3})],
        "b": [SubscriberActivity(attempts=1, delivered=1, took_ms=10, took={4: 1})],
        "c": [],
    }
    assert [each.unattributed for each in counted(activity).values()] == [0]


class Written(FakeActivity):
    """Counts its writes."""

    def __init__(self) -> None:
        super().__init__()
        self.writes = 0

    def add_activity(self, project_id: str, hour: int, activity: Activity) -> None:
        self.writes += 1
        super().add_activity(project_id, hour, activity)

    def add_subscriber_activity(
        self, project_id: str, subscriber_id: str, hour: int, activity: SubscriberActivity
    ) -> None:
        self.writes += 1
        super().add_subscriber_activity(project_id, subscriber_id, hour, activity)


def test_of_many_subscribers_only_as_many_are_counted_as_attempts_pay_for(
    client: S3Client, telemetry: FakeTelemetry
) -> None:
    # Given 400 attempts, 100 at one subscriber and one each at 300
    activity = Written()
    result = attempts_at({"busy": 100, **{f"s{number:03}": 1 for number in range(300)}})
    records = records_of(client, telemetry, activity, read=lambda _: result)
    records.run([an_inserted_message(1)], table="messages")
    # Then there is at most one write per 20 attempts, and the number of attempts left out is counted
    assert activity.writes == 1 + 400 // ATTEMPTS_A_WRITE
    [whole] = counted(activity).values()
    assert whole.unattributed == 300 - 19
    [busy] = activity.subscriber_activity("p", "busy", 0, 10 * ACCEPTED).values()
    assert busy.attempts == 100


class NeverCounts(FakeActivity):
    def add_activity(self, project_id: str, hour: int, activity: Activity) -> None:
        raise Unavailable("dynamodb:UpdateItem")


def test_what_cannot_be_counted_is_recorded_all_the_same(client: S3Client, telemetry: FakeTelemetry) -> None:
    records = records_of(client, telemetry, NeverCounts())
    assert records.run([an_inserted_message(1)], table="messages") == 1
    assert len(stored(client)) == 1
    assert [name for name, _ in telemetry.events] == ["activity_not_counted"]
