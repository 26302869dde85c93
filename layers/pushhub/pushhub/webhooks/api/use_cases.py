"""What the handlers of the webhooks API call."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    # A function that only accepts messages does not load the rest.
    from pushhub.base.ports import Clock
    from pushhub.webhooks.applications.applications import WebhooksApplications
    from pushhub.webhooks.applications.environment import Environments
    from pushhub.webhooks.applications.event_types import WebhooksEventTypes
    from pushhub.webhooks.applications.portal import Portal
    from pushhub.webhooks.endpoints.endpoints import WebhooksEndpoints
    from pushhub.webhooks.endpoints.gates import EndpointGates
    from pushhub.webhooks.endpoints.health import WebhooksHealth
    from pushhub.webhooks.endpoints.signature_defaults import SignatureDefaults
    from pushhub.webhooks.endpoints.signatures import EndpointSignatures
    from pushhub.webhooks.messages.attempts import WebhooksAttempts
    from pushhub.webhooks.messages.examples import WebhooksExamples
    from pushhub.webhooks.messages.idempotency import Repeats
    from pushhub.webhooks.messages.messages import WebhooksMessages
    from pushhub.webhooks.messages.poller import WebhooksPoller
    from pushhub.webhooks.messages.posting import WebhooksPosting
    from pushhub.webhooks.operational.operational import Operational
    from pushhub.webhooks.resending.resending import WebhooksResending
    from pushhub.webhooks.resending.tasks import Tasks


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhooksPostingUseCases:
    """What producers need."""

    clock: Clock
    posting: WebhooksPosting
    messages: WebhooksMessages


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhooksUseCases(WebhooksPostingUseCases):
    """The use cases of webhooks. ``gates`` and the next two are made when they are first asked for."""

    applications: WebhooksApplications
    endpoints: WebhooksEndpoints
    gates: Callable[[], EndpointGates]
    signatures: Callable[[], EndpointSignatures]
    signature_defaults: Callable[[], SignatureDefaults]
    event_types: WebhooksEventTypes
    attempts: WebhooksAttempts
    resending: WebhooksResending
    examples: WebhooksExamples
    health: WebhooksHealth
    repeats: Repeats
    portal: Portal
    environments: Environments
    operational: Operational
    tasks: Tasks
    poller: WebhooksPoller
    base_url: str
