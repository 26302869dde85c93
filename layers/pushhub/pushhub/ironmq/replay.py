"""Trying again what a subscriber missed: the deliveries to it that were given up, part by part.

They lie in the index of unsettled deliveries until their message's time is over, whether or not an error queue was told
of them. Whoever replays asks part after part with the cursor of the last answer, so nothing is kept of a replay, and it
ends with whoever asks. Each delivery gets one try, and stays given up if that fails.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from pushhub.base.errors import Forbidden
from pushhub.engine.model.delivery import Delivery, DeliveryState
from pushhub.engine.ports import StoredMessages, Unsettled

if TYPE_CHECKING:
    from collections.abc import Callable

    from pushhub.base.ports import Clock
    from pushhub.engine.model.queue import Queue, Subscriber
    from pushhub.engine.resend import Resend
    from pushhub.ironmq.wire.subscribers import ReplayRequest


@dataclass(frozen=True, slots=True, kw_only=True)
class Replayed:
    """What came of a part.

    Attributes:
        looked: Deliveries of the queue that were given up and looked at.
        found: Those of them that the subscriber missed and can still get.
        replayed: Those that are tried again.
        cursor: Where the next part begins; None when there is none.
    """

    looked: int
    found: int
    replayed: int
    cursor: str | None


class _Messages(StoredMessages, Unsettled, Protocol):
    """Messages, and the deliveries that were given up."""


class Replay:
    """Has what a subscriber missed tried again.

    Args:
        messages: Messages and deliveries.
        resend: Gives what has a delivery tried; ingest, which answers producers only, has none.
        clock: Says whose time is over.
    """

    def __init__(self, *, messages: _Messages, resend: Callable[[], Resend], clock: Clock) -> None:
        self._messages = messages
        self._resend = resend
        self._clock = clock

    def run(self, queue: Queue, subscriber: Subscriber, request: ReplayRequest) -> Replayed:
        """Try a part again. Safe to repeat: who is asked for twice before it is tried gets one try.

        Raises:
            Unavailable: Nothing may be assumed of the part; ask for it again.
        """
        given_up, cursor = self._messages.given_up(queue.project, queue.uid, limit=request.count, after=request.after)
        missed = [each for each in given_up if self._can_have(queue, subscriber, each)]
        replayed = 0 if request.dry_run else sum(self._tried(each) for each in missed)
        return Replayed(looked=len(given_up), found=len(missed), replayed=replayed, cursor=cursor)

    def _can_have(self, queue: Queue, subscriber: Subscriber, delivery: Delivery) -> bool:
        """Whether a delivery is one that the subscriber missed; one of several at will (unicast) is nobody's."""
        return (
            delivery.state is DeliveryState.EXHAUSTED
            and delivery.subscriber_id == subscriber.subscriber_id
            and delivery.accepted_at > queue.cleared_at
            and self._clock.now() < delivery.expires_at
        )

    def _tried(self, delivery: Delivery) -> bool:
        message = self._messages.message(delivery.key.message)
        if message is None:
            return False
        try:
            self._resend().ask(message, delivery.subscriber_id)
        except Forbidden:
            return False
        return True
