"""What the handlers of the webhooks API call."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    # A function that only takes messages does not load the rest.
    from pushhub.webhooks.applications import WebhooksApplications
    from pushhub.webhooks.endpoints import WebhooksEndpoints
    from pushhub.webhooks.environment import Environments
    from pushhub.webhooks.event_types import WebhooksEventTypes
    from pushhub.webhooks.idempotency import Repeats
    from pushhub.webhooks.portal import Portal


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhooksUseCases:
    """The use cases of webhooks.

    Attributes:
        applications: Applications.
        endpoints: Endpoints.
        event_types: Event types.
        repeats: Answers repeated requests.
        portal: Tokens of the owners of applications.
        environments: What a project has, given out and taken in.
        base_url: Where the hub is.
    """

    applications: WebhooksApplications
    endpoints: WebhooksEndpoints
    event_types: WebhooksEventTypes
    repeats: Repeats
    portal: Portal
    environments: Environments
    base_url: str
