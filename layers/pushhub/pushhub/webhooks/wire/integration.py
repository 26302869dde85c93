"""Integrations on the wire."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pushhub.base.times import iso_time
from pushhub.webhooks.model.integration import AppIntegration, AppIntegrationFields
from pushhub.webhooks.wire.fields import NAME
from pushhub.webhooks.wire.portal import MAX_FLAGS

if TYPE_CHECKING:
    from pushhub.webhooks.wire.fields import Fields

MAX_NAME = 256
"""Characters of a name."""


def parse_integration(fields: Fields) -> AppIntegrationFields:
    """An integration to be made, or to be replaced."""
    name = fields.text("name", least=1, most=MAX_NAME)
    flags = None if fields.raw("featureFlags") == [] else fields.names("featureFlags", NAME, most=MAX_FLAGS)
    return AppIntegrationFields(name=name, flags=tuple(dict.fromkeys(flags or ())))


def integration_view(integration: AppIntegration) -> dict[str, Any]:
    """An integration as clients read it."""
    shown: dict[str, Any] = {
        "id": integration.integration_id,
        "name": integration.fields.name,
        "createdAt": iso_time(integration.created_at),
        "updatedAt": iso_time(integration.updated_at),
    }
    if integration.fields.flags:
        shown["featureFlags"] = list(integration.fields.flags)
    return shown
