"""The secret that consumers' tokens are signed with: an item, sealed with the deployment's key, and rotated without
invalidating tokens still in use (docs/decisions/security.md).
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

from pushhub.base.errors import Conflict, Unavailable
from pushhub.cloud.calls import ConditionRefused
from pushhub.cloud.table import Item, Table, number, text
from pushhub.cloud.unreadable import decodes
from pushhub.engine.security.reseal import SealedItem

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mypy_boto3_dynamodb import DynamoDBClient

    from pushhub.base.ports import Clock, Vault

SEALED_FOR = "#signing"
"""In place of a project, for which it is sealed. No project has this id, and who only checks tokens may open nothing
else (template.yaml)."""

SECRET_BYTES = 32
_KEY: Item = {"pk": text("SIGNING"), "sk": text("SECRET")}
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
        secret = self._sealed(plain or (secrets.token_bytes(SECRET_BYTES),), at)
        return self._put(secret, ConditionExpression="attribute_not_exists(pk)")

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
        secret = SigningSecret(self._vault.seal(SEALED_FOR, secrets.token_bytes(SECRET_BYTES)), stored.current, now)
        self._replace(stored, secret)

    def reseal(self, stored: SigningSecret) -> None:
        """Seal it with the first key; raises ``Conflict`` if it was changed, and ``Unavailable``."""
        self._replace(stored, self._sealed(self.opened(stored), stored.since))

    def _sealed(self, plain: Sequence[bytes], since: int) -> SigningSecret:
        sealed = [self._vault.seal(SEALED_FOR, each) for each in plain]
        return SigningSecret(sealed[0], b"".join(sealed[1:2]), since)

    def _replace(self, stored: SigningSecret, secret: SigningSecret) -> None:
        same = {"ConditionExpression": "#current = :current", "ExpressionAttributeNames": {"#current": "current"}}
        if not self._put(secret, **same, ExpressionAttributeValues={":current": {"B": stored.current}}):
            raise Conflict("the signing secret was changed meanwhile")

    def _put(self, secret: SigningSecret, **condition: object) -> bool:
        item: Item = {**_KEY, "current": {"B": secret.current}, "since": number(secret.since)}
        if secret.previous:
            item["previous"] = {"B": secret.previous}
        try:
            self._table.put(item, **condition)
        except ConditionRefused as refused:
            # The client repeats a call that timed out.
            return bool(refused.stored) and _decode(refused.stored) == secret
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
        yield SealedItem("what signs consumers' tokens", SEALED_FOR, sealed, partial(item.reseal, stored))


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

    def signing(self) -> Sequence[bytes]:
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
