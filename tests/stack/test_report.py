"""The delivery report over a real stack: real deliveries, real records, the real job, and every number compared with
the stack's own state.
"""

from __future__ import annotations

import gzip
import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.stack.delivery_report import folder_of, make_report, records_of, report_on, rows
from tests.stack.endpoints import Recorder
from tests.stack.project import ProjectClient, unique, until
from tests.stack.running import RunningStack

from pushhub.engine.model.delivery import Delivery
from pushhub.engine.store._delivery_items import decode_delivery
from pushhub.engine.store.dynamodb_messages import decode_message
from pushhub.ironmq.store._pull_items import MESSAGE, decode_pull_message

pytestmark = pytest.mark.stack

LATER_S = 7200
"""A wait that is scheduled rather than spent in SQS."""


@dataclass(frozen=True, kw_only=True)
class Told:
    """The stack's own state, without records.

    Attributes:
        messages: Message ids of push queues.
        owed: Deliveries owed by them.
        deliveries: Those that were tried or scheduled, as stored.
        lines: States and ends of the messages of pull queues.
    """

    messages: set[str]
    owed: set[str]
    deliveries: dict[str, Delivery]
    lines: Counter[str]

    @property
    def standings(self) -> Counter[str]:
        """Deliveries by state, including those of pull queues."""
        counted: Counter[str] = Counter(self.lines)
        for delivery_id in self.owed:
            delivery = self.deliveries.get(delivery_id)
            if delivery is None:
                counted["pending"] += 1
            else:
                counted["scheduled" if delivery.scheduled else delivery.state.value] += 1
        return counted


@pytest.fixture(scope="module")
def project(stack: RunningStack) -> ProjectClient:
    return ProjectClient.another(stack)


@pytest.fixture(scope="module")
def left_lines(stack: RunningStack, project: ProjectClient) -> Iterator[Counter[str]]:
    """Make deliveries of every kind in the project; yields how messages left pull queues."""
    with Recorder() as recorder:
        _push(project, recorder)
        yield _consume(project)


def _push(project: ProjectClient, recorder: Recorder) -> None:
    """Healthy, flaky, dead and acknowledging subscribers; unicast; long delays and waits; a queue that is deleted."""
    fan = unique("fan")
    healthy, flaky, dead = recorder.endpoint(), recorder.endpoint(503, 200), recorder.endpoint(500)
    held = recorder.endpoint(202)
    project.make_push(fan, healthy, flaky, dead, held, retries=1)
    first, second = project.post(fan, "one", "zwei é")
    for push in held.wait(2):
        if push.message_id == first:
            assert push.acknowledge().status_code == 200
    turns = unique("turns")
    project.make_push(turns, recorder.endpoint(503), recorder.endpoint(), type="unicast")
    project.post(turns, "a", "b", "c")
    slow = unique("slow")
    project.make_push(slow, recorder.endpoint(503), retries_delay=LATER_S)
    (slow_id,) = project.post(slow, "waits long")
    far = unique("far")
    project.make_push(far, recorder.endpoint(), message_expiration=4 * LATER_S)
    project.post(far, "scheduled at once", delay=LATER_S)
    soon = unique("soon")
    project.make_push(soon, recorder.endpoint())
    project.post(soon, "in the queue", "this one too", delay=800)
    # Wait for everything that will be settled soon.
    project.wait_codes(fan, first, [200, 200, 500, 200], seconds=90)
    project.wait_codes(fan, second, [200, 200, 500, 202], seconds=90)
    project.wait_codes(slow, slow_id, [503], seconds=60)


