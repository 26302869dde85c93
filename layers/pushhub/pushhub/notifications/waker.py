"""Wakes the sender: one wake-up per version of a backlog is enough, and one is always sent.

A writer of something the sender has to see (a commit, a consumer, an acknowledgement it waits for) first writes it,
then reads the backlog, then sends a wake-up with the version read. After receiving the wake-up, the sender raises the
version and then looks again. So a second wake-up with the same version is redundant: either the first is still to be
processed, or that later look covers both. It may be dropped, here or by the queue.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from typing import TYPE_CHECKING

from pushhub.engine.component import Component
from pushhub.notifications.ports import BacklogStore, WakeQueue, WakeUp

if TYPE_CHECKING:
    from pushhub.base.ports import Clock
    from pushhub.notifications.model.backlog import Backlog
    from pushhub.notifications.model.topic import Topic

_REMEMBERED = 10_000
_REMEMBERED_MS = 240_000
"""Below the five minutes for which SQS drops duplicates, so this drops nothing that SQS would accept."""


class Waker(Component):
    """Sends wake-ups, skipping those that this process has already sent."""

    backlogs: BacklogStore  # Read for their versions.
    queue: WakeQueue  # Takes the wake-ups.
    clock: Clock

    def __post_init__(self) -> None:
        self._sent: OrderedDict[tuple[str, int], int] = OrderedDict()

    def subscriber(self, topic: Topic, subscriber: str) -> None:
        """Wake one subscriber. Call it after the change is written."""
        backlog = self.backlogs.backlog(topic, subscriber)
        if backlog is not None:
            self.these([backlog])

    def these(self, backlogs: Iterable[Backlog]) -> None:
        """Wake the subscribers of backlogs just read or written; those without a consumer are skipped.

        Raises:
            Unavailable: Some may not have been woken.
        """
        now = self.clock.now()
        wakes = [WakeUp.of(each) for each in backlogs if each.consumers]
        fresh = [each for each in wakes if now - self._sent.get(_key(each), 0) >= _REMEMBERED_MS]
        if not fresh:
            return
        self.queue.wake(fresh)
        for each in fresh:
            self._sent[_key(each)] = now
        while len(self._sent) > _REMEMBERED:
            self._sent.popitem(last=False)


def _key(wake: WakeUp) -> tuple[str, int]:
    return wake.subscriber_uid, wake.version
