"""Environments of a function are forked from a process that has imported what they need; nothing else is shared."""

from __future__ import annotations

import io
import json
import os
import signal
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import requests
from local.aws import Aws
from local.emulator import lifecycle
from local.emulator.turns import NICENESS
from local.place import Place
from local.processes import wait_until
from tests.local.iam_roles import make_role

from local import stack

HANDLER = """
import sys
found = "boto3" in sys.modules
import os, time, uuid
from pathlib import Path
import boto3
try:
    import layered
except ImportError:
    layered = None
client = boto3.client("sqs") if hasattr(boto3, "client") else None
me, runs = uuid.uuid4().hex, 0

def handler(event, context):
    global runs
    runs += 1
    if event.get("end"):
        os._exit(1)
    if "waits_for" in event:
        (Path(event["waits_for"]) / me).touch()
        while len(list(Path(event["waits_for"]).iterdir())) < 2:
            time.sleep(0.01)
    for body in [each["body"] for each in event.get("Records", [event]) if "body" in each]:
        Path(body).write_text(str(os.nice(0)))
        while not (Path(body).parent / "enough").exists():
            time.sleep(0.01)
    return {
        "found": found, "me": me, "runs": runs, "process": os.getpid(), "parent": os.getppid(),
        "name": os.environ["NAME"], "queues": client and len(client.list_queues().get("QueueUrls", [])),
        "own": getattr(boto3, "OWN", False), "arguments": sys.argv,
    }
"""


@pytest.fixture
def aws(place: Place) -> Aws:
    lifecycle.start(place)
    return Aws(place.aws_endpoint_url)


def archive(files: dict[str, str]) -> bytes:
    created = io.BytesIO()
    with zipfile.ZipFile(created, "w") as target:
        for name, text in files.items():
            target.writestr(name, text)
    return created.getvalue()


def function(aws: Aws, name: str, layers: list[str] | None = None, **files: str) -> None:
    """A function, with further modules or without."""
    modules = {f"{module}.py": text for module, text in files.items()}
    aws.functions().create_function(
        FunctionName=name,
        Runtime="python3.11",
        Role=make_role(aws, name),
        Handler="code_of_it.handler",
        Code={"ZipFile": archive({"code_of_it.py": HANDLER, **modules})},
        Timeout=30,
        Layers=layers or [],
        Environment={"Variables": {"NAME": name}},
    )


def run(aws: Aws, name: str, **event: Any) -> dict[str, Any]:
    answer = aws.functions().invoke(FunctionName=name, Payload=json.dumps(event))
    reported: dict[str, Any] = json.loads(answer["Payload"].read())
    return reported


def anew(aws: Aws, name: str) -> dict[str, Any]:
    """What a new environment of a function says in its first run; the one before has crashed."""
    assert "errorMessage" in run(aws, name, end=True)
    return run(aws, name)


def until(aws: Aws, name: str, **wanted: Any) -> dict[str, Any]:
    """The first new environment that says so: what others imported is imported for it in the background."""
    for _ in range(100):
        reported = anew(aws, name)
        if wanted.items() <= reported.items():
            return reported
    raise AssertionError(f"no environment with {wanted}: {reported}")


def test_a_further_environment_finds_what_others_imported_and_all_else_is_its_own(aws: Aws, tmp_path: Path) -> None:
    # Given environments of two functions that have run, one of them more than once
    function(aws, "first")
    function(aws, "second")
    assert not run(aws, "first")["found"]
    used = until(aws, "first", found=True)
    assert run(aws, "first") == {**used, "runs": 2}
    # When two of the second function start
    with ThreadPoolExecutor(2) as pool:
        one, other = pool.map(lambda _: run(aws, "second", waits_for=str(tmp_path)), range(2))
    # Then they are forks of the same process, which has boto3, and clients made from it work
    assert one["found"]
    assert other["found"]
    assert {one["parent"], other["parent"]} == {used["parent"]}
    assert one["queues"] == other["queues"] == 0
    # And their code ran for each, with its own variables and arguments
    assert (one["runs"], other["runs"]) == (1, 1)
    assert len({used["me"], one["me"], other["me"]}) == 3
    assert one["name"] == other["name"] == "second"
    assert len({*used["arguments"], *one["arguments"], *other["arguments"]}) == 3


def test_after_the_next_start_the_first_environment_finds_what_was_imported_before_it(aws: Aws, place: Place) -> None:
    # Given a function that has run, and what it imported
    function(aws, "again")
    until(aws, "again", found=True)
    assert wait_until((place.builds / "imports" / "none").exists, 60)
    # When the emulator is stopped and started
    assert lifecycle.stop(place)
    lifecycle.start(place)
    # Then its first run finds that
    finished = run(aws, "again")
    assert finished["found"]
    assert (finished["runs"], finished["name"]) == (1, "again")


def test_a_function_that_brings_a_module_of_the_runtime_gets_its_own(aws: Aws) -> None:
    # Given that boto3 is imported already
    function(aws, "usual")
    until(aws, "usual", found=True)
    # When a function starts that has another one
    function(aws, "brings", boto3="OWN = True")
    # Then it has that
    assert run(aws, "brings")["own"] is True


def test_when_the_process_to_fork_from_is_killed_another_takes_its_place(aws: Aws) -> None:
    # Given an environment
    function(aws, "orphan")
    before = until(aws, "orphan", found=True)
    # When its parent is killed
    os.kill(before["parent"], signal.SIGKILL)
    # Then it goes on, and new ones come to be forks again
    assert run(aws, "orphan")["me"] == before["me"]
    after = until(aws, "orphan", found=True)
    assert after["parent"] != before["parent"]


