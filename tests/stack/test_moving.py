"""A project of four protocols is exported from a running stack, imported into another, and deleted where it was, with
kills in between: counted before and after.

``PUSHHUB_MOVED=50000`` moves so many messages, which takes hours of a small machine; by default it is 160.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import requests
from local.place import REPOSITORY
from tests.hostile import Peer
from tests.stack.endpoints import Endpoint, Push, Recorder
from tests.stack.notification_tenant import Tenant, receive
from tests.stack.project import ProjectClient, until
from tests.stack.running import RunningStack
from tests.stack.test_cli import cli, environment_of
from tests.stack.test_tenant_life import delete

pytestmark = pytest.mark.stack

MOVED = int(os.environ.get("PUSHHUB_MOVED", "160"))
SHARE = MOVED // 8
"""Sent, owed and large messages of push queues, and of a pull queue; the others have two shares, two and four."""
DELAY_S = 20
"""Longer than it takes to suspend the project after the posts."""
PATIENCE_S = 60 + MOVED / 10
AT_ONCE = 50


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningStack]:
    """Where the project goes."""
    running = RunningStack.start(tmp_path_factory.mktemp("target"))
    yield running
    running.discard()


class Shop:
    """A project of all protocols, at the stack where it is now."""

    def __init__(self, stack: RunningStack, project_id: str, token: str) -> None:
        self.stack = stack
        self.queues = ProjectClient(base_url=stack.base_url, project_id=project_id, token=token)

    def call(self, method: str, path: str, body: Any = None) -> Any:
        headers = {"Authorization": f"Bearer {self.queues.token}", "X-Augury-Token": self.queues.token}
        answer = requests.request(method, f"{self.stack.base_url}/api{path}", json=body, headers=headers, timeout=60)
        assert answer.ok, f"{path}: {answer.status_code} {answer.text}"
        return answer.json() if answer.content else None

    def post(self, queue: str, count: int, body: str = "{}", **options: Any) -> list[str]:
        ids: list[str] = []
        for start in range(0, count, AT_ONCE):
            bodies = [body.replace("{}", f"{queue}-{each}") for each in range(start, min(start + AT_ONCE, count))]
            ids += self.queues.post(queue, *bodies, **options)
        return ids

    def counted(self) -> Counter[str]:
        """Everything of the project in the tables that moves with it and does not change by itself, by kind of key."""
        found: Counter[str] = Counter()
        tables: Any = self.stack.aws.dynamodb()
        for output in ("MessagesTableName", "PullTableName", "HubTableName", "WebhooksTableName", "ConfigTableName"):
            for page in tables.get_paginator("scan").paginate(TableName=self.stack.outputs[output]):
                for item in page["Items"]:
                    pk, sk = item["pk"]["S"], item["sk"]["S"]
                    if self.queues.project_id in pk and not sk.startswith(("WAIT#", "CALL#")):
                        found[f"{output} {sk.partition('#')[0][:1]}"] += 1
        return found

    def waiting(self) -> int:
        """How many deliveries wait in the backlogs of their subscribers."""
        tables: Any = self.stack.aws.dynamodb()
        pages = tables.get_paginator("scan").paginate(TableName=self.stack.outputs["ScheduleTableName"])
        start = f"WAITING#{self.queues.project_id}"
        keys = ((each["pk"]["S"], each["sk"]["S"]) for page in pages for each in page["Items"])
        return len({sk.partition("#")[2] for pk, sk in keys if pk.startswith(start)})


def killed_after(stack: RunningStack, line: str, *words: str) -> bool:
    """Run a command and kill it when it says something; whether it was killed."""
    command = [sys.executable, "-m", "cli", "--json", *words]
    with subprocess.Popen(
        command, cwd=REPOSITORY, env=environment_of(stack), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as run:
        assert run.stderr is not None
        for said in run.stderr:
            if said.strip() == line:
                run.kill()
                break
    return run.returncode < 0


def answers(peer: Peer, push: Push) -> bool:
    """As services of stores do, with the id of the message."""
    body = push.body.decode()
    message_id = json.loads(body).get("message_id", "") if body.startswith("{") else ""
    return peer.answer(json.dumps({"message_id": message_id}).encode(), headers="Content-Type: application/json\r\n")


def bodies(endpoint: Endpoint, beginning: str) -> list[str]:
    return [text[:40].strip() for each in endpoint.pushes if (text := each.body.decode()).startswith(beginning)]


def test_a_project_moves_to_another_stack_and_nothing_is_lost_sent_twice_or_left(
    stack: RunningStack, target: RunningStack, tmp_path: Path
) -> None:
    # Given a project with messages of four protocols: some delivered, some owed, large, or for hours later
    tenant = Tenant(stack)
    shop = Shop(stack, tenant.project_id, tenant.project_token)
    with Recorder() as endpoints:
        endpoint = endpoints.endpoint(answers)
        for queue in ("sent", "owed"):
            shop.queues.make_push(queue, endpoint)
        shop.queues.make_queue("pulled", type="pull")
        shop.post("sent", SHARE)
        pulled = shop.post("pulled", SHARE)
        taken = shop.queues.reserve("pulled", n=5, delete=True)
        mapping = {"name": "acme.take", "url": endpoint.url, "token": "t", "messages": ["order:new"]}
        store = f"/stores/{tenant.project_id}"
        shop.call("POST", f"{store}/mappings", {"mapping": mapping})
        for number in range(2 * SHARE):
            shop.call("POST", f"{store}/messages", {"message": "order:new", "payload": {"n": number}})
        app = shop.call("POST", "/v1/app", {"name": "shop"})["id"]
        hook = shop.call("POST", f"/v1/app/{app}/endpoint", {"url": endpoint.url})["id"]
        secret = shop.call("GET", f"/v1/app/{app}/endpoint/{hook}/secret")["key"]
        for number in range(SHARE):
            shop.call("POST", f"/v1/app/{app}/msg", {"eventType": "a.b", "payload": {"n": number}})
        endpoint.wait(4 * SHARE, PATIENCE_S)
        tenant.subscribe()

        async def consumed(at: Tenant, *numbers: int) -> list[int]:
            connection = await at.connect(at.token())
            frames = await receive(connection, len(numbers), acknowledge=True)
            await connection.close()
            return [each.n for each in frames]

        asyncio.run(consumed(tenant))
        tenant.publish(*range(SHARE))
        [later] = shop.queues.post("owed", "for hours later", delay=7200)
        shop.post("owed", SHARE, delay=DELAY_S)
        shop.post("owed", SHARE, "big-{} " + "x" * 9_000, delay=DELAY_S)
        # When it is suspended, and what came due since then waits in the backlog of its subscriber
        cli(stack, "projects", "suspend", tenant.project_id)
        delivered = endpoints.arrivals()
        assert delivered == 4 * SHARE
        until(lambda: shop.waiting() == 2 * SHARE or None, PATIENCE_S, lambda: f"{shop.waiting()} wait")
        before = shop.counted()
        # And exported and imported, with kills in between
        folder = str(tmp_path / "shop")
        export = ("projects", "export", tenant.project_id, folder, "--with-keys", "--running")
        for line in ("done: ConfigTable", "done: MessagesTable", "done: bodies"):
            assert killed_after(stack, line, *export)
        exported = {each["place"]: each["exported"] for each in cli(stack, *export)}
        for line in ("done: bodies", "done: MessagesTable", "done: ScheduleTable"):
            assert killed_after(target, line, "projects", "import", folder)
        imported = cli(target, "projects", "import", folder)
        # Then it is all there: as many as were exported, and of each kind as many as there were
        assert {each["place"]: each["imported"] for each in imported} == exported
        there = Shop(target, tenant.project_id, tenant.project_token)
        assert there.counted() == before
        assert exported["bodies"] >= SHARE // AT_ONCE
        assert exported["records"] >= 4 * SHARE
        # And when it is resumed, what was owed is sent, once, and nothing that was delivered
        cli(target, "projects", "resume", tenant.project_id)
        endpoint.wait(delivered + 2 * SHARE, PATIENCE_S + 120)
        owed = [f"owed-{each}" for each in range(SHARE)] + [f"big-owed-{each}" for each in range(SHARE)]
        came = Counter(each.body.decode()[:60] for each in endpoint.pushes[delivered:])
        assert {text: count for text, count in came.items() if count > 1 or "owed-" not in text} == {}
        sent = bodies(endpoint, "owed-") + [each.partition(" ")[0] for each in bodies(endpoint, "big-owed-")]
        assert sorted(each.partition(" ")[0] for each in sent) == sorted(owed)
        assert endpoints.arrivals() == delivered + 2 * SHARE
        # And its tokens, queues and keys are the same, and what is new is sent
        assert there.queues.total("sent") == SHARE
        assert there.queues.take("GET", f"/queues/owed/messages/{later}")["message"]["id"] == later
        assert there.call("GET", f"/v1/app/{app}/endpoint/{hook}/secret")["key"] == secret
        there.post("sent", 1, "new-{}")
        there.call("POST", f"{store}/messages", {"message": "order:new", "payload": {"n": -1}})
        there.call("POST", f"/v1/app/{app}/msg", {"eventType": "a.b", "payload": {"n": -1}})
        endpoint.wait(delivered + 2 * SHARE + 3, PATIENCE_S)
        # And consumers find what they have not had yet
        found: set[str] = set()

        def reserved() -> bool | None:
            found.update(each["id"] for each in there.queues.reserve("pulled", delete=True))
            return found == {*pulled} - {each["id"] for each in taken} or None

        until(reserved, PATIENCE_S, lambda: f"{len(found)} were found")
        tenant.base_url = target.base_url
        assert asyncio.run(consumed(tenant, *range(SHARE))) == [*range(SHARE)]
        # And when it is deleted where it was, nothing of it is left there, and everything goes on where it is
        gone, _ = delete(stack, tenant.project_id)
        assert gone["MessagesTable"] >= exported["MessagesTable"]
        assert Shop(stack, tenant.project_id, tenant.project_token).counted() <= Counter({"ConfigTableName P": 1})
        there.post("sent", 1, "last-{}")
        endpoint.wait(delivered + 2 * SHARE + 4, PATIENCE_S)
