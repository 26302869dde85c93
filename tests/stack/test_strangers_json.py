"""JSON that is none, on the running stack, as a client, a token server and an endpoint would send it."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote

import pytest
import requests
from local.place import REPOSITORY
from tests.hostile import Peer
from tests.stack.endpoints import Push, Recorder, Step
from tests.stack.notification_tenant import SECONDS, Tenant
from tests.stack.project import ProjectClient, unique, until
from tests.stack.running import RunningStack

pytestmark = pytest.mark.stack

WAIT_S = 90.0


@pytest.fixture(scope="module")
def project(stack: RunningStack) -> ProjectClient:
    return ProjectClient.another(stack)


@pytest.fixture
def recorder() -> Iterator[Recorder]:
    with Recorder() as made:
        yield made


def saying(body: bytes) -> Step:
    """Answer 200 with this JSON."""

    def step(peer: Peer, _: Push) -> bool:
        return peer.answer(body, headers="Content-Type: application/json\r\n")

    return step


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


def test_a_token_server_that_says_nan_is_a_failed_attempt(project: ProjectClient, recorder: Recorder) -> None:
    """Given a token server whose answer is no JSON, when a message is posted, then its attempts are recorded, and it
    goes to the error queue.
    """
    tokens = recorder.endpoint(saying(b'{"access_token": "abc", "expires_in": NaN}'))
    endpoint = recorder.endpoint()
    queue, errors = unique("gated"), unique("errors")
    project.make_queue(errors, type="pull")
    gate = {"token_url": tokens.url, "client_id": "hub", "client_secret": "s3cr3t-of-a-client"}
    subscriber = {"name": "s", "url": endpoint.url, "oauth": gate}
    project.make_push(queue, subscriber, retries=0, error_queue=errors)
    [message_id] = project.post(queue, "x")
    # Then the attempt says what is wrong, and the message is in the error queue
    found = until(lambda: project.reserve(errors) or None, WAIT_S, lambda: "it did not come")
    assert message_id in found[0]["body"]
    shown = project.take("GET", f"/queues/{queue}/messages/{message_id}/subscribers")["subscribers"][0]
    assert "no access_token that can be sent" in shown["msg"]
    assert endpoint.pushes == []


@pytest.mark.parametrize(
    "call",
    [
        b'{"jsonrpc": "2.0", "id": "\\ud800", "method": "tools/list"}',
        *(
            b'{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "%s", "arguments": {"app": "a", '
            b'"endpoint": "e", "%s": "\\ud800"}}}' % each
            for each in (
                (b"why_failed", b"endpoint"),
                (b"why_failed", b"app"),
                (b"get_attempt", b"message"),
                (b"list_endpoints", b"iterator"),
            )
        ),
    ],
)
def test_half_a_surrogate_pair_is_no_fault_of_the_assistants_door(project: ProjectClient, call: bytes) -> None:
    status, told = ask(project, "POST", "/mcp", call)
    assert (status, told["error"]["code"]) == (400, -32700)


def test_an_endpoint_cannot_hide_its_attempts_by_what_it_answers(project: ProjectClient, recorder: Recorder) -> None:
    """Given an application with redacted answers, when an endpoint answers half a pair, then the attempt is shown."""
    endpoint = recorder.endpoint(saying(b'{"a": "\\ud800"}'))
    status, app = ask(project, "POST", "/api/v1/app", {"name": "odd", "redaction": {"answers": ["b"]}})
    assert status == 201
    status, made = ask(project, "POST", f"/api/v1/app/{app['id']}/endpoint", {"url": endpoint.url})
    assert status == 201
    status, sent = ask(project, "POST", f"/api/v1/app/{app['id']}/msg", {"eventType": "a.b", "payload": {}})
    assert status == 202
    path = f"/api/v1/app/{app['id']}/attempt/msg/{sent['id']}"
    [attempt] = until(lambda: ask(project, "GET", path)[1]["data"] or None, WAIT_S, lambda: "it did not come")
    assert (attempt["endpointId"], attempt["responseStatusCode"]) == (made["id"], 200)
    assert attempt["response"] == "[redacted]"


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        ("nan", "float"),
        ("-inf", "float"),
        ("1e999", "float"),
        ('["\\ud800"]', "list"),
        ("[NaN]", "list"),
        ("١", "integer"),
    ],
)
def test_a_parameter_that_is_no_json_is_refused_and_not_stored(project: ProjectClient, value: str, kind: str) -> None:
    store = f"/api/stores/{project.project_id}/parameters"
    status, told = ask(project, "POST", store, {"name": "acme.odd", "value": value, "data_type": kind})
    assert (status, [*told["errors"]]) == (422, ["value"])
    status, listed = ask(project, "GET", f"{store}.json")
    assert status == 200
    assert "acme.odd" not in [each["name"] for each in listed]


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
        status, told = ask(project, "POST", f"{store}/messages", body.encode())
        assert status == 201
    [push] = endpoint.wait(1, WAIT_S)
    assert (payload % "grün").encode() in push.body
    # And it is shown so
    answer = requests.get(
        f"{project.base_url}{store}/messages/{told['message_id']}",
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
    day = datetime.now(UTC).date().isoformat()
    s3, bucket = stack.aws.s3(), stack.outputs["RecordsBucketName"]

    def objects() -> dict[str, bytes] | None:
        pages = s3.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=f"records/dt={day}/")
        keys = [each["Key"] for page in pages for each in page.get("Contents", [])]
        found = {key: s3.get_object(Bucket=bucket, Key=key)["Body"].read() for key in keys}
        return found or None

    found = until(objects, WAIT_S, lambda: "it did not come")
    key, whole = next(iter(found.items()))
    cut = f"{key.rpartition('/')[0]}/cut-1-2-1.json.gz"
    s3.put_object(Bucket=bucket, Key=cut, Body=whole[: len(whole) // 2])
    try:
        done = _command(stack, "rebuild", "--since", day, "--dry-run")
    finally:
        # Other tests read this bucket, too.
        s3.delete_object(Bucket=bucket, Key=cut)
    assert "Traceback" not in done.stderr
    assert f"passed over: {cut}: ends too early: only its beginning is read" in done.stderr, done.stderr
    assert "could not be read" in done.stderr
    assert done.returncode == 1, done.stderr


def _command(stack: RunningStack, *words: str) -> subprocess.CompletedProcess[str]:
    """Run a command as an operator does."""
    place = stack.place
    where = {"PUSHHUB_HOME": str(place.home), "PUSHHUB_PORT": str(place.port), "PUSHHUB_AWS_PORT": str(place.aws_port)}
    return subprocess.run(
        [sys.executable, "-m", "cli", *words],
        check=False,
        cwd=REPOSITORY,
        env={**os.environ, **where},
        capture_output=True,
        text=True,
        timeout=120,
    )
