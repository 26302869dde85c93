"""Reports on S3 as the job leaves them, complete or not."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from tests.cloud import aws_services as aws

from pushhub.engine.records.ports import Report
from pushhub.engine.store.s3_reports import S3Reports


@pytest.fixture
def client() -> Iterator[Any]:
    with aws.s3() as s3:
        yield s3


def put(client: Any, name: str, content: Any) -> None:
    client.put_object(Bucket=aws.BUCKET, Key=f"reports/{name}", Body=json.dumps(content).encode())


def test_the_newest_report_is_found_wherever_the_job_wrote_it(client: Any) -> None:
    reports = S3Reports(client, aws.BUCKET)
    assert reports.newest() is None
    for place in ("s3://bucket/reports", "file:///home/x/report/reports"):
        put(client, "latest.json", {"report": f"{place}/2026-11-15_2026-11-21", "verdict": {"as_of": "then"}})
        assert reports.newest() == Report(name="2026-11-15_2026-11-21", as_of="then")


@pytest.mark.parametrize(
    "content", [[], {}, {"report": None}, {"report": "s3://b/reports/../secrets"}, {"report": "x/.."}]
)
def test_what_names_no_report_leads_to_none(client: Any, content: Any) -> None:
    put(client, "latest.json", content)
    assert S3Reports(client, aws.BUCKET).newest() is None


def test_rows_of_a_table_are_read_and_a_table_that_is_not_there_has_none(client: Any) -> None:
    put(client, "2026-11-15_2026-11-21/queues.json", [{"project": "p", "queue": "ä"}, "no row"])
    reports = S3Reports(client, aws.BUCKET)
    assert reports.rows("2026-11-15_2026-11-21", "queues") == [{"project": "p", "queue": "ä"}]
    assert reports.rows("2026-11-15_2026-11-21", "verdicts") == []
