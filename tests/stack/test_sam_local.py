"""Each event prepared for ``sam local invoke`` has a visible effect, and nothing is lost.

The functions run here as a container would run them: their own folders, the prepared settings, the event; without the
container.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import subprocess
import sys
from dataclasses import replace
from itertools import takewhile
from pathlib import Path
from typing import Any, Self

import pytest
import requests
from local.demo.clients import Hub
from local.place import HOST, REPOSITORY
from local.sam_local import __main__ as sam_local
from local.sam_local.seed import EXAMPLES, Seeded, seeded
from tests.stack.delivery_report import records_of
from tests.stack.project import until
from tests.stack.running import RunningStack

from local import hold
from local import stack as local_stack
from pushhub.hub.model.object_ids import to_object_id

PAGE = REPOSITORY / "docs" / "testing-sam-local.md"

pytestmark = [pytest.mark.stack, pytest.mark.slow]

RUN = """
import json, os, sys, traceback, types
sys.path.insert(0, sys.argv[1])
import handler
context = types.SimpleNamespace(aws_request_id="r", function_name="f", memory_limit_in_mb=512, invoked_function_arn="a",
                                function_version="1", get_remaining_time_in_millis=lambda: 600_000)
for line in sys.stdin:
    if child := os.fork():
        os.waitpid(child, 0)
        print("END ", flush=True)
        continue
    try:
        print("ANSWER " + json.dumps(handler.handler(json.loads(line), context)), flush=True)
        os._exit(0)
    except BaseException:
        traceback.print_exc(file=sys.stdout)
        sys.stdout.flush()
        os._exit(1)
