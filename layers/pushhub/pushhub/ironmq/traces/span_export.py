"""Spans of attempts, exported to the project's collector (docs/decisions/interfaces.md).

They are made from delivery records, away from deliveries, and posted as messages of an internal queue: so they are
sent through the egress guard, retried, and kept apart from other projects like any message.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pushhub.base.cache import ExpiringCache
from pushhub.base.errors import HubError, Unavailable
from pushhub.base.ports import PushRequest
from pushhub.base.times import epoch_ms
from pushhub.base.verdict import Answer, Verdict
from pushhub.engine.acceptance.accept import accept_once
from pushhub.engine.component import Component
from pushhub.engine.model.activity import HOUR_MS, SubscriberActivity
from pushhub.engine.model.answer_rules import Asked, Stops, retry_after_ms
from pushhub.engine.model.backoff import RetrySchedule
from pushhub.engine.model.delivery import Delivery, DeliveryState
from pushhub.engine.model.message import Message
from pushhub.engine.model.queue import PushSettings, Queue, Subscriber, internal_queue
from pushhub.engine.model.reach import Reach
from pushhub.engine.projects.projects import allowed_targets
from pushhub.engine.target import Outcome, PushOrder
from pushhub.ironmq.model.spans import (
    SPANS_HEADER,
    SPANS_OF_ATTEMPT,
    SPANS_QUEUE,
    SPANS_SCHEME,
    SPANS_UID,
    exported,
    rejected_spans,
    requests_of,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pushhub.base.ports import Clock, Sender, Telemetry
    from pushhub.engine.model.record import DeliveryRecord
    from pushhub.engine.ports import MessageSink, ProjectStore, SpanExports
    from pushhub.engine.records.ports import ActivityStore

KEPT_MS = 900_000
"""How long spans are tried to be exported, milliseconds: a trace is looked at soon, or never."""

RETRIES = RetrySchedule(waits_s=(5, 15, 30, 60, 120, 240, 300))
"""Within that time."""

TIMEOUT_S = 10
"""Seconds that a collector has to answer, as exporters of OpenTelemetry allow by default."""

TEMPORARY = frozenset({429, 502, 503, 504})
"""Statuses after which the same spans may be sent again (OTLP/HTTP, "Retryable Response Codes")."""

_REMEMBERED = 1_000

HEADERS = {"Content-Type": "application/json", "Content-Encoding": "gzip"}


class PostSpans(Component):
    """Implements :class:`pushhub.engine.protocol.RecordListener`: posts the spans of attempts that were recorded."""

    messages: MessageSink
    # What a message belongs to, the id of that, and the message's own, as clients know them, by queue and id.
    shown: Callable[[str, str], tuple[str, str | None, str]]
    clock: Clock
    telemetry: Telemetry  # Counts spans that could not be posted.

    def recorded(self, records: Sequence[DeliveryRecord], batch: str) -> None:
        """See the port. A repeated call posts nothing twice."""
        attempts: dict[str, list[DeliveryRecord]] = {}
        for each in records:
            if exported(each):
                attempts.setdefault(each.project, []).append(each)
        for project, own in attempts.items():
            try:
                self._post(project, own, batch)
            except Exception as error:  # noqa: BLE001 (whatever is wrong with spans, records go on)
                reason = str(error) if isinstance(error, HubError) else repr(error)
                self.telemetry.count("SpansDropped", SPANS_OF_ATTEMPT * len(own))
                self.telemetry.count("SpansNotPosted", SPANS_OF_ATTEMPT * len(own))
                self.telemetry.event("spans_not_posted", project=project, attempts=len(own), error=reason)

    def _post(self, project: str, attempts: Sequence[DeliveryRecord], batch: str) -> None:
        now, at = self.clock.now(), epoch_ms(attempts[-1].at)
        for part, (spans, body) in enumerate(requests_of(attempts, self.shown)):
            cause = f"spans/{project}/{batch}/{part}"

            def make(message_id: str, body: bytes = body, spans: int = spans, cause: str = cause) -> Message:
                return Message(
                    project=project,
                    queue=SPANS_QUEUE,
                    queue_uid=SPANS_UID,
                    message_id=message_id,
                    body=body,
                    body_size=len(body),
                    headers={SPANS_HEADER: str(spans)},
                    accepted_at=now,
                    due_at=now,
                    expires_at=now + KEPT_MS,
                    subscriber_ids=(SPANS_UID,),
                    cause=cause,
                )

            accept_once(self.messages, make, cause=cause, at=at)


class SpanQueues:
    """Finds the internal queues of spans.

    Args:
        exports: Where projects export spans to.
    """

    def __init__(self, exports: SpanExports) -> None:
        self._exports = exports

    def queue(self, project_id: str) -> Queue | None:
        """The queue, or None when the project exports no spans (any more)."""
        export = self._exports.span_export(project_id)
        if export is None or not export.on:
            return None
        collector = Subscriber(
            subscriber_id=SPANS_UID,
            name="collector",
            url=f"{SPANS_SCHEME}:{export.url}",
            headers=export.headers,
            timeout_s=TIMEOUT_S,
        )
        push = PushSettings(subscribers=(collector,), retry=RETRIES, credentials=export.credentials)
        return internal_queue(project_id, SPANS_QUEUE, SPANS_UID, push)


class CollectorTarget(Component):
    """Sends spans to a collector, by the rules of OTLP over HTTP."""

    dialect = "raw"

    sender: Sender
    projects: ProjectStore  # For the project's allowed targets.
    counts: SpanCounts  # Counts what a collector does not take.

    def check(self, url: str) -> None:
        """Owners do not register it."""

    def reaches(self, url: str, *, project: str, queue: str) -> str | None:  # noqa: ARG002 (the same for all queues)
        """The collector."""
        return url.removeprefix(f"{SPANS_SCHEME}:")

    def deliver(self, order: PushOrder) -> Outcome:
        """POST the spans; what the collector refuses for good is not sent again."""
        request = PushRequest(
            url=order.subscriber.url.removeprefix(f"{SPANS_SCHEME}:"),
            body=order.body,
            headers={"User-Agent": "Pushhub", **order.subscriber.headers, **HEADERS},
            timeout_s=order.subscriber.timeout_s,
            answer_limit=4096,
            allowed_targets=allowed_targets(self.projects, order.queue.project, Reach.PROJECT),
        )
        answer = self.sender.send(request)
        if answer.error_class:
            return Outcome(answer=answer, verdict=Verdict.FAILED, asked=Asked())
        if 200 <= answer.status_code < 300:
            self.counts.rejected(order.message, answer)
            return Outcome(answer=answer, verdict=Verdict.DELIVERED, asked=Asked())
        if answer.status_code in TEMPORARY:
            wait_ms = retry_after_ms(answer.headers.get("retry-after", ""), answer.finished_at) or 0
            return Outcome(answer=answer, verdict=Verdict.FAILED, asked=Asked(wait_ms=wait_ms))
        asked = Asked(stops=Stops.DELIVERY, reason=f"status_{answer.status_code}")
        return Outcome(answer=answer, verdict=Verdict.FAILED, asked=asked)


class SpanCounts(Component):
    """Implements :class:`pushhub.engine.ports.Watcher`: counts what was exported and what was dropped, for the operator
    as metrics and for the project by hour. Statistics: what is counted may be counted again after a crash.
    """

    activity: ActivityStore  # Where it is counted by hour.
    clock: Clock
    telemetry: Telemetry

    def __post_init__(self) -> None:
        self._seen: ExpiringCache[bool] = ExpiringCache(self.clock, ttl_ms=KEPT_MS, capacity=_REMEMBERED)

    def seen(self, message: Message, delivery: Delivery) -> None:
        """See the port."""
        if message.queue != SPANS_QUEUE or not delivery.settled or self._seen.get(delivery.key):
            return
        # Whoever has settled a delivery looks once more whether there is something to do, and tells of it again.
        self._seen.put(delivery.key, True)
        spans = _spans(message)
        if delivery.state is DeliveryState.DELIVERED:
            self.telemetry.count("SpansExported", spans)
            self._count(message.project, SubscriberActivity(delivered=spans))
            return
        self._dropped(message.project, spans, reason=delivery.reason or delivery.state.value)

    def rejected(self, message: Message, answer: Answer) -> None:
        """Count what a collector says that it did not take of a request that it answered with success."""
        spans, reason = rejected_spans(answer.body, _spans(message))
        if spans:
            # The whole message will be counted as exported.
            self._dropped(message.project, spans, reason=reason or "rejected", counted=spans)

    def _dropped(self, project: str, spans: int, *, reason: str, counted: int = 0) -> None:
        self.telemetry.count("SpansDropped", spans)
        self.telemetry.event("spans_dropped", project=project, spans=spans, reason=reason)
        self._count(project, SubscriberActivity(given_up=spans, delivered=-counted))

    def _count(self, project: str, activity: SubscriberActivity) -> None:
        now = self.clock.now()
        try:
            self.activity.add_subscriber_activity(project, SPANS_UID, now - now % HOUR_MS, activity)
        except Unavailable as error:
            self.telemetry.event("spans_not_counted", project=project, error=str(error))


def _spans(message: Message) -> int:
    return int(message.headers.get(SPANS_HEADER, "0"))
