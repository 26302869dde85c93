"""``make report``: the records of the running stack are copied to disk once each; a missing prerequisite is reported in
one line.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, cast

import pytest
from glue_jobs import local_report, local_spark
from glue_jobs.delivery_report.run.session import FOR_LITTLE, FOR_SOME
from glue_jobs.local_spark import settings_for
from mypy_boto3_s3 import S3Client

WRITTEN = datetime(2026, 11, 18, 12, tzinfo=UTC)


@dataclass
class Bucket:
    """The part of an S3 client that syncing uses, with two keys per page."""

    objects: dict[str, bytes]
    fetched: list[str] = field(default_factory=list)
    written: dict[str, datetime] = field(default_factory=dict)

    def get_paginator(self, _: str) -> Bucket:
        return self

    def paginate(self, **asked: str) -> Iterator[dict[str, Any]]:
        keys = [key for key in sorted(self.objects) if key.startswith(asked["Prefix"])]
        for start in range(0, len(keys), 2):
            yield {"Contents": [self.listed(key) for key in keys[start : start + 2]]}
        yield {}

    def listed(self, key: str) -> dict[str, Any]:
        return {"Key": key, "Size": len(self.objects[key]), "LastModified": self.written.get(key, WRITTEN)}

    def put_object(self, **put: Any) -> None:
        self.objects[put["Key"]] = put["Body"]

    def get_object(self, **asked: str) -> dict[str, Any]:
        self.fetched.append(asked["Key"])
        return {"Body": io.BytesIO(self.objects[asked["Key"]])}


def sync(bucket: Bucket, folder: Path) -> tuple[int, int]:
    return local_report.sync(cast(S3Client, bucket), "b", folder)


def test_only_new_objects_are_fetched_and_gone_ones_removed(tmp_path: Path) -> None:
    # Given three objects of records, and one of something else
    keys = [f"records/dt=2026-11-18/hour=0{n}/messages-1-2-3.json.gz" for n in range(3)]
    bucket = Bucket({**dict.fromkeys(keys, b"x"), "other/y": b"y"})
    # When synced, they lie below the folder as the job reads them
    assert sync(bucket, tmp_path) == (3, 3)
    assert (tmp_path / "dt=2026-11-18/hour=02/messages-1-2-3.json.gz").read_bytes() == b"x"
    # When one came, one went, and one was only half fetched before
    del bucket.objects[keys[0]]
    bucket.objects["records/quarantine/messages-7.json"] = b"{}"
    (tmp_path / keys[1].removeprefix("records/")).write_bytes(b"")
    bucket.fetched.clear()
    # Then only what is missing is fetched, and removed objects are deleted locally
    assert sync(bucket, tmp_path) == (3, 2)
    assert sorted(bucket.fetched) == [keys[1], "records/quarantine/messages-7.json"]
    assert not (tmp_path / keys[0].removeprefix("records/")).exists()
    assert sync(bucket, tmp_path) == (3, 0)
    # When one is written again and as long as before, as what the deletion of a project notes may be
    bucket.written[keys[2]] = WRITTEN + timedelta(seconds=1)
    bucket.objects[keys[2]] = b"z"
    # Then it is fetched again
    assert sync(bucket, tmp_path) == (3, 1)
    assert (tmp_path / keys[2].removeprefix("records/")).read_bytes() == b"z"
    assert sync(bucket, tmp_path) == (3, 0)


def test_the_newest_report_is_put_where_the_hub_reads_it(tmp_path: Path) -> None:
    # Given two reports, of which the second is the newest
    for name in ("2026-11-01_2026-11-07", "2026-11-02_2026-11-08"):
        for file in ("queues.json", "report.html", "queues/part.parquet"):
            (tmp_path / name / file).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name / file).write_text(file)
    (tmp_path / "latest.json").write_text(json.dumps({"report": f"file://{tmp_path}/2026-11-02_2026-11-08"}))
    bucket = Bucket({})
    # When it is published, then its rows and its page lie there, and at the end what names it
    assert local_report.publish(cast(S3Client, bucket), "b", tmp_path) == 3
    assert [*bucket.objects] == [
        "reports/2026-11-02_2026-11-08/queues.json",
        "reports/2026-11-02_2026-11-08/report.html",
        "reports/latest.json",
    ]


def test_without_a_report_nothing_is_put(tmp_path: Path) -> None:
    assert local_report.publish(cast(S3Client, Bucket({})), "b", tmp_path) == 0


def test_no_running_stack(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PUSHHUB_HOME", str(tmp_path))
    with pytest.raises(SystemExit, match="no running stack"):
        local_report.main([])


def test_a_stack_that_does_not_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PUSHHUB_HOME", str(tmp_path))
    described = {
        "aws_endpoint_url": "http://127.0.0.1:9",
        "region": "us-east-1",
        "outputs": {"RecordsBucketName": "b"},
    }
    (tmp_path / "local.json").write_text(json.dumps(described))
    with pytest.raises(SystemExit, match=r"does not answer at http://127\.0\.0\.1:9"):
        local_report.main([])


def test_a_stack_that_recorded_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PUSHHUB_HOME", str(tmp_path))
    described = {"aws_endpoint_url": "x", "region": "x", "outputs": {"RecordsBucketName": "b"}}
    (tmp_path / "local.json").write_text(json.dumps(described))
    monkeypatch.setattr(local_report, "_client", lambda _: Bucket({}))
    with pytest.raises(SystemExit, match="recorded nothing yet"):
        local_report.main([])


def test_the_less_there_is_the_less_is_compiled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Given records of a hundred bytes in two folders
    for day in ("18", "19"):
        (tmp_path / f"dt=2026-11-{day}").mkdir()
        (tmp_path / f"dt=2026-11-{day}/messages-1-1-1.json.gz").write_bytes(b"x" * 50)
    # Then neither queries nor Java's code are compiled well, unless that were much
    assert settings_for(tmp_path) == FOR_LITTLE
    monkeypatch.setattr(local_spark, "LITTLE_BYTES", 99)
    assert settings_for(tmp_path) == FOR_SOME
    monkeypatch.setattr(local_spark, "SOME_BYTES", 99)
    assert settings_for(tmp_path) == {}
