"""Alerts of pull queues: which triggers a change of size crossed, and whether the alerts may fire (IronMQ "Queue
Alerts").
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple, Protocol

from pushhub.base.conflicts import until_saved
from pushhub.base.errors import Conflict, Unavailable
from pushhub.engine.component import Component
from pushhub.ironmq.model.alert_level import AlertLevel
from pushhub.ironmq.wire.alerts import alert_body

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pushhub.base.ports import Clock, Telemetry
    from pushhub.engine.model.queue import Alert, Queue
    from pushhub.engine.ports import QueueStore
    from pushhub.ironmq.model.alert_level import AlertLevels
    from pushhub.ironmq.ports import PullSizes

LOOKS = 10
"""How often one change looks at most: while others change the size, there is always more to see."""

CLOCKS_OFF_MS = 2_000
"""How far the clocks of two environments may differ."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fired:
    """An alert that fired."""

    queue: str
    body: bytes


class _Found(NamedTuple):
    alert: Alert
    size: int
    reached: int
    fires: bool


def reached(alert: Alert, size: int) -> int:
    """How many of an alert's triggers a size has reached; falling, how many it is still above.

    A progressive alert has a trigger at every multiple of its number.

    Args:
        alert: The alert; its type, trigger and direction are used.
        size: Number of messages.
    """
    # Falling from 11 to 10 reaches 10, so 10 is no longer above it.
    size = size if alert.direction == "asc" else max(0, size - 1)
    return int(size >= alert.trigger) if alert.type == "fixed" else size // alert.trigger


def crosses(alert: Alert, before: int, after: int) -> bool:
    """Whether a change from one number of reached triggers to another is one in the alert's direction."""
    return after > before if alert.direction == "asc" else after < before


def _enough(alerts: Sequence[Alert], change: int) -> int | None:
    """The size beyond which a change cannot cross a trigger, whatever the exact size; None if there is none."""
    if any(each.type == "progressive" for each in alerts):
        return None
    return max(each.trigger for each in alerts) + abs(change) + 1


class AlertLevelStore(Protocol):
    """What the alerts of pull queues know of their sizes."""

    def levels(self, project_id: str, pull_uid: str) -> AlertLevels:
        """Those of a generation of a queue's messages, read consistently; without any when nothing is stored."""

    def save(self, levels: AlertLevels) -> None:
        """Write levels if the stored ones still have their version (none are stored when that is 0).

        Raises:
            Conflict: Somebody else has written some.
        """


class Alerts(Component):
    """Finds the alerts that a change of size fires.

    Changes that are made together find the same size, and none of them can tell from that which one reached a trigger.
    So what has been reached is stored, and whoever finds something else changes that, which only one of them can, and
    looks again (docs/decisions/pull-queues.md).
    """

    config: QueueStore  # Stores when an alert last fired, with its queue.
    pull: PullSizes  # Provides sizes.
    levels: AlertLevelStore  # Stores what has been reached.
    clock: Clock
    telemetry: Telemetry  # Told of alerts that could not be looked at.

    def begin(self, queue: Queue) -> None:
        """Note where a queue stands whose alerts or messages are others than before. Never fails: what is not known is
        told from the next change alone.
        """
        if not queue.alerts:
            return
        try:
            stored = self.levels.levels(queue.project, queue.pull_uid)
            new = [each for each in queue.alerts if each.alert_id not in stored.levels]
            if new:
                most = _enough(new, 0)
                size = self.pull.size(queue.project, queue.pull_uid, self.clock.now(), at_most=most, exact=True)
                now = self.clock.now()
                current = {each.alert_id for each in queue.alerts}
                kept = {name: each for name, each in stored.levels.items() if name in current}
                self._save(replace(stored, levels=kept), {each.alert_id: reached(each, size) for each in new}, now)
        except (Conflict, Unavailable) as error:
            self.unseen(queue, error)

    def unseen(self, queue: Queue, error: Exception) -> None:
        """A change of a queue's size was made, and its alerts could not be looked at, or not told of: say so, as nobody
        else does.
        """
        self.telemetry.count("AlertsUnseen")
        self.telemetry.event("alerts_unseen", project=queue.project, queue=queue.name, error=str(error))

    def fired(self, queue: Queue, change: int, *, began: int, exact: bool = True) -> Iterator[Fired]:
        """The alerts fired by a change that has just been made, each to be posted before the next is asked for: a later
        look may fail.

        The size is read only for queues with alerts, and counted no further than necessary.

        Args:
            queue: The queue, as read for the change.
            change: Messages added, or (negative) removed.
            began: Before the change was made, epoch milliseconds. A trigger that was reached earlier has been left
                since, if the change crosses it; one that was found reached later may have been this change's doing.
            exact: Whether what calls that were cut off left behind is removed before it is counted for long.
        """
        if not queue.alerts or not change:
            return
        for _ in range(LOOKS):
            stored, found = self._look(queue, change, began, exact=exact)
            if not found:
                return
            now = self.clock.now()
            try:
                self._save(stored, {each.alert.alert_id: each.reached for each in found}, now)
            except Conflict:
                continue
            for each in found:
                if each.fires and self._may_speak(queue, each.alert, now):
                    yield Fired(queue=each.alert.queue, body=alert_body(each.alert, queue.name, each.size, now))
            change = 0

    def _look(self, queue: Queue, change: int, began: int, *, exact: bool) -> tuple[AlertLevels, list[_Found]]:
        """What is stored, and what has to be stored instead."""
        stored = self.levels.levels(queue.project, queue.pull_uid)
        most = _enough(queue.alerts, change)
        size = self.pull.size(queue.project, queue.pull_uid, self.clock.now(), at_most=most, exact=exact)
        found: list[_Found] = []
        for alert in queue.alerts:
            own, after = reached(alert, max(0, size - change)), reached(alert, size)
            known = stored.levels.get(alert.alert_id)
            if known is None:
                found.append(_Found(alert, size, after, crosses(alert, own, after)))
            elif after != known.reached:
                found.append(_Found(alert, size, after, crosses(alert, known.reached, after)))
            elif crosses(alert, own, after) and known.at < began - CLOCKS_OFF_MS:
                # Messages also come and go without a look: they expire, and alerts are posted.
                found.append(_Found(alert, size, after, fires=True))
        return stored, found

    def _save(self, stored: AlertLevels, changed: Mapping[str, int], now: int) -> None:
        levels = {name: AlertLevel(reached=each, at=now) for name, each in changed.items()}
        self.levels.save(replace(stored, levels={**stored.levels, **levels}))

    def _may_speak(self, queue: Queue, alert: Alert, now: int) -> bool:
        """Whether the alert is not snoozed; if it has a snooze, this starts it.

        The conditional write lets only one of several concurrent changes fire it.
        """
        if not alert.snooze:
            return True

        def started() -> bool:
            fresh = self.config.queue(queue.project, queue.name, fresh=True)
            stored = next((each for each in fresh.alerts if each.alert_id == alert.alert_id), None) if fresh else None
            if fresh is None or stored is None or now < stored.fired_at + stored.snooze * 1000:
                return False
            alerts = tuple(replace(each, fired_at=now) if each is stored else each for each in fresh.alerts)
            self.config.update_queue(replace(fresh, alerts=alerts))
            return True

        # What came first may have been another alert of the queue, or its owner's change.
        return until_saved(started, doing="starting an alert's snooze")
