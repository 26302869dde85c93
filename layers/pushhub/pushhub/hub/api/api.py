"""The hub's API (``/api/stores/...``, hub protocol v5)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pushhub.hub.api import integrations, messages, notices, posting, queues, settings

if TYPE_CHECKING:
    from pushhub.hub.api.call import HubCall
    from pushhub.hub.api.use_cases import HubUseCases
    from pushhub.web.api import Route

ROUTES: tuple[Route[HubUseCases, HubCall], ...] = (
    *posting.ROUTES,
    *messages.ROUTES,
    *queues.ROUTES,
    *notices.ROUTES,
    *settings.ROUTES,
    *integrations.ROUTES,
)
"""Every route of the hub's API."""
