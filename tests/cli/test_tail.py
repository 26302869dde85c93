"""``pushhub tail``: each record once, in order of time, from the requested hour on."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import boto3
import pytest
from cli.commands.tail import Records, line
from cli.operators.deployment import Deployment
from moto import mock_aws
from tests.cli.deployment import with_credentials

NOW = datetime(2026, 11, 22, 10, 3, tzinfo=UTC)


class Bucket:
    """The records bucket of a hub."""

    def __init__(self) -> None:
        self.s3 = boto3.client("s3", region_name="us-east-1")
        self.s3.create_bucket(Bucket="records")
        self.hub = Deployment("acme", {"RecordsBucketName": "records"}, boto3.session.Session(), {})
        self.objects = 0

    def write(self, *times: datetime) -> None:
        hour = times[0]
        lines = [json.dumps(record(at)) for at in times]
        self.objects += 1
        key = f"records/dt={hour:%Y-%m-%d}/hour={hour:%H}/messages-{self.objects}.json.gz"
        self.s3.put_object(Bucket="records", Key=key, Body=gzip.compress("\n".join(lines).encode()))


def record(at: datetime, **fields: Any) -> dict[str, Any]:
    shown = at.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return {"at": shown, "record_id": shown, "kind": "accepted", "queue": "orders", "message_id": "1", **fields}


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch) -> Iterator[Bucket]:
    with_credentials(monkeypatch)
    with mock_aws():
        yield Bucket()


def seconds(records: list[dict[str, Any]]) -> list[int]:
    return [round((datetime.fromisoformat(each["at"]) - NOW).total_seconds()) for each in records]


def test_each_record_is_shown_once_in_order(bucket: Bucket) -> None:
    def at(second: float) -> datetime:
        return NOW + timedelta(seconds=second)

    # Given records from before and after the requested time, in two hours
    bucket.write(at(-3600), at(-3599))
    bucket.write(at(-300), at(-120))
    bucket.write(at(-200))
    records = Records(bucket.hub, at(-3599), pytest.fail)
    # Then they are printed in order of time, each once
    assert seconds(records.new(NOW)) == [-3599, -300, -200, -120]
    assert records.new(NOW) == []
    # When more are written, in this hour and late in the previous one, then they are printed, too
    bucket.write(at(1))
    bucket.write(at(-190))
    assert seconds(records.new(at(2))) == [-190, 1]


def test_a_record_is_told_in_a_line() -> None:
    attempt = record(
        NOW,
        kind="attempt",
        subscriber="shop\x1b[2J",
        attempt=2,
        status_code=0,
        error_class="timeout",
        duration_ms=5,
        state="retrying",
        wait_after_ms=1500,
    )
    shown = line(attempt)
    assert shown.startswith("10:03:00.000 attempt      orders 1 -> shop")
    assert shown.endswith("try 2: timeout in 5 ms retrying next in 1.5 s")
    assert "\x1b" not in shown
    assert line(record(NOW, state="cancelled", reason="queue_deleted")).endswith("cancelled (queue_deleted)")
