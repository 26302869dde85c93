"""Signing keys of subscribers, and the signatures made with them (Standard Webhooks 1.0.0).

A key is written ``whsec_`` and the base64 of 24..75 bytes (symmetric: ``v1``, HMAC-SHA256), or ``whsk_`` and the base64
of an Ed25519 seed with its public key (``v1a``), of which the owner is only ever shown ``whpk_`` and the public key.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from pushhub.base import json_text
from pushhub.base.errors import Invalid

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

_SYMMETRIC = "whsec_"
_PRIVATE = "whsk_"
_PUBLIC = "whpk_"

LEAST_BYTES = 24
MOST_BYTES = 75

_SEED_BYTES = 32

DEFAULT_GRACE_S = 86_400
"""Default overlap, in seconds, during which an old key still signs beside the new one."""

MAX_GRACE_S = 604_800

MAX_OLD_KEYS = 10


@dataclass(frozen=True, slots=True)
class SigningKey:
    """A key.

    Attributes:
        private: The bytes of a symmetric key, or an Ed25519 seed.
        public: The public key of an Ed25519 seed; empty for a symmetric key.
    """

    private: bytes = field(repr=False)
    public: bytes = b""

    @property
    def text(self) -> str:
        """The key as its owner enters it."""
        prefix = _PRIVATE if self.public else _SYMMETRIC
        return prefix + base64.b64encode(self.private + self.public).decode()

    @property
    def shown(self) -> str:
        """The key as its owner is shown it: for an Ed25519 key, the public half."""
        return _PUBLIC + base64.b64encode(self.public).decode() if self.public else self.text

    def signature(self, content: bytes) -> str:
        """One signature of the content, in header format."""
        if self.public:
            return "v1a," + base64.b64encode(_ed25519(self.private).sign(content)).decode()
        return "v1," + base64.b64encode(hmac.digest(self.private, content, hashlib.sha256)).decode()


class TooManyKeys(Exception):
    """More old keys than allowed.

    Args:
        next_expiry: When the next one expires, epoch milliseconds.
    """

    def __init__(self, next_expiry: int) -> None:
        super().__init__("too many old keys")
        self.next_expiry = next_expiry


def parse_key(text: str) -> SigningKey:
    """Read a key entered by an owner.

    Raises:
        Invalid: Not a key; the error never repeats the text.
    """
    for prefix in (_SYMMETRIC, _PRIVATE):
        if text.startswith(prefix):
            try:
                content = base64.b64decode(text.removeprefix(prefix), validate=True)
            except (binascii.Error, ValueError) as error:
                raise Invalid("A secret must be whsec_ or whsk_ followed by base64") from error
            return _symmetric(content) if prefix == _SYMMETRIC else _asymmetric(content)
    raise Invalid("A secret must begin with whsec_ or whsk_")


def _symmetric(content: bytes) -> SigningKey:
    if not LEAST_BYTES <= len(content) <= MOST_BYTES:
        raise Invalid(f"A secret must have {LEAST_BYTES} to {MOST_BYTES} bytes")
    return SigningKey(content)


def _asymmetric(content: bytes) -> SigningKey:
    seed, public = content[:_SEED_BYTES], content[_SEED_BYTES:]
    if len(seed) != _SEED_BYTES or _ed25519(seed).public_key().public_bytes_raw() != public:
        raise Invalid("An Ed25519 secret must be a seed of 32 bytes followed by its public key")
    return SigningKey(seed, public)


def _ed25519(seed: bytes) -> Ed25519PrivateKey:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import (  # noqa: PLC0415 (few subscribers have such a key)
        Ed25519PrivateKey,
    )

    return Ed25519PrivateKey.from_private_bytes(seed)


def new_key() -> SigningKey:
    """A random symmetric key."""
    return SigningKey(secrets.token_bytes(LEAST_BYTES))


@dataclass(frozen=True, slots=True)
class KeyRing:
    """The keys of a subscriber.

    Attributes:
        current: Signs first.
        old: Previous keys, each with the time after which it no longer signs (epoch milliseconds), earliest first.
    """

    current: SigningKey
    old: tuple[tuple[SigningKey, int], ...] = ()

    def live(self, now: int) -> list[SigningKey]:
        """The keys to sign with, the current one first."""
        return [self.current, *(key for key, ends_at in self.old if ends_at > now)]

    def as_secrets(self, now: int) -> list[str]:
        """The valid keys in their owner's writing, the current one first, as secrets of schemes that are inherited.

        None if the current one is asymmetric: nobody else has its private half, so nobody could verify an HMAC with it.
        """
        return [] if self.current.public else [key.text for key in self.live(now) if not key.public]

    def rotated(self, key: SigningKey, *, grace_ms: int, now: int) -> KeyRing:
        """The ring with another current key.

        Args:
            key: The new key; may be an earlier one.
            grace_ms: How long the previous key still signs; 0 ends it at once.
            now: Epoch milliseconds.

        Raises:
            TooManyKeys: Too many old keys are still valid.
        """
        old = [(each, ends_at) for each, ends_at in self.old if ends_at > now and each != key]
        if self.current != key and grace_ms > 0:
            old.append((self.current, now + grace_ms))
        old.sort(key=lambda each: each[1])
        if len(old) > MAX_OLD_KEYS:
            raise TooManyKeys(old[0][1])
        return replace(self, current=key, old=tuple(old))

    def encode(self) -> bytes:
        """As bytes, ready to be sealed."""
        return json_text.write([[key.text, ends_at] for key, ends_at in ((self.current, 0), *self.old)]).encode()

    @classmethod
    def decode(cls, content: bytes) -> KeyRing:
        """The ring that :meth:`encode` wrote."""
        (current, _), *old = json_text.stored(content)
        return cls(_stored(current), tuple((_stored(text), ends_at) for text, ends_at in old))


def _stored(text: str) -> SigningKey:
    """A stored key, checked before; the public half of an Ed25519 key is not computed again."""
    prefix, _, rest = text.partition("_")
    content = base64.b64decode(rest)
    if f"{prefix}_" == _SYMMETRIC:
        return SigningKey(content)
    return SigningKey(content[:_SEED_BYTES], content[_SEED_BYTES:])


def signatures(keys: Sequence[SigningKey], message_id: str, timestamp: int, body: bytes) -> str:
    """The value of the signature header: one signature for each key.

    Args:
        keys: The valid keys, the current one first.
        message_id: The id that clients see.
        timestamp: Epoch seconds of the attempt.
        body: The exact bytes that are sent.
    """
    content = b"%s.%d.%s" % (message_id.encode(), timestamp, body)
    return " ".join(key.signature(content) for key in keys)
