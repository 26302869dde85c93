"""What the handlers of the webhooks API call."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    # A function that only takes messages does not load the rest.
    from pushhub.webhooks.applications import WebhooksApplications
    from pushhub.webhooks.endpoints import WebhooksEndpoints
    from pushhub.webhooks.event_types import WebhooksEventTypes
    from pushhub.webhooks.idempotency import Repeats


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhooksUseCases:
    """The use cases of webhooks.

    Attributes:
        applications: Applications.
        endpoints: Endpoints.
        event_types: Event types.
        repeats: Answers repeated requests.
    """

    applications: WebhooksApplications
    endpoints: WebhooksEndpoints
    event_types: WebhooksEventTypes
    repeats: Repeats
