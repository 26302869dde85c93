"""The hub's API (``/api/stores/...``, hub protocol v5)."""

from __future__ import annotations

from pushhub.hub.api import integrations, messages, notices, posting, queues, settings
from pushhub.hub.api.call import HubCall
from pushhub.hub.api.dialect import HubDialect
from pushhub.hub.api.use_cases import HubUseCases
from pushhub.web.api import Api, Route

ROUTES: tuple[Route[HubUseCases, HubCall], ...] = (
    *posting.ROUTES,
    *messages.ROUTES,
    *queues.ROUTES,
    *notices.ROUTES,
    *settings.ROUTES,
    *integrations.ROUTES,
)
"""Every route of the hub's API."""


class HubApi(Api[HubUseCases, HubCall]):
    """The hub's API."""

    def __init__(self, use_cases: HubUseCases) -> None:
        super().__init__(routes=ROUTES, use_cases=use_cases, dialect=HubDialect(use_cases.config))
