"""Integrations of an application: services of other companies, each with a key of its own that opens the application
until it is taken back.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from pushhub.base.fields import APART, field_metadata


@dataclass(frozen=True, slots=True, kw_only=True)
class AppIntegrationFields:
    """What its owner says of an integration.

    Attributes:
        flags: Feature flags of its key; event types that have one are shown only if it is among these.
    """

    name: str
    flags: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class AppIntegration:
    """An integration. Its key is a token of the application (:class:`pushhub.webhooks.model.portal.PortalAccess`).

    Attributes:
        integration_id: ``integ_...``
        created_at: Epoch milliseconds, like ``updated_at``.
    """

    project: str = field(metadata=field_metadata(stored=APART))
    app_id: str = field(metadata=field_metadata(stored=APART))
    integration_id: str = field(metadata=field_metadata(stored=APART))
    fields: AppIntegrationFields = field(metadata=field_metadata(stored=APART))
    created_at: int = field(metadata=field_metadata(stored=APART))
    updated_at: int = field(metadata=field_metadata(stored=APART))
