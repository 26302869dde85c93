"""Replays what a subscriber missed: retries the deliveries to it that were given up, page by page.

They stay in the index of unsettled deliveries until their message expires, whether or not there was an error queue. The
client requests page after page with the cursor of the last answer, so the hub stores nothing about a replay, and it
ends when the client stops asking. Each delivery gets one try, and stays given up if that fails.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from pushhub.base.errors import Forbidden
from pushhub.engine.attempts.ports import Unsettled
from pushhub.engine.component import Component
from pushhub.engine.model.delivery import Delivery, DeliveryState
from pushhub.engine.model.keys import DeliveryKey
from pushhub.engine.ports import Deliveries, StoredMessages

if TYPE_CHECKING:
    from collections.abc import Callable

    from pushhub.base.ports import Clock
    from pushhub.engine.attempts.resend import Resend
    from pushhub.engine.model.queue import Queue, Subscriber
    from pushhub.ironmq.wire.subscribers import ReplayRequest


@dataclass(frozen=True, slots=True, kw_only=True)
class Replayed:
    """The result of one page.

    Attributes:
        looked: Deliveries of the queue looked at that had been given up.
        found: Those that the subscriber missed and can still get.
        replayed: Those that are retried.
        cursor: Start of the next page; None when there is none.
    """

    looked: int
    found: int
    replayed: int
    cursor: str | None


class _Messages(StoredMessages, Deliveries, Unsettled, Protocol):
    """Messages with their deliveries, and the deliveries that were given up."""


class QueueReplay(Component):
    """Retries what a subscriber missed."""

    messages: _Messages
    resend: Callable[[], Resend]  # Provides manual tries; the ingest function, which serves producers only, has none.
    clock: Clock  # Shows which messages have expired.

    def run(self, queue: Queue, subscriber: Subscriber, request: ReplayRequest) -> Replayed:
        """Retry one page, or the named messages.

        Safe to repeat: a delivery requested twice before it is tried gets one try.

        Raises:
            Unavailable: The effect on the page is unknown; request it again.
        """
        if request.message_ids:
            keys = [
                DeliveryKey(queue.project, queue.uid, each, subscriber.subscriber_id) for each in request.message_ids
            ]
            found, cursor = self.messages.deliveries(keys), None
            given_up = [each for each in found.values() if each.state is DeliveryState.EXHAUSTED]
        else:
            given_up, cursor = self.messages.given_up(
                queue.project, queue.uid, limit=request.count, after=request.after
            )
        missed = [each for each in given_up if self._can_have(queue, subscriber, each) and _is_within(each, request)]
        replayed = 0 if request.dry_run else sum(self._tried(each) for each in missed)
        return Replayed(looked=len(given_up), found=len(missed), replayed=replayed, cursor=cursor)

    def _can_have(self, queue: Queue, subscriber: Subscriber, delivery: Delivery) -> bool:
        """Whether the subscriber missed a delivery. A unicast delivery is not owed to any particular one, so it never
        counts.
        """
        return (
            delivery.state is DeliveryState.EXHAUSTED
            and delivery.subscriber_id == subscriber.subscriber_id
            and delivery.accepted_at > queue.cleared_at
            and self.clock.now() < delivery.expires_at
        )

    def _tried(self, delivery: Delivery) -> bool:
        message = self.messages.message(delivery.key.message)
        if message is None:
            return False
        try:
            self.resend().ask(message, delivery.subscriber_id)
        except Forbidden:
            return False
        return True


def _is_within(delivery: Delivery, request: ReplayRequest) -> bool:
    since = 0 if request.since is None else request.since
    return since <= delivery.accepted_at and (request.until is None or delivery.accepted_at < request.until)