"""


class Functions:
    """The functions with the settings in the prepared template. Each event has a process of its own, as each has a
    container of its own; these are forks of one for each function, as importing it takes longer than what it does.

    Args:
        own: The stack.
    """

    def __init__(self, own: RunningStack) -> None:
        self._own = own
        self._imported: dict[str, subprocess.Popen[str]] = {}

    def invoke(self, name: str, event: Any) -> tuple[Any, str]:
        """A function's answer to an event, and what it printed."""
        folder = name.split("-", maxsplit=1)[0]
        process = self._imported.get(folder) or self._started(folder)
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(json.dumps(event) + "\n")
        process.stdin.flush()
        printed = [*takewhile(lambda line: not line.startswith("END "), iter(process.stdout.readline, ""))]
        out = "".join(printed)
        answers = [each.removeprefix("ANSWER ") for each in printed if each.startswith("ANSWER ")]
        assert len(answers) == 1, f"{name}: {out[-3000:]}"
        return json.loads(answers[0]), out

    def _started(self, folder: str) -> subprocess.Popen[str]:
        own = self._own
        deployed = own.outputs[f"{folder.title()}FunctionName"]
        variables = own.aws.functions().get_function_configuration(FunctionName=deployed)["Environment"]["Variables"]
        environ = {
            "PATH": os.environ["PATH"],
            "PYTHONPATH": str(REPOSITORY / "layers" / "pushhub"),
            "AWS_ENDPOINT_URL": own.description.aws_endpoint_url,
            "AWS_ACCESS_KEY_ID": "test",
            "AWS_SECRET_ACCESS_KEY": "test",
            "AWS_DEFAULT_REGION": "us-east-1",
            **variables,
        }
        process = self._imported[folder] = subprocess.Popen(
            [sys.executable, "-c", RUN, str(REPOSITORY / "functions" / folder)],
            env=environ,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        return process

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for each in self._imported.values():
            each.communicate()


async def tries(hub: Hub, queue: str, message_id: str) -> dict[str, int]:
    return {name: status["tries"] for name, status in (await hub.statuses(queue, message_id)).items()}


async def routed(own: RunningStack, work: Seeded) -> str:
    """The state of the hub message to be routed."""
    url = f"{own.base_url}/api/stores/{work.project.project_id}/messages/{to_object_id(work.message_ids['route'])}"
    answer = await asyncio.to_thread(requests.get, url, headers={"X-Augury-Token": work.project.token}, timeout=40)
    return str(answer.json()["queue_name"])


def promised() -> dict[str, str]:
    """The answer that the page promises for each event, in its words."""
    found: dict[str, str] = {}
    for names, answer in re.findall(r"^\| (`[^|]+`) \| ([^|]+) \|", PAGE.read_text(), re.MULTILINE):
        first, *others = re.findall(r"`([a-z-]+)`", names)
        for name in (first, *(f"{first.rpartition('-')[0]}{each}" if each[0] == "-" else each for each in others)):
            found[name] = answer.strip()
    return found


def keeps(promise: str, answer: Any) -> bool:
    """Whether an answer is what the page promises: a status, or the whole answer, with dots where it varies."""
    if promise[:3].isdigit():
        return bool(answer["statusCode"] == int(promise[:3]))
    pattern = re.escape(promise.strip("`").replace(" ", "")).replace(re.escape("..."), ".+")
    return re.fullmatch(pattern, json.dumps(answer).replace(" ", "")) is not None


async def looked(own: RunningStack) -> list[str]:
    """What ``python -m local.sam_local look`` says, its spaces made one."""
    lines: list[str] = []
    await sam_local.look(own.place, lines.append)
    return [" ".join(line.split()) for line in lines]


async def play(own: RunningStack, functions: Functions) -> Seeded:
    said: list[str] = []
    async with seeded(own.place, own.description, HOST, said.append) as work:
        names = {path.stem for path in EXAMPLES.glob("*.json")}
        assert work.events.keys() == names == promised().keys()
        commands = sam_local.write_events(work)
        assert len(commands) == len(names)
        shown = await looked(own)
        assert {"message for push copies tries 0", "message for route incoming"} <= set(shown)

        async def run(name: str) -> tuple[Any, str]:
            result: tuple[Any, str] = await asyncio.to_thread(functions.invoke, name, work.events[name])
            assert keeps(promised()[name], result[0]), (name, result[0])
            return result

        async def body(name: str, status: int) -> Any:
            answer, _ = await run(name)
            assert answer["statusCode"] == status, answer
            return json.loads(answer["body"]) if answer.get("body") else None

        ids = work.message_ids
        nothing_failed: dict[str, Any] = {"batchItemFailures": []}
        async with Hub(replace(own.description, project_id=work.project.project_id, token=work.project.token)) as hub:
            # Requests do what they ask for
            assert (await body("control-http-create-queue", 200))["queue"]["name"] == "orders"
            assert [each["name"] for each in (await body("control-http-list-queues", 200))["queues"]] == ["shop"]
            assert len((await body("control-http-push-statuses", 200))["subscribers"]) == 2
            assert len((await body("control-http-reserve-messages", 200))["messages"]) == 3
            assert len((await body("past-http-start-search", 202))["id"]) == 32
            await body("past-http-show-search", 404)
            assert len((await body("ingest-http-post-messages", 201))["ids"]) == 2
            assert len((await body("ingest-url-post-messages", 201))["ids"]) == 2
            assert len(await hub.reserve("zamówienia 2026", 10, 30)) == 1
            assert len((await body("ingest-http-webhook", 201))["ids"]) == 1
            assert "message_id" in (await body("ingest-http-push-hub-message", 201))
            assert len((await body("ingest-http-publish-notification", 201))["ids"]) == 1
            assert (await body("ingest-http-post-webhook-message", 202))["id"].startswith("msg_")
            accepted = (await run("ingest-http-take-in"))[0]
            assert (accepted["statusCode"], "pushhub-message-id" in map(str.lower, accepted["headers"])) == (200, True)
            # What nobody has asked to be consumed stays where it is
            assert len((await run("ingest-sqs-consumed-queue"))[0]["batchItemFailures"]) == 2
            assert len((await run("ingest-sqs-consumed-events"))[0]["batchItemFailures"]) == 1
            for name in ("page", "file", "reference", "reference-file"):
                assert (await run(f"console-http-{name}"))[0]["statusCode"] == 200
            # Work orders lead to attempts
            assert await tries(hub, "shop", ids["push"]) == {"copies": 0, "closed": 0}
            assert (await run("push-sqs-first-attempts"))[0] == nothing_failed
            assert await tries(hub, "shop", ids["push"]) == {"copies": 1, "closed": 1}
            assert (await run("poll-sqs-slow"))[0] == nothing_failed
            assert await tries(hub, "shop", ids["slow"]) == {"copies": 1, "closed": 1}
            assert await routed(own, work) == "incoming"
            assert (await run("push-sqs-routing"))[0] == nothing_failed
            assert await routed(own, work) == "archived"
            assert await tries(hub, "shop", ids["retry"]) == {"copies": 1, "closed": 1}
            assert (await run("push-sqs-retries"))[0] == nothing_failed
            assert await tries(hub, "shop", ids["retry"]) == {"copies": 1, "closed": 2}
            assert await hub.total_messages("failed") == 0
            assert (await run("errors-sqs-exhausted"))[0] == nothing_failed
            assert len(await hub.reserve("failed", 10, 30)) == 1
            # A dispatched message has orders in the queue
            before = waiting(own)
            assert (await run("dispatch-stream-messages"))[0] == nothing_failed
            assert waiting(own) == before + 2
            # The endpoint is polled, once the time has come that it asked for
            for _ in range(120):
                (kept,) = (await run("poll-sqs-polls"))[0]["batchItemFailures"]
                assert kept["itemIdentifier"] == work.events["poll-sqs-polls"]["Records"][0]["messageId"]
                if any("warehouse: poll" in line for line in said):
                    break
                await asyncio.sleep(1)
            assert any("warehouse: poll" in line for line in said)
            # Schedules find what is due
            await run("transform-invoke-code")
            assert (await run("wake-schedule"))[0] == {"woken": 0, "ticked": 1}
            assert (await run("sweep-schedule"))[0] == {"swept": 0}
            _, out = await run("notify-schedule")
            (checked,) = [json.loads(line) for line in out.splitlines() if "connections_checked" in line]
            # On a slow machine the live one is due as well; only the one that has gone is closed.
            assert checked["due"] >= 1
            assert checked["closed"] == 1
            # The consumer receives what was published
            await run("notify-sqs-wakes")
            for _ in range(1200):
                if any('"number": 2' in line or '"number":2' in line for line in said):
                    break
                await asyncio.sleep(0.1)
            assert any("the consumer received" in line for line in said)
            # Connections come, go, and acknowledge
            for name in ("connect", "disconnect", "frame"):
                answer, out = await run(f"consumers-websocket-{name}")
                assert answer == {"statusCode": 200}
                assert "failed" not in out
            # Records are written, and not again
            for name in ("messages", "pull", "backlogs"):
                written = records(own)
                _, out = await run(f"records-stream-{name}")
                assert len(records(own)) > len(written)
                assert "RecordsWritten" in out
                written = records(own)
                _, out = await run(f"records-stream-{name}")
                assert (records(own), "RecordsWritten" in out) == (written, False)
        # And what the page says of the messages can be seen
        shown = await looked(own)
        assert {"message for route archived", "message for push copies tries 1 200"} <= set(shown), shown
        assert any(line.startswith("message for retry closed tries 2") for line in shown), shown
        assert any(line.startswith("delivery records ") for line in shown)
        return work


def waiting(own: RunningStack) -> int:
    names = ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"]
    found = own.aws.sqs().get_queue_attributes(QueueUrl=own.outputs["PushQueueUrl"], AttributeNames=names)  # type: ignore[arg-type]
    return sum(map(int, found["Attributes"].values()))


def records(own: RunningStack) -> list[tuple[str, Any]]:
    objects = (
        own.aws.s3().list_objects_v2(Bucket=own.outputs["RecordsBucketName"], Prefix="records/").get("Contents", [])
    )
    return [(each["Key"], each["LastModified"]) for each in objects]


def in_order(own: RunningStack) -> None:
    """The stack finds nothing wrong with itself: on a busy machine perhaps not before its functions have started."""
    until(lambda: local_stack.problems(own.place) == [] or None, 300, lambda: str(local_stack.problems(own.place)))


def test_every_event_does_something_and_everything_is_accounted_for(
    own: RunningStack, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    # Given a working stack, and a folder for what is prepared
    in_order(own)
    prepared = REPOSITORY / ".aws-sam" / f"test-{os.getpid()}"
    monkeypatch.setattr(sam_local, "PREPARED", prepared)
    request.addfinalizer(lambda: shutil.rmtree(prepared, ignore_errors=True))
    # When it is seeded, and each function is run with each of its events
    with Functions(own) as functions:
        work = asyncio.run(play(own, functions))
    # Then the stack continues on its own with the rest
    assert not hold.release(own.aws)

    async def settled() -> bool:
        async with Hub(replace(own.description, project_id=work.project.project_id, token=work.project.token)) as hub:
            found = {
                name: await tries(hub, "once" if name == "errors" else "shop", message_id)
                for name, message_id in work.message_ids.items()
                if name != "route"
            }
            both = {"copies": 1, "closed": 2}
            return found == {"dispatch": both, "push": both, "slow": both, "retry": both, "errors": {"closed": 1}}

    until(lambda: asyncio.run(settled()) or None, 180, lambda: "the rest has not settled")
    # And the records tell the end of each delivery, once those that waited are written (that the report finds it there:
    # tests/paths)
    owed = {name: ["delivered", "exhausted"] for name in ("dispatch", "push", "slow", "retry")} | {
        "errors": ["exhausted"]
    }
    names = {work.message_ids[name]: name for name in owed}

    def recorded() -> dict[str, list[str]]:
        newest: dict[tuple[str, str], tuple[int, str]] = {}
        for each in records_of(own, work.project.project_id):
            if each["message_id"] in names and "delivery_id" in each:
                key, version = (names[each["message_id"]], each["delivery_id"]), (each["version"], each["state"])
                newest[key] = max(version, newest.get(key, version))
        return {name: sorted(state for (of, _), (_, state) in newest.items() if of == name) for name in owed}

    until(lambda: recorded() == owed or None, 180, lambda: f"the records tell {recorded()}")


def test_a_stack_that_was_left_held_works_again_once_it_is_brought_up(own: RunningStack) -> None:
    # Given a stack whose work queues were held by a program that was killed
    hold.hold(own.aws, own.outputs)
    assert "is held" in "; ".join(local_stack.problems(own.place))
    # When it is brought up
    own.up()
    # Then it works
    in_order(own)
    assert Path(own.place.description).exists()
