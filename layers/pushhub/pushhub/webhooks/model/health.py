"""The health of an endpoint. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pushhub.engine.model.subscriber_health import SubscriberHealth
    from pushhub.webhooks.model.application import Application
    from pushhub.webhooks.model.endpoint import Endpoint


@dataclass(frozen=True, slots=True, kw_only=True)
class EndpointHealth:
    """What is known of an endpoint at a glance.

    Attributes:
        health: How it is doing.
        disables_at: When it will be disabled if it keeps failing, epoch milliseconds; None while it is not failing.
    """

    application: Application
    endpoint: Endpoint
    health: SubscriberHealth
    disables_at: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class EndpointCheckup(EndpointHealth):
    """What is known of an endpoint after a closer look.

    Attributes:
        old_keys_end: When each earlier signing key still in use expires, epoch milliseconds, earliest first.
        signatures_end: When schemes that sign its requests end, by their header, epoch milliseconds: of its own, or
            those that it inherits.
        seen_at: When this was so, epoch milliseconds.
    """

    old_keys_end: tuple[int, ...]
    signatures_end: Mapping[str, int]
    seen_at: int
