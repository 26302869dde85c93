"""``pushhub report --link``: a short-lived link takes operators to the newest page."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any
from urllib.parse import parse_qs, urlsplit

import boto3
import click
import pytest
from cli.commands import tools
from cli.commands.tools import LINK_S, newest_page
from cli.operators.deployment import Deployment
from tests.cli.conftest import Typed
from tests.cloud import aws_services as aws


@pytest.fixture
def s3() -> Iterator[Any]:
    with aws.s3() as client:
        yield client


class Session:
    """Makes the only client that is needed."""

    def client(self, service: str, **options: Any) -> Any:
        assert service == "s3"
        return boto3.client("s3", **options)


def test_a_dry_run_starts_no_job(typed: Typed, monkeypatch: pytest.MonkeyPatch) -> None:
    # Given a deployed hub, whose AWS would refuse every call
    keys = {"region_name": "us-east-1", "aws_access_key_id": "x", "aws_secret_access_key": "x"}
    options = {**keys, "endpoint_url": "http://127.0.0.1:9"}
    outputs = {"ReportJobName": "report"}
    monkeypatch.setenv("PUSHHUB_STACK", "acme")
    monkeypatch.setattr(
        tools, "deployment", lambda hub: Deployment("acme", outputs, boto3.session.Session(), options, dry=hub.dry_run)
    )
    assert typed.json("report", "--dry-run")[0]["would"] == "glue StartJobRun"
    typed("report", code=1)
    # And on this machine none is made either
    monkeypatch.delenv("PUSHHUB_STACK")
    assert typed.json("report", "--from", "2026-11-01", "--dry-run")[0]["would"].startswith("make report")


def deployed() -> Deployment:
    return Deployment("acme", {"RecordsBucketName": aws.BUCKET}, Session(), {})


def latest(s3: Any, **changes: Any) -> None:
    name = "s3://b/reports/2026-11-15_2026-11-21"
    reported = {"report": name, "page": f"{name}/report.html", "verdict": {"sentence": "Conserved"}, **changes}
    s3.put_object(Bucket=aws.BUCKET, Key="reports/latest.json", Body=json.dumps(reported).encode())


def test_the_link_is_signed_for_the_page_and_ends_soon(s3: Any) -> None:
    latest(s3)
    reported = newest_page(deployed())
    assert (reported["report"], reported["verdict"]) == ("2026-11-15_2026-11-21", "Conserved")
    link = urlsplit(reported["link"])
    assert link.path.endswith("reports/2026-11-15_2026-11-21/report.html")
    assert parse_qs(link.query)["X-Amz-Expires"] == [str(LINK_S)]


def test_without_a_report_or_page_that_is_said(s3: Any) -> None:
    with pytest.raises(click.ClickException, match="no report yet"):
        newest_page(deployed())
    latest(s3, page=None)
    with pytest.raises(click.ClickException, match="could not be written"):
        newest_page(deployed())
