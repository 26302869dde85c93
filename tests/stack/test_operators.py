"""What a team asks for by parameter, deployed and used: operators act under the stack's role, and changes leave a trail
in the records bucket.

It has a stack of its own, with other parameters. The emulator of a machine checks no policies.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from local.deploy.deployer import STACK
from local.place import REGION, REPOSITORY
from tests.stack.endpoints import Recorder
from tests.stack.project import ProjectClient
from tests.stack.running import RunningStack, prepared

pytestmark = pytest.mark.stack

CHOSEN = {
    "OperatorPrincipals": "arn:aws:iam::000000000000:user/bo",
    "AuditTrail": "true",
    "Dashboard": "true",
    "BodyVersionsDays": "7",
    "ApiRequestsPerSecond": "1000",
    "WebSocketMessagesPerSecond": "1000",
}


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningStack]:
    running = RunningStack(place=prepared(tmp_path_factory.mktemp("operated")))
    text = running.place.template.read_text(encoding="utf-8")
    for name, value in CHOSEN.items():
        text, found = re.subn(rf"(\n  {name}:\n(?:    .*\n)*?    Default: ).*", rf'\g<1>"{value}"', text)
        assert found == 1, name
    running.place.template.write_text(text, encoding="utf-8")
    running.up()
    yield running
    running.discard()


def pushhub(own: RunningStack, *words: str) -> Any:
    """Run a command as the operator of a deployed stack does."""
    address = {"AWS_ENDPOINT_URL": own.place.aws_endpoint_url, "AWS_DEFAULT_REGION": REGION}
    caller = {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test"}
    command = [sys.executable, "-m", "cli", "--json", "--stack", STACK, *words]
    run = subprocess.run(
        command, check=False, cwd=REPOSITORY, env={**os.environ, **address, **caller}, capture_output=True, text=True
    )
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout)


def test_operators_act_under_the_stacks_role_and_changes_are_in_the_audit_trail(own: RunningStack) -> None:
    # Given a stack whose operators have a role, and which keeps a trail
    assert ":role/" in own.outputs["OperatorRoleArn"]
    # When an operator makes a project, changes it, suspends and resumes it
    [created] = pushhub(own, "projects", "make", "operated")
    project = created["project"]
    [limited] = pushhub(own, "projects", "quota", project, "50")
    assert limited["quota"] == "50/s, 500 at once"
    [suspended] = pushhub(own, "projects", "suspend", project)
    assert suspended["suspended"]
    pushhub(own, "projects", "resume", project)
    # And its owner makes a queue, whose messages arrive
    client = ProjectClient(base_url=own.base_url, project_id=project, token=created["token"])
    with Recorder() as endpoints:
        endpoint = endpoints.endpoint()
        client.make_push("operated", endpoint)
        client.post("operated", "hello")
        endpoint.wait(1)
    # Then all changes are in the trail, by whom, and no message is
    # (each entry is written before its change is answered)
    changes = pushhub(own, "audit", project)
    by_operators = [each for each in changes if each["by"]["kind"] == "operator"]
    assert [each["action"] for each in by_operators] == [
        "operator.projects.quota",
        "operator.projects.suspend",
        "operator.projects.resume",
    ]
    role = own.outputs["OperatorRoleArn"].rpartition("/")[2]
    assert all(f":assumed-role/{role}/pushhub-" in each["by"]["arn"] for each in by_operators)
    assert [each["status"] for each in by_operators] == [0, 0, 0]
    [owners] = [each for each in changes if each["by"]["kind"] == "token"]
    assert owners["what"].endswith("/queues/operated")
    assert created["token"] not in json.dumps(changes)


def test_bodies_have_versions_if_that_is_asked_for(own: RunningStack) -> None:
    s3: Any = own.aws.s3()
    bucket = own.outputs["BodiesBucketName"]
    assert s3.get_bucket_versioning(Bucket=bucket)["Status"] == "Enabled"
