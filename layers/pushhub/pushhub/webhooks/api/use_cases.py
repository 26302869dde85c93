"""What the handlers of the webhooks API call."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    # A function that only accepts messages does not load the rest.
    from pushhub.base.ports import Clock
    from pushhub.webhooks.applications import WebhooksApplications
    from pushhub.webhooks.attempts import WebhooksAttempts
    from pushhub.webhooks.endpoints import WebhooksEndpoints
    from pushhub.webhooks.environment import Environments
    from pushhub.webhooks.event_types import WebhooksEventTypes
    from pushhub.webhooks.examples import WebhooksExamples
    from pushhub.webhooks.gates import EndpointGates
    from pushhub.webhooks.health import WebhooksHealth
    from pushhub.webhooks.idempotency import Repeats
    from pushhub.webhooks.messages import WebhooksMessages
    from pushhub.webhooks.operational import Operational
    from pushhub.webhooks.poller import WebhooksPoller
    from pushhub.webhooks.portal import Portal
    from pushhub.webhooks.posting import WebhooksPosting
    from pushhub.webhooks.resending import WebhooksResending
    from pushhub.webhooks.signature_defaults import SignatureDefaults
    from pushhub.webhooks.signatures import EndpointSignatures
    from pushhub.webhooks.tasks import Tasks


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
