"""A failed deployment is reported in one line and leaves nothing running; breakages are found and repaired."""

from __future__ import annotations

from pathlib import Path

import pytest
from local.aws import Aws
from local.deploy import deployer
from local.emulator import lifecycle
from local.errors import LocalError
from local.place import Place
from local.processes import wait_until
from tests.stack.running import RunningStack, free_port

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
    home.mkdir()
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


CANNOT_BE_MADE = {
    "{Type: 'AWS::Quantum::Entangler'}": r"Unrecognized resource types: \[AWS::Quantum::Entangler\]",
    "{Type: 'AWS::CloudWatch::Alarm', Properties: {Metrics: [{Id: a, Expression: 1 + 1}]}}": (
        r" \(ROLLBACK_COMPLETE\): Other \(AWS::CloudWatch::Alarm\): .*metric math"
    ),
}


def test_what_the_emulator_cannot_make_fails_the_deployment(tmp_path: Path) -> None:
    # Given a template with a resource of an unknown type, and then one that cannot be made
    for number, (resource, reason) in enumerate(CANNOT_BE_MADE.items()):
        place = place_with(tmp_path / f"{number}", resource)
        # When it is brought up, then one line says why it failed, and nothing is left running
        with pytest.raises(LocalError, match="the deployment failed.*" + reason) as raised:
            local_stack.up(place, lambda _: None)
        assert "\n" not in str(raised.value)
        assert lifecycle.daemon(place).pid() is None
    # And when the template is fixed, it can be deployed
    place.template.write_text(TEMPLATE % "{Type: 'AWS::SQS::Queue'}")
    lifecycle.start(place)
    try:
        assert deployer.deploy(place, Aws(place.aws_endpoint_url), lambda _: None)
    finally:
        lifecycle.stop(place)


def test_changed_code_is_deployed_over_the_running_stack_and_waits_only_so_long(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Given a running stack that has stored something
    running = RunningStack.start(tmp_path / "home")
    begun = tmp_path / "begun"
    functions = running.place.template.parent / "functions"
    try:
        running.call("PUT", "/queues/kept", json={})
        # When functions change, one into one that takes long, and the stack is brought up again
        (functions / "ingest" / "handler.py").write_text(
            "def handler(event, context):\n    return {'statusCode': 299, 'body': 'changed'}\n"
        )
        (functions / "errors" / "handler.py").write_text(
            "import time\n\n\ndef handler(event, context):\n"
            f"    open({str(begun)!r}, 'a').write(event['Records'][0]['body'] + ' ')\n"
            "    time.sleep(25)\n    return {'batchItemFailures': []}\n"
        )
        running.up()
        # Then the new code answers, and what was stored is still there
        assert running.call("POST", "/queues/kept/messages", json={}).status_code == 299
        assert [queue["name"] for queue in running.call("GET", "/queues").json()["queues"]] == ["kept"]
        # When it is stopped while the one that takes long has a message, and started again
        monkeypatch.setattr(lifecycle, "DRAIN_SECONDS", 1.0)
        sqs, url = running.aws.sqs(), running.outputs["ErrorsQueueUrl"]
        sqs.set_queue_attributes(QueueUrl=url, Attributes={"VisibilityTimeout": "3600"})
        sqs.send_message(QueueUrl=url, MessageBody="work")
        assert wait_until(begun.exists, 90)
        running.down()
        assert "killed" not in " ".join(running.said)
        running.up()
        # Then the message is processed again at once, not after its visibility timeout of an hour
        assert wait_until(lambda: begun.read_text() == "work work ", 90)
    finally:
        running.discard()
