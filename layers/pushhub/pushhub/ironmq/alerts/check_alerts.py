"""Looks at all alerts of projects each minute, and posts what they tell."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING

from pushhub.base.errors import Conflict, Unavailable
from pushhub.base.rotation import from_another_start
from pushhub.engine.component import Component
from pushhub.engine.faults import described
from pushhub.engine.model.backoff import SCHEDULES
from pushhub.engine.model.circuit import SubscriberKey
from pushhub.engine.model.delivery import DeliveryState
from pushhub.engine.model.message import Message
from pushhub.engine.model.queue import PushSettings, Queue, Subscriber, internal_queue
from pushhub.ironmq.model.project_alert import (
    ALERT_QUEUES,
    Measure,
    is_alert_id,
    judged,
    sampled,
    value_of,
)
from pushhub.ironmq.model.spans import SPANS_QUEUE
from pushhub.ironmq.wire.project_alerts import notification_body

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pushhub.base.ports import Clock, Telemetry
    from pushhub.engine.acceptance.accept import Accept
    from pushhub.engine.attempts.ports import Unsettled
    from pushhub.engine.ports import Messages, MessageSink, QueueSource, WaitingOrders
    from pushhub.ironmq.alerts.alert_counts import AlertCounts
    from pushhub.ironmq.alerts.ports import AlertStore
    from pushhub.ironmq.model.project_alert import ProjectAlert
    from pushhub.ironmq.ports import PulledMessages
    from pushhub.ironmq.traces.span_export import SpanQueues

KEPT_MS = 86_400_000
"""How long a notification is tried, milliseconds."""

TIMEOUT_S = 15
"""Seconds that the receiver of a notification has to answer."""

MARGIN_MS = 5_000
"""When no more time than this is left, no further alert is looked at, milliseconds."""

LOOKED_AT = 25
"""Deliveries looked at together for the oldest that waits: some may have been cleared, or have expired."""

PAGES = 400
"""How often more are looked at: 10,000 in all."""


class AlertPost(Component):
    """Posts what alerts tell, as messages of an internal queue: they are delivered like any other, with retries and
    through the egress guard.
    """

    accept: Accept  # The single entry point for messages.
    messages: MessageSink
    base_url: str  # Public base URL of this hub, for links.

    def pending(self, alert: ProjectAlert) -> None:
        """Post the pending notification of an alert; repeating the call posts nothing more."""
        pending = alert.state.pending
        if pending is None:
            return
        body = notification_body(alert, pending, self.base_url)
        self.once(alert, body, cause=str(pending.number), at=pending.at)

    def once(self, alert: ProjectAlert, body: bytes, *, cause: str, at: int) -> None:
        """Post something to an alert's receiver; repeating the call posts nothing more.

        Args:
            cause: Identifies why, among what the alert is posted.
            at: Since when it holds, epoch milliseconds.
        """
        cause = f"alert/{alert.alert_id}/{cause}"

        def make(message_id: str) -> Message:
            return Message(
                project=alert.project,
                queue=ALERT_QUEUES + alert.alert_id,
                queue_uid=alert.alert_id,
                message_id=message_id,
                body=body,
                body_size=len(body),
                headers={"Content-Type": "application/json"},
                accepted_at=at,
                due_at=at,
                expires_at=at + KEPT_MS,
                subscriber_ids=(alert.alert_id,),
                cause=cause,
            )

        self.accept.once(self.messages, make, cause=cause, at=at)


class OwnQueues:
    """Implements :class:`pushhub.engine.ports.AttemptQueues` for the internal queues of alerts and spans.

    Args:
        spans: Finds the queues of spans.
    """

    def __init__(self, alerts: AlertStore, spans: SpanQueues) -> None:
        self._alerts = alerts
        self._spans = spans

    def queue(self, project_id: str, name: str, *, since: int | None = None) -> Queue | None:
        """The queue, or None when its alert was removed. It is read each time: notifications are few."""
        del since
        if name == SPANS_QUEUE:
            return self._spans.queue(project_id)
        alert_id = name.removeprefix(ALERT_QUEUES)
        alert = self._alerts.alert(project_id, alert_id) if is_alert_id(alert_id) else None
        if alert is None:
            return None
        receiver = Subscriber(subscriber_id=alert_id, name="alert", url=alert.url, timeout_s=TIMEOUT_S)
        push = PushSettings(subscribers=(receiver,), retry=SCHEDULES["svix"])
        return internal_queue(project_id, name, alert_id, push)


class OldestWaiting(Component):
    """Knows how long the oldest message of a queue has waited."""

    queues: QueueSource
    unsettled: Unsettled  # Deliveries that wait, of push queues.
    messages: Messages  # Shows which messages are there still.
    backlog: WaitingOrders  # Deliveries that wait because their subscriber is paused.
    pull: Callable[[], PulledMessages]  # Messages of pull queues; made on first use.

    def seconds(self, alert: ProjectAlert, now: int) -> int:
        """Seconds since the oldest message that waits in a queue was accepted; 0 when none does.

        Args:
            alert: Names the queue.
        """
        queue = self.queues.queue(alert.project, alert.queue)
        times = [] if queue is None else [*self._waiting_since(queue, now)]
        return max((now - each) // 1000 for each in times) if times else 0

    def _waiting_since(self, queue: Queue, now: int) -> Iterator[int]:
        if queue.push is None:
            for pulled in self.pull().peek(queue.project, queue.pull_uid, count=1, now=now):
                yield pulled.message.accepted_at
            return
        yield from islice(self._retried(queue, now), 1)
        for subscriber in queue.push.subscribers:
            if subscriber.paused:
                key = SubscriberKey(
                    project=queue.project,
                    queue=queue.name,
                    queue_uid=queue.uid,
                    subscriber_id=subscriber.subscriber_id,
                )
                yield from islice(self._there(key, queue, now), 1)

    def _retried(self, queue: Queue, now: int) -> Iterator[int]:
        """When deliveries that failed and wait were accepted, oldest first; of those that are owed still."""
        cursor: str | None = None
        for _ in range(PAGES):
            page, cursor = self.unsettled.unsettled(queue.project, queue.uid, limit=LOOKED_AT, after=cursor)
            for each in page:
                if each.state in (DeliveryState.EXHAUSTED, DeliveryState.HELD):
                    # Those that were given up come last.
                    return
                if each.expires_at > now and each.accepted_at > queue.cleared_at:
                    yield each.accepted_at
            if cursor is None:
                return

    def _there(self, key: SubscriberKey, queue: Queue, now: int) -> Iterator[int]:
        """When messages that wait for a paused subscriber were accepted, of those that are there still."""
        for waiting in self.backlog.waiting(key, LOOKED_AT):
            message = self.messages.message(waiting.order.key.message)
            if message is not None and message.accepted_at > queue.cleared_at and message.expires_at > now:
                yield message.accepted_at


class CheckAlerts(Component):
    """Looks at all alerts: measures, and posts when one begins to fire or is resolved."""

    alerts: AlertStore
    counts: AlertCounts  # What was counted of what alerts watch.
    oldest: OldestWaiting  # How long messages have waited.
    post: AlertPost
    clock: Clock
    telemetry: Telemetry  # Metrics, and events about alerts that could not be looked at.

    def run(self, remaining_ms: Callable[[], int]) -> int:
        """Look at each alert; returns how many notifications were posted. One that fails does not hold up the others.

        A crash loses no notification: it is stored before it is posted, and posted once.
        """
        notified = 0
        for alert in from_another_start([*self.alerts.all_alerts()], self.clock.now()):
            if remaining_ms() <= MARGIN_MS:
                self.telemetry.event("alerts_not_looked_at", project=alert.project)
                break
            try:
                notified += self._look(alert)
            except Conflict:
                continue  # its owner has just changed it
            except Exception as error:  # noqa: BLE001 (one project's trouble must not hide another's alert)
                self.telemetry.count("CallsFailed")
                self.telemetry.event("alert_not_looked_at", project=alert.project, **described(error))
        if notified:
            self.telemetry.count("AlertsTold", notified)
        return notified

    def _look(self, alert: ProjectAlert) -> int:
        if alert.state.pending is None:
            looked = self._judged(alert)
            if looked.state == alert.state:
                return 0
            alert = self.alerts.save(looked)
        if alert.state.pending is None:
            return 0
        self.post.pending(alert)
        posted(self.alerts, alert)
        return 1

    def _judged(self, alert: ProjectAlert) -> ProjectAlert:
        now = self.clock.now()
        if alert.measure is Measure.OLDEST_WAITING:
            judged_now = judged(alert, self.oldest.seconds(alert, now), now)
            # An age grows each second; only what it means is worth a write.
            same = replace(judged_now.state, value=alert.state.value) == alert.state
            return alert if same and alert.state.value is not None else judged_now
        alert, counts = sampled(alert, self.counts.of(alert, now), now)
        return judged(alert, value_of(alert.measure, counts), now)


def posted(alerts: AlertStore, alert: ProjectAlert) -> None:
    """Note that the pending notification of an alert was posted. If that fails, it is posted again, to no effect."""
    with suppress(Conflict, Unavailable):
        alerts.save(replace(alert, state=replace(alert.state, pending=None)))
