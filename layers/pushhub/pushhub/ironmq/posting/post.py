"""Posting messages to queues by producers: within their quota, and at once to the subscribers of eager queues."""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING

from pushhub.engine.component import Component
from pushhub.ironmq.posting.intake import Caused

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from concurrent.futures import Executor

    from pushhub.base.ports import Clock
    from pushhub.engine.acceptance.first_orders import FirstOrders
    from pushhub.engine.model.message import NewMessage
    from pushhub.engine.model.queue import Queue
    from pushhub.engine.projects.quotas import Quotas
    from pushhub.ironmq.model.new_event import NewEvent
    from pushhub.ironmq.posting.intake import QueueIntake


KNOWN_MS = 90 * 86_400_000
"""How old an event may be that is known again, milliseconds."""

AHEAD_MS = 300_000
"""How far ahead of ours its sender's clock may be, milliseconds."""


class Post(Component):
    """Accepts messages from producers."""

    intake: QueueIntake
    quotas: Callable[[], Quotas]  # Bounds what producers post; made when one does.
    # Sends the first orders of eager queues; made when a producer posts to one.
    first_orders: Callable[[], FirstOrders]
    executor: Callable[[], Executor]  # Takes in many events side by side; made for the first.
    clock: Clock

    def post(
        self,
        project_id: str,
        queue_name: str,
        messages: Sequence[NewMessage],
        check: Callable[[Queue], None] | None = None,
    ) -> list[str]:
        """Accept messages; returns their ids in order. An unknown queue is created as a pull queue.

        Args:
            queue_name: A validated name.
            messages: 1..100 messages.
            check: Raises if the queue does not take them.

        Raises:
            QuotaExceeded: The project posts more than it may.
            Unavailable: The effect is unknown; the producer has to post again.
        """
        self.quotas().take(project_id, len(messages))
        queue = self.intake.queue(project_id, queue_name)
        if check is not None:
            check(queue)
        push = queue.push
        if push is None or not push.eager:
            accepted = self.intake.posted(queue, messages)
        else:
            orders, subscribers = self.first_orders(), push.subscribers
            accepted = self.intake.posted(queue, messages, lambda composed: orders.marked(composed, subscribers))
            orders.send(accepted)
        self.intake.stored(queue, len(accepted), began=accepted[0].accepted_at, exact=True)
        return [each.message_id for each in accepted]

    def post_events(
        self,
        project_id: str,
        queue_name: str,
        events: Sequence[NewEvent],
        check: Callable[[Queue], None] | None = None,
    ) -> list[str]:
        """Accept events; returns the ids of their messages in order. One that was there before has the id that it got
        then, for as long as its message is there; one without an id, or a time that can be right, is always new.

        Args:
            queue_name: A validated name.
            events: At most 100 events.
            check: Raises if the queue does not take them.

        Raises:
            QuotaExceeded: The project posts more than it may.
            Unavailable: Some may or may not have been accepted; their sender posts all of them again.
        """
        if events and not any(self._is_known_again(each) for each in events):
            return self.post(project_id, queue_name, [each.message for each in events], check)
        self.quotas().take(project_id, len(events))
        if check is not None:
            check(self.intake.queue(project_id, queue_name))
        outcomes = self.take_in(project_id, queue_name, events)
        failed = next((each for each in outcomes if isinstance(each, Exception)), None)
        if failed is not None:
            raise failed
        return [each for each in outcomes if isinstance(each, str)]

    def take_in(self, project_id: str, queue_name: str, events: Sequence[NewEvent]) -> list[str | Exception]:
        """Accept events side by side; see :meth:`post_events`, whose quota they do not use up.

        Returns:
            For each event the id of its message, or why it was not accepted.

        Raises:
            Unavailable: The effect is unknown for all of them.
        """
        if not events:
            return []
        caused = [self._caused(each) for each in events]
        return self.intake.post_all_caused(project_id, queue_name, caused, self.executor())

    def _is_known_again(self, event: NewEvent) -> bool:
        age = None if event.at is None else self.clock.now() - event.at
        return bool(event.event_id) and age is not None and -AHEAD_MS <= age <= KNOWN_MS

    def _caused(self, event: NewEvent) -> Caused:
        if event.at is not None and self._is_known_again(event):
            digest = sha256(event.event_id.encode(errors="surrogatepass")).hexdigest()
            return Caused(message=event.message, cause=f"event/{digest}", at=event.at)
        return Caused(message=event.message, cause=f"event/{self.intake.accept.next_id()}", at=self.clock.now())
