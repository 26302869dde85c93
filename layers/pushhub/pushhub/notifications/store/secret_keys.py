"""The secret that consumers' tokens are signed with: an item, sealed with the deployment's key, and rotated without
invalidating tokens still in use (docs/decisions/0144-the-signing-secret-is-an-item.md).
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from pushhub.base.errors import Conflict, Unavailable
from pushhub.cloud.calls import ConditionRefused, aws_call
from pushhub.cloud.table import Item, Table, number, text
from pushhub.cloud.unreadable import decodes
from pushhub.cloud.vault import KmsVault
from pushhub.engine.reseal import SealedItem

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from mypy_boto3_dynamodb import DynamoDBClient

    from pushhub.base.ports import Clock, Vault

SEALED_FOR = "#signing"
"""In place of a project, for which it is sealed. No project has this id, and who only checks tokens may open nothing
else (template.yaml)."""

SECRET_BYTES = 32
_KEY: Item = {"pk": text("SIGNING"), "sk": text("SECRET")}
_STAGES = ("AWSCURRENT", "AWSPREVIOUS")
_KEPT_MS = 300_000
TAKEN_UP_AFTER_MS = 2 * _KEPT_MS
"""When a new secret is used for signing: by then every process has read it."""


@dataclass(frozen=True, slots=True)
class SigningSecret:
    """What is stored.

    Attributes:
        current: The newest secret, sealed.
        previous: The one before, sealed; empty if there was none.
        since: When the newest one was made, epoch milliseconds.
    """

    current: bytes = field(repr=False)
    previous: bytes = field(repr=False)
    since: int


class SigningSecretItem:
    """The item of the configuration table.

    Args:
        clock: When a secret is made.
    """

    def __init__(self, table: Table, vault: Vault, clock: Clock) -> None:
        self._table = table
        self._vault = vault
        self._clock = clock

    def read(self) -> SigningSecret | None:
        """The stored secret; None if there is none yet."""
        item = self._table.get(_KEY)
        return None if item is None else _decode(item)

    def opened(self, stored: SigningSecret) -> tuple[bytes, ...]:
        """The newest secret, then the one before; raises ``Unavailable``."""
        return tuple(self._vault.open(SEALED_FOR, each) for each in (stored.current, stored.previous) if each)

    def make(self, *plain: bytes, since: int | None = None) -> bool:
        """Store the first secret.

        Args:
            plain: The newest, then the one before; a new one if left out.
            since: When the newest was made, epoch milliseconds; now if left out.

        Returns:
            Whether it was stored; False if there is one, which stays.

        Raises:
            Unavailable: It is not known whether it was stored.
        """
        at = self._clock.now() if since is None else since
        made = self._sealed(plain or (secrets.token_bytes(SECRET_BYTES),), at)
        return self._put(made, ConditionExpression="attribute_not_exists(pk)")

    def rotate(self) -> None:
        """Make a new secret. Tokens of the newest one stay good, those of the one before it do not.

        Raises:
            Conflict: There is none yet, it was changed meanwhile, or it is newer than ten minutes: not every process
                signs with it yet, and tokens of the one before, which is still signed with, would be lost.
            Unavailable: It is not known whether it was stored.
        """
        stored, now = self.read(), self._clock.now()
        if stored is None:
            raise Conflict("there is no signing secret yet: it is made with the first token")
        if now - stored.since < TAKEN_UP_AFTER_MS:
            raise Conflict("the signing secret was made less than ten minutes ago")
        made = SigningSecret(self._vault.seal(SEALED_FOR, secrets.token_bytes(SECRET_BYTES)), stored.current, now)
        self._replace(stored, made)

    def reseal(self, stored: SigningSecret) -> None:
        """Seal it with the first key; raises ``Conflict`` if it was changed, and ``Unavailable``."""
        self._replace(stored, self._sealed(self.opened(stored), stored.since))

    def copy(self, client: Any, secret_id: str) -> bool:
        """Store the secret that a deployment from before 2026-11-27 has in Secrets Manager.

        Args:
            secret_id: ARN of the secret.

        Returns:
            Whether it was stored; False if it has been stored before.

        Raises:
            Conflict: Another secret is in use, whose tokens would be lost.
            Unavailable: It could not be read, or it is not known whether it was stored.
        """
        found = [each for each in (_version(client, secret_id, stage) for stage in _STAGES) if each is not None]
        secret, made_at = [each for each, _ in found], found[0][1]
        stored = self.read()
        if stored is None and self.make(*secret, since=made_at):
            return True
        stored = stored or self.read()
        opened = () if stored is None else self.opened(stored)
        if secret[0] in opened:
            return False
        if stored is None or opened[0] not in secret:
            raise Conflict("another signing secret is in use, which was not copied from Secrets Manager")
        # It was rotated there since it was copied.
        self._replace(stored, self._sealed(secret, made_at))
        return True

    def _sealed(self, plain: Sequence[bytes], since: int) -> SigningSecret:
        sealed = [self._vault.seal(SEALED_FOR, each) for each in plain]
        return SigningSecret(sealed[0], b"".join(sealed[1:2]), since)

    def _replace(self, stored: SigningSecret, made: SigningSecret) -> None:
        same = {"ConditionExpression": "#current = :current", "ExpressionAttributeNames": {"#current": "current"}}
        if not self._put(made, **same, ExpressionAttributeValues={":current": {"B": stored.current}}):
            raise Conflict("the signing secret was changed meanwhile")

    def _put(self, made: SigningSecret, **condition: object) -> bool:
        item: Item = {**_KEY, "current": {"B": made.current}, "since": number(made.since)}
        if made.previous:
            item["previous"] = {"B": made.previous}
        try:
            self._table.put(item, **condition)
        except ConditionRefused as refused:
            # The client repeats a call that timed out.
            return bool(refused.stored) and _decode(refused.stored) == made
        return True


@decodes
def _decode(item: Item) -> SigningSecret:
    previous = bytes(item["previous"]["B"]) if "previous" in item else b""
    return SigningSecret(bytes(item["current"]["B"]), previous, int(item["since"]["N"]))


def sealed_signing_secret(client: DynamoDBClient, table: str, clock: Clock, vault: Vault) -> Iterator[SealedItem]:
    """The item, to be sealed anew; arguments as of :class:`SigningSecretItem`."""
    item = SigningSecretItem(Table(client, table, clock), vault, clock)
    stored = item.read()
    if stored is not None:
        sealed = tuple(filter(None, (stored.current, stored.previous)))
        yield SealedItem("what signs consumers' tokens", SEALED_FOR, sealed, False, partial(item.reseal, stored))


def _version(client: Any, secret_id: str, stage: str) -> tuple[bytes, int] | None:
    """A version of a secret in Secrets Manager and when it was made (epoch milliseconds); None if there is none."""
    try:
        with aws_call("secretsmanager:GetSecretValue"):
            answer = client.get_secret_value(SecretId=secret_id, VersionStage=stage)
    except Unavailable as error:
        if stage == _STAGES[1] and "ResourceNotFoundException" in str(error):
            return None
        raise
    created = round(answer["CreatedDate"].timestamp() * 1000)
    return hashlib.sha256(answer["SecretString"].encode()).digest(), created


def copy_of_stack(client: Callable[[str], Any], stack: str, clock: Clock) -> bool | None:
    """Store the secret that a stack from before 2026-11-27 has in Secrets Manager (docs/deploy.md).

    Args:
        client: Returns the client of a service.
        stack: Name of the stack.

    Returns:
        As :meth:`SigningSecretItem.copy`; None if the stack has no such secret.

    Raises:
        Conflict: As there.
        Unavailable: As there, or the stack could not be read.
    """
    asked = client("cloudformation")
    try:
        with aws_call("cloudformation:DescribeStackResource"):
            found = asked.describe_stack_resource(StackName=stack, LogicalResourceId="SigningSecret")
    except Unavailable as error:
        if "ValidationError" in str(error):
            return None
        raise
    resource = found["StackResourceDetail"]
    if resource["ResourceType"] != "AWS::SecretsManager::Secret":
        return None
    with aws_call("cloudformation:DescribeStacks"):
        (described,) = asked.describe_stacks(StackName=stack)["Stacks"]
    outputs = {each["OutputKey"]: each["OutputValue"] for each in described["Outputs"]}
    vault = KmsVault(client("kms"), outputs["VaultKeyArn"], clock)
    item = SigningSecretItem(Table(client("dynamodb"), outputs["ConfigTableName"], clock), vault, clock)
    return item.copy(client("secretsmanager"), resource["PhysicalResourceId"])


class SealedSigningKeys:
    """Implements :class:`pushhub.notifications.ports.SigningKeys`; reads the item at most every five minutes.

    Args:
        item: The stored secret.
        clock: Tells the age of what was read.
    """

    def __init__(self, item: SigningSecretItem, clock: Clock) -> None:
        self._item = item
        self._clock = clock
        self._read_at: int | None = None
        self._secrets: tuple[bytes, ...] = ()

    def secrets(self) -> Sequence[bytes]:
        """While the services are unavailable, what was read earlier stays in use."""
        now = self._clock.now()
        if self._read_at is None or now - self._read_at >= _KEPT_MS:
            try:
                self._secrets = self._read(now)
            except Unavailable:
                if not self._secrets:
                    raise
            # That there is none is not remembered: the first token may be made at any time.
            self._read_at = now if self._secrets else None
        return self._secrets

    def made(self) -> Sequence[bytes]:
        """Of several environments that make the first secret at the same time, one does; all use what is stored."""
        if not self.secrets():
            self._item.make()
        return self.secrets()

    def _read(self, now: int) -> tuple[bytes, ...]:
        stored = self._item.read()
        if stored is None:
            return ()
        opened = self._item.opened(stored)
        return opened[::-1] if now - stored.since < TAKEN_UP_AFTER_MS else opened