def test_what_starts_a_thread_when_imported_is_never_forked_from(aws: Aws, place: Place) -> None:
    # Given a layer whose import starts a thread
    text = "import threading\nthreading.Thread(target=threading.Event().wait, daemon=True).start()"
    layer = aws.functions().publish_layer_version(
        LayerName="threads", Content={"ZipFile": archive({"python/layered.py": text})}
    )
    function(aws, "threaded", layers=[layer["LayerVersionArn"]])
    assert run(aws, "threaded")["name"] == "threaded"
    # Then its environments come to be started by the emulator itself
    emulator_pid = lifecycle.daemon(place).pid()
    reported = until(aws, "threaded", parent=emulator_pid)
    assert not reported["found"]
    assert anew(aws, "threaded")["parent"] == emulator_pid


def told_by(file: Path) -> int:
    """What the priority of a run is lower by, which it writes."""
    assert wait_until(lambda: file.exists() and file.read_text() != "", 90)
    return int(file.read_text())


def lower(usual: int) -> int:
    return min(19, usual + NICENESS)


def test_runs_for_owners_who_have_runs_already_give_way_to_others(aws: Aws, tmp_path: Path) -> None:
    # Given a function whose runs last, and one of them for a group
    function(aws, "nice")
    url = aws.sqs().create_queue(QueueName="nice")["QueueUrl"]
    arn = aws.sqs().get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
    aws.functions().create_event_source_mapping(FunctionName="nice", EventSourceArn=arn, BatchSize=1)

    def run_of(group: str, name: str) -> int:
        aws.sqs().send_message(QueueUrl=url, MessageBody=str(tmp_path / name), MessageGroupId=group)
        return told_by(tmp_path / name)

    usual = run_of("other.1", "another")
    assert run_of("busy.0", "first") == usual
    # When there are more runs for its owner, then they are of lower priority, and another owner's is not
    assert run_of("busy.0", "second") == lower(usual)
    assert run_of("busy.1", "third") == lower(usual)
    assert run_of("third.0", "fourth") == usual
    (tmp_path / "enough").touch()


def test_requests_of_those_who_have_requests_already_give_way_to_others(aws: Aws, place: Place, tmp_path: Path) -> None:
    # Given an API of a function whose runs last, and a request that it works on
    function(aws, "asked")
    arn = aws.functions().get_function(FunctionName="asked")["Configuration"]["FunctionArn"]
    gateway = aws.apigatewayv2()
    api = gateway.create_api(Name="asked", ProtocolType="HTTP")["ApiId"]
    integration = gateway.create_integration(
        ApiId=api, IntegrationType="AWS_PROXY", IntegrationUri=arn, PayloadFormatVersion="2.0"
    )["IntegrationId"]
    gateway.create_route(ApiId=api, RouteKey="$default", Target=f"integrations/{integration}")
    gateway.create_stage(ApiId=api, StageName="$default", AutoDeploy=True)
    base = f"{place.aws_endpoint_url}/_aws/execute-api/{api}/$default"

    with ThreadPoolExecutor(10) as pool:
        answers = []

        def request(path: str, token: str, name: str) -> int:
            answers.append(
                pool.submit(
                    requests.post,
                    f"{base}{path}",
                    data=str(tmp_path / name),
                    headers={"Authorization": token, "Content-Type": "text/plain"},
                    timeout=60,
                )
            )
            return told_by(tmp_path / name)

        try:
            usual = request("/3/projects/zero/queues/q/messages", "OAuth a", "before")
            assert request("/3/projects/one/queues/q/messages", "OAuth a", "first") == usual
            # When the project has another one, by whatever token, then that is of lower priority
            assert request("/3/projects/one/queues/r/messages", "OAuth b", "second") == lower(usual)
            # And those of others are not, who are told apart by their tokens where no project is named
            assert request("/3/projects/two/queues/q/messages", "OAuth a", "third") == usual
            assert request("/api/v1/app", "Bearer a", "fourth") == usual
            assert request("/api/v1/app", "Bearer b", "fifth") == usual
            assert request("/api/v1/app", "Bearer b", "sixth") == lower(usual)
        finally:
            (tmp_path / "enough").touch()
        assert [each.result(60).status_code for each in answers] == [200] * len(answers)


def runs(pid: object) -> bool:
    """Whether a process still runs: one that has ended stays in the list until somebody has asked how."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_nothing_is_left_of_an_emulator_that_is_killed(aws: Aws, place: Place) -> None:
    # Given a forked environment
    function(aws, "left")
    reported = until(aws, "left", found=True)
    # When the emulator alone is killed
    pid = lifecycle.daemon(place).pid()
    assert pid
    os.kill(pid, signal.SIGKILL)
    # Then the environment and its parent end by themselves
    assert wait_until(lambda: not any(runs(reported[each]) for each in ("process", "parent")), 90)


def test_a_function_s_processes_can_be_killed_and_those_of_others_go_on(aws: Aws, place: Place) -> None:
    # Given environments of two functions, one at least of each forked
    function(aws, "victim")
    function(aws, "other")
    run(aws, "victim")
    victim = anew(aws, "victim")
    other = run(aws, "other")
    # When one's are killed
    assert stack.kill_function_workers(place, "victim") == 1
    assert wait_until(lambda: not runs(victim["process"]), 90)
    # Then it starts anew, and the other goes on as it was
    assert run(aws, "victim")["runs"] == 1
    assert run(aws, "other")["me"] == other["me"]
