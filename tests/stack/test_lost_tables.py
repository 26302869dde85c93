"""The runbook of docs/operations.md, "If a table is lost", for each table: it is deleted, restored or made anew as the
page says, and everything that reads it and its stream goes on. (The messages table in the middle of traffic:
test_lost_table.py.)

It has a stack of its own: its mappings are others afterwards than those that were deployed, and it is brought up with
them.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import requests
from tests.stack.delivery_report import records_of
from tests.stack.endpoints import Endpoint, Recorder
from tests.stack.notification_tenant import Tenant, receive
from tests.stack.operating import pushhub
from tests.stack.project import ProjectClient, unique, until
from tests.stack.running import RunningStack

from local import stack as local_stack

pytestmark = pytest.mark.stack


@pytest.fixture(scope="module")
def endpoint() -> Iterator[Endpoint]:
    with Recorder() as recorder:
        yield recorder.endpoint()


def lose(own: RunningStack, name: str) -> tuple[dict[str, Any], str]:
    """Back a table up, and delete it; its description and the ARN of the backup."""
    tables: Any = own.aws.dynamodb()
    table = tables.describe_table(TableName=name)["Table"]
    backup = tables.create_backup(TableName=name, BackupName=unique("kept"))["BackupDetails"]
    tables.update_table(TableName=name, DeletionProtectionEnabled=False)
    tables.delete_table(TableName=name)
    return table, backup["BackupArn"]


def restore(own: RunningStack, name: str, backup: str) -> None:
    """Restore a table as the page says: items, keys and indexes, nothing else."""
    tables: Any = own.aws.dynamodb()
    tables.restore_table_from_backup(TargetTableName=name, BackupArn=backup)
    tables.get_waiter("table_exists").wait(TableName=name)


def pushes(project: ProjectClient, queue: str, endpoint: Endpoint) -> None:
    """A message posted to a push queue arrives."""
    body = unique("body")
    project.post(queue, body)
    until(lambda: body in {each.body.decode() for each in endpoint.pushes} or None, 120, lambda: f"{body} not pushed")


Check = Callable[[], None]


def of_config(own: RunningStack, endpoint: Endpoint) -> Check:
    project, queue = ProjectClient.another(own), unique("kept")
    project.make_push(queue, endpoint)
    return lambda: pushes(project, queue, endpoint)


def of_schedule(own: RunningStack, endpoint: Endpoint) -> Check:
    # A message that waits for half an hour
    project, queue = ProjectClient.another(own), unique("waits")
    project.make_push(queue, endpoint)
    [message_id] = project.post(queue, "later", delay=1800)
    tables: Any = own.aws.dynamodb()

    def waits() -> bool | None:
        pages = tables.get_paginator("scan").paginate(TableName=own.outputs["ScheduleTableName"])
        return any(message_id in str(each) for page in pages for each in page["Items"]) or None

    until(waits, 120, lambda: "no entry of the schedule")

    def check() -> None:
        # The runbook's step for a schedule that was made anew
        payload = json.dumps({"everything": True}).encode()
        answer = own.aws.functions().invoke(FunctionName=own.outputs["SweepFunctionName"], Payload=payload)
        assert "FunctionError" not in answer, answer["Payload"].read()
        until(waits, 120, lambda: "sweep did not enter what waits")

    return check


def of_pull(own: RunningStack, endpoint: Endpoint) -> Check:
    project, queue = ProjectClient.another(own), unique("pulled")
    project.make_queue(queue, type="pull")
    project.post(queue, "before")

    def check() -> None:
        project.post(queue, "after")
        found: set[str] = set()

        def reserved() -> bool | None:
            found.update(each["body"] for each in project.reserve(queue, delete=True))
            return found == {"before", "after"} or None

        until(reserved, 120, lambda: f"there are {found}")
        # And the new stream is read
        later = unique("later")
        project.make_queue(later, type="pull")
        project.post(later, "recorded")

        def recorded() -> bool | None:
            return any(each["queue"] == later for each in records_of(own, project.project_id)) or None

        until(recorded, 180, lambda: "no records of the new stream")

    return check


def of_hub(own: RunningStack, endpoint: Endpoint) -> Check:
    project = own.make_project()

    def call(method: str, path: str, body: Any = None) -> requests.Response:
        url = f"{own.base_url}/api/stores/{project.project_id}{path}"
        return requests.request(method, url, json=body, headers={"X-Augury-Token": project.token}, timeout=60)

    mapping = {"name": "acme.take", "url": endpoint.url, "token": "t", "messages": ["order:new"]}
    assert call("POST", "/mappings", {"mapping": mapping}).status_code == 201

    def check() -> None:
        before = len(endpoint.pushes)
        assert call("POST", "/messages", {"message": "order:new", "payload": {}}).status_code == 201
        until(lambda: len(endpoint.pushes) > before or None, 120, lambda: "the mapping's message was not sent")

    return check


def of_webhooks(own: RunningStack, endpoint: Endpoint) -> Check:
    project = own.make_project()

    def call(path: str, body: Any) -> dict[str, Any]:
        headers = {"Authorization": f"Bearer {project.token}"}
        answer = requests.post(f"{own.base_url}/api/v1/app{path}", json=body, headers=headers, timeout=60)
        assert answer.status_code in (200, 201, 202), answer.text
        said: dict[str, Any] = answer.json()
        return said

    app = call("/", {"name": "shop"})["id"]
    call(f"/{app}/endpoint/", {"url": endpoint.url})

    def check() -> None:
        before = len(endpoint.pushes)
        call(f"/{app}/msg/", {"eventType": "order.made", "payload": {"n": 1}})
        until(lambda: len(endpoint.pushes) > before or None, 120, lambda: "the endpoint got no message")

    return check


def of_backlogs(own: RunningStack, endpoint: Endpoint) -> Check:
    tenant = Tenant(own)
    tenant.subscribe()

    async def consumed(*numbers: int) -> None:
        connection = await tenant.connect(tenant.token())
        frames = await receive(connection, len(numbers), acknowledge=True)
        await connection.close()
        assert [each.n for each in frames] == [*numbers]

    asyncio.run(consumed())
    tenant.publish(1)

    def check() -> None:
        tenant.publish(2)
        asyncio.run(consumed(1, 2))

    return check


LOST: dict[str, Callable[[RunningStack, Endpoint], Check]] = {
    "config": of_config,
    "schedule": of_schedule,
    "pull": of_pull,
    "hub": of_hub,
    "webhooks": of_webhooks,
    "backlogs": of_backlogs,
}
ANEW = {"schedule"}
"""Made empty, as the runbook says."""


@pytest.mark.parametrize("table", LOST)
def test_a_lost_table_is_put_in_place_and_everything_goes_on(own: RunningStack, endpoint: Endpoint, table: str) -> None:
    # Given what the table holds
    check = LOST[table](own, endpoint)
    name = own.outputs[f"{table.capitalize()}TableName"]
    # When it is lost, and restored from its backup, or made anew
    lost, backup = lose(own, name)
    if table not in ANEW:
        restore(own, name, backup)
    done = pushhub(own, "deploy", "table", table, *(["--empty"] if table in ANEW else []))
    assert done
    # Then it is as the template makes it
    tables: Any = own.aws.dynamodb()
    now = tables.describe_table(TableName=name)["Table"]
    for key in ("KeySchema", "StreamSpecification"):
        assert now.get(key) == lost.get(key)
    assert tables.describe_time_to_live(TableName=name)["TimeToLiveDescription"].get("AttributeName") == (
        None if table == "config" else "ttl"
    )
    # And everything goes on
    check()


def test_a_stack_whose_tables_were_put_in_place_is_brought_up_again(own: RunningStack) -> None:
    # Given tables about which there is nothing left to do
    assert [pushhub(own, "deploy", "table", table) for table in LOST] == [[]] * len(LOST)
    # And streams that are read by other mappings than were deployed, when the stack is brought up, then it works
    own.down()
    own.up()
    until(lambda: local_stack.problems(own.place) == [] or None, 300, lambda: str(local_stack.problems(own.place)))
