"""What happened to messages: attempts, messages by endpoint, endpoints by message."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import TYPE_CHECKING

from pushhub.base.errors import Unavailable
from pushhub.engine.component import Component
from pushhub.engine.model.delivery import Delivery, DeliveryState, opening
from pushhub.webhooks.applications.applications import found_application
from pushhub.webhooks.endpoints.endpoints import found_endpoint
from pushhub.webhooks.messages.messages import MessageQuery, WebhooksMessages, engine_span
from pushhub.webhooks.model.attempt import LoggedAttempt, MessageStatus
from pushhub.webhooks.model.ids import IdPrefix, first_id
from pushhub.webhooks.model.internal_queues import app_of
from pushhub.webhooks.model.message import DAY_MS, ListedMessage
from pushhub.webhooks.model.page import KeyRange, Page, Window, page_of, span_of, taken
from pushhub.webhooks.model.refusals import Refused, not_found

if TYPE_CHECKING:
    from pushhub.base.ports import Clock
    from pushhub.engine.ports import StoredMessages
    from pushhub.webhooks.messages.ports import AttemptLog, MessageLog
    from pushhub.webhooks.model.application import Application
    from pushhub.webhooks.model.endpoint import Endpoint
    from pushhub.webhooks.ports import Endpoints, ReadApplications

_AT_A_TIME = 100
"""Messages whose deliveries are read together."""

MAX_STATS_MS = 28 * DAY_MS
_STATS_MARGIN_MS = 300_000
_CLOCK_SKEW_MS = 60_000

MOST_COUNTED = 200_000
"""The most attempts that statistics count."""

COUNTED_MS = 8_000
"""After this time statistics tell of the attempts that were counted by then, the newest: a partition of the table gives
12 MB a second, and whoever asks waits at a gateway that gives up.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptQuery:
    """A search for attempts.

    Attributes:
        messages: Which messages they belong to.
        status: With this result; None for any.
        status_class: With HTTP statuses of this class; None for any.
    """

    messages: MessageQuery = field(default_factory=MessageQuery)
    status: MessageStatus | None = None
    status_class: int | None = None

    def wants(self, attempt: LoggedAttempt) -> bool:
        """Whether an attempt matches."""
        return (
            self.messages.wants(attempt.event_type, attempt.channels, attempt.tags)
            and self.status in (None, attempt.status)
            and self.status_class in (None, attempt.status_class)
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptedMessage:
    """A message that was sent to an endpoint.

    Attributes:
        status: Its status there.
        next_at: When it is tried next, epoch milliseconds; None for not any more.
    """

    message: ListedMessage
    status: MessageStatus
    next_at: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Destination:
    """An endpoint that a message was sent to, or waits for.

    Attributes:
        endpoint: The endpoint, which may have been deleted since.
        status: The result of its last attempt; pending before the first.
        next_at: When it is tried next, epoch milliseconds; None for not any more.
    """

    endpoint: Endpoint
    status: MessageStatus
    next_at: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Stats:
    """Attempts at an endpoint, by result."""

    success: int
    fail: int
    sending: int = 0
    pending: int = 0
    canceled: int = 0


def status_of(delivery: Delivery) -> MessageStatus:
    """The status of a message at an endpoint."""
    if delivery.state in (DeliveryState.DELIVERED, DeliveryState.ACKNOWLEDGED):
        return MessageStatus.SUCCESS
    if delivery.state is DeliveryState.CANCELLED:
        return MessageStatus.CANCELED
    return MessageStatus.FAIL if delivery.due_at is None else MessageStatus.SENDING


class WebhooksAttempts(Component):
    """What happened to messages. Applications, endpoints and messages are named by the hub's id or the owner's own.

    Methods raise ``NotFound`` for what is not there.
    """

    applications: ReadApplications
    endpoints: Endpoints
    messages: WebhooksMessages
    log: MessageLog
    attempts: AttemptLog
    deliveries: StoredMessages
    clock: Clock

    def of_endpoint(
        self, project_id: str, app: str, name: str, window: Window, query: AttemptQuery
    ) -> Page[LoggedAttempt]:
        """Attempts at an endpoint."""
        endpoint = found_endpoint(self.endpoints, self._application(project_id, app), name)
        found = self.attempts.attempts(project_id, endpoint.endpoint_id, _attempt_span(window))
        return page_of(found, window, lambda each: each.attempt_id, query.wants)

    def of_message(
        self,
        project_id: str,
        app: str,
        name: str,
        window: Window,
        query: AttemptQuery,
        *,
        endpoint: str = "",
    ) -> Page[LoggedAttempt]:
        """Attempts for a message, at one endpoint or at all of them."""
        application = self._application(project_id, app)
        message = self.messages.of(application, name)
        only = found_endpoint(self.endpoints, application, endpoint).endpoint_id if endpoint else None
        attempts = [each for each in self._attempts_for(message, only) if query.wants(each)]
        found = taken(attempts, lambda each: each.attempt_id, _attempt_span(window))
        return page_of(found, window, lambda each: each.attempt_id)

    def attempt(self, project_id: str, app: str, name: str, attempt: str) -> LoggedAttempt:
        """One attempt for a message."""
        message = self.messages.message(project_id, app, name)
        for each in self._attempts_for(message, None):
            if each.attempt_id == attempt:
                return each
        raise not_found()

    def expunge(self, project_id: str, app: str, name: str, attempt: str) -> None:
        """Erase what is kept of the answer to an attempt."""
        self.attempts.change_attempt(replace(self.attempt(project_id, app, name, attempt), response="EXPUNGED"))

    def messages_of(
        self,
        project_id: str,
        app: str,
        name: str,
        window: Window,
        query: AttemptQuery,
    ) -> Page[AttemptedMessage]:
        """The messages that an endpoint was sent."""
        application = self._application(project_id, app)
        endpoint = found_endpoint(self.endpoints, application, name)
        listed = self.log.messages(project_id, application.app_id, engine_span(window))
        page = page_of(
            self._sent(listed, endpoint.endpoint_id, query),
            window,
            lambda each: each[0].message_id,
            lambda each: each[1] is not None,
        )
        return Page(items=[each for _, each in page.items if each], first=page.first, last=page.last, done=page.done)

    def destinations(self, project_id: str, app: str, name: str, window: Window) -> Page[Destination]:
        """The endpoints that a message was sent to, including deleted ones, and those that it waits for."""
        application = self._application(project_id, app)
        message = self.messages.of(application, name)
        found = taken(self._owed(message), lambda each: each.subscriber_id, span_of(window))
        shown = (each for each in map(self._destination, found) if each is not None)
        return page_of(shown, window, lambda each: each.endpoint.endpoint_id)

    def stats(self, project_id: str, app: str, name: str, *, since: int | None, until: int | None) -> Stats:
        """The number of successful and failed attempts at an endpoint; of very many, of the newest.

        Raises:
            Refused: The period is too long or in the future (400).
        """
        now = self.clock.now()
        endpoint = found_endpoint(self.endpoints, self._application(project_id, app), name)
        end = now if until is None else until
        start = end - MAX_STATS_MS if since is None else since
        if end > now + _STATS_MARGIN_MS or not 0 <= end - start <= MAX_STATS_MS + _STATS_MARGIN_MS:
            raise Refused(400, "invalid_range", "The range must be at most 28 days and must not end in the future")
        span = KeyRange(above=first_id(IdPrefix.ATTEMPT, start), below=first_id(IdPrefix.ATTEMPT, end + 4))
        results = self._results(self.attempts.attempts(project_id, endpoint.endpoint_id, span))
        return Stats(success=sum(results), fail=len(results) - sum(results))

    def _results(self, attempts: Iterable[LoggedAttempt]) -> list[bool]:
        """Which attempts succeeded, of those that can be read in time."""
        results: list[bool] = []
        ends_at = self.clock.now() + COUNTED_MS
        try:
            for each in islice(attempts, MOST_COUNTED):
                results.append(each.success)
                if self.clock.now() >= ends_at:
                    break
        except Unavailable as error:
            if not (results and error.throttled):
                raise
        return results

    def _application(self, project_id: str, app: str) -> Application:
        return found_application(self.applications, project_id, app)

    def _deliveries_of(self, message: ListedMessage) -> Sequence[Delivery]:
        found = self.deliveries.message_with_deliveries(message.key)
        return found[1] if found else ()

    def _owed(self, message: ListedMessage) -> list[Delivery]:
        """The deliveries of a message that were attempted, still are to be, or were not wanted by code: those behind an
        open circuit may have waited there since before their first attempt, and are not stored.
        """
        found = self.deliveries.message_with_deliveries(message.key)
        if found is None:
            return []
        stored = {each.subscriber_id: each for each in found[1]}
        to_be_stored = (each for each in found[0].delivery_subscribers if each not in stored)
        owed = [*stored.values(), *(opening(found[0], each) for each in to_be_stored)]
        return [each for each in owed if each.attempts or each.declined or not each.settled]

    def _attempts_for(self, message: ListedMessage, only: str | None) -> Iterator[LoggedAttempt]:
        """The attempts for a message at each of its endpoints."""
        for delivery in self._deliveries_of(message):
            if only in (None, delivery.subscriber_id):
                yield from self._attempts_of(delivery)

    def _attempts_of(self, delivery: Delivery) -> Iterable[LoggedAttempt]:
        """The attempts of a delivery, from the last one back: each records when the one before it was made.

        If one is missing, or two were made at the same time, the log is scanned from the first to the last attempt; for
        a busy endpoint, only part of it.
        """
        if delivery.last is None:
            return ()
        found: dict[str, LoggedAttempt] = {}
        at: int | None = delivery.last.started_at
        for _ in range(delivery.attempts):
            if at is None:
                break
            logged = self._attempts_between(delivery, at, at)
            found |= {each.attempt_id: each for each in logged if each.started_at == at}
            at = min((each.before_at for each in logged if each.before_at is not None), default=None)
        if len(found) < delivery.attempts:
            first, last = delivery.accepted_at - _CLOCK_SKEW_MS, delivery.last.finished_at + _CLOCK_SKEW_MS
            found |= {each.attempt_id: each for each in self._attempts_between(delivery, first, last)}
        return found.values()

    def _attempts_between(self, delivery: Delivery, first_at: int, last_at: int) -> list[LoggedAttempt]:
        span = KeyRange(above=first_id(IdPrefix.ATTEMPT, first_at), below=first_id(IdPrefix.ATTEMPT, last_at + 4))
        found = self.attempts.attempts(delivery.project, delivery.subscriber_id, span, engine_id=delivery.message_id)
        return list(found)

    def _sent(
        self, messages: Iterator[ListedMessage], endpoint_id: str, query: AttemptQuery
    ) -> Iterator[tuple[ListedMessage, AttemptedMessage | None]]:
        """The matching messages out of some, each with its status at an endpoint it was sent to."""
        while group := list(islice(messages, _AT_A_TIME)):
            wanted = [each for each in group if query.messages.wants(*_chosen_by(each))]
            stored = self.deliveries.deliveries([each.delivery_key(endpoint_id) for each in wanted])
            for each in group:
                delivery = stored.get(each.delivery_key(endpoint_id))
                shown = delivery is not None and (delivery.attempts or delivery.declined)
                if delivery is None or not shown or query.status not in (None, status_of(delivery)):
                    yield each, None
                    continue
                next_at = None if delivery.settled else delivery.due_at
                yield each, AttemptedMessage(message=each, status=status_of(delivery), next_at=next_at)

    def _destination(self, delivery: Delivery) -> Destination | None:
        project_id, app_id = delivery.project, app_of(delivery.queue_uid)
        endpoint = self.endpoints.endpoint(project_id, app_id, delivery.subscriber_id)
        endpoint = endpoint or self.endpoints.deleted_endpoint(project_id, app_id, delivery.subscriber_id)
        if endpoint is None:
            return None
        taken_by_it = status_of(delivery) is MessageStatus.SUCCESS
        status = MessageStatus.SUCCESS if taken_by_it else MessageStatus.FAIL
        if delivery.declined:
            status = MessageStatus.CANCELED
        elif not delivery.attempts:
            status = MessageStatus.PENDING
        return Destination(
            endpoint=endpoint,
            status=status,
            next_at=None if delivery.settled else delivery.due_at,
        )


def _chosen_by(message: ListedMessage) -> tuple[str, Collection[str], Collection[str]]:
    """The part of a query that selects messages."""
    return message.fields.event_type, message.fields.channels, message.fields.tags


def _attempt_span(window: Window) -> KeyRange:
    above = None if window.since is None else first_id(IdPrefix.ATTEMPT, window.since)
    below = None if window.before is None else first_id(IdPrefix.ATTEMPT, window.before)
    return span_of(window, above=above, below=below)
