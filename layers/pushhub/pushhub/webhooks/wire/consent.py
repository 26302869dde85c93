"""Where endpoints consent to be sent anything, if they do so by a callback."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pushhub.webhooks.model.endpoint import Endpoint

CONSENT = "/api/v1/consent"
"""What the paths begin with; project, application and endpoint follow, by their ids, and a secret."""


def consent_url(base_url: str, endpoint: Endpoint, secret: str) -> str:
    """The URL that an endpoint is given. Whoever has it needs no token."""
    return f"{base_url}{CONSENT}/{endpoint.project}/{endpoint.app_id}/{endpoint.endpoint_id}/{secret}"
