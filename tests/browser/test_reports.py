"""The part of the delivery report that a project sees."""

from __future__ import annotations

import json

from local.stack import aws
from playwright.sync_api import expect
from tests.browser.console import HOSTILE, Console
from tests.stack.running import RunningStack

NAME = "2026-11-15_2026-11-21"


def test_a_project_sees_its_own_verdict_and_rows_and_nothing_of_others(stack: RunningStack, console: Console) -> None:
    page, project = console.page, console.project
    # Given a report about two projects, as the job writes it
    own = {
        "project": project.id,
        "messages": 3,
        "owed": 5,
        "delivered": 4,
        "missing": 1,
        "breaches": 1,
        "unexpected": 0,
    }
    tables = {
        "verdicts": [{**own, "conserved": False}, {"project": "other", "messages": 9, "conserved": True}],
        "queues": [
            {"project": project.id, "queue": HOSTILE, "messages": 3, "delivered": 4, "delivery_p50_ms": 250},
            {"project": "other", "queue": "secret", "messages": 9},
        ],
        "findings": [{"project": project.id, "severity": "breach", "finding": "overdue", "detail": "no record since"}],
    }
    s3, bucket = aws(stack.description).s3(), stack.description.outputs["RecordsBucketName"]
    latest = {"report": f"s3://b/reports/{NAME}", "verdict": {"as_of": "2026-11-22T01:30:00+00:00"}}
    for file, content in (("latest", latest), *((f"{NAME}/{table}", rows) for table, rows in tables.items())):
        s3.put_object(Bucket=bucket, Key=f"reports/{file}.json", Body=json.dumps(content).encode())
    # When a person opens it, then problems come first
    console.open("reports")
    expect(page.get_by_role("alert").get_by_text("Not everything is accounted for")).to_be_visible()
    # And its own queues are listed, whatever their names
    queues = page.get_by_role("region", name="Queues")
    expect(queues.get_by_role("cell", name=HOSTILE, exact=True)).to_be_visible()
    expect(queues.get_by_text("250 ms")).to_be_visible()
    expect(page.get_by_text("secret")).to_have_count(0)
    assert console.violations() == []
    # And the findings say what they are
    page.get_by_role("alert").get_by_role("link", name="Findings").click()
    expect(page.get_by_role("region", name="Findings").get_by_text("no record since")).to_be_visible()
    s3.delete_object(Bucket=bucket, Key="reports/latest.json")


def test_a_report_from_before_the_project_says_so_without_empty_tables(stack: RunningStack, console: Console) -> None:
    s3, bucket = aws(stack.description).s3(), stack.description.outputs["RecordsBucketName"]
    latest = {"report": f"s3://b/reports/{NAME}", "verdict": {"as_of": "2026-11-22T01:30:00+00:00"}}
    others = [{"project": "other", "messages": 9, "conserved": True}]
    for file, content in (("latest", latest), (f"{NAME}/verdicts", others)):
        s3.put_object(Bucket=bucket, Key=f"reports/{file}.json", Body=json.dumps(content).encode())
    console.open("reports")
    page = console.page
    expect(page.get_by_text("has nothing about this project")).to_be_visible()
    expect(page.locator("main .card")).to_have_count(0)
    expect(page.locator("main .figures")).to_have_count(0)
    s3.delete_object(Bucket=bucket, Key="reports/latest.json")
