"""``pushhub signing-secret``: a stack's secret leaves Secrets Manager, and is rotated."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import boto3
import botocore.client
import pytest
from botocore.exceptions import ClientError
from tests.cli.conftest import Typed
from tests.cloud import aws_services as aws
from tests.fakes import FakeClock

from pushhub.cloud.clock import SystemClock
from pushhub.cloud.table import Table
from pushhub.cloud.vault import KmsVault
from pushhub.notifications.store.secret_keys import SigningSecret, SigningSecretItem


@dataclass
class Stack:
    """A deployed stack.

    Attributes:
        resources: Physical ids of resources by type, as far as CloudFormation has one named SigningSecret.
    """

    key: str
    resources: dict[str, str] = field(default_factory=dict)

    @property
    def item(self) -> SigningSecretItem:
        """As functions read it, eleven minutes later."""
        clock = FakeClock(SystemClock().now() + 660_000)
        vault = KmsVault(boto3.client("kms"), self.key, clock)
        return SigningSecretItem(Table(boto3.client("dynamodb"), aws.CONFIG_TABLE, clock), vault, clock)

    def stored(self) -> SigningSecret:
        found = self.item.read()
        assert found is not None
        return found

    def secrets(self) -> tuple[bytes, ...]:
        return self.item.opened(self.stored())


@pytest.fixture
def stack(monkeypatch: pytest.MonkeyPatch) -> Iterator[Stack]:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "test")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    real = botocore.client.BaseClient._make_api_call  # type: ignore[attr-defined]

    def answered(client: Any, operation: str, parameters: dict[str, Any]) -> Any:
        if operation == "DescribeStackResource":
            for kind, resource in made.resources.items():
                return {"StackResourceDetail": {"ResourceType": kind, "PhysicalResourceId": resource}}
            raise ClientError({"Error": {"Code": "ValidationError", "Message": "does not exist"}}, operation)
        if operation == "DescribeStacks":
            outputs = {"ConfigTableName": aws.CONFIG_TABLE, "VaultKeyArn": made.key}
            # Were it assumed, the call would fail: the role of a stack from before may not read the secret.
            outputs["OperatorRoleArn"] = "arn:aws:iam::123456789012:role/acme-OperatorRole-1"
            return {"Stacks": [{"Outputs": [{"OutputKey": key, "OutputValue": each} for key, each in outputs.items()]}]}
        assert operation != "AssumeRole" or not made.resources, "the operators' role may not copy"
        return real(client, operation, parameters)

    monkeypatch.setattr(botocore.client.BaseClient, "_make_api_call", answered)
    with aws.dynamodb():
        made = Stack(boto3.client("kms").create_key()["KeyMetadata"]["Arn"])
        yield made


def in_secrets_manager(stack: Stack, text: str) -> None:
    arn = boto3.client("secretsmanager").create_secret(Name="SigningSecret-1", SecretString=text)["ARN"]
    stack.resources["AWS::SecretsManager::Secret"] = arn


def test_the_secret_of_a_stack_from_before_is_copied_once(stack: Stack, typed: Typed) -> None:
    # Given a stack from before 2026-11-27, and an operator who looks first
    in_secrets_manager(stack, "former")
    assert "kms GenerateDataKey" in typed("--stack", "acme", "signing-secret", "copy", "--dry-run") + typed.errors
    assert stack.item.read() is None
    # When it is copied, then what it signs is the same, and nothing shows it
    said = typed("--stack", "acme", "signing-secret", "copy") + typed.errors
    assert stack.secrets() == (hashlib.sha256(b"former").digest(),)
    assert "copied" in said
    assert stack.secrets()[0].hex() not in said
    # And once more changes nothing
    before = stack.stored()
    assert typed.json("--stack", "acme", "signing-secret", "copy") == [{"signing secret": "was copied before"}]
    assert stack.stored() == before


@pytest.mark.parametrize("kind", [None, "AWS::CloudFormation::WaitConditionHandle"])
def test_a_stack_of_today_has_nothing_to_copy(stack: Stack, typed: Typed, kind: str | None) -> None:
    if kind:
        stack.resources[kind] = "https://handle"
    [row] = typed.json("--stack", "acme", "signing-secret", "copy")
    assert row["signing secret"].startswith("nothing to copy")
    assert stack.item.read() is None


def test_a_secret_in_use_is_not_copied_over(stack: Stack, typed: Typed) -> None:
    in_secrets_manager(stack, "former")
    stack.item.make(b"a" * 32)
    typed("--stack", "acme", "signing-secret", "copy", code=1)
    assert "another signing secret is in use" in typed.errors
    assert stack.secrets() == (b"a" * 32,)


def test_rotating_keeps_the_present_one_and_waits_ten_minutes(stack: Stack, typed: Typed) -> None:
    # Given none yet, then one of just now
    typed("--stack", "acme", "--role-arn", "none", "signing-secret", "rotate", code=1)
    assert "first token" in typed.errors
    stack.item.make(b"a" * 32, since=SystemClock().now())
    typed("--stack", "acme", "--role-arn", "none", "signing-secret", "rotate", code=1)
    assert "ten minutes ago" in typed.errors
    # When it is older, then a rotation keeps it beside the new one
    boto3.client("dynamodb").update_item(
        TableName=aws.CONFIG_TABLE,
        Key={"pk": {"S": "SIGNING"}, "sk": {"S": "SECRET"}},
        UpdateExpression="SET since = since - :much",
        ExpressionAttributeValues={":much": {"N": "600000"}},
    )
    before = stack.stored()
    typed("--stack", "acme", "--role-arn", "none", "signing-secret", "rotate", "--dry-run")
    assert stack.stored() == before
    typed("--stack", "acme", "--role-arn", "none", "signing-secret", "rotate")
    new, old = stack.secrets()
    assert (len(new), old) == (32, b"a" * 32)
