"""The REST half of Notifications 2.0."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pushhub.notifications.api import consumers, publishing, subscriptions
from pushhub.notifications.api.call import NotificationsCall
from pushhub.notifications.api.dialect import NotificationsDialect
from pushhub.notifications.api.use_cases import NotificationsUseCases
from pushhub.web.api import Api, Route

if TYPE_CHECKING:
    from pushhub.engine.ports import Projects

ROUTES: tuple[Route[NotificationsUseCases, NotificationsCall], ...] = (
    *subscriptions.ROUTES,
    *publishing.ROUTES,
    *consumers.ROUTES,
)
"""Every route of the REST API."""


class NotificationsApi(Api[NotificationsUseCases, NotificationsCall]):
    """Subscriptions, tokens, publishing.

    Args:
        config: Projects and their tokens.
        use_cases: Handed to every handler.
    """

    def __init__(self, *, config: Projects, use_cases: NotificationsUseCases) -> None:
        super().__init__(routes=ROUTES, use_cases=use_cases, dialect=NotificationsDialect(config))
