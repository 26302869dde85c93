"""Autoconfiguration: a token with which a consumer sets up one endpoint by itself, and verifies what is sent there.

The token is what Svix's clients read: ``auto_v2_`` and base64 of JSON, with the hub's URL, a key that sets up that
endpoint and does nothing else, and the endpoint's signing secret. The secret is derived from the key, so that neither
is stored.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
from dataclasses import dataclass, field

from pushhub.base import json_text
from pushhub.base.fields import APART, SPARSE, field_metadata

PREFIX = "auto_v2_"
_PURPOSE = b"pushhub autoconfig: signing secret of the endpoint"


@dataclass(frozen=True, slots=True, kw_only=True)
class Autoconfig:
    """An autoconfiguration.

    Attributes:
        endpoint_id: Of the endpoint that was set up; empty for none.
        polls: Whether that is a polling endpoint.
        begun_id: Of the endpoint that is being set up: whoever is interrupted finds it again.
        created_at: Epoch milliseconds.
    """

    project: str = field(metadata=field_metadata(stored=APART))
    app_id: str = field(metadata=field_metadata(stored=APART))
    autoconfig_id: str = field(metadata=field_metadata(stored=APART))
    endpoint_id: str = ""
    polls: bool = field(default=False, metadata=field_metadata(stored=SPARSE))
    begun_id: str = field(default="", metadata=field_metadata(stored=SPARSE))
    created_at: int


def signing_secret(key: str) -> str:
    """The signing secret of the endpoint that a key sets up."""
    return "whsec_" + base64.b64encode(hmac.digest(key.encode(), _PURPOSE, hashlib.sha256)).decode()


def autoconfig_token(autoconfig: Autoconfig, key: str, base_url: str) -> str:
    """What a consumer is given."""
    content = {
        "aid": autoconfig.app_id,
        "sid": autoconfig.autoconfig_id,
        "surl": base_url,
        "esec": signing_secret(key),
        "tok": key,
    }
    return PREFIX + base64.b64encode(json_text.write(content).encode()).decode()
