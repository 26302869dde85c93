"""Tokens of mappings and integrations: stored encrypted, and opened for a request to a service."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from pushhub.base.credentials import MASK
from pushhub.hub.model.integration import Integration
from pushhub.hub.model.mapping import ServiceMapping

if TYPE_CHECKING:
    from pushhub.engine.security.credentials import Credentials

Holder = TypeVar("Holder", ServiceMapping, Integration)

_TOKEN = "token"  # noqa: S105 (the name of a value)


def sealed(holder: Holder, project_id: str, credentials: Credentials) -> Holder:
    """A mapping or integration as it is stored."""
    if holder.token == MASK:
        return holder
    if not holder.token:
        return replace(holder, credentials=b"")
    return replace(holder, token=MASK, credentials=credentials.seal(project_id, {"": {_TOKEN: holder.token}}))


def token_of(holder: ServiceMapping | Integration, project_id: str, credentials: Credentials) -> str:
    """The token that a service is sent."""
    hidden = credentials.open(project_id, holder.credentials).get("", {})
    return hidden[_TOKEN] if holder.token == MASK and _TOKEN in hidden else holder.token
