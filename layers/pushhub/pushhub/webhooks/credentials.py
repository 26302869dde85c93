"""What opens something in an endpoint: its URL's user information and the values of its headers. Stored encrypted, and
opened for each attempt and for its owner's changes.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pushhub.base.credentials import MASK, masked_headers, masked_url, place_of, revealed, user_of, with_user
from pushhub.engine.credentials import still_hidden

if TYPE_CHECKING:
    from pushhub.engine.credentials import Credentials
    from pushhub.webhooks.model.endpoint import Endpoint, EndpointFields
    from pushhub.webhooks.wire.fields import Fields

_OWN = ""
"""The only holder in an endpoint's encrypted text."""


def sealed(endpoint: Endpoint, credentials: Credentials) -> Endpoint:
    """An endpoint as it is stored.

    Raises:
        Unavailable: It could not be encrypted.
    """
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
    """An endpoint with its hidden values.

    Raises:
        Unavailable: They could not be decrypted.
    """
    hidden = credentials.open(endpoint.project, endpoint.credentials).get(_OWN)
    if not hidden:
        return endpoint
    url, headers = revealed(endpoint.fields.url, endpoint.headers, hidden)
    return replace(endpoint, fields=replace(endpoint.fields, url=url), headers=headers)


def without_secrets(endpoint: Endpoint) -> Endpoint:
    """An endpoint that nothing will be sent to any more."""
    bare = replace(endpoint, headers={}, credentials=b"", scheme_secrets=b"")
    return replace(bare, oauth=b"", certificate=None, identity=b"")


def as_meant(given: EndpointFields, stored: EndpointFields | None, fields: Fields) -> EndpointFields:
    """An owner's fields, with the user information that ``********`` in the URL stands for: the stored one's.

    Args:
        given: As read from the request.
        stored: The opened ones; None for a new endpoint.
        fields: The request.

    Raises:
        Unprocessable: None is stored, or it belongs to another host, which must not get it.
    """
    if user_of(given.url) != MASK:
        return given
    user = user_of(stored.url) if stored and place_of(stored.url) == place_of(given.url) else None
    if user is None:
        raise fields.refuse(f"{MASK} stands for a stored value, and there is none for this URL", "url")
    return replace(given, url=with_user(given.url, user))
