"""What the handlers of the REST API call."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    # A function that only publishes does not load the rest.
    from pushhub.notifications.consumers import Consumers
    from pushhub.notifications.publish import NotificationPublish
    from pushhub.notifications.subscribers import NotificationSubscribers
    from pushhub.notifications.subscriptions import NotificationSubscriptions
    from pushhub.notifications.waiting import NotificationsWaiting


@dataclass(frozen=True, slots=True, kw_only=True)
class Publishing:
    """What publishers need."""

    publishing: NotificationPublish


@dataclass(frozen=True, slots=True, kw_only=True)
class NotificationsUseCases(Publishing):
    """The use cases of Notifications 2.0.

    Attributes:
        subscriptions: Publishing rules.
        subscribers: Tokens for consumers, and unsubscribing.
        consumers: Tells whether a handshake would be accepted.
        waiting: Tells what waits for subscribers.
    """

    subscriptions: NotificationSubscriptions
    subscribers: NotificationSubscribers
    consumers: Consumers
    waiting: NotificationsWaiting
    base_url: str
