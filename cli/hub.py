"""Which hub a command is about: the stack on this machine, or one deployed to AWS by its stack's name."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import boto3
import click
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError
from local.aws import Aws
from local.errors import LocalError
from local.place import Place
from local.stack import aws, describe

from pushhub.cloud.clock import SystemClock
from pushhub.engine.projects import Projects
from pushhub.engine.store.dynamodb_config import DynamoDBConfigStore

TABLE_OUTPUT = "ConfigTableName"
"""The stack's output that names the table of projects and tokens."""


@dataclass(frozen=True, slots=True)
class HubOptions:
    """Options that say which hub is meant.

    Attributes:
        stack: Name of a deployed stack; None for the local one.
        profile: Profile of the AWS configuration; None for the environment's.
        region: Region of the deployed stack; None for the profile's.
        as_json: Whether results are printed as JSON.
    """

    stack: str | None
    profile: str | None
    region: str | None
    as_json: bool

    def projects(self) -> Projects:
        """Projects and tokens of the hub.

        Raises:
            click.ClickException: The hub cannot be found.
        """
        client, table = self._local() if self.stack is None else self._deployed(self.stack)
        return Projects(config=DynamoDBConfigStore(client, table, SystemClock()), clock=SystemClock())

    def show(self, rows: list[dict[str, Any]]) -> None:
        """Print results: as JSON, or as a table with a heading."""
        if self.as_json:
            click.echo(json.dumps(rows, ensure_ascii=False))
            return
        if not rows:
            click.echo("none")
            return
        columns = list(rows[0])
        texts = [columns, *([_text(row[each]) for each in columns] for row in rows)]
        widths = [max(len(line[number]) for line in texts) for number in range(len(columns))]
        for line in texts:
            click.echo("  ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)).rstrip())

    def _local(self) -> tuple[Any, str]:
        try:
            description = describe(Place.from_environment())
        except LocalError as error:
            raise click.ClickException(f"{error} (for a deployed hub say --stack NAME)") from error
        stack: Aws = aws(description)
        return stack.dynamodb(), description.outputs[TABLE_OUTPUT]

    def _deployed(self, name: str) -> tuple[Any, str]:
        config = Config(connect_timeout=5, read_timeout=20, retries={"mode": "standard", "total_max_attempts": 4})
        try:
            session = boto3.session.Session(profile_name=self.profile, region_name=self.region)
            stacks = session.client("cloudformation", config=config).describe_stacks(StackName=name)["Stacks"]
            outputs = {each["OutputKey"]: each["OutputValue"] for each in stacks[0].get("Outputs", [])}
            if TABLE_OUTPUT not in outputs:
                raise click.ClickException(f"the stack {name} has no output {TABLE_OUTPUT}: is it a Pushhub?")
            return session.client("dynamodb", config=config), outputs[TABLE_OUTPUT]
        except (BotoCoreError, ClientError) as error:
            raise click.ClickException(f"the stack {name} cannot be read: {error}") from error


def _text(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(map(str, value)) or "-"
    # What a tenant named must not move the operator's cursor.
    shown = "".join(each if each.isprintable() else "\N{REPLACEMENT CHARACTER}" for each in str(value))
    return "-" if value is None or value == "" else shown
