"""A queue subscriber whose URL names a topic: each message becomes a notification instead of a webhook request."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from pushhub.base.errors import RequestRefused
from pushhub.engine.component import Component
from pushhub.engine.target import without_http
from pushhub.notifications.model.topic import Line, Notification, Topic
from pushhub.notifications.publish import checked
from pushhub.notifications.wire.publish import one_line_of_bytes
from pushhub.notifications.wire.url import parse_topic_url, source_in

if TYPE_CHECKING:
    from pushhub.base.ports import Clock
    from pushhub.engine.target import Outcome, PushOrder
    from pushhub.notifications.log import TopicLog


class TopicTarget(Component):
    """Appends messages of queues to topics.

    If an attempt is repeated, its message may be appended twice, just as webhooks may be called twice.
    """

    log: Callable[[], TopicLog]  # Creates the topic log on the first notification, as most hubs push elsewhere.
    next_id: Callable[[], str]  # Makes ids, 19 decimal digits.
    clock: Clock  # Times of attempts.

    dialect = "raw"

    def check(self, url: str) -> None:
        """Check that the URL names a topic and has only valid parameters."""
        parse_topic_url(url)

    def reaches(self, url: str, *, project: str, queue: str) -> str | None:  # noqa: ARG002 (the same for all)
        """Nothing outside this hub."""
        return None

    def deliver(self, order: PushOrder) -> Outcome:
        """Append the message. A full backlog or a body too large for a frame is a failed attempt."""
        started = self.clock.now()
        refusal = self._append(order)
        return without_http(order, refusal, started_at=started, finished_at=self.clock.now())

    def _append(self, order: PushOrder) -> str | None:
        """Append one message; returns the reason if it is refused."""
        target = parse_topic_url(order.subscriber.url)
        topic = Topic(project=order.queue.project, name=target.topic, non_persistent=target.non_persistent)
        notification = Notification(
            message_id=self.next_id(),
            api=target.api,
            source=target.source or source_in(order.body, order.queue.name),
            action=target.action,
            body=one_line_of_bytes(order.body),
        )
        try:
            self.log().append(topic, [Line(0, checked(topic, notification))])
        except RequestRefused as error:
            return error.message
        return None
