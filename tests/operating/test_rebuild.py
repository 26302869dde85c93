"""``pushhub rebuild`` against a deployed stack whose messages table has lost everything."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from typing import Any

import boto3
import pytest
from cli.__main__ import run
from tests.cli.deployment import answering, described, with_credentials
from tests.cloud import aws_services as aws
from tests.contract.samples import PROJECT, QUEUE_UID, first, message, tried
from tests.fakes import FakeClock, FakeSchedule

from pushhub.base.verdict import Verdict
from pushhub.cloud.clock import SystemClock
from pushhub.engine.model.delivery import Delivery, DeliveryState, opening
from pushhub.engine.model.keys import DeliveryKey
from pushhub.engine.model.records import record_of_acceptance, record_of_delivery
from pushhub.engine.store.dynamodb_messages import DynamoDBMessageStore
from pushhub.engine.store.s3_bodies import S3BodyStore
from pushhub.engine.store.s3_records import S3RecordStore

RECORDS = "records"
OUTPUTS = {
    "ConfigTableName": aws.CONFIG_TABLE,
    "MessagesTableName": aws.MESSAGES_TABLE,
    "ScheduleTableName": aws.SCHEDULE_TABLE,
    "BodiesBucketName": aws.BUCKET,
    "RecordsBucketName": RECORDS,
}


@pytest.fixture
def tables(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with_credentials(monkeypatch)

    def answered(operation: str, parameters: dict[str, Any], real: Callable[[], Any]) -> Any:
        if operation != "DescribeStacks":
            return real()
        return described(OUTPUTS)

    answering(monkeypatch, answered)
    with aws.dynamodb():
        for bucket in (aws.BUCKET, RECORDS):
            boto3.client("s3").create_bucket(Bucket=bucket)
        yield


def recorded(body: bytes, *, kept: bool) -> Delivery:
    """A message not yet delivered to its subscriber, according to its records: its body in the bucket, or in the lost
    table.
    """
    now = SystemClock().now()
    [ref] = S3BodyStore(boto3.client("s3"), aws.BUCKET).put(PROJECT, [body], now)
    posted = message(
        body=None if kept else body,
        body_ref=ref if kept else None,
        body_size=len(body),
        accepted_at=now,
        due_at=now,
        expires_at=now + 86_400_000,
        ordering=None,
    )
    failed = replace(first(posted, Verdict.FAILED), due_at=now + 60_000)
    result = [record_of_acceptance(posted), record_of_delivery(None, failed, now)]
    records = [each for each in result if each is not None]
    S3RecordStore(boto3.client("s3"), RECORDS).write(records, table="m", first=posted.message_id, last="2")
    return failed


def rebuild(capsys: pytest.CaptureFixture[str], *words: str, code: int) -> tuple[list[dict[str, Any]], str]:
    assert run(["--stack", "acme", "--json", "rebuild", "--since", "2020-01-01", *words]) == code
    printed = capsys.readouterr()
    return json.loads(printed.out), printed.err


def stored(key: DeliveryKey) -> Delivery | None:
    schedule = FakeSchedule(FakeClock())
    return DynamoDBMessageStore(boto3.client("dynamodb"), aws.MESSAGES_TABLE, FakeClock(), lambda: schedule).delivery(
        key
    )


@pytest.mark.usefixtures("tables")
def test_what_is_known_is_put_back_and_what_is_not_is_listed(capsys: pytest.CaptureFixture[str]) -> None:
    # Given two messages of a lost table, one with its body in the bucket
    kept, lost = recorded(b"x" * 9_000, kept=True), recorded(b"small", kept=False)
    # When a dry run is made, then nothing changes
    shown, said = rebuild(capsys, "--dry-run", code=1)
    assert "would be put back: 1 messages" in said
    assert stored(kept.key) is None
    # When the rebuild is run
    shown, said = rebuild(capsys, code=1)
    # Then one continues, the other is given up, and both are reported
    on, gone = stored(kept.key), stored(lost.key)
    assert on is not None
    assert gone is not None
    assert (on.state, on.scheduled, on.version) == (DeliveryState.RETRYING, True, kept.version + 1)
    assert (gone.state, gone.reason) == (DeliveryState.CANCELLED, "body_lost")
    assert {each["message"]: each["not known"].split(":")[0] for each in shown} == {
        kept.message_id: "its headers and the message it follows from",
        lost.message_id: "its body, which was in the table",
    }
    assert {each["project"] for each in shown} == {PROJECT}
    assert kept.queue_uid == QUEUE_UID


@pytest.mark.usefixtures("tables")
def test_records_that_cannot_be_read_are_named_and_the_rest_is_put_back(capsys: pytest.CaptureFixture[str]) -> None:
    # Given records of a message, among them a queue with a line separator in its name, and others that nobody can read
    kept = recorded(b"x" * 9_000, kept=True)
    s3 = boto3.client("s3")
    [key] = [each["Key"] for each in s3.list_objects_v2(Bucket=RECORDS)["Contents"]]
    whole = s3.get_object(Bucket=RECORDS, Key=key)["Body"].read()
    lines = gzip.decompress(whole).split(b"\n")
    odd = json.loads(lines[0]) | {"queue": "orders\u2028new\x85", "message_id": "1" * 19, "owed": ["1.2"]}
    hour = key.rpartition("/")[0]
    mixed = b"\n".join([json.dumps(odd, ensure_ascii=False).encode(), b"{", b'{"kind": "accepted"}', *lines])
    s3.put_object(Bucket=RECORDS, Key=f"{hour}/a.json.gz", Body=gzip.compress(mixed))
    s3.put_object(Bucket=RECORDS, Key=f"{hour}/b.json.gz", Body=whole[: len(whole) // 2])
    damaged = bytes([*whole[:-8], *bytes(8)])
    s3.put_object(Bucket=RECORDS, Key=f"{hour}/c.json.gz", Body=damaged)
    s3.delete_object(Bucket=RECORDS, Key=key)
    # When it is run
    _, said = rebuild(capsys, code=1)
    # Then what can be read is put back, and each of the others is named
    assert stored(kept.key) is not None
    for reported in (
        f"{hour}/a.json.gz: line 2 is not valid JSON (line 1, column 2)",
        f"{hour}/a.json.gz: record 2 has no record_id",
        f"{hour}/b.json.gz: ends too early: only its beginning is read",
        f"{hour}/c.json.gz: is damaged: nothing of it is read",
        "4 in all could not be read",
    ):
        assert reported in said


class Killed(Exception):
    """A rebuild is killed."""


@pytest.mark.usefixtures("tables")
@pytest.mark.parametrize("writes", range(6))
def test_wherever_it_is_killed_the_next_run_does_the_rest(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], writes: int
) -> None:
    # Given a lost message that one subscriber has, and that waits for the other
    now = SystemClock().now()
    [ref] = S3BodyStore(boto3.client("s3"), aws.BUCKET).put(PROJECT, [b"x" * 9_000], now)
    posted = message(
        body=None,
        body_ref=ref,
        body_size=9_000,
        accepted_at=now,
        due_at=now,
        expires_at=now + 86_400_000,
        subscriber_ids=("a", "b"),
    )
    has = first(posted, Verdict.DELIVERED)
    waits = replace(tried(opening(posted, "b"), Verdict.FAILED), due_at=now + 60_000)
    records = [record_of_acceptance(posted), *(record_of_delivery(None, each, now) for each in (has, waits))]
    S3RecordStore(boto3.client("s3"), RECORDS).write(
        [each for each in records if each is not None], table="m", first=posted.message_id, last="2"
    )
    # When a rebuild is killed after so many writes, and run again
    left = [writes]

    def dies(operation: str, parameters: dict[str, Any], real: Callable[[], Any]) -> Any:
        if operation == "PutItem":
            if not left[0]:
                raise Killed
            left[0] -= 1
        return real()

    with monkeypatch.context() as patched:
        answering(patched, dies)
        with suppress(Killed):
            run(["--stack", "acme", "--json", "rebuild", "--since", "2020-01-01"])
    capsys.readouterr()
    rebuild(capsys, code=0)
    # Then the one still has it, and the other one's delivery goes on
    settled, on = stored(has.key), stored(waits.key)
    assert settled is not None
    assert on is not None
    assert settled.state is DeliveryState.DELIVERED
    assert (on.state, on.scheduled, on.version) == (DeliveryState.RETRYING, True, waits.version + 1)
    table = boto3.client("dynamodb").scan(TableName=aws.MESSAGES_TABLE)["Items"]
    assert len(table) == 3
