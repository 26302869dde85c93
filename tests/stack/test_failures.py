"""A failed deployment is reported in one line and leaves nothing running; breakages are found and repaired."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
from local.aws import Aws
from local.errors import LocalError
from local.place import Place
from local.processes import wait_until
from tests.stack.running import RunningStack, free_port, prepared

from local import deployer, emulator
from local import stack as local_stack

pytestmark = pytest.mark.stack

TEMPLATE = """
Transform: AWS::Serverless-2016-10-31
Parameters:
  PublicBaseUrl: {Type: String}
  AllowedTargets: {Type: String}
  PushMaximumConcurrency: {Type: Number}
  LogRetentionDays: {Type: Number}
Resources:
  Work:
    Type: AWS::SQS::Queue
  Other: %s
"""


def place_with(home: Path, resource: str) -> Place:
    """A place whose template has an additional resource."""
    template = home / "template.yaml"
    template.write_text(TEMPLATE % resource)
    base = Place.from_environment()
    return Place(
        home=home / "stack",
        port=free_port(),
        aws_port=free_port(),
        emulator_python=base.emulator_python,
        template=template,
    )


@pytest.mark.parametrize(
    ("resource", "reason"),
    [
        ("{Type: 'AWS::Quantum::Entangler'}", r"Unrecognized resource types: \[AWS::Quantum::Entangler\]"),
        (
            "{Type: 'AWS::CloudWatch::Alarm', Properties: {Metrics: [{Id: a, Expression: 1 + 1}]}}",
            r" \(ROLLBACK_COMPLETE\): Other \(AWS::CloudWatch::Alarm\): .*metric math",
        ),
    ],
)
def test_what_the_emulator_cannot_make_fails_the_deployment(tmp_path: Path, resource: str, reason: str) -> None:
    # Given a template with a resource of an unknown type, or one that cannot be made
    place = place_with(tmp_path, resource)
    # When it is brought up, then one line says why it failed, and nothing is left running
    with pytest.raises(LocalError, match="the deployment failed.*" + reason) as raised:
        local_stack.up(place, lambda _: None)
    assert "\n" not in str(raised.value)
    assert emulator.daemon(place).pid() is None
    # And when the template is fixed, it can be deployed
    place.template.write_text(TEMPLATE % "{Type: 'AWS::SQS::Queue'}")
    emulator.start(place)
    try:
        assert deployer.deploy(place, Aws(place.aws_endpoint_url), lambda _: None)
    finally:
        emulator.stop(place)


def test_an_emulator_that_was_killed_is_brought_up_again(tmp_path: Path) -> None:
    # Given a running stack whose emulator is killed
    running = RunningStack.start(tmp_path / "home")
    try:
        token = running.token
        pid = emulator.daemon(running.place).pid()
        assert pid is not None
        os.killpg(pid, signal.SIGKILL)
        assert wait_until(lambda: not local_stack.is_up(running.place), 10)
        # When a client calls meanwhile, then it gets a 500 in JSON
        answer = running.call("GET", "/queues")
        assert (answer.status_code, answer.json()["msg"]) == (500, "Internal Server Error")
        # And when the stack is brought up again, it works, with the same token
        running.up()
        assert running.token == token
        assert running.call("GET", "/queues").json() == {"queues": []}
    finally:
        running.discard()


def test_changed_code_is_deployed_over_the_running_stack(tmp_path: Path) -> None:
    # Given a running stack that has stored a message
    running = RunningStack.start(tmp_path / "home")
    try:
        running.call("PUT", "/queues/kept", json={})
        # When a function changes and the stack is brought up again
        (running.place.template.parent / "functions" / "ingest" / "handler.py").write_text(
            "def handler(event, context):\n    return {'statusCode': 299, 'body': 'changed'}\n"
        )
        running.up()
        # Then the new code answers, and what was stored is still there
        assert running.call("POST", "/queues/kept/messages", json={}).status_code == 299
        assert [queue["name"] for queue in running.call("GET", "/queues").json()["queues"]] == ["kept"]
    finally:
        running.discard()


def test_functions_under_way_at_a_stop_are_waited_for_only_so_long(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Given a stack with a function that takes long, and an SQS message for it
    monkeypatch.setattr(emulator, "DRAIN_SECONDS", 1.0)
    running = RunningStack(place=prepared(tmp_path / "home"))
    begun = tmp_path / "begun"
    (running.place.template.parent / "functions" / "errors" / "handler.py").write_text(
        "import time\n\n\ndef handler(event, context):\n"
        f"    open({str(begun)!r}, 'a').write(event['Records'][0]['body'] + ' ')\n"
        "    time.sleep(25)\n    return {'batchItemFailures': []}\n"
    )
    running.up()
    try:
        running.aws.sqs().send_message(QueueUrl=running.outputs["ErrorsQueueUrl"], MessageBody="work")
        assert wait_until(begun.exists, 15)
        # When the stack is stopped and started again
        running.down()
        assert "killed" not in " ".join(running.said)
        running.up()
        # Then the message is processed again at once, not after its visibility timeout of minutes
        assert wait_until(lambda: begun.read_text() == "work work ", 15)
    finally:
        running.discard()
