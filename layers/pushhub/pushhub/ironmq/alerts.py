"""Alerts of pull queues: which triggers a change of size crossed, and whether the alerts may fire (IronMQ "Queue
Alerts").
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pushhub.base.errors import Conflict
from pushhub.ironmq.wire.alerts import alert_body

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pushhub.base.ports import Clock
    from pushhub.engine.model.queue import Alert, Queue
    from pushhub.engine.ports import QueueStore
    from pushhub.ironmq.ports import PullSizes


@dataclass(frozen=True, slots=True, kw_only=True)
class Fired:
    """An alert that fired.

    Attributes:
        queue: Name of the queue to notify.
        body: The body of the notification.
    """

    queue: str
    body: bytes


def crosses(alert: Alert, before: int, after: int) -> bool:
    """Whether a change of size crosses the trigger in the alert's direction: reaching it counts, leaving it does not.

    A progressive alert has a trigger at every multiple of its number.

    Args:
        alert: The alert; its type, trigger and direction are used.
        before: Size before the change.
        after: Size after it.
    """
    if alert.direction == "asc":
        low, high = before, after
    else:
        # Falling from 11 to 10 reaches 10, so the half-open interval is reversed.
        low, high = after - 1, before - 1
    if high <= low:
        return False
    if alert.type == "fixed":
        return low < alert.trigger <= high
    return max(high, 0) // alert.trigger > max(low, 0) // alert.trigger


def _enough(alerts: Sequence[Alert], change: int) -> int | None:
    """The size beyond which a change cannot cross a trigger, whatever the exact size; None if there is none."""
    if any(each.type == "progressive" for each in alerts):
        return None
    return max(each.trigger for each in alerts) + abs(change) + 1


class Alerts:
    """Finds the alerts that a change of size fires.

    Args:
        config: Stores when an alert last fired, with its queue.
        pull: Provides sizes.
    """

    def __init__(self, *, config: QueueStore, pull: PullSizes, clock: Clock) -> None:
        self._config = config
        self._pull = pull
        self._clock = clock

    def fired(self, queue: Queue, change: int, *, exact: bool = True) -> list[Fired]:
        """The alerts fired by a change that has just been made.

        The size is read only for queues with alerts, and counted no further than necessary.

        Args:
            queue: The queue, as read for the change.
            change: Messages added, or (negative) removed.
            exact: Whether what calls that were cut off left behind is removed before it is counted for long.

        Raises:
            Unavailable: The size or the snooze state could not be read or written.
        """
        if not queue.alerts or not change:
            return []
        now = self._clock.now()
        most = _enough(queue.alerts, change)
        after = self._pull.size(queue.project, queue.pull_uid, now, at_most=most, exact=exact)
        crossed = [each for each in queue.alerts if crosses(each, max(0, after - change), after)]
        return [
            Fired(queue=each.queue, body=alert_body(each, queue.name, after, now))
            for each in crossed
            if self._may_speak(queue, each, now)
        ]

    def _may_speak(self, queue: Queue, alert: Alert, now: int) -> bool:
        """Whether the alert is not snoozed; if it has a snooze, this starts it.

        The conditional write lets only one of several concurrent changes fire it.
        """
        if not alert.snooze:
            return True
        fresh = self._config.queue(queue.project, queue.name, fresh=True)
        stored = next((each for each in fresh.alerts if each.alert_id == alert.alert_id), None) if fresh else None
        if fresh is None or stored is None or now < stored.fired_at + stored.snooze * 1000:
            return False
        alerts = tuple(replace(each, fired_at=now) if each is stored else each for each in fresh.alerts)
        try:
            self._config.update_queue(replace(fresh, alerts=alerts))
        except Conflict:
            return False
        return True
