"""A project of four protocols is exported from a running stack, imported into another, and deleted where it was, each
killed once in the middle: counted before and after. (Killed anywhere: tests/operating.)

``PUSHHUB_MOVED=50000`` moves so many messages, and has the nightly report made where the project went and where it was;
``-s`` shows how long each step takes, and ``-o faulthandler_timeout=9000`` lets it. By default it is 160.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
import os
import ssl
import subprocess
import sys
import time
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

import pytest
import requests
from cli.archive.erasing import SETTLED_MS
from local.place import REPOSITORY
from tests.fakes.large_bodies import large_text
from tests.fakes.private_keys import identity
from tests.hostile import BEHAVIOURS, Authority, HostileEndpoint, Peer, Received
from tests.stack.delivery_report import REPORT_PYTHON, report_on
from tests.stack.endpoints import Endpoint, Push, Recorder
from tests.stack.notification_tenant import Tenant, receive
from tests.stack.operating import environment_of, pushhub, ran
from tests.stack.project import ProjectClient, until
from tests.stack.running import RunningStack
from tests.stack.test_tenant_life import SETTLES_S, delete

pytestmark = pytest.mark.stack

MOVED = int(os.environ.get("PUSHHUB_MOVED", "160"))
SHARE = MOVED // 8
"""Messages of a pull queue, and notifications."""
OWED = min(SHARE, 1_500)
"""Messages of a push queue that are owed when the project is suspended, and as many large ones: afterwards wake sends a
thousand a minute to a subscriber.
"""
SINGLY = min(SHARE, 1_000)
"""Events of applications, and half as many as there are orders of a store: each takes a request of its own."""
SENT = MOVED - 2 * SHARE - 2 * OWED - 3 * SINGLY
"""Those of a push queue that are sent at once."""
DELAY_S = 40 + OWED // 15
"""Longer than it takes to post what is owed and to suspend the project, and less than goes into the schedule."""
WITH_REPORTS = "PUSHHUB_MOVED" in os.environ
PATIENCE_S = 120 + MOVED / 10
AT_ONCE = 50
CALLERS = 4
CLIENT_SECRET, STRIPE_SECRET = "s3cret-of-the-client", "whsec_of-stripe"
Result = TypeVar("Result")
BEGUN = time.monotonic()


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
        def some(start: int) -> list[str]:
            bodies = [body.replace("{}", f"{queue}-{each}") for each in range(start, min(start + AT_ONCE, count))]
            return self.queues.post(queue, *bodies, **options)

        return [each for ids in at_once(some, range(0, count, AT_ONCE)) for each in ids]

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
        # Each look takes the emulator's time from what is looked for.
        time.sleep(MOVED / 2_000)
        pages = tables.get_paginator("scan").paginate(TableName=self.stack.outputs["ScheduleTableName"])
        start = f"WAITING#{self.queues.project_id}"
        keys = ((each["pk"]["S"], each["sk"]["S"]) for page in pages for each in page["Items"])
        return len({sk.partition("#")[2] for pk, sk in keys if pk.startswith(start)})


def at_once(call: Callable[[int], Result], numbers: Iterable[int]) -> list[Result]:
    """Call with each number, some at a time."""
    with ThreadPoolExecutor(CALLERS) as callers:
        return list(callers.map(call, numbers))


def step(done: str) -> None:
    """Say how far it is."""
    sys.stdout.write(f"{time.monotonic() - BEGUN:7.0f} s  {done}\n")
    sys.stdout.flush()


def mentioned(stack: RunningStack, project_id: str) -> Counter[str]:
    """Everything in any table or bucket that names a project, read from end to end."""
    found: Counter[str] = Counter()
    tables: Any = stack.aws.dynamodb()
    for table in tables.list_tables()["TableNames"]:
        for page in tables.get_paginator("scan").paginate(TableName=table):
            found[table] += sum(project_id in repr(each) for each in page["Items"])
    s3: Any = stack.aws.s3()
    for bucket in (each["Name"] for each in s3.list_buckets()["Buckets"]):
        for page in s3.get_paginator("list_object_versions").paginate(Bucket=bucket):
            for each in (*page.get("Versions", []), *page.get("DeleteMarkers", [])):
                key, content = each["Key"], b""
                if each in page.get("Versions", []):
                    content = s3.get_object(Bucket=bucket, Key=key, VersionId=each["VersionId"])["Body"].read()
                content = _plain(content) if content.startswith(b"\x1f\x8b") else content
                found[f"{bucket}/{key.partition('/')[0]}"] += project_id in key or project_id.encode() in content
    return +found


def _plain(content: bytes) -> bytes:
    """What a gzip holds, as far as it goes: tests of damaged records leave some that are cut off."""
    found = b""
    while content.startswith(b"\x1f\x8b"):
        member = zlib.decompressobj(wbits=zlib.MAX_WBITS | 16)
        found += member.decompress(content)
        content = member.unused_data
    return found


def reported(stack: RunningStack) -> int:
    """The code of a night's report of all projects, whose curated files are then where Glue writes them."""
    run = report_on(stack, "", many=MOVED > 1_000)
    assert run.returncode in (0, 2), run.stderr[-4000:]
    if run.returncode:
        step(run.stderr[-3000:])
    s3, bucket = stack.aws.s3(), stack.outputs["RecordsBucketName"]
    home = stack.place.home / "report"
    files = {each.relative_to(home).as_posix() for each in (home / "curated").rglob("*") if each.is_file()}
    pages = s3.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix="curated/")
    there = {each["Key"] for page in pages for each in page.get("Contents", [])}
    for name in there - files:
        s3.delete_object(Bucket=bucket, Key=name)
    # A file of rows never changes. Those of records first: Glue writes them before what it makes of the records.
    new = (each for each in files if not (each in there and each.endswith(".parquet")))
    for name in sorted(new, key=lambda each: not each.startswith("curated/records/")):
        content = (home / name).read_bytes()
        if name.endswith("/_manifest.json"):
            content = as_glue_marks(s3, bucket, name, json.loads(content))
        s3.put_object(Bucket=bucket, Key=name, Body=content)
    return run.returncode


