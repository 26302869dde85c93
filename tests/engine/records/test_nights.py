"""Nights without anything to prove start no delivery report, and every other night does: on S3, DynamoDB and Glue as
moto has them, with the records and pulses that the hub itself writes.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest
from tests.cloud import aws_services as aws
from tests.fakes import FakeClock
from tests.fakes.telemetry import FakeTelemetry
from tests.notifications.store import aws_notifications

from pushhub.base.errors import Unavailable
from pushhub.base.times import iso_time
from pushhub.cloud.clients import Clients
from pushhub.engine.model.pulse import Pulse
from pushhub.engine.records.nights import EVERY_MS, GRACE_MS, HOUR_MS, Nights
from pushhub.engine.store.aws_nights import DECIDED, AwsNights, GlueRuns
from pushhub.engine.store.dynamodb_pulses import DynamoDBPulses
from pushhub.engine.store.s3_records import S3RecordStore

TABLES = (aws.MESSAGES_TABLE, aws.PULL_TABLE, aws_notifications.BACKLOGS_TABLE)
BUCKET = "records-bucket"
DAY_MS = 24 * HOUR_MS
NIGHT = int(time.time() * 1000) // DAY_MS * DAY_MS + HOUR_MS + 1_800_000
"""Half past one of the day that this runs on: what is written is as old as moto says."""
AS_OF = NIGHT - 40 * 60_000


class Glue:
    """Starts runs of a job, one at a time."""

    def __init__(self) -> None:
        self.runs: list[str] = []
        self.busy = False

    def start(self) -> bool:
        if not self.busy:
            self.runs.append("report")
        return not self.busy

    def quiet(self) -> None:
        self.runs.append("quiet")


@dataclass
class World:
    """A hub at rest."""

    s3: Any
    dynamodb: Any
    clock: FakeClock
    nights: Nights
    glue: Glue
    telemetry: FakeTelemetry
    numbers: dict[str, int] = field(default_factory=dict)

    def put(self, key: str, content: object = "") -> None:
        self.s3.put_object(Bucket=BUCKET, Key=key, Body=json.dumps(content).encode())

    def report(self, as_of: int = AS_OF, *, state: str = "delivered", first_day: int = 6, **verdict: object) -> None:
        """A report as the job leaves it."""
        found = {"conserved": True, "owed": 3, state: 3, "stream_records_quarantined": 0, **verdict}
        name = f"{iso_time(as_of - first_day * DAY_MS)[:10]}_{iso_time(as_of)[:10]}"
        as_iso = iso_time(as_of).replace("Z", "+00:00")
        self.put("reports/latest.json", {"report": f"s3://b/reports/{name}", "verdict": {**found, "as_of": as_iso}})

    def state(self, rows: int) -> None:
        self.put("curated/open/2026-11-19.json", {"rows": rows})
        self.put("curated/open/2026-11-19/part.json", "not a state")

    def pulse(self, at: int, *, recorded: bool = True, tables: tuple[str, ...] = TABLES) -> None:
        """A pulse is sent and comes out as a record."""
        DynamoDBPulses(self.dynamodb, tables, self.clock).send(at)
        for table in tables if recorded else ():
            self.record(Pulse(table=table, at=at), table)

    def record(self, line: Any, table: str) -> None:
        number = f"{self.numbers.setdefault(table, 0):021d}"
        self.numbers[table] += 1
        S3RecordStore(self.s3, BUCKET).write([line], table=table, first=number, last=number)

    def pulses(self, since: int, until: int) -> None:
        for at in range(-(-since // EVERY_MS) * EVERY_MS, until, EVERY_MS):
            self.pulse(at)


@pytest.fixture
def world() -> Iterator[World]:
    clock = FakeClock(NIGHT)
    with aws.dynamodb() as dynamodb, aws_notifications.dynamodb(), aws.s3() as s3, ThreadPoolExecutor(4) as executor:
        s3.create_bucket(Bucket=BUCKET)
        clients = Clients()
        clients.of = {"s3": s3, "dynamodb": dynamodb}.__getitem__  # type: ignore[method-assign, assignment]
        glue, telemetry = Glue(), FakeTelemetry()
        store = AwsNights(clients, BUCKET, TABLES, clock=clock, executor=executor)
        nights = Nights(store=store, runs=glue, clock=clock, telemetry=telemetry)
        created = World(s3=s3, dynamodb=dynamodb, clock=clock, nights=nights, glue=glue, telemetry=telemetry)
        created.report()
        created.state(0)
        created.pulses(AS_OF - GRACE_MS, NIGHT - GRACE_MS)
        yield created


def test_a_quiet_night_starts_no_report_and_says_so_once(world: World) -> None:
    assert (world.nights.run(), world.nights.run()) == ("quiet", "")
    assert world.glue.runs == ["quiet"]


def test_a_night_goes_on_where_the_quiet_one_before_it_ended(world: World) -> None:
    # Given that an object from before that is gone
    an_object_is_gone(world)
    before = {"day": iso_time(NIGHT - DAY_MS)[:10], "until": AS_OF - GRACE_MS + EVERY_MS, "why": ""}
    world.put(DECIDED, before)
    assert world.nights.run() == "quiet"


def test_a_night_of_a_report_ends_nothing(world: World) -> None:
    # Given that the report which was started has not come to anything
    an_object_is_gone(world)
    world.put(DECIDED, {"day": iso_time(NIGHT - DAY_MS)[:10], "until": AS_OF - GRACE_MS, "why": "pulses are missing"})
    assert world.nights.run() == "report"
    assert json.loads(world.s3.get_object(Bucket=BUCKET, Key=DECIDED)["Body"].read())["until"] == AS_OF - GRACE_MS


@pytest.mark.parametrize("key", [DECIDED, "reports/latest.json", "curated/open/2026-11-19.json"])
@pytest.mark.parametrize("content", [b"{", b"[1]", b'{"another": "version"}', b'{"report": "2026-11-14_2026-11-20"}'])
def test_what_cannot_be_read_proves_nothing_and_stops_no_night(world: World, key: str, content: bytes) -> None:
    # Given something that another version wrote, or that was damaged
    world.s3.put_object(Bucket=BUCKET, Key=key, Body=content)
    # Then the night is decided all the same; without a report or a state to go by, a report is made
    assert world.nights.run() == ("quiet" if key == DECIDED else "report")
    assert world.nights.run() == ""


def test_before_the_records_of_the_day_have_come_nothing_is_decided(world: World) -> None:
    world.clock.advance(seconds=-HOUR_MS // 1000)
    assert world.nights.run() == ""
    assert not world.glue.runs


def a_message(world: World) -> None:
    item = {"pk": "p#q#1", "sk": "M", "kind": "message"}
    content: Any = {name: {"S": value} for name, value in item.items()}
    world.dynamodb.put_item(TableName=aws.MESSAGES_TABLE, Item={**content, "accepted_at": {"N": f"{AS_OF}"}})


def a_record(world: World) -> None:
    hour = iso_time(NIGHT)[:10], iso_time(NIGHT)[11:13]
    line = SimpleNamespace(hour=hour, as_fields=lambda: {"kind": "attempt", "at": iso_time(NIGHT), "record_id": "a"})
    world.record(line, aws.PULL_TABLE)


def an_object(world: World) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = world.s3.list_objects_v2(Bucket=BUCKET, Prefix="records/dt=")["Contents"]
    return found


def an_object_is_gone(world: World) -> None:
    world.s3.delete_object(Bucket=BUCKET, Key=an_object(world)[0]["Key"])


def an_object_is_spoiled(world: World) -> None:
    world.put(an_object(world)[0]["Key"], "nothing")


def a_pulse_is_lost(world: World) -> None:
    last = [each["Key"] for each in an_object(world) if aws.MESSAGES_TABLE in each["Key"]][-1]
    world.s3.delete_object(Bucket=BUCKET, Key=last)


def a_stream_is_dead(world: World) -> None:
    for each in an_object(world):
        if aws.PULL_TABLE in each["Key"]:
            world.s3.delete_object(Bucket=BUCKET, Key=each["Key"])


def nobody_sent(world: World) -> None:
    at = iso_time(-((GRACE_MS - AS_OF) // EVERY_MS) * EVERY_MS)
    for table in TABLES:
        world.dynamodb.delete_item(TableName=table, Key={"pk": {"S": f"pulse#{at}"}, "sk": {"S": "pulse"}})


SOMETHING: dict[str, Callable[[World], object]] = {
    "no report": lambda world: world.s3.delete_object(Bucket=BUCKET, Key="reports/latest.json"),
    "no state of open deliveries": lambda world: world.s3.delete_object(
        Bucket=BUCKET, Key="curated/open/2026-11-19.json"
    ),
    "a report over two days": lambda world: world.report(first_day=1),
    "a report that found something": lambda world: world.report(conserved=False),
    "deliveries that wait": lambda world: world.report(state="scheduled"),
    "deliveries carried over": lambda world: world.state(2),
    "an old report": lambda world: world.report(AS_OF - 28 * DAY_MS),
    "a record that could not be made": lambda world: world.put("records/quarantine/messages-1.json"),
    "a person's word": lambda world: world.put("settled/anna.jsonl"),
    "an erased project": lambda world: world.put("records/erased/projects/d1g3st"),
    "a message": a_message,
    "a record": a_record,
    "an object that is gone": an_object_is_gone,
    "an object that cannot be read": an_object_is_spoiled,
    "a dead stream": a_stream_is_dead,
    "pulses that nobody sent": nobody_sent,
    "a pulse that did not come out": a_pulse_is_lost,
}


@pytest.mark.parametrize("what", SOMETHING)
def test_whatever_there_is_beside_pulses_is_for_the_report(world: World, what: str) -> None:
    SOMETHING[what](world)
    assert (world.nights.run(), world.nights.run()) == ("report", "")
    assert world.glue.runs == ["report"]
    ((name, event),) = world.telemetry.events
    assert name == "night_decided"
    assert event["report"]
    assert event["why"]


def test_what_was_in_an_hour_before_is_seen_though_it_came_late(world: World) -> None:
    # Given a record of an event that was a day before, whose stream stood still until now
    early = AS_OF - 20 * HOUR_MS
    hour = iso_time(early)[:10], iso_time(early)[11:13]
    line = SimpleNamespace(hour=hour, as_fields=lambda: {"kind": "attempt", "at": iso_time(early), "record_id": "a"})
    world.record(line, aws.MESSAGES_TABLE)
    assert world.nights.run() == "report"


def test_a_report_that_is_running_is_waited_for(world: World) -> None:
    # Given a night with something to prove, and somebody who has started a report by hand
    a_message(world)
    world.glue.busy = True
    assert world.nights.run() == ""
    # When that is done
    world.glue.busy = False
    assert world.nights.run() == "report"


def test_a_night_that_cannot_be_looked_at_is_tried_again(world: World) -> None:
    real = world.s3.list_objects_v2
    world.s3.list_objects_v2 = lambda **_: (_ for _ in ()).throw(Unavailable("s3:ListObjectsV2"))
    with pytest.raises(Unavailable):
        world.nights.run()
    world.s3.list_objects_v2 = real
    assert world.nights.run() == "quiet"


def test_what_was_decided_lies_where_people_find_it(world: World) -> None:
    world.nights.run()
    content = json.loads(world.s3.get_object(Bucket=BUCKET, Key=DECIDED)["Body"].read())
    assert content == {"day": iso_time(NIGHT)[:10], "until": NIGHT - GRACE_MS, "why": ""}


class Services:
    """Glue and EventBridge, as they answer."""

    def __init__(self) -> None:
        self.started: list[str] = []
        self.sent: list[dict[str, Any]] = []
        self.failing = 0

    def start_job_run(self, *, JobName: str) -> None:  # noqa: N803 (the SDK's names)
        self.started.append(JobName)

    def put_events(self, *, Entries: list[dict[str, Any]]) -> dict[str, Any]:  # noqa: N803
        self.sent += Entries
        return {"FailedEntryCount": self.failing, "Entries": [{"ErrorCode": "InternalFailure"}]}


def test_a_quiet_night_that_could_not_be_told_fails() -> None:
    services, clients = Services(), Clients()
    clients.of = lambda *_, **__: services  # type: ignore[method-assign]
    runs = GlueRuns(clients, "job")
    assert runs.start()
    assert services.started == ["job"]
    services.failing = 1
    with pytest.raises(Unavailable):
        runs.quiet()
