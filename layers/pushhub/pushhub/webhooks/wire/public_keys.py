"""Public keys as receivers fetch them: a JSON Web Key Set (RFC 7517) of Ed25519 keys (RFC 8037), and where it is."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable
from typing import TYPE_CHECKING

from pushhub.base import json_text

if TYPE_CHECKING:
    from pushhub.webhooks.model.endpoint import Endpoint

PUBLIC_KEYS = "/api/v1/public-key"
"""Beginning of the paths; followed by the ids of project, application and endpoint."""


def public_keys_url(base_url: str, endpoint: Endpoint) -> str:
    """The URL of an endpoint's public keys. It needs no token; the endpoint's random id makes it hard to guess."""
    return f"{base_url}{PUBLIC_KEYS}/{endpoint.project}/{endpoint.app_id}/{endpoint.endpoint_id}"


def key_set(keys: Iterable[bytes]) -> dict[str, object]:
    """Ed25519 public keys as a set, in the given order (current one first). ``whpk`` is the same key as Svix writes
    it.
    """
    return {"keys": [_key(each) for each in keys]}


def _key(public: bytes) -> dict[str, str]:
    needed = {"crv": "Ed25519", "kty": "OKP", "x": _base64url(public)}
    # The thumbprint of RFC 7638: of the required members only, in the order of their names, without spaces.
    digest = hashlib.sha256(json_text.write(needed, ascii_only=True).encode()).digest()
    whpk = "whpk_" + base64.b64encode(public).decode()
    return {**needed, "use": "sig", "alg": "EdDSA", "kid": _base64url(digest), "whpk": whpk}


def _base64url(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).rstrip(b"=").decode()