def _consume(project: ProjectClient) -> Counter[str]:
    """Messages of a pull queue: consumed, reserved, released, deleted while free, left alone; returns how they left."""
    tasks = unique("tasks")
    project.make_queue(tasks, message_timeout=3600, message_expiration=7200)
    ids = project.post(tasks, "1", "2", "3", "4", "5")
    reserved = until(lambda: project.reserve(tasks, n=3, timeout=3600) or None, 30, lambda: "nothing to reserve")
    consumed, released, _ = reserved
    path = f"/queues/{tasks}/messages/{consumed['id']}"
    assert project.call("DELETE", path, {"reservation_id": consumed["reservation_id"]}).status_code == 200
    path = f"/queues/{tasks}/messages/{released['id']}/release"
    assert project.call("POST", path, {"reservation_id": released["reservation_id"]}).status_code == 200
    assert project.call("DELETE", f"/queues/{tasks}/messages/{ids[-1]}").status_code == 200
    return Counter({"delivered": 1, "cancelled": 1})


def state_of(stack: RunningStack, project_id: str, left_lines: Counter[str]) -> Told:
    """Read the tables."""
    dynamodb = stack.aws.dynamodb()

    def items(table: str) -> list[dict[str, Any]]:
        pages = dynamodb.get_paginator("scan").paginate(TableName=stack.outputs[table], ConsistentRead=True)
        mine = (dict(item) for page in pages for item in page["Items"])
        return [item for item in mine if item["pk"]["S"].startswith(f"{project_id}#")]

    stored = items("MessagesTableName")
    messages = [decode_message(item) for item in stored if item["kind"]["S"] == "message"]
    deliveries = [decode_delivery(item) for item in stored if item["kind"]["S"] == "delivery"]
    lines = Counter(left_lines)
    for item in items("PullTableName"):
        if item["sk"]["S"] != MESSAGE:
            continue
        lines["reserved" if decode_pull_message(item).reservation_id else "pending"] += 1
    return Told(
        messages={each.message_id for each in messages},
        owed={f"{each.message_id}.{to}" for each in messages for to in each.delivery_subscribers},
        deliveries={each.delivery_id: each for each in deliveries},
        lines=lines,
    )


def recorded(stack: RunningStack, project_id: str) -> tuple[set[str], dict[str, int], int]:
    """The records in S3: messages accepted, the newest version of each delivery, records of pull queues."""
    accepted: set[str] = set()
    versions: dict[str, int] = {}
    pulled = 0
    for record in records_of(stack, project_id):
        if record["dialect"] == "pull":
            pulled += 1
        elif record["kind"] == "accepted":
            accepted.add(record["message_id"])
        else:
            versions[record["delivery_id"]] = max(versions.get(record["delivery_id"], 0), record["version"])
    return accepted, versions, pulled


@pytest.fixture(scope="module")
def told(stack: RunningStack, project: ProjectClient, left_lines: Counter[str]) -> Told:
    """The stack's state once everything has been recorded and no try is in progress."""

    def settled() -> Told | None:
        before = state_of(stack, project.project_id, left_lines)
        resting = all(each.settled or each.scheduled for each in before.deliveries.values())
        versions = {key: each.version for key, each in before.deliveries.items()}
        # Five put, three reserved, one each consumed, given back, deleted.
        whole = recorded(stack, project.project_id) == (before.messages, versions, 5 + 3 + 3)
        return before if whole and resting else None

    def missed() -> str:
        seen = state_of(stack, project.project_id, left_lines)
        return f"{seen.standings}, recorded {recorded(stack, project.project_id)}"

    return until(settled, 120, missed)


@pytest.fixture(scope="module")
def report(stack: RunningStack, project: ProjectClient, told: Told) -> Path:
    """The folder of the report that ``make report`` made."""
    return make_report(stack, project.project_id)


def test_every_delivery_stands_in_the_report_as_in_the_stack(report: Path, told: Told) -> None:
    verdict = json.loads((report / "summary.json").read_text())["verdict"]
    assert verdict["conserved"]
    assert verdict["messages"] == len(told.messages) + 5
    assert verdict["owed"] == len(told.owed) + 5
    states = ("pending", "retrying", "reserved", "scheduled", "delivered", "acknowledged", "exhausted", "cancelled")
    assert {each: verdict[each] for each in states} == {each: told.standings[each] for each in states}
    # The scenario did produce one of each
    assert {each for each in states if verdict[each]} >= {*states} - {"retrying", "reserved"}


