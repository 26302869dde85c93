"""What an operator of a hub works with: its AWS clients and its stack's outputs, on this machine or deployed."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import boto3
import botocore.session
import click
from botocore.config import Config
from botocore.credentials import AssumeRoleCredentialFetcher, DeferredRefreshableCredentials
from botocore.exceptions import BotoCoreError, ClientError

from pushhub.cloud.clock import SystemClock
from pushhub.cloud.table import Table
from pushhub.cloud.vault import KmsVault
from pushhub.engine.projects.projects import Projects
from pushhub.engine.projects.suspension import KNOWN_WITHIN_MS
from pushhub.engine.store.dynamodb_config import DynamoDBConfigStore

from ..answers import section, text
from ..archive.carried import Folder
from ..archive.erasing import Erasing
from ..archive.exporting import Exporting
from ..archive.holdings import TABLES
from ..archive.importing import Importing
from ..dry import NotDone
from ..hub import HubOptions, NoHub, local_description
from ..settings import Profile
from ..trail import READING, CommandTrail, person

CLOSES_CONSUMERS = "NotifyFunctionName"
"""The stack's output that names the function that closes the connections of suspended projects, each minute."""
ADMITTED_S = 0.5 + KNOWN_WITHIN_MS / 1000
"""How long after a suspension functions may still admit a consumer, seconds."""
TABLE_OUTPUT = "ConfigTableName"
"""The stack's output that names the table of projects and tokens."""
ROLE_OUTPUT = "OperatorRoleArn"
"""The stack's output that names the role with just the rights of these commands, if there is one."""
KEY_OUTPUT = "VaultKeyArn"
"""The stack's output that names the key that seals."""
OWN_RIGHTS = "none"
"""In place of a role: the caller's own rights."""


@dataclass(frozen=True)
class Deployment:
    """A running hub.

    Attributes:
        name: Of its stack; empty for the one on this machine.
        outputs: The outputs of its stack.
        session: Makes clients.
        options: For each client.
        dry: Whether its clients change nothing.
        trail: Where it is kept what its clients change; None for a hub without an audit trail.
    """

    name: str
    outputs: dict[str, str]
    session: Any
    options: dict[str, Any]
    dry: bool = False
    trail: CommandTrail | None = None

    def client(self, service: str, **config: Any) -> Any:
        """A client of a service with the common configuration, except for the given options."""
        options = dict(self.options)
        if config:
            options["config"] = (options.get("config") or Config()).merge(Config(**config))
        client = self.session.client(service, **options)
        if self.dry:
            client.meta.events.register("before-parameter-build", _only_read)
        elif self.trail is not None:
            client.meta.events.register("before-parameter-build", self.trail.before)
        return client


def _only_read(model: Any, params: Any, **_: Any) -> None:
    """Let no call through that changes something; S3 and the others have names for those."""
    if not model.name.startswith(READING):
        raise NotDone(f"{model.service_model.service_name} {model.name}", {"table": params.get("TableName")})


def deployment(hub: HubOptions) -> Deployment:
    """The chosen hub."""
    known = hub.settings()
    if known.stack:
        return _deployed(known, hub)
    try:
        described = local_description()
    except NoHub as error:
        raise NoHub(f"{error.message}; for a deployed one --stack NAME") from error
    options = {
        "endpoint_url": text(described, "aws_endpoint_url"),
        "region_name": text(described, "region"),
        "aws_access_key_id": "test",
        "aws_secret_access_key": "test",
    }
    outputs = section(described, "outputs")
    return Deployment("", outputs, boto3.session.Session(), options, dry=hub.dry_run)


def session_of(known: Profile) -> Any:
    """A session of the AWS SDK: under the role, if one is chosen."""
    try:
        session: Any = boto3.session.Session(profile_name=known.aws_profile or None, region_name=known.region or None)
    except BotoCoreError as error:
        raise click.ClickException(f"AWS cannot be asked: {error}") from error
    if not session.region_name:
        raise click.ClickException(
            "which region? Say --region, for example --region eu-central-1, or set AWS_DEFAULT_REGION"
        )
    return session if known.role_arn in ("", OWN_RIGHTS) else assumed(session, known.role_arn)


