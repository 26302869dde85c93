"""JSON comes through the running stack as it was written, and what is damaged stops no rebuild.

What is no JSON, and who reads it: tests/hostile/test_documents.py.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import pytest
import requests
from tests.stack.endpoints import Recorder
from tests.stack.notification_tenant import SECONDS, Tenant
from tests.stack.operating import ran
from tests.stack.project import ProjectClient, unique, until
from tests.stack.running import RunningStack

pytestmark = pytest.mark.stack

WAIT_S = 90.0


@pytest.fixture(scope="module")
def project(stack: RunningStack) -> ProjectClient:
    return ProjectClient.another(stack)


@pytest.fixture
def recorder() -> Iterator[Recorder]:
    with Recorder() as created:
        yield created


def ask(project: ProjectClient, method: str, path: str, body: bytes | object = None) -> tuple[int, Any]:
    """A request to any API of the hub."""
    content = body if isinstance(body, bytes) else None if body is None else json.dumps(body).encode()
    headers = {"Authorization": f"Bearer {project.token}", "X-Augury-Token": project.token}
    answer = requests.request(
        method,
        f"{project.base_url}{path}",
        data=content,
        headers={**headers, "Content-Type": "application/json", "Accept": "application/json"},
        timeout=60,
    )
    return answer.status_code, json.loads(answer.text, parse_constant=pytest.fail) if answer.text else None


def test_payloads_come_out_as_they_went_in_and_filters_see_letters(project: ProjectClient, recorder: Recorder) -> None:
    """Given a mapping that filters on a list, when orders are pushed, then what fits comes as it was written."""
    token, endpoint = "endpoint-key-0123456789abcdef", recorder.endpoint()
    mapping = {
        "name": "acme.green",
        "url": endpoint.url,
        "token": token,
        "messages": ["order:new"],
        "filters": [{"path": "payload.colours", "operator": "contains", "value": "grün"}],
    }
    store = f"/api/stores/{project.project_id}"
    assert ask(project, "POST", f"{store}/mappings", {"mapping": mapping})[0] == 201
    payload = '{"colours": ["rot", "%s"], "total": 19.90, "at": 165000000000000000000.12}'
    for colour in ("blau", "grün"):
        body = f'{{"message": "order:new", "payload": {payload % colour}}}'
        status, reported = ask(project, "POST", f"{store}/messages", body.encode())
        assert status == 201
    push = endpoint.wait(1, WAIT_S)[0]
    assert (payload % "grün").encode() in push.body
    # And it is shown so
    answer = requests.get(
        f"{project.base_url}{store}/messages/{reported['message_id']}",
        headers={"X-Augury-Token": project.token},
        timeout=60,
    )
    assert payload % "grün" in answer.text


def test_notifications_come_out_as_they_were_published(stack: RunningStack) -> None:
    tenant = Tenant(stack)
    tenant.subscribe()
    data = '{"eur": 19.90, "at": 165000000000000000000.12}'

    async def consumed() -> str:
        connection = await tenant.connect(tenant.token())
        body = f'{{"api": "events", "source": "111", "data": {data}}}'.encode()
        headers = {"Content-Type": "application/json"}
        url = f"{tenant.base_url}/notification2/notifications"
        answer = await asyncio.to_thread(tenant.session.post, url, data=body, headers=headers, timeout=40)
        assert answer.status_code == 201, answer.text
        text = await asyncio.wait_for(connection.recv(), SECONDS)
        await connection.close()
        return text if isinstance(text, str) else text.decode()

    assert asyncio.run(consumed()).endswith(f"\n\n{data}")


def test_a_line_separator_in_a_name_and_a_damaged_object_do_not_stop_a_rebuild(
    stack: RunningStack, project: ProjectClient, recorder: Recorder
) -> None:
    """Given a record of a queue with U+2028 in its name, and an object that was cut off, when an operator rebuilds,
    then the rest is read, and what is not is named.
    """
    queue = unique("orders\u2028new")
    endpoint = recorder.endpoint()
    quoted = quote(queue, safe="")
    settings = {"type": "multicast", "push": {"subscribers": [{"name": "s", "url": endpoint.url}], "retries": 0}}
    project.take("PUT", f"/queues/{quoted}", {"queue": settings})
    project.take("POST", f"/queues/{quoted}/messages", {"messages": [{"body": "x"}]})
    endpoint.wait()
    s3, bucket = stack.aws.s3(), stack.outputs["RecordsBucketName"]

    def newest() -> str:
        pages = s3.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix="records/dt=")
        return max((each["Key"] for page in pages for each in page.get("Contents", [])), default="")

    key = until(newest, WAIT_S, lambda: "it did not come")
    # (which is another than today's at midnight)
    day = key.partition("dt=")[2][:10]
    whole = s3.get_object(Bucket=bucket, Key=key)["Body"].read()
    cut = f"{key.rpartition('/')[0]}/cut-1-2-1.json.gz"
    s3.put_object(Bucket=bucket, Key=cut, Body=whole[: len(whole) // 2])
    try:
        done = ran(stack, "rebuild", "--since", day, "--dry-run")
    finally:
        # Other tests read this bucket, too.
        s3.delete_object(Bucket=bucket, Key=cut)
    assert "Traceback" not in done.errors
    assert f"passed over: {cut}: ends too early: only its beginning is read" in done.errors, done.errors
    assert "could not be read" in done.errors
    assert done.code == 1, done.errors
