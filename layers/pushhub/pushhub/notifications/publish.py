"""Publishing: what a project says happened, sent to every topic a subscription of the project wants it in."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pushhub.base.errors import TooLarge
from pushhub.notifications.log import TopicLog
from pushhub.notifications.model.subscription import Subscription, copied, published_as
from pushhub.notifications.model.topic import Notification, Topic
from pushhub.notifications.ports import SubscriptionStore
from pushhub.notifications.wire.frames import FRAME_BYTES, frame_size
from pushhub.notifications.wire.publish import Draft, one_line

__all__ = ["NotificationPublish", "checked"]


def checked(topic: Topic, notification: Notification) -> Notification:
    """The notification itself.

    Raises:
        TooLarge: Its frame would be larger than a WebSocket message may be.
    """
    if frame_size(topic, notification) > FRAME_BYTES:
        raise TooLarge(FRAME_BYTES)
    return notification


class NotificationPublish:
    """Publishes notifications.

    Args:
        subscriptions: The rules.
        log: Takes what they want.
        next_id: Makes ids, 19 decimal digits.
    """

    def __init__(self, *, subscriptions: SubscriptionStore, log: TopicLog, next_id: Callable[[], str]) -> None:
        self._subscriptions = subscriptions
        self._log = log
        self._next_id = next_id

    def publish(self, project_id: str, drafts: Sequence[Draft]) -> list[str]:
        """Publish notifications in order; an id for each, which is its id in the records of the (first) topic it went to.

        Args:
            project_id: The tenant.
            drafts: 1..100 notifications.

        Raises:
            TooLarge: One does not fit into a frame; nothing was published.
            BacklogFull: A topic is full; other topics may have been published to.
            Unavailable: Nothing may be assumed.
        """
        rules = {
            source: self._subscriptions.concerning(project_id, source)
            for source in dict.fromkeys(each.source for each in drafts)
        }
        topics: dict[Topic, list[Notification]] = {}
        ids = [self._sort(each, rules[each.source], topics) for each in drafts]
        for topic, notifications in topics.items():
            self._log.append(topic, notifications)
        return ids

    def _sort(self, draft: Draft, rules: Sequence[Subscription], topics: dict[Topic, list[Notification]]) -> str:
        """Put a notification into the topics that want it; its id."""
        lines: dict[tuple[Topic, str, str], None] = {}
        for rule in rules:
            apis = published_as(rule, api=draft.api, source=draft.source, action=draft.action, data=draft.data)
            for api in apis:
                lines[rule.topic, api, _body(draft, rule)] = None
        notifications = [
            (
                topic,
                Notification(message_id=self._next_id(), api=api, source=draft.source, action=draft.action, body=body),
            )
            for topic, api, body in lines
        ]
        for topic, notification in notifications:
            topics.setdefault(topic, []).append(checked(topic, notification))
        return notifications[0][1].message_id if notifications else self._next_id()


def _body(draft: Draft, rule: Subscription) -> str:
    return draft.base64_data if draft.base64_data is not None else one_line(copied(draft.data, rule.fragments))
