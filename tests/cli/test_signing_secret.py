"""``pushhub signing-secret``: a stack's secret is rotated."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import boto3
import pytest
from tests.cli.conftest import Typed
from tests.cli.deployment import answering, described, with_credentials
from tests.cloud import aws_services as aws
from tests.fakes import FakeClock

from pushhub.cloud.clock import SystemClock
from pushhub.cloud.table import Table
from pushhub.cloud.vault import KmsVault
from pushhub.notifications.store.secret_keys import SigningSecret, SigningSecretItem


@dataclass
class Stack:
    """A deployed stack."""

    key: str

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
    with_credentials(monkeypatch)

    def answered(operation: str, parameters: dict[str, Any], real: Callable[[], Any]) -> Any:
        if operation == "DescribeStacks":
            outputs = {"ConfigTableName": aws.CONFIG_TABLE, "VaultKeyArn": created.key}
            return described(outputs)
        return real()

    answering(monkeypatch, answered)
    with aws.dynamodb():
        created = Stack(boto3.client("kms").create_key()["KeyMetadata"]["Arn"])
        yield created


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
