"""Messages through the deployed hub, with each function restricted by the policy of its role."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from glue_jobs.bundle import bundle
from glue_jobs.libraries import PLATFORM
from tests.sam.conftest import STACK, Deployment, resources_of, undigested
from tests.sam.sink import Sink
from tests.sam.toolbox import ROOT
from tests.template.cloudformation import deployed

pytestmark = [pytest.mark.slow, pytest.mark.stack]

EVENTS = sorted((ROOT / "events").glob("*.json"))
WAIT_SECONDS = 180.0
"""At most: functions start for the first time, maybe beside all other tests."""


def push_queue(*subscribers: str, error_queue: str = "", **settings: int) -> dict[str, Any]:
    push = {"subscribers": [{"name": url.rsplit("/", 1)[-1], "url": url} for url in subscribers], **settings}
    return {"queue": {"type": "multicast", "push": push | ({"error_queue": error_queue} if error_queue else {})}}


def test_every_resource_of_the_template_arrived(deployment: Deployment) -> None:
    # Optional parts were not requested.
    assert resources_of(deployment) == {undigested(each) for each in deployed()}


def test_a_message_reaches_each_subscriber_as_it_was_posted(
    deployment: Deployment, sink: Sink, queue_name: Callable[[], str]
) -> None:
    # Given
    name, text = queue_name(), "Zażółć gęślą jaźń ✓"
    deployment.call("PUT", f"/{name}", push_queue(f"{sink.url}/one", f"{sink.url}/two"))
    # When
    posted = deployment.call("POST", f"/{name}/messages", {"messages": [{"body": text}]})
    # Then
    received = sink.wait_for(2, WAIT_SECONDS)
    assert sorted(each.path for each in received) == ["/one", "/two"]
    for each in received:
        assert each.body == text.encode()
        assert each.headers["iron-message-id"] == posted["ids"][0]


def test_a_large_message_goes_by_way_of_the_bodies_bucket(
    deployment: Deployment, sink: Sink, queue_name: Callable[[], str]
) -> None:
    # Given
    name, text = queue_name(), "x" * 1_000_000
    deployment.call("PUT", f"/{name}", push_queue(f"{sink.url}/large"))
    # When
    deployment.call("POST", f"/{name}/messages", {"messages": [{"body": text}]})
    # Then
    (received,) = sink.wait_for(1, WAIT_SECONDS)
    assert received.body == text.encode()
    stored = deployment.client("s3").list_objects_v2(Bucket=deployment.outputs["BodiesBucketName"])
    assert stored["Contents"][0]["Key"].startswith(f"bodies/{deployment.project_id}/")


def test_an_exhausted_delivery_ends_in_its_error_queue(
    deployment: Deployment, sink: Sink, queue_name: Callable[[], str]
) -> None:
    # Given a subscriber that always fails, and one retry
    name, errors = queue_name(), queue_name()
    settings = push_queue(f"{sink.url}/fails", error_queue=errors, retries=1, retries_delay=3)
    deployment.call("PUT", f"/{name}", settings)
    # When
    posted = deployment.call("POST", f"/{name}/messages", {"messages": [{"body": "no luck"}]})
    # Then it was tried twice, and a consumer finds it in the error queue
    assert len(sink.wait_for(2, WAIT_SECONDS)) == 2
    (message,) = reserve(deployment, errors)
    assert json.loads(message["body"])["source_msg_id"] == posted["ids"][0]
    deployment.call("DELETE", f"/{errors}/messages/{message['id']}", {"reservation_id": message["reservation_id"]})


def reserve(deployment: Deployment, name: str) -> list[dict[str, Any]]:
    deadline = time.monotonic() + WAIT_SECONDS
    while time.monotonic() < deadline:
        if name in {each["name"] for each in deployment.call("GET", "?per_page=100")["queues"]}:
            found: list[dict[str, Any]] = deployment.call("POST", f"/{name}/reservations", {"n": 1, "wait": 5})[
                "messages"
            ]
            if found:
                return found
        time.sleep(0.2)
    raise AssertionError(f"nothing came to {name}")


def test_the_ingest_paths_other_methods_are_allowed_too(deployment: Deployment, queue_name: Callable[[], str]) -> None:
    # Given a pull queue with a message
    name = queue_name()
    deployment.call("PUT", f"/{name}", {"queue": {"type": "pull"}})
    deployment.call("POST", f"/{name}/messages", {"messages": [{"body": "one"}]})
    # When it is read, and deleted
    peeked = deployment.call("GET", f"/{name}/messages?n=1")["messages"]
    deployment.call("DELETE", f"/{name}/messages", {"ids": [{"id": each["id"]} for each in peeked]})
    # Then
    assert [each["body"] for each in peeked] == ["one"]
    assert deployment.call("GET", f"/{name}")["queue"]["size"] == 0


@pytest.mark.parametrize("function", ["Wake"])
def test_functions_that_nothing_waits_for_run(deployment: Deployment, function: str) -> None:
    answer = deployment.client("lambda").invoke(
        FunctionName=deployment.outputs[f"{function}FunctionName"], Payload=b"{}"
    )
    assert "FunctionError" not in answer, answer["Payload"].read()


def test_delivery_records_are_written(deployment: Deployment, sink: Sink, queue_name: Callable[[], str]) -> None:
    # Given
    name = queue_name()
    deployment.call("PUT", f"/{name}", push_queue(f"{sink.url}/recorded"))
    # When
    deployment.call("POST", f"/{name}/messages", {"messages": [{"body": "recorded"}]})
    # Then
    sink.wait_for(1, WAIT_SECONDS)
    s3, bucket = deployment.client("s3"), deployment.outputs["RecordsBucketName"]
    deadline = time.monotonic() + WAIT_SECONDS
    keys: list[str] = []
    while not keys and time.monotonic() < deadline:
        keys = [each["Key"] for each in s3.list_objects_v2(Bucket=bucket).get("Contents", [])]
        time.sleep(0.2)
    assert keys
    assert all(key.startswith("records/dt=") for key in keys)


def test_the_report_job_finds_its_script_and_its_libraries_and_is_started_each_night(
    deployment: Deployment, tmp_path: Path
) -> None:
    # Given the job as it was deployed
    glue = deployment.client("glue")
    job = glue.get_job(JobName=deployment.outputs["ReportJobName"])["Job"]
    # When its files are uploaded
    subprocess.run(
        ["make", "--silent", "report-upload", f"STACK={STACK}"],
        cwd=ROOT,
        env={**os.environ, **deployment.emulator.credentials},
        check=True,
        timeout=300,
    )
    # Then its script is where the job looks for it, with a suffix that Spark recognizes as Python
    script, libraries = (
        fetched(deployment, place)
        for place in (job["Command"]["ScriptLocation"], job["DefaultArguments"]["--additional-python-modules"])
    )
    assert job["Command"]["ScriptLocation"].endswith(".py")
    assert script == bundle(tmp_path).read_bytes()
    # And its libraries can be installed without an index by Glue's Python
    with zipfile.ZipFile(io.BytesIO(libraries)) as archive:
        archive.extractall(tmp_path)
    python, *platforms = PLATFORM
    installing = ["--no-index", "--find-links", "wheels", "-r", "wheels/requirements.txt", "--only-binary=:all:"]
    as_glue = ["--python-version", python, *(word for each in platforms for word in ("--platform", each))]
    command = [sys.executable, "-m", "pip", "install", "--dry-run", "--target", "installed", *installing, *as_glue]
    subprocess.run(command, cwd=tmp_path, check=True, timeout=120)
    assert job["DefaultArguments"]["--input"] == f"s3://{deployment.outputs['RecordsBucketName']}/records"
    # And sweep starts that job
    sweep = deployment.client("lambda").get_function_configuration(FunctionName=deployment.outputs["SweepFunctionName"])
    assert sweep["Environment"]["Variables"]["REPORT_JOB"] == job["Name"]


def fetched(deployment: Deployment, place: str) -> bytes:
    """An object of S3."""
    bucket, _, key = place.removeprefix("s3://").partition("/")
    content: bytes = deployment.client("s3").get_object(Bucket=bucket, Key=key)["Body"].read()
    return content


def test_tables_are_in_the_catalog(deployment: Deployment) -> None:
    # The database is called as Athena's SQL can say it
    tables = deployment.client("glue").get_tables(DatabaseName=STACK)["TableList"]
    assert {each["Name"] for each in tables} == {
        "records",
        "deliveries",
        "findings",
        "attempts_hourly",
        "raw_records",
    }
    for table in tables:
        bucket = deployment.outputs["RecordsBucketName"]
        # What the function records writes, and the lists of the files of the report's tables
        place = "records" if table["Name"] == "raw_records" else f"curated/days/{table['Name']}"
        assert table["StorageDescriptor"]["Location"] == f"s3://{bucket}/{place}/"


@pytest.mark.parametrize("path", EVENTS, ids=lambda path: path.stem)
def test_each_event_runs_through_what_sam_has_built(deployment: Deployment, path: Path) -> None:
    """``tests/template/test_events.py`` says that there is one for each function and each of its triggers."""
    function = deployment.outputs[f"{path.name.split('-')[0].capitalize()}FunctionName"]
    # When the function that sam build made, and sam deploy deployed, is given it
    answer = deployment.client("lambda").invoke(FunctionName=function, Payload=path.read_bytes())
    # Then it answers
    said = answer["Payload"].read().decode()
    assert "FunctionError" not in answer, said
    assert "errorMessage" not in said


def test_no_function_was_refused_anything_or_failed_otherwise(deployment: Deployment) -> None:
    """Runs last, to cover everything that the other tests made the functions do."""
    assert deployment.errors() == []
    assert "AccessDenied" not in deployment.emulator.log.read_text()