def test_every_attempt_is_counted_by_subscriber(report: Path, told: Told) -> None:
    tries: Counter[str] = Counter()
    for delivery in told.deliveries.values():
        for subscriber_id, status in delivery.statuses.items():
            tries[subscriber_id] += status.tries
    assert {row["subscriber_id"]: row["attempts"] for row in rows(report, "subscribers")} == dict(tries)
    (overall,) = rows(report, "overall")
    assert overall["attempts_made"] == sum(each.attempts for each in told.deliveries.values())


def test_deliveries_by_queue(report: Path, told: Told) -> None:
    by_queue: Counter[tuple[str, str]] = Counter()
    for delivery in told.deliveries.values():
        by_queue[delivery.queue, delivery.state.value] += 1
    for row in rows(report, "queues"):
        if row["queue"].startswith("tasks"):
            assert (row["delivered"], row["cancelled"], row["open"]) == (1, 1, 3)
            continue
        for state in ("delivered", "acknowledged", "exhausted"):
            assert row[state] == by_queue[row["queue"], state], (row["queue"], state)


def test_success_by_attempt(report: Path, told: Told) -> None:
    tried = [each for each in told.deliveries.values() if each.attempts]
    won = Counter(
        each.acknowledged_attempt or each.attempts
        for each in tried
        if each.state.value in ("delivered", "acknowledged")
    )
    for row in rows(report, "attempts_needed"):
        assert row["tried"] == sum(each.attempts >= row["attempt"] for each in tried)
        assert row["won"] == won[row["attempt"]]


def test_outcomes_are_those_that_subscribers_gave(report: Path, told: Told) -> None:
    last = Counter(each.last.status_code for each in told.deliveries.values() if each.last)
    counted: Counter[int] = Counter()
    for row in rows(report, "outcomes"):
        counted[row["status_code"]] += row["attempts"]
    assert all(counted[code] >= last[code] for code in last)
    assert set(counted) == {200, 202, 500, 503}
    assert sum(counted.values()) == sum(each.attempts for each in told.deliveries.values())


def test_a_message_of_which_every_record_is_lost_is_missed(stack: RunningStack) -> None:
    # Given a delivered and recorded message, all of whose objects are then lost
    lost = ProjectClient.another(stack)
    with Recorder() as recorder:
        queue = unique("lost")
        lost.make_push(queue, recorder.endpoint())
        (message_id,) = lost.post(queue, "nobody will know")
        lost.wait_codes(queue, message_id, [200], seconds=60)

    def told() -> list[dict[str, Any]] | None:
        found = list(records_of(stack, lost.project_id))
        return found if {each["kind"] for each in found} == {"accepted", "attempt"} else None

    until(told, 60, lambda: "it was not recorded")
    s3, bucket = stack.aws.s3(), stack.outputs["RecordsBucketName"]
    objects = {}
    for page in s3.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix="records/dt="):
        for entry in page.get("Contents", []):
            content = s3.get_object(Bucket=bucket, Key=entry["Key"])["Body"].read()
            if message_id.encode() in gzip.decompress(content):
                objects[entry["Key"]] = content
    try:
        for key in objects:
            s3.delete_object(Bucket=bucket, Key=key)
        # When the report is made, without time for late records
        run = report_on(stack, lost.project_id, "--grace-minutes", "0")
    finally:
        for key, content in objects.items():
            s3.put_object(Bucket=bucket, Key=key, Body=content)
    # Then it reports the message as missing, because its table still has it
    assert run.returncode == 2, run.stderr[-4000:]
    (found,) = [row for row in rows(folder_of(run), "findings") if row["finding"] == "not_recorded"]
    assert (found["queue"], found["message_id"]) == (queue, message_id)
