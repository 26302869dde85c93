"""Subscriptions: created, listed and removed. When one is removed, its topic keeps its notifications and
subscribers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from pushhub.base.errors import Conflict
from pushhub.engine.component import Component
from pushhub.notifications.wire.errors import DuplicateSubscription, SubscriptionNotFound

if TYPE_CHECKING:
    from pushhub.base.ports import Clock
    from pushhub.notifications.model.subscription import Subscription
    from pushhub.notifications.ports import SubscriptionStore
    from pushhub.notifications.wire.subscriptions import Selection


LONGEST_ID = 20
"""Digits of the largest id: ids have 64 bits."""


def _may_be_id(text: str) -> bool:
    """Whether a text could be an id: a few digits, in ASCII."""
    return text.isascii() and text.isdigit() and len(text) <= LONGEST_ID


class NotificationSubscriptions(Component):
    """Manages the publishing rules of projects. Methods raise ``SubscriptionNotFound`` for what is not there."""

    subscriptions: SubscriptionStore
    next_id: Callable[[], str]  # Makes ids, 19 decimal digits.
    clock: Clock

    def create(self, wanted: Subscription) -> Subscription:
        """Store a subscription, with an id and time of its own.

        Raises:
            DuplicateSubscription: There is one of that source, context and name.
        """
        rule = replace(wanted, subscription_id=self.next_id(), created_at=self.clock.now())
        try:
            self.subscriptions.create(rule)
        except Conflict as error:
            raise DuplicateSubscription(
                source=rule.source or rule.project, context=rule.context.value, name=rule.name
            ) from error
        return rule

    def get(self, project_id: str, subscription_id: str) -> Subscription:
        """One by its id."""
        # Others are none of ours, and a key has a longest length.
        rule = self.subscriptions.subscription(project_id, subscription_id) if _may_be_id(subscription_id) else None
        if rule is None:
            raise SubscriptionNotFound
        return rule

    def select(self, project_id: str, selection: Selection) -> list[Subscription]:
        """The selected subscriptions, oldest first."""
        return [each for each in self.subscriptions.subscriptions(project_id) if selection.takes(each)]

    def delete(self, project_id: str, subscription_id: str) -> None:
        """Remove one."""
        if not self.subscriptions.delete(self.get(project_id, subscription_id)):
            raise SubscriptionNotFound

    def delete_selected(self, project_id: str, selection: Selection) -> None:
        """Remove those selected."""
        for rule in self.select(project_id, selection):
            self.subscriptions.delete(rule)
