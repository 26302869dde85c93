"""Connectors: templates of transformations that an organization offers to the owners of endpoints. An endpoint that is
made from one has a copy of its code.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from pushhub.base.fields import APART, field_metadata
from pushhub.webhooks.model.event_type import seen_with


class ConnectorKind(StrEnum):
    """Which service's picture and words a portal shows with it."""

    CUSTOM = "Custom"
    AGENTIC_COMMERCE_PROTOCOL = "AgenticCommerceProtocol"
    CLOSE_CRM = "CloseCRM"
    CUSTOMER_IO = "CustomerIO"
    DATADOG_TRACING = "DatadogTracing"
    DISCORD = "Discord"
    GRAFANA_CLOUD_TRACING = "GrafanaCloudTracing"
    HUBSPOT = "Hubspot"
    INNGEST = "Inngest"
    LOOPS = "Loops"
    NEW_RELIC_TRACING = "NewRelicTracing"
    OTEL = "Otel"
    RESEND = "Resend"
    SALESFORCE = "Salesforce"
    SEGMENT = "Segment"
    SENDGRID = "Sendgrid"
    SLACK = "Slack"
    TEAMS = "Teams"
    TRIGGER_DEV = "TriggerDev"
    WINDMILL = "Windmill"
    ZAPIER = "Zapier"


class ConnectorProduct(StrEnum):
    """Whether it is meant for endpoints of applications or for sinks of streams."""

    DISPATCH = "Dispatch"
    STREAM = "Stream"


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectorFields:
    """What its owner says of a connector.

    Attributes:
        uid: Its owner's own id for it, which stays; None for none.
        logo: URL of a picture; None for none.
        instructions: For whoever makes an endpoint from it.
        event_types: Those that such an endpoint may choose; None for all. Portals go by that, the hub does not.
        code: Of the transformation.
        flags: Portals whose token has none of these do not see it; empty if all do.
    """

    name: str
    uid: str | None = None
    kind: ConnectorKind = ConnectorKind.CUSTOM
    logo: str | None = None
    description: str = ""
    instructions: str = ""
    event_types: tuple[str, ...] | None = None
    code: str
    flags: tuple[str, ...] = ()
    product: ConnectorProduct = ConnectorProduct.DISPATCH


@dataclass(frozen=True, slots=True, kw_only=True)
class Connector:
    """A connector of a project.

    Attributes:
        connector_id: ``trtmpl_...``
        created_at: Epoch milliseconds, like ``updated_at`` and ``code_updated_at``.
        version: Rises with each change; 0 for one that is not stored yet.
    """

    project: str = field(metadata=field_metadata(stored=APART))
    connector_id: str = field(metadata=field_metadata(stored=APART))
    fields: ConnectorFields = field(metadata=field_metadata(stored=APART))
    created_at: int = field(metadata=field_metadata(stored=APART))
    updated_at: int = field(metadata=field_metadata(stored=APART))
    code_updated_at: int = field(metadata=field_metadata(stored=APART))
    version: int = field(default=0, metadata=field_metadata(stored=APART))

    def seen_by(self, flags: frozenset[str] | None) -> bool:
        """Whether a caller may see it.

        Args:
            flags: Feature flags of an application's token; None for the organization's.
        """
        return seen_with(flags, self.fields.flags)
