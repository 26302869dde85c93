"""One build and one deployment for all tests of this folder."""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import boto3
import pytest
import requests
from tests.sam.sink import Sink
from tests.sam.toolbox import REGION, ROOT, Emulator, built, emulator, sam

from pushhub.cloud.clock import SystemClock
from pushhub.engine.model.project import Project
from pushhub.engine.store.dynamodb_config import DynamoDBConfigStore

STACK = "pushhub"
API = "feed0001"


@dataclass(frozen=True, slots=True, kw_only=True)
class Deployment:
    """The hub, deployed.

    Attributes:
        emulator: The emulator it is deployed to.
        outputs: Outputs of the stack.
        base_url: Base URL of its API.
        project_id: A project of it.
        token: Of that project.
    """

    emulator: Emulator
    outputs: dict[str, str]
    base_url: str
    project_id: str
    token: str

    def client(self, service: str) -> Any:
        """A client that may do everything."""
        return boto3.client(
            service,  # type: ignore[call-overload]
            endpoint_url=self.emulator.url,
            region_name=REGION,
            aws_access_key_id="test",
            aws_secret_access_key="test",
        )

    def call(self, method: str, path: str, body: Any = None) -> Any:
        """Call the queue API of the project."""
        answer = requests.request(
            method,
            f"{self.base_url}/3/projects/{self.project_id}/queues{path}",
            headers={"Authorization": f"OAuth {self.token}", "Content-Type": "application/json"},
            data=json.dumps(body).encode() if body is not None else None,
            timeout=90,
        )
        assert answer.ok, f"{answer.text}: {self.errors()}"
        return answer.json()

    def errors(self) -> list[str]:
        """The errors that the functions have logged so far."""
        logs = self.client("logs")
        return [
            event["message"]
            for group in logs.describe_log_groups(logGroupNamePrefix="/aws/lambda/")["logGroups"]
            for event in logs.filter_log_events(logGroupName=group["logGroupName"])["events"]
            if '"level":"ERROR"' in event["message"] or "Traceback" in event["message"]
        ]


@pytest.fixture(scope="session")
def build() -> Path:
    """The output of ``sam build``."""
    return built()


@pytest.fixture(scope="session")
def deployment(build: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployment]:
    """The build deployed by ``sam deploy``, with a project."""
    with emulator(tmp_path_factory.mktemp("emulator")) as running:
        base_url = f"{running.url}/_aws/execute-api/{API}/$default"
        deploy(build, running)
        project_id, token = secrets.token_hex(12), secrets.token_urlsafe(24)
        created = Deployment(emulator=running, outputs={}, base_url=base_url, project_id=project_id, token=token)
        (stack,) = created.client("cloudformation").describe_stacks(StackName=STACK)["Stacks"]
        created.outputs.update({each["OutputKey"]: each["OutputValue"] for each in stack["Outputs"]})
        clock = SystemClock()
        config = DynamoDBConfigStore(created.client("dynamodb"), created.outputs["ConfigTableName"], clock)
        config.put_project(Project(project_id=project_id, name="sam", created_at=clock.now()))
        config.put_token(project_id, sha256(token.encode()).hexdigest(), "sam", clock.now())
        yield created


def deploy(build: Path, running: Emulator, *parameters: str, name: str = "template.yaml") -> None:
    """Run ``sam deploy`` on the build, or on another template beside it, with parameters besides those of all tests."""
    result = sam(
        "deploy",
        *("--template-file", str(build / name), "--config-file", str(ROOT / "samconfig.toml")),
        *("--no-confirm-changeset", "--no-progressbar"),
        *("--parameter-overrides", "AllowedTargets=127.0.0.0/8", "PushMaximumConcurrency=4", *parameters),
        environ=running.credentials,
    )
    assert result.returncode == 0, result.stdout[-4000:] + result.stderr[-2000:]


def resources_of(deployment: Deployment, stack: str = STACK) -> set[str]:
    """Logical ids of what is there, nested stacks' too, without the digests in the names of layers and versions."""
    found: set[str] = set()
    for each in deployment.client("cloudformation").describe_stack_resources(StackName=stack)["StackResources"]:
        assert each["ResourceStatus"].endswith("_COMPLETE"), each
        if each["ResourceType"] == "AWS::CloudFormation::Stack":
            found |= resources_of(deployment, each["PhysicalResourceId"])
        else:
            found.add(undigested(each["LogicalResourceId"]))
    return found


def undigested(name: str) -> str:
    """A logical id without the digest that the transform puts at the end of a layer's or a version's."""
    return re.sub(r"^(\w+Layer|\w+FunctionVersion)[0-9a-f]{10}$", r"\1", name)


@pytest.fixture
def sink() -> Iterator[Sink]:
    """A subscriber on this machine."""
    with Sink() as started:
        yield started


@pytest.fixture
def queue_name() -> Callable[[], str]:
    """A name no other test uses."""
    return lambda: f"queue-{secrets.token_hex(4)}"
