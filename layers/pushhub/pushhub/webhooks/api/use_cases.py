"""What the handlers of the webhooks API call."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    # A function that only accepts messages does not load the rest.
    from pushhub.base.ports import Clock
    from pushhub.webhooks.applications.applications import WebhooksApplications
    from pushhub.webhooks.applications.connectors import Connectors
    from pushhub.webhooks.applications.environment import Environments
    from pushhub.webhooks.applications.event_types import WebhooksEventTypes
    from pushhub.webhooks.applications.integrations import AppIntegrations
    from pushhub.webhooks.applications.portal import Portal
    from pushhub.webhooks.endpoints.autoconfigs import Autoconfigs
    from pushhub.webhooks.endpoints.destinations import Destinations
    from pushhub.webhooks.endpoints.endpoints import WebhooksEndpoints
    from pushhub.webhooks.endpoints.gates import EndpointGates
    from pushhub.webhooks.endpoints.health import WebhooksHealth
    from pushhub.webhooks.endpoints.signature_defaults import SignatureDefaults
    from pushhub.webhooks.endpoints.signatures import EndpointSignatures
    from pushhub.webhooks.endpoints.transformations import Transformations
    from pushhub.webhooks.messages.attempts import WebhooksAttempts
    from pushhub.webhooks.messages.consumers import PollingConsumers
    from pushhub.webhooks.messages.examples import WebhooksExamples
    from pushhub.webhooks.messages.idempotency import Repeats
    from pushhub.webhooks.messages.messages import WebhooksMessages
    from pushhub.webhooks.messages.poller import WebhooksPoller
    from pushhub.webhooks.messages.posting import WebhooksPosting
    from pushhub.webhooks.operational.operational import Operational
    from pushhub.webhooks.resending.resending import WebhooksResending
    from pushhub.webhooks.resending.tasks import Tasks
    from pushhub.webhooks.sources.arrivals import Arrivals
    from pushhub.webhooks.sources.sources import WebhooksSources
    from pushhub.webhooks.streams.events import StreamEvents
    from pushhub.webhooks.streams.sinks import StreamSinks
    from pushhub.webhooks.streams.streams import WebhooksStreams


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhooksPostingUseCases:
    """What producers need. ``arrivals`` is made when somebody posts to a source."""

    clock: Clock
    posting: WebhooksPosting
    messages: WebhooksMessages
    arrivals: Callable[[], Arrivals]
    base_url: str


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhooksUseCases(WebhooksPostingUseCases):
    """The use cases of webhooks. Those that are called are made when they are first asked for."""

    applications: WebhooksApplications
    endpoints: WebhooksEndpoints
    destinations: Callable[[], Destinations]
    gates: Callable[[], EndpointGates]
    transformations: Callable[[], Transformations]
    signatures: Callable[[], EndpointSignatures]
    signature_defaults: Callable[[], SignatureDefaults]
    event_types: WebhooksEventTypes
    attempts: WebhooksAttempts
    resending: WebhooksResending
    examples: WebhooksExamples
    health: WebhooksHealth
    repeats: Repeats
    portal: Portal
    integrations: Callable[[], AppIntegrations]
    autoconfigs: Callable[[], Autoconfigs]
    connectors: Callable[[], Connectors]
    environments: Environments
    operational: Operational
    tasks: Tasks
    poller: WebhooksPoller
    consumers: Callable[[], PollingConsumers]
    sources: Callable[[], WebhooksSources]
    streams: Callable[[], WebhooksStreams]
    stream_events: Callable[[], StreamEvents]
    sinks: Callable[[], StreamSinks]