def as_glue_marks(s3: Any, bucket: str, name: str, manifest: dict[str, Any]) -> bytes:
    """A day's manifest with the marks of the objects it was made from: on disk they are times, on S3 the ETags."""
    day = name.partition("dt=")[2][:10]
    for below, stored in manifest["raw"].items():
        stored[1] = s3.head_object(Bucket=bucket, Key=f"records/dt={day}/{below}")["ETag"].strip('"')
    return json.dumps(manifest).encode()


def curated(stack: RunningStack, project_id: str) -> int:
    """How many rows of curated files are a project's. Parquet compresses what it holds, so Spark reads it."""
    script = """
import sys
from pathlib import Path
from glue_jobs.local_spark import use_bundled_java
use_bundled_java()
from pyspark.sql import SparkSession
from pyspark.sql.functions import to_json, struct, col
spark = SparkSession.builder.master("local[1]").getOrCreate()
files = [str(each) for each in Path(sys.argv[1]).rglob("*.parquet")]
rows = (spark.read.parquet(each).select(to_json(struct("*")).alias("row")) for each in files)
print(len(files), sum(each.where(col("row").contains(sys.argv[2])).count() for each in rows))
"""
    folder = str(stack.place.home / "report" / "curated")
    words = [str(REPORT_PYTHON), "-c", script, folder, project_id]
    environ = {"PATH": "/usr/bin:/bin", "PYTHONPATH": f"{REPOSITORY / 'layers' / 'pushhub'}:{REPOSITORY}"}
    run = subprocess.run(words, cwd=REPOSITORY, env=environ, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr[-2000:]
    files, found = map(int, run.stdout.split()[-2:])
    assert files
    return found


def a_quarter_of_an_hour_later(stack: RunningStack, project_id: str) -> None:
    """Let the project have been silent for as long as any function can run: its item says that it was silenced so much
    earlier. Nothing runs for it any more, since it is looked at until nothing comes.
    """
    tables: Any = stack.aws.dynamodb()
    key = {"pk": {"S": f"P#{project_id}"}, "sk": {"S": "PROJECT"}}
    tables.update_item(
        TableName=stack.outputs["ConfigTableName"],
        Key=key,
        UpdateExpression="SET erased_since = erased_since - :much",
        ExpressionAttributeValues={":much": {"N": str(SETTLED_MS)}},
    )


def killed_after(stack: RunningStack, line: str, *words: str) -> bool:
    """Run a command and kill it when it says something; whether it was killed."""
    command = [sys.executable, "-m", "cli", "--json", *words]
    environment = {**os.environ, **environment_of(stack)}
    with subprocess.Popen(
        command, cwd=REPOSITORY, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
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


def gives_tokens(peer: Peer, push: Push) -> bool:
    """As token servers do, to whoever knows the secret."""
    if f"client_secret={CLIENT_SECRET}".encode() not in push.body.split(b"&"):
        return peer.answer(b'{"error": "invalid_client"}', status="401 No")
    return peer.answer(b'{"access_token": "token-1", "token_type": "Bearer", "expires_in": 3600}')


class Gated:
    """A receiver behind an authority of its own that lets in one certificate, looks for a token and for Stripe's
    signature.
    """

    def __init__(self, folder: Path) -> None:
        authority, pem = Authority(folder), identity(rsa_bits=4_096)
        context = authority.server("127.0.0.1")
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(cadata=pem[pem.index("-----BEGIN CERTIFICATE") :])
        self.receiver = HostileEndpoint(BEHAVIOURS, tls=context)
        self.mtls = {"identity": pem, "ca": Path(authority.ca_file).read_text()}

    def gates(self, token_url: str) -> dict[str, Any]:
        oauth = {"token_url": token_url, "client_id": "c", "client_secret": CLIENT_SECRET}
        oauth["auth_method"] = "client_secret_post"
        signatures = [{"preset": "stripe", "secret": STRIPE_SECRET}]
        return {"oauth": oauth, "mtls": self.mtls, "signing": {"signatures": signatures}}

    def came(self) -> list[bytes]:
        """The bodies of what it was sent as it wants it."""
        return [each.body for each in self.receiver.requests if self._is_right(each)]

    @staticmethod
    def _is_right(request: Received) -> bool:
        headers = {name.lower(): value for name, value in request.headers}
        parts = dict(each.split("=", 1) for each in headers["stripe-signature"].split(","))
        content = parts["t"].encode() + b"." + request.body
        expected = hmac.new(STRIPE_SECRET.encode(), content, hashlib.sha256).hexdigest()
        return (headers["authorization"], parts["v1"]) == ("Bearer token-1", expected)


def bodies(endpoint: Endpoint, beginning: str) -> list[str]:
    return [text[:40].strip() for each in endpoint.pushes if (text := each.body.decode()).startswith(beginning)]


def test_a_project_moves_to_another_stack_and_nothing_is_lost_sent_twice_or_left(
    stack: RunningStack, target: RunningStack, tmp_path: Path
) -> None:
    # Given a project with messages of four protocols: some delivered, some owed, large, or for hours later
    tenant = Tenant(stack)
    shop, gated = Shop(stack, tenant.project_id, tenant.project_token), Gated(tmp_path)
    with Recorder() as endpoints, Recorder() as servers, gated.receiver as receiver:
        endpoint, tokens = endpoints.endpoint(answers), servers.endpoint(gives_tokens)
        for queue in ("sent", "owed"):
            shop.queues.make_push(queue, endpoint)
        shop.queues.make_queue("pulled", type="pull")
        shop.post("sent", SENT)
        step("posted for a push queue")
        pulled = shop.post("pulled", SHARE)
        taken = shop.queues.reserve("pulled", n=5, delete=True)
        mapping = {"name": "acme.take", "url": endpoint.url, "token": "t", "messages": ["order:new"]}
        store = f"/stores/{tenant.project_id}"
        shop.call("POST", f"{store}/mappings", {"mapping": mapping})

        def order(number: int) -> None:
            shop.call("POST", f"{store}/messages", {"message": "order:new", "payload": {"n": number}})

        at_once(order, range(2 * SINGLY))
        step("orders posted")
        # And a subscriber and a service behind all gates, which are sent nothing yet
        behind = {"url": receiver.url("healthy"), **gated.gates(tokens.url)}
        shop.queues.make_push("gated", {"name": "s", **behind})
        gate = {"name": "acme.gate", "token": "t" * 32, "messages": ["gate:new"], **behind}
        service = shop.call("POST", f"{store}/mappings", {"mapping": gate})
        subscribers = shop.queues.info("gated")["push"]["subscribers"]
        app = shop.call("POST", "/v1/app", {"name": "shop"})["id"]
        hook = shop.call("POST", f"/v1/app/{app}/endpoint", {"url": endpoint.url})["id"]
        secret = shop.call("GET", f"/v1/app/{app}/endpoint/{hook}/secret")["key"]

        def event(number: int) -> None:
            shop.call("POST", f"/v1/app/{app}/msg", {"eventType": "a.b", "payload": {"n": number}})

        at_once(event, range(SINGLY))
        step("posted")
        endpoint.wait(SENT + 3 * SINGLY, PATIENCE_S)
        step("delivered")
        tenant.subscribe()

        async def consumed(at: Tenant, *numbers: int) -> list[int]:
            connection = await at.connect(at.token())
            frames = await receive(connection, len(numbers), acknowledge=True, seconds=PATIENCE_S)
            await connection.close()
            return [each.n for each in frames]

        asyncio.run(consumed(tenant))
        tenant.publish(*range(SHARE))
        [later] = shop.queues.post("owed", "for hours later", delay=7200)
        shop.post("owed", OWED, delay=DELAY_S)
        shop.post("owed", OWED, "big-{} " + large_text(9_000), delay=DELAY_S)
        step("all posted")
        # When it is suspended, and what came due since then waits in the backlog of its subscriber
        pushhub(stack, "projects", "suspend", tenant.project_id)
        delivered = endpoints.arrivals()
        assert delivered == SENT + 3 * SINGLY
        until(lambda: shop.waiting() == 2 * OWED or None, PATIENCE_S, lambda: f"{shop.waiting()} wait")
        before = shop.counted()
        step(f"suspended, with {before}")
        # And exported and imported, each killed in the middle
        folder = str(tmp_path / "shop")
        export = ("projects", "export", tenant.project_id, folder, "--with-keys", "--running")
        assert killed_after(stack, "done: MessagesTable", *export)
        step("export killed")
        exported = {each["place"]: each["exported"] for each in pushhub(stack, *export)}
        step(f"exported: {exported}")
        assert killed_after(target, "done: MessagesTable", "projects", "import", folder)
        step("import killed")
        imported = pushhub(target, "projects", "import", folder)
        step("imported")
        # Then it is all there: as many as were exported, and of each kind as many as there were
        assert {each["place"]: each["imported"] for each in imported} == exported
        there = Shop(target, tenant.project_id, tenant.project_token)
        assert there.counted() == before
        assert exported["bodies"] >= OWED // AT_ONCE
        assert exported["records"] >= 2 * SHARE + delivered
        # And when it is resumed, what was owed is sent, once, and nothing that was delivered
        pushhub(target, "projects", "resume", tenant.project_id)
        endpoint.wait(delivered + 2 * OWED, PATIENCE_S + 120)
        owed = [f"owed-{each}" for each in range(OWED)] + [f"big-owed-{each}" for each in range(OWED)]
        came = Counter(each.body.decode()[:60] for each in endpoint.pushes[delivered:])
        assert {text: count for text, count in came.items() if count > 1 or "owed-" not in text} == {}
        sent = bodies(endpoint, "owed-") + [each.partition(" ")[0] for each in bodies(endpoint, "big-owed-")]
        assert sorted(each.partition(" ")[0] for each in sent) == sorted(owed)
        assert endpoints.arrivals() == delivered + 2 * OWED
        step("what was owed is delivered")
        # And its tokens, queues and keys are the same, and what is new is sent
        assert there.queues.total("sent") == SENT
        assert there.queues.take("GET", f"/queues/owed/messages/{later}")["message"]["id"] == later
        assert there.call("GET", f"/v1/app/{app}/endpoint/{hook}/secret")["key"] == secret
        there.post("sent", 1, "new-{}")
        there.call("POST", f"{store}/messages", {"message": "order:new", "payload": {"n": -1}})
        there.call("POST", f"/v1/app/{app}/msg", {"eventType": "a.b", "payload": {"n": -1}})
        endpoint.wait(delivered + 2 * OWED + 3, PATIENCE_S)
        # And who is behind gates is shown as before, and sent what the receivers want, with tokens asked for here
        assert there.queues.info("gated")["push"]["subscribers"] == subscribers
        shown = [{**each, "health": service.get("health")} for each in there.call("GET", f"{store}/mappings")]
        assert {"health": None, **service} in shown
        there.post("gated", 1)
        there.call("POST", f"{store}/messages", {"message": "gate:new", "payload": {"n": -2}})
        until(lambda: len({*gated.came()}) == 2, PATIENCE_S, lambda: str(receiver.requests))
        assert len(tokens.pushes) >= 2
        # And consumers find what they have not had yet
        found: set[str] = set()

        def reserved() -> bool | None:
            found.update(each["id"] for each in there.queues.reserve("pulled", delete=True))
            return found == {*pulled} - {each["id"] for each in taken} or None

        until(reserved, PATIENCE_S, lambda: f"{len(found)} were found")
        tenant.base_url = target.base_url
        assert asyncio.run(consumed(tenant, *range(SHARE))) == [*range(SHARE)]
        step("consumed")
        if WITH_REPORTS:
            # And the night finds everything accounted for, where it went and where it was
            assert [reported(target), reported(stack)] == [0, 0]
            assert curated(stack, tenant.project_id) > 4 * SHARE
            step("reported")
        # And when it is deleted where it was, killed in the middle, nothing of it is left there
        assert sum(mentioned(stack, tenant.project_id).values()) > 4 * SHARE
        removing = ("projects", "delete", tenant.project_id, "--yes")
        assert killed_after(stack, "done: MessagesTable", *removing)
        step("deletion killed")
        removed, _ = delete(stack, tenant.project_id)
        step(f"deleted: {removed}")
        if WITH_REPORTS:
            # And what was made of its records is made again, with nothing lost
            assert reported(stack) == 0
            assert curated(stack, tenant.project_id) == 0
            step("reported again")
        a_quarter_of_an_hour_later(stack, tenant.project_id)
        # (on a busy machine records of its last changes may be written within a quarter of an hour that did not pass)
        until(lambda: ran(stack, *removing).code == 0 or None, SETTLES_S, lambda: "something is left")
        assert {each["left"] for each in pushhub(stack, *removing)} == {0}
        # Reports are those of all projects, and end with their retention
        left = {place: count for place, count in mentioned(stack, tenant.project_id).items() if "/reports" not in place}
        assert left == {}
        step("nothing is left")
        # And everything goes on where it is
        there.post("sent", 1, "last-{}")
        endpoint.wait(delivered + 2 * OWED + 4, PATIENCE_S)
