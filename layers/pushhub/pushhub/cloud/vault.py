"""Encrypts signing keys with KMS, each key ring separately: no key that encrypts others is ever in a function's
memory.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pushhub.base.cache import ExpiringCache
from pushhub.cloud.calls import aws_call

if TYPE_CHECKING:
    from pushhub.base.ports import Clock

_REMEMBERED_MS = 3_600_000
_REMEMBERED = 5_000
"""Decrypted rings cached for that long, so that a busy subscriber costs one call per hour and environment."""


class KmsVault:
    """Implements :class:`pushhub.base.ports.Vault`.

    Args:
        client: KMS client.
        key_id: ARN of the key.
        clock: Determines when cached rings expire.
    """

    def __init__(self, client: Any, key_id: str, clock: Clock) -> None:
        self._client = client
        self._key_id = key_id
        self._opened: ExpiringCache[bytes] = ExpiringCache(clock, ttl_ms=_REMEMBERED_MS, capacity=_REMEMBERED)

    def seal(self, project_id: str, content: bytes) -> bytes:
        """Encrypt for a project; can only be decrypted with the same project's id."""
        with aws_call("kms:Encrypt"):
            answer = self._client.encrypt(
                KeyId=self._key_id, Plaintext=content, EncryptionContext={"project": project_id}
            )
        return bytes(answer["CiphertextBlob"])

    def open(self, project_id: str, sealed: bytes) -> bytes:
        """Decrypt what was sealed for a project."""
        remembered = self._opened.get((project_id, sealed))
        if remembered is not None:
            return remembered
        with aws_call("kms:Decrypt"):
            answer = self._client.decrypt(
                KeyId=self._key_id, CiphertextBlob=sealed, EncryptionContext={"project": project_id}
            )
        content = bytes(answer["Plaintext"])
        self._opened.put((project_id, sealed), content)
        return content
