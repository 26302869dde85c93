"""The secrets that tokens are signed with, in Secrets Manager: encrypted at rest, and rotated without invalidating
tokens still in use.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from botocore.exceptions import BotoCoreError, ClientError

from pushhub.base.errors import Unavailable

if TYPE_CHECKING:
    from pushhub.base.ports import Clock

_KEPT_MS = 300_000
_TAKEN_UP_AFTER_MS = 2 * _KEPT_MS
"""When a new secret is used for signing: by then every process has read it."""


class SecretsManagerKeys:
    """Implements :class:`pushhub.notifications.ports.SigningKeys`; reads the secret at most every five minutes.

    Args:
        client: Secrets Manager client.
        secret_id: ARN of the secret.
        clock: Tells the age of the cached secret.
    """

    def __init__(self, client: Any, secret_id: str, clock: Clock) -> None:
        self._client = client
        self._secret_id = secret_id
        self._clock = clock
        self._read_at: int | None = None
        self._secrets: tuple[bytes, ...] = ()

    def secrets(self) -> Sequence[bytes]:
        """While the service is unavailable, a version read earlier stays in use."""
        now = self._clock.now()
        if self._read_at is None or now - self._read_at >= _KEPT_MS:
            try:
                self._secrets = self._read(now)
            except Unavailable:
                if not self._secrets:
                    raise
            self._read_at = now
        return self._secrets

    def _read(self, now: int) -> tuple[bytes, ...]:
        current, created_at = self._secret("AWSCURRENT")
        try:
            previous, _ = self._secret("AWSPREVIOUS")
        except _NoSuchVersion:
            return (current,)
        return (previous, current) if now - created_at < _TAKEN_UP_AFTER_MS else (current, previous)

    def _secret(self, stage: str) -> tuple[bytes, int]:
        """A version of the secret, and when it was made (epoch milliseconds)."""
        try:
            answer = self._client.get_secret_value(SecretId=self._secret_id, VersionStage=stage)
        except ClientError as error:
            if stage == "AWSPREVIOUS" and error.response.get("Error", {}).get("Code") == "ResourceNotFoundException":
                raise _NoSuchVersion from error
            raise Unavailable("secretsmanager:GetSecretValue") from error
        except BotoCoreError as error:
            raise Unavailable("secretsmanager:GetSecretValue") from error
        created: datetime = answer["CreatedDate"]
        return hashlib.sha256(answer["SecretString"].encode()).digest(), round(created.timestamp() * 1000)


class _NoSuchVersion(Exception):
    """The secret was never rotated."""
