"""What opens something in an endpoint: its URL's user information and the values of its headers. Stored encrypted, and
opened for each attempt and for its owner's changes.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pushhub.base.credentials import masked_headers, masked_url, revealed
from pushhub.engine.security.credentials import still_hidden

if TYPE_CHECKING:
    from pushhub.engine.security.credentials import Credentials
    from pushhub.webhooks.model.endpoint import Endpoint

_OWN = ""
"""The only holder in an endpoint's encrypted text."""


def sealed(endpoint: Endpoint, credentials: Credentials) -> Endpoint:
    """An endpoint as it is stored."""
    url, headers = endpoint.fields.url, endpoint.headers
    before = credentials.open(endpoint.project, endpoint.credentials).get(_OWN, {})
    hidden = still_hidden(url, headers, before)
    return replace(
        endpoint,
        fields=replace(endpoint.fields, url=masked_url(url)),
        headers=masked_headers(headers),
        credentials=endpoint.credentials if hidden == before else credentials.seal(endpoint.project, {_OWN: hidden}),
    )


def opened(endpoint: Endpoint, credentials: Credentials) -> Endpoint:
    """An endpoint with its hidden values."""
    hidden = credentials.open(endpoint.project, endpoint.credentials).get(_OWN)
    if not hidden:
        return endpoint
    url, headers = revealed(endpoint.fields.url, endpoint.headers, hidden)
    return replace(endpoint, fields=replace(endpoint.fields, url=url), headers=headers)


def without_secrets(endpoint: Endpoint) -> Endpoint:
    """An endpoint that nothing will be sent to any more."""
    bare = replace(endpoint, headers={}, credentials=b"", scheme_secrets=b"")
    return replace(bare, oauth=b"", certificate=None, identity=b"", transforms=False, transformation=b"")
