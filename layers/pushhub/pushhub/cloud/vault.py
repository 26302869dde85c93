"""Encrypts what opens something: signing keys, credentials of subscribers, parameters.

KMS makes a key for each project and encrypts it; each sealed text carries that encrypted key, so an execution
environment asks KMS once an hour and project, however many texts it seals or opens
(docs/decisions/security.md). Texts are sealed with AES-256-GCM-SIV (RFC 8452) under a random
nonce: the key lives as long as something sealed with it is opened, so nobody could count its texts as AES-GCM demands
(SECURITY.md).

A sealed text is :data:`MARK`, the length of the encrypted key in two bytes, the encrypted key, the nonce, and what the
cipher made with the mark and the project's id as associated data.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pushhub.base.cache import ExpiringCache
from pushhub.base.errors import Unavailable
from pushhub.cloud.calls import aws_call

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCMSIV

    from pushhub.base.ports import Clock

_REMEMBERED_MS = 3_600_000
_REMEMBERED = 5_000
"""Keys are remembered for that long, and no more of them."""

MARK = b"PHV2"
"""Begins each sealed text."""

NOT_SEALED = "not a sealed text"
"""Reason for which something does not open that has not even the form of a sealed text."""

_KEY_BYTES = 32
_NONCE_BYTES = 12


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

    def seal(self, project_id: str, content: bytes) -> bytes:
        """Encrypt for a project; can only be decrypted with the same project's id."""
        key = self._sealing.get(project_id) or self._new_key(project_id)
        nonce = secrets.token_bytes(_NONCE_BYTES)
        head = MARK + len(key.wrapped).to_bytes(2) + key.wrapped + nonce
        return head + _cipher(key.plain).encrypt(nonce, content, _context(project_id))

    def open(self, project_id: str, sealed: bytes) -> bytes:
        """Decrypt what was sealed for a project.

        Raises:
            Unavailable: It was sealed for another one, or is something else; or KMS does not answer.
        """
        from cryptography.exceptions import InvalidTag  # noqa: PLC0415 (see _cipher)

        wrapped, nonce, text = _parts(sealed)
        key = self._decrypted(project_id, wrapped)
        if key.kms_key == self._key_id and self._sealing.get(project_id) is None:
            # Environments that seal for the same project come to share a key, and so need fewer calls to open.
            self._sealing.put(project_id, key)
        try:
            return _cipher(key.plain).decrypt(nonce, text, _context(project_id))
        except (InvalidTag, ValueError) as error:
            raise Unavailable("opening a sealed value") from error

    def kms_key_of(self, project_id: str, sealed: bytes) -> str:
        """ARN of the KMS key that opens a sealed text; raises as :meth:`open`."""
        return self._decrypted(project_id, _parts(sealed)[0]).kms_key

    def _new_key(self, project_id: str) -> _DataKey:
        with aws_call("kms:GenerateDataKey"):
            answer = self._client.generate_data_key(
                KeyId=self._key_id, NumberOfBytes=_KEY_BYTES, EncryptionContext={"project": project_id}
            )
        key = _DataKey(bytes(answer["Plaintext"]), bytes(answer["CiphertextBlob"]), answer["KeyId"])
        self._sealing.put(project_id, key)
        self._keys.put((project_id, key.wrapped), key)
        return key

    def _decrypted(self, project_id: str, wrapped: bytes) -> _DataKey:
        remembered = self._keys.get((project_id, wrapped))
        if remembered is not None:
            return remembered
        # KMS knows the key by its ciphertext; the role says which keys may be used.
        with aws_call("kms:Decrypt"):
            answer = self._client.decrypt(CiphertextBlob=wrapped, EncryptionContext={"project": project_id})
        key = _DataKey(bytes(answer["Plaintext"]), wrapped, answer["KeyId"])
        self._keys.put((project_id, wrapped), key)
        return key


def _parts(sealed: bytes) -> tuple[bytes, bytes, bytes]:
    """The encrypted key, the nonce and the encrypted text."""
    start = len(MARK) + 2
    end = start + int.from_bytes(sealed[len(MARK) : start])
    if not sealed.startswith(MARK) or len(sealed) < end + _NONCE_BYTES:
        raise Unavailable("opening a sealed value", NOT_SEALED)
    return sealed[start:end], sealed[end : end + _NONCE_BYTES], sealed[end + _NONCE_BYTES :]


def _context(project_id: str) -> bytes:
    return MARK + project_id.encode()


def _cipher(key: bytes) -> AESGCMSIV:
    """Imported when something is first sealed or opened: many hubs have nothing."""
    from cryptography.hazmat.primitives.ciphers.aead import AESGCMSIV  # noqa: PLC0415

    return AESGCMSIV(key)
