"""Authenticated encryption with what Python brings: SHAKE256 for the key stream, HMAC for the rest.

Python has no cipher, and a compiled package would have to match processor and runtime
(docs/decisions/0064-what-opens-something-is-sealed.md). This is encrypt-then-MAC: a random nonce gives each text two
keys of its own (HMAC-SHA512 of the nonce, halved), of which one begins the key stream and the other authenticates the
text together with its context.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets

KEY_BYTES = 32
_NONCE_BYTES = 24
_TAG_BYTES = 32
_PURPOSE = b"pushhub cipher 1"


def encrypt(key: bytes, content: bytes, *, context: bytes) -> bytes:
    """Encrypt a text of any length; it becomes 56 bytes longer.

    Args:
        key: 32 random bytes. May encrypt any number of texts.
        content: The text.
        context: Not part of the result, but needed again to decrypt it.
    """
    nonce = secrets.token_bytes(_NONCE_BYTES)
    stream_key, tag_key = _keys(key, nonce)
    hidden = _combined(content, stream_key)
    return nonce + hidden + _tag(tag_key, hidden, context)


def decrypt(key: bytes, sealed: bytes, *, context: bytes) -> bytes:
    """Decrypt what :func:`encrypt` made.

    Raises:
        ValueError: It was made with another key or context, or was changed.
    """
    nonce, hidden, tag = sealed[:_NONCE_BYTES], sealed[_NONCE_BYTES:-_TAG_BYTES], sealed[-_TAG_BYTES:]
    if len(sealed) < _NONCE_BYTES + _TAG_BYTES:
        raise ValueError("too short to be encrypted")
    stream_key, tag_key = _keys(key, nonce)
    if not hmac.compare_digest(tag, _tag(tag_key, hidden, context)):
        raise ValueError("encrypted with another key or context, or changed")
    return _combined(hidden, stream_key)


def _keys(key: bytes, nonce: bytes) -> tuple[bytes, bytes]:
    if len(key) != KEY_BYTES:
        raise ValueError(f"a key has {KEY_BYTES} bytes")
    both = hmac.digest(key, _PURPOSE + nonce, hashlib.sha512)
    return both[:KEY_BYTES], both[KEY_BYTES:]


def _combined(content: bytes, stream_key: bytes) -> bytes:
    stream = hashlib.shake_256(stream_key).digest(len(content))
    return (int.from_bytes(content) ^ int.from_bytes(stream)).to_bytes(len(content))


def _tag(tag_key: bytes, hidden: bytes, context: bytes) -> bytes:
    return hmac.digest(tag_key, len(context).to_bytes(8) + context + hidden, hashlib.sha256)
