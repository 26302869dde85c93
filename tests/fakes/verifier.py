"""Verifies signatures like a receiver with the key, without any code of the hub (Standard Webhooks 1.0.0)."""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import Mapping

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat


def symmetric(letter: str = "k") -> str:
    """A secret for ``v1``, made of one letter."""
    return "whsec_" + base64.b64encode(letter.encode() * 32).decode()


def new_asymmetric() -> tuple[str, str]:
    """A secret for ``v1a``, and its public half."""
    private = Ed25519PrivateKey.generate()
    seed = private.private_bytes(Encoding.Raw, PrivateFormat.Raw, NoEncryption())
    public = private.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)
    return "whsk_" + base64.b64encode(seed + public).decode(), "whpk_" + base64.b64encode(public).decode()


def verified(key: str, headers: Mapping[str, str], body: bytes) -> bool:
    """Whether one of a request's signatures was made with a key (``whsec_`` or ``whpk_``)."""
    given = {name.lower(): value for name, value in headers.items()}
    content = f"{given['webhook-id']}.{given['webhook-timestamp']}.".encode() + body
    kind, _, encoded = key.partition("_")
    raw = base64.b64decode(encoded)
    for each in given["webhook-signature"].split(" "):
        version, _, signature = each.partition(",")
        if version == "v1" and kind == "whsec":
            expected = base64.b64encode(hmac.new(raw, content, hashlib.sha256).digest()).decode()
            if hmac.compare_digest(expected, signature):
                return True
        if version == "v1a" and kind == "whpk":
            try:
                Ed25519PublicKey.from_public_bytes(raw).verify(base64.b64decode(signature), content)
            except InvalidSignature:
                continue
            return True
    return False