def assumed(session: Any, role_arn: str) -> Any:
    """A session under a role. Its credentials are renewed when they expire, as erasing or sealing can take hours."""
    # Shown by CloudTrail beside who assumed the role.
    name = "pushhub-" + re.sub(r"[^\w+=,.@-]", "_", person(), flags=re.ASCII)[:56]
    fetcher = AssumeRoleCredentialFetcher(
        session._session.create_client,
        session.get_credentials(),
        role_arn,
        extra_args={"RoleSessionName": name},
    )
    credentials = DeferredRefreshableCredentials(fetcher.fetch_credentials, "assume-role")
    try:
        credentials.get_frozen_credentials()
    except (BotoCoreError, ClientError) as error:
        raise click.ClickException(
            f"the role {role_arn} cannot be assumed: {error}. Is the caller among the stack's OperatorPrincipals? "
            f"--role-arn {OWN_RIGHTS} acts with the caller's own rights"
        ) from error
    assumed = botocore.session.get_session()
    assumed.register_component("credential_provider", _Given(credentials))
    return boto3.session.Session(botocore_session=assumed, region_name=session.region_name)


@dataclass(frozen=True)
class _Given:
    """Where a session takes its credentials from: ones that exist."""

    credentials: DeferredRefreshableCredentials

    def load_credentials(self) -> DeferredRefreshableCredentials:
        return self.credentials


def _deployed(known: Profile, hub: HubOptions) -> Deployment:
    name, session = known.stack, session_of(known)
    config = Config(connect_timeout=5, read_timeout=20, retries={"mode": "standard", "total_max_attempts": 4})
    try:
        stacks = session.client("cloudformation", config=config).describe_stacks(StackName=name)["Stacks"]
    except (BotoCoreError, ClientError) as error:
        raise click.ClickException(f"the stack {name} cannot be read: {error}") from error
    outputs = {each["OutputKey"]: each["OutputValue"] for each in stacks[0].get("Outputs", [])}
    if TABLE_OUTPUT not in outputs:
        raise click.ClickException(f"the stack {name} has no output {TABLE_OUTPUT}: is it a Pushhub stack?")
    if ROLE_OUTPUT in outputs and not known.role_arn:
        session = assumed(session, outputs[ROLE_OUTPUT])
    chosen = {each["ParameterKey"]: each["ParameterValue"] for each in stacks[0].get("Parameters", [])}
    if hub.trail is None and chosen.get("AuditTrail") == "true":
        hub.trail = CommandTrail(
            session, {"config": config}, bucket=outputs["RecordsBucketName"], table=outputs[TABLE_OUTPUT]
        )
    return Deployment(name, outputs, session, {"config": config}, dry=hub.dry_run, trail=hub.trail)


def projects_of(hub: HubOptions) -> Projects:
    """Projects and tokens of the hub."""
    found = deployment(hub)
    store = DynamoDBConfigStore(found.client("dynamodb"), found.outputs[TABLE_OUTPUT], SystemClock())
    return Projects(config=store, clock=SystemClock())


def close_consumers(hub: HubOptions) -> None:
    """Have the connections of suspended projects' consumers closed: at once, and again when no function admits them any
    more. What is left over after that, if there are very many, is closed in the next minutes.
    """
    found = deployment(hub)
    client = found.client("lambda", read_timeout=60)
    for wait_s in (0.0, ADMITTED_S):
        SystemClock().sleep(wait_s)
        try:
            client.invoke(FunctionName=found.outputs[CLOSES_CONSUMERS], Payload=b"{}")
        except (BotoCoreError, ClientError) as error:
            raise click.ClickException(f"suspended, but the consumers stay for up to a minute: {error}") from error


def erasing_of(hub: HubOptions) -> Erasing:
    """What erases projects of the hub."""
    return Erasing(**_data_of(deployment(hub)))


def exporting_of(hub: HubOptions, folder: Folder, *, with_keys: bool) -> Exporting:
    """What exports projects of the hub."""
    found = deployment(hub)
    return Exporting(**_data_of(found), folder=folder, vault=_vault_of(found) if with_keys else None)


def importing_of(hub: HubOptions, folder: Folder) -> Importing:
    """What imports projects into the hub."""
    found = deployment(hub)
    return Importing(**_data_of(found), folder=folder, vault=_vault_of(found), clock=SystemClock())


def _data_of(found: Deployment) -> dict[str, Any]:
    """All tables and buckets."""
    dynamodb, clock = found.client("dynamodb"), SystemClock()
    return {
        "tables": {name: Table(dynamodb, found.outputs[f"{name}Name"], clock) for name in TABLES},
        "s3": found.client("s3"),
        "bodies": found.outputs["BodiesBucketName"],
        "records": found.outputs["RecordsBucketName"],
    }


def _vault_of(found: Deployment) -> KmsVault:
    return KmsVault(found.client("kms"), found.outputs[KEY_OUTPUT], SystemClock())
