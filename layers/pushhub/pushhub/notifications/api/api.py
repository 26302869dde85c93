"""The REST half of Notifications 2.0."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pushhub.notifications.api import consumers, publishing, subscriptions

if TYPE_CHECKING:
    from pushhub.notifications.api.call import NotificationsCall
    from pushhub.notifications.api.use_cases import NotificationsUseCases
    from pushhub.web.api import Route

ROUTES: tuple[Route[NotificationsUseCases, NotificationsCall], ...] = (
    *subscriptions.ROUTES,
    *publishing.ROUTES,
    *consumers.ROUTES,
)
"""Every route of the REST API."""
