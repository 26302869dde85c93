"""How an endpoint is. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pushhub.engine.model.circuit import CircuitState, Health

if TYPE_CHECKING:
    from pushhub.webhooks.model.application import Application
    from pushhub.webhooks.model.endpoint import Endpoint


@dataclass(frozen=True, slots=True, kw_only=True)
class EndpointHealth:
    """What is known of an endpoint at a glance.

    Attributes:
        application: Whose it is.
        endpoint: The endpoint.
        health: What the engine knows of it.
        disables_at: When it is disabled if it fails on, epoch milliseconds; None while it does not fail.
    """

    application: Application
    endpoint: Endpoint
    health: Health
    disables_at: int | None

    @property
    def troubled(self) -> bool:
        """Whether it gets nothing, or little."""
        return self.endpoint.fields.disabled or self.health.state is not CircuitState.CLOSED


@dataclass(frozen=True, slots=True, kw_only=True)
class EndpointCheckup(EndpointHealth):
    """What is known of an endpoint after a closer look.

    Attributes:
        waiting: Deliveries that wait until it is back, as far as they were counted.
        old_keys_end: When each earlier signing key ends that still signs, epoch milliseconds, the first one first.
    """

    waiting: int
    old_keys_end: tuple[int, ...]
