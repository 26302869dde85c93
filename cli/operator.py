"""What an operator of a hub works with: its AWS clients and its stack's outputs, on this machine or deployed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import boto3
import click
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError
from local.errors import LocalError
from local.place import Place
from local.stack import aws, describe

from cli.hub import HubOptions
from pushhub.cloud.clock import SystemClock
from pushhub.engine.projects import Projects
from pushhub.engine.store.dynamodb_config import DynamoDBConfigStore

TABLE_OUTPUT = "ConfigTableName"
"""The stack's output that names the table of projects and tokens."""


@dataclass(frozen=True)
class Deployment:
    """A running hub.

    Attributes:
        name: Of its stack; empty for the one on this machine.
        outputs: The outputs of its stack.
        session: Makes clients.
        options: For each client.
    """

    name: str
    outputs: dict[str, str]
    session: Any
    options: dict[str, Any]

    def client(self, service: str, **config: Any) -> Any:
        """A client of a service with the common configuration, except for the given options."""
        options = dict(self.options)
        if config:
            options["config"] = (options.get("config") or Config()).merge(Config(**config))
        return self.session.client(service, **options)


def deployment(hub: HubOptions) -> Deployment:
    """The chosen hub.

    Raises:
        click.ClickException: It cannot be found.
    """
    known = hub.settings()
    if known.stack:
        return _deployed(known.stack, known.aws_profile or None, known.region or None)
    try:
        description = describe(Place.from_environment())
    except LocalError as error:
        raise click.ClickException(f"{error} (for a deployed hub use --stack NAME)") from error
    return Deployment("", dict(description.outputs), boto3.session.Session(), dict(aws(description).arguments))


def _deployed(name: str, profile: str | None, region: str | None) -> Deployment:
    config = Config(connect_timeout=5, read_timeout=20, retries={"mode": "standard", "total_max_attempts": 4})
    try:
        session = boto3.session.Session(profile_name=profile, region_name=region)
        stacks = session.client("cloudformation", config=config).describe_stacks(StackName=name)["Stacks"]
    except (BotoCoreError, ClientError) as error:
        raise click.ClickException(f"the stack {name} cannot be read: {error}") from error
    outputs = {each["OutputKey"]: each["OutputValue"] for each in stacks[0].get("Outputs", [])}
    if TABLE_OUTPUT not in outputs:
        raise click.ClickException(f"the stack {name} has no output {TABLE_OUTPUT}: is it a Pushhub stack?")
    return Deployment(name, outputs, session, {"config": config})


def projects_of(hub: HubOptions) -> Projects:
    """Projects and tokens of the hub.

    Raises:
        click.ClickException: The hub cannot be found.
    """
    found = deployment(hub)
    store = DynamoDBConfigStore(found.client("dynamodb"), found.outputs[TABLE_OUTPUT], SystemClock())
    return Projects(config=store, clock=SystemClock())
