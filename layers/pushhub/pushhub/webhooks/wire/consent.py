"""The URL where endpoints give their consent by a callback."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pushhub.webhooks.model.endpoint import Endpoint

CONSENT = "/api/v1/consent"
"""Beginning of the paths; followed by the ids of project, application and endpoint, and a secret."""


def consent_url(base_url: str, endpoint: Endpoint, secret: str) -> str:
    """The URL given to an endpoint. It works without a token."""
    return f"{base_url}{CONSENT}/{endpoint.project}/{endpoint.app_id}/{endpoint.endpoint_id}/{secret}"
