"""Encrypts what opens something: signing keys, credentials of subscribers, parameters.

KMS makes a key for each project and encrypts it; each sealed text carries that encrypted key, so an execution
environment asks KMS once an hour and project, however many texts it seals or opens
(docs/decisions/0064-what-opens-something-is-sealed.md).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pushhub.base.cache import ExpiringCache
from pushhub.base.cipher import KEY_BYTES, decrypt, encrypt
from pushhub.base.errors import Unavailable
from pushhub.cloud.calls import aws_call

if TYPE_CHECKING:
    from pushhub.base.ports import Clock

_REMEMBERED_MS = 3_600_000
_REMEMBERED = 5_000
"""Keys, and texts that KMS itself encrypted, are remembered for that long."""

MARK = b"PHV1"
"""Begins each sealed text; those without it are from before November 2026, and were encrypted by KMS one by one."""


@dataclass(frozen=True, slots=True)
class _DataKey:
    """A project's key.

    Attributes:
        plain: The key.
        wrapped: The key, encrypted by KMS.
        kms_key: ARN of the KMS key that did.
    """

    plain: bytes = field(repr=False)
    wrapped: bytes
    kms_key: str


class KmsVault:
    """Implements :class:`pushhub.base.ports.Vault`.

    Args:
        key_id: ARN of the KMS key that seals. Texts sealed with others open as long as the caller's role allows it.
        clock: Determines when what is remembered expires.
    """

    def __init__(self, client: Any, key_id: str, clock: Clock) -> None:
        self._client = client
        self._key_id = key_id
        self._keys: ExpiringCache[_DataKey] = ExpiringCache(clock, ttl_ms=_REMEMBERED_MS, capacity=_REMEMBERED)
        self._sealing: ExpiringCache[_DataKey] = ExpiringCache(clock, ttl_ms=_REMEMBERED_MS, capacity=_REMEMBERED)
        self._one_by_one: ExpiringCache[_DataKey] = ExpiringCache(clock, ttl_ms=_REMEMBERED_MS, capacity=_REMEMBERED)

    def seal(self, project_id: str, content: bytes) -> bytes:
        """Encrypt for a project; can only be decrypted with the same project's id."""
        key = self._sealing.get(project_id) or self._made(project_id)
        head = MARK + len(key.wrapped).to_bytes(2) + key.wrapped
        return head + encrypt(key.plain, content, context=project_id.encode())

    def open(self, project_id: str, sealed: bytes) -> bytes:
        """Decrypt what was sealed for a project."""
        if not sealed.startswith(MARK):
            return self._decrypted(self._one_by_one, project_id, sealed).plain
        wrapped, text = _parts(sealed)
        key = self._decrypted(self._keys, project_id, wrapped)
        if key.kms_key == self._key_id and self._sealing.get(project_id) is None:
            # Environments that seal for the same project come to share a key, and so need fewer calls to open.
            self._sealing.put(project_id, key)
        try:
            return decrypt(key.plain, text, context=project_id.encode())
        except ValueError as error:
            raise Unavailable("opening a sealed value") from error

    def kms_key_of(self, project_id: str, sealed: bytes) -> str:
        """ARN of the KMS key that opens a sealed text; empty for a text of the older form, which is to be sealed anew
        anyway.
        """
        if not sealed.startswith(MARK):
            return ""
        return self._decrypted(self._keys, project_id, _parts(sealed)[0]).kms_key

    def _made(self, project_id: str) -> _DataKey:
        with aws_call("kms:GenerateDataKey"):
            answer = self._client.generate_data_key(
                KeyId=self._key_id, NumberOfBytes=KEY_BYTES, EncryptionContext={"project": project_id}
            )
        key = _DataKey(bytes(answer["Plaintext"]), bytes(answer["CiphertextBlob"]), answer["KeyId"])
        self._sealing.put(project_id, key)
        self._keys.put((project_id, key.wrapped), key)
        return key

    def _decrypted(self, known: ExpiringCache[_DataKey], project_id: str, wrapped: bytes) -> _DataKey:
        remembered = known.get((project_id, wrapped))
        if remembered is not None:
            return remembered
        # KMS knows the key by its ciphertext; the role says which keys may be used.
        with aws_call("kms:Decrypt"):
            answer = self._client.decrypt(CiphertextBlob=wrapped, EncryptionContext={"project": project_id})
        key = _DataKey(bytes(answer["Plaintext"]), wrapped, answer["KeyId"])
        known.put((project_id, wrapped), key)
        return key


def _parts(sealed: bytes) -> tuple[bytes, bytes]:
    """The encrypted key and the encrypted text."""
    start = len(MARK) + 2
    end = start + int.from_bytes(sealed[len(MARK) : start])
    return sealed[start:end], sealed[end:]
