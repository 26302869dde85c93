"""Standard Webhooks signatures, and what is wrong with one that does not match.

A signature that does not match explains nothing by itself. So each part is checked alone, and then the usual mistakes
are tried: if the signature matches a changed part, that part is wrong.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from pushhub.base.json_text import NotJson, read
from pushhub.base.numerals import digits

TOLERANCE_S = 300
"""Seconds that a timestamp may be off in either direction (Standard Webhooks)."""
MILLISECONDS = 10**11
"""Timestamps from this value on are assumed to be milliseconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Signed:
    """A signed request.

    Attributes:
        message_id: Header ``webhook-id``.
        timestamp: Header ``webhook-timestamp``.
        signature: Header ``webhook-signature``.
        body: Its bytes.
    """

    message_id: str
    timestamp: str
    signature: str
    body: bytes


@dataclass(frozen=True, slots=True)
class Finding:
    """The result for one part.

    Attributes:
        part: ``id``, ``timestamp``, ``signature``, ``key``, ``body``.
        wrong: Whether the request must be refused because of it.
        says: A sentence.
    """

    part: str
    wrong: bool
    says: str


def findings(signed: Signed, secret: str, now: int, tolerance: int = TOLERANCE_S) -> list[Finding]:
    """The result for each part; the request is valid if none is wrong.

    Args:
        secret: ``whsec_`` and base64, or ``whpk_`` and base64 for Ed25519.
        now: Epoch seconds.
        tolerance: Seconds that the timestamp may be off.
    """
    found = [_id(signed), _timestamp(signed, now, tolerance)]
    shaped = _signature(signed)
    found.append(shaped)
    key, key_finding = _key(secret)
    if key is None or shaped.wrong:
        return [*found, key_finding]
    if _fits(signed, key):
        return [*found, key_finding, Finding("body", False, "fits the signature")]
    return [*found, *_mistakes(signed, secret, key)]


def _id(signed: Signed) -> Finding:
    if not signed.message_id:
        return Finding("id", True, "is missing: header webhook-id (or svix-id)")
    if signed.message_id != signed.message_id.strip() or "." in signed.message_id:
        return Finding("id", True, "has white space at an end, or a dot, which no id has")
    return Finding("id", False, signed.message_id)


def _timestamp(signed: Signed, now: int, tolerance: int) -> Finding:
    text = signed.timestamp
    if not text:
        return Finding("timestamp", True, "is missing: header webhook-timestamp (or svix-timestamp)")
    sent = digits(text, 15)
    if sent is None:
        return Finding("timestamp", True, f"{text[:40]!r} is not a number of seconds")
    if sent >= MILLISECONDS:
        return Finding("timestamp", True, "counts milliseconds: it must be seconds")
    off = now - sent
    if abs(off) > tolerance:
        way = "old" if off > 0 else "ahead"
        return Finding(
            "timestamp", True, f"is {abs(off)} s {way}, over {tolerance}: the request was replayed, or a clock is wrong"
        )
    return Finding("timestamp", False, f"{abs(off)} s off")


def _versions(signed: Signed) -> list[tuple[str, str]]:
    pairs = (each.partition(",") for each in signed.signature.split())
    return [(version, value) for version, comma, value in pairs if comma]


def _signature(signed: Signed) -> Finding:
    versions = _versions(signed)
    if not signed.signature:
        return Finding("signature", True, "is missing: header webhook-signature (or svix-signature)")
    known = [value for version, value in versions if version in ("v1", "v1a")]
    if not known:
        return Finding("signature", True, "contains neither v1,BASE64 nor v1a,BASE64")
    if not any(_decoded(each) for each in known):
        return Finding("signature", True, "is not base64")
    return Finding("signature", False, f"{len(known)} to compare with")


def _key(secret: str) -> tuple[bytes | None, Finding]:
    secret = secret.strip()
    key = _decoded(secret.removeprefix("whsec_").removeprefix("whpk_"))
    if not key:
        return None, Finding("key", True, "is not base64 (after whsec_ or whpk_)")
    if secret.startswith("whpk_") and len(key) != 32:
        return None, Finding("key", True, f"an Ed25519 public key has 32 bytes, this has {len(key)}")
    return key, Finding("key", False, f"{len(key)} bytes")


def _decoded(text: str) -> bytes | None:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return None


def _fits(signed: Signed, key: bytes) -> bool:
    content = f"{signed.message_id}.{signed.timestamp}.".encode() + signed.body
    for version, value in _versions(signed):
        given = _decoded(value)
        if given is None:
            continue
        if version == "v1" and hmac.compare_digest(hmac.digest(key, content, hashlib.sha256), given):
            return True
        if version == "v1a" and len(key) == 32:
            try:
                Ed25519PublicKey.from_public_bytes(key).verify(given, content)
            except (InvalidSignature, ValueError):
                continue
            return True
    return False


def _mistakes(signed: Signed, secret: str, key: bytes) -> Iterator[Finding]:
    """Which part is wrong, if one of the usual mistakes explains it."""
    usual = chain(
        (("key", said, signed, other) for said, other in _other_keys(secret)),
        (("body", said, replace(signed, body=body), key) for said, body in _other_bodies(signed.body)),
        ((part, said, changed, key) for part, said, changed in _other_heads(signed)),
    )
    for part, said, changed, other in usual:
        if _fits(changed, other):
            yield Finding(part, True, said)
            return
    yield Finding("key", False, f"{len(key)} bytes; it is unknown whether it is the sender's")
    said = "does not fit the signature: it was changed on the way, or id, timestamp or secret belong to another request"
    yield Finding("body", True, said)


def _other_keys(secret: str) -> Sequence[tuple[str, bytes]]:
    bare = secret.strip().removeprefix("whsec_")
    return (
        ("was used as text by the sender, not decoded from base64", bare.encode()),
        ("was used as text by the sender, including its whsec_", secret.strip().encode()),
    )


def _other_bodies(body: bytes) -> Iterator[tuple[str, bytes]]:
    yield "has an extra line ending at its end", body.rstrip(b"\r\n")
    yield "lacks the line ending at its end", body + b"\n"
    yield "has different line endings than when it was signed", body.replace(b"\r\n", b"\n")
    yield "begins with a byte order mark", body.removeprefix(b"\xef\xbb\xbf")
    try:
        value = read(body, last_wins=True)
    except NotJson:
        return
    parsed = "was parsed and serialised again: sign and verify the bytes as received"
    for separators in ((",", ":"), (", ", ": ")):
        for ascii_only in (False, True):
            yield parsed, json.dumps(value, separators=separators, ensure_ascii=ascii_only).encode()
            yield parsed, json.dumps(value, separators=separators, ensure_ascii=ascii_only, sort_keys=True).encode()
    yield parsed, json.dumps(value, indent=2, ensure_ascii=False).encode()


def _other_heads(signed: Signed) -> Iterator[tuple[str, str, Signed]]:
    yield "id", "has white space that was not signed", replace(signed, message_id=signed.message_id.strip())
    sent = digits(signed.timestamp, 15)
    if sent is not None:
        yield "timestamp", "was signed in milliseconds", replace(signed, timestamp=str(sent * 1000))
        yield "timestamp", "was signed in seconds", replace(signed, timestamp=str(sent // 1000))
