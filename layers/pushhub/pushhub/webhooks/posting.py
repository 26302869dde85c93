"""Posts messages to applications: decides which endpoints they are owed to, stores them, then lists them.

Once stored, a message is accepted and listed: it serves as its own line in the list. Only a message whose bytes are
deleted before it leaves the list needs a separate line. After a crash between the two writes, the message leaves the
list together with its bytes. Its producer got no answer and posts again with the idempotency key, which repairs this.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pushhub.base.cache import ExpiringCache
from pushhub.base.errors import Conflict, TooMuchWork, Unavailable
from pushhub.base.ids import time_of_message_id
from pushhub.base.steps import MOST_STEPS, Steps
from pushhub.engine.model.message import Message, Ordering
from pushhub.web.json import Verbatim
from pushhub.webhooks.model.endpoint import Endpoint, wants
from pushhub.webhooks.model.event_type import Enforcement, EventType
from pushhub.webhooks.model.internal_queues import queue_of, queue_uid
from pushhub.webhooks.model.json_schema import violation
from pushhub.webhooks.model.message import LISTED_MS, ListedMessage
from pushhub.webhooks.model.page import Span
from pushhub.webhooks.model.refusals import conflict, not_found, unprocessable
from pushhub.webhooks.queues import subscriber_of
from pushhub.webhooks.wire.fields import NAME
from pushhub.webhooks.wire.message import NewWebhook, parse_message

if TYPE_CHECKING:
    from pushhub.base.ports import Clock, Telemetry
    from pushhub.engine.accept import Accept, PlacedBody
    from pushhub.engine.first_orders import FirstOrders
    from pushhub.engine.model.queue import Subscriber
    from pushhub.engine.model.trace import Trace
    from pushhub.engine.ports import BodyStore, MessageStore
    from pushhub.engine.quotas import Quotas
    from pushhub.webhooks.applications import WebhooksApplications
    from pushhub.webhooks.idempotency import Repeats
    from pushhub.webhooks.model.application import Application, ApplicationFields
    from pushhub.webhooks.ports import EventTypes, MessageLog, ReadEndpoints
    from pushhub.webhooks.search import WebhooksFields

_KEPT_MS = 600_000
FILTER_STEPS = MOST_STEPS
"""Steps for the payload filters of all endpoints of an application on one message: enough for a thousand endpoints with
ten filters of the usual kind each.
"""
_TYPES_KEPT_MS = 30_000
_CAPACITY = 2_000
"""Lists of endpoints that are cached; each is validated by its application's count of changes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Posted:
    """A message that was posted.

    Attributes:
        message: The listed message.
        payload: Its payload as it was sent; None when it was posted before, and has to be read.
    """

    message: ListedMessage
    payload: Verbatim | None


class WebhooksPosting:
    """Accepts messages.

    Args:
        accept: The single entry point for messages.
        messages: Where they are stored.
        bodies: Large bodies.
        applications: Applications.
        endpoints: Their endpoints.
        log: Lists messages.
        repeats: Recognizes repeated requests.
        event_types: Event types, whose schemas may be enforced.
        quotas: Bounds what producers post; made when one does.
        first_orders: Sends the first orders of eager applications; made when a producer posts to one.
        search_fields: Keeps the index of named fields.
        telemetry: Counts payloads that do not match their schema.
        clock: Time.
    """

    def __init__(
        self,
        *,
        accept: Accept,
        messages: MessageStore,
        bodies: BodyStore,
        applications: WebhooksApplications,
        endpoints: ReadEndpoints,
        log: MessageLog,
        repeats: Repeats,
        event_types: EventTypes,
        quotas: Callable[[], Quotas],
        first_orders: Callable[[], FirstOrders],
        search_fields: WebhooksFields,
        telemetry: Telemetry,
        clock: Clock,
    ) -> None:
        self._accept = accept
        self._messages = messages
        self._bodies = bodies
        self._applications = applications
        self._endpoints = endpoints
        self._log = log
        self._repeats = repeats
        self._event_types = event_types
        self._quotas = quotas
        self._first_orders = first_orders
        self._search_fields = search_fields
        self._telemetry = telemetry
        self._clock = clock
        self._types: ExpiringCache[tuple[EventType | None]] = ExpiringCache(
            clock, ttl_ms=_TYPES_KEPT_MS, capacity=_CAPACITY
        )
        self._known: ExpiringCache[tuple[int, Sequence[Endpoint]]] = ExpiringCache(
            clock, ttl_ms=_KEPT_MS, capacity=_CAPACITY
        )

    def post(self, project_id: str, app: str, body: bytes, *, digest: str = "", trace: Trace | None = None) -> Posted:
        """Accept a message.

        Args:
            project_id: Owner.
            app: Id or uid of the application.
            body: Body of the request.
            digest: Identifies repetitions of the request; empty without an idempotency key.
            trace: The trace of the request.

        Raises:
            NotFound: There is no such application, and the request does not contain one to create.
            Unprocessable: A field breaks a rule.
            Refused: The event id is taken (409).
            QuotaExceeded: The project posts more than it may.
            Unavailable: The message may or may not have been accepted; post again.
        """
        if NAME.fullmatch(app) is None:
            raise unprocessable(
                "An application's id may have letters, digits, hyphens, underscores and dots", "path", "app"
            )
        new = replace(parse_message(body, self._clock.now()), trace=trace)
        self._check_payload(project_id, new)
        self._quotas().take(project_id, 1)
        application = self._application(project_id, app, new.application)
        own = self._accept.next_id()
        first = self._repeats.message(project_id, digest, own) if digest else own
        if first != own:
            listed = self._log.listed(project_id, application.app_id, first)
            if listed is not None:
                # Complete whatever the first request left unfinished.
                self._log.list_message(listed)
                return Posted(message=listed, payload=None)
        # A request that repeats another may run beside it, and either would send the orders.
        return self._store(application, new, first, digest, hurries=application.fields.eager and first == own)

    def send_to(self, application: Application, endpoint: Endpoint, new: NewWebhook) -> Posted:
        """Accept a message for a single endpoint, regardless of its filters."""
        owed = (endpoint.endpoint_id,) if endpoint.active else ()
        return self._store(application, new, self._accept.next_id(), "", owed=owed)

    def wanted(self, project_id: str, app: str, event_type: str, channels: Sequence[str]) -> bool:
        """Whether any endpoint would get a message of an event type and channels.

        Raises:
            NotFound: No such application.
        """
        application = self._applications.application(project_id, app)
        type_flags = self._type_flags(project_id, event_type)
        return any(wants(each, event_type, channels, type_flags=type_flags) for each in self._endpoints_of(application))

    def _store(
        self,
        application: Application,
        new: NewWebhook,
        engine_id: str,
        digest: str,
        *,
        owed: tuple[str, ...] | None = None,
        hurries: bool = False,
    ) -> Posted:
        project_id, event_id = application.project, new.fields.event_id
        if owed is None:
            owed = self._wanted_by(application, new)
        accepted_at = time_of_message_id(engine_id)
        due_at = max(accepted_at, new.fields.deliver_at or 0)
        if event_id is not None:
            until = max(due_at + new.retention_ms, due_at + LISTED_MS)
            owner = self._log.claim_event(project_id, application.app_id, event_id, engine_id, until=until)
            if owner != engine_id:
                if digest:
                    self._repeats.release(project_id, digest)
                raise conflict("A message with that event id already exists")
        [placed] = self._accept.placed(project_id, [new.body], self._bodies)
        message = webhook_message(application, new, engine_id, placed, owed=owed, due_at=due_at)
        if hurries:
            [message] = self._first_orders().marked([message], self._subscribers(application, owed))
        payload: Verbatim | None = Verbatim(new.payload_text)
        self._search_fields.add(application, message, new.body)
        try:
            self._messages.accept([message])
        except Conflict:
            stored = self._messages.message(message.key)
            if stored is None:
                raise Unavailable("storing a message") from None
            message, payload, hurries = stored, None, False
        if hurries:
            self._first_orders().send([message])
        listed = ListedMessage.of(message)
        self._log.list_message(listed)
        return Posted(message=listed, payload=payload)

    def _subscribers(self, application: Application, owed: Sequence[str]) -> list[Subscriber]:
        found = {each.endpoint_id: each for each in self._endpoints_of(application)}
        return [subscriber_of(found[each], application) for each in owed if each in found]

    def _wanted_by(self, application: Application, new: NewWebhook) -> tuple[str, ...]:
        """The endpoints that a message is owed to.

        Raises:
            Unprocessable: Their filters take too many steps.
        """
        fields, steps = new.fields, Steps(FILTER_STEPS)
        type_flags = self._type_flags(application.project, fields.event_type)
        try:
            return tuple(
                each.endpoint_id
                for each in self._endpoints_of(application)
                if wants(each, fields.event_type, fields.channels, new.payload, steps=steps, type_flags=type_flags)
            )
        except TooMuchWork as error:
            raise unprocessable(
                "The payload filters of the application's endpoints take too many steps", "path", "app"
            ) from error

    def _check_payload(self, project_id: str, new: NewWebhook) -> None:
        """Check that a payload matches its event type's schema, if that is enforced.

        A changed schema or enforcement takes effect within half a minute.

        Raises:
            Unprocessable: It does not match.
        """
        event_type = self._event_type(project_id, new.fields.event_type)
        if event_type is None or event_type.enforcement is Enforcement.OFF or event_type.schema is None:
            return
        wrong = violation(event_type.schema, new.payload)
        if wrong is None:
            return
        if event_type.enforcement is Enforcement.REJECT:
            raise unprocessable(
                f"The payload does not match the schema of {event_type.name}: {wrong}", "body", "payload"
            )
        self._telemetry.count("PayloadsUnexpected")
        self._telemetry.event("payload_not_as_described", project=project_id, event_type=event_type.name)

    def _event_type(self, project_id: str, name: str) -> EventType | None:
        """An event type, as it was at most half a minute ago."""
        remembered = self._types.get((project_id, name))
        if remembered is None:
            remembered = (self._event_types.event_type(project_id, name),)
            self._types.put((project_id, name), remembered)
        return remembered[0]

    def _type_flags(self, project_id: str, name: str) -> Sequence[str]:
        event_type = self._event_type(project_id, name)
        return event_type.feature_flags if event_type else ()

    def _application(self, project_id: str, app: str, given: Callable[[str], ApplicationFields] | None) -> Application:
        """The application in the path; if there is none, it is created from the message's ``application``."""
        there = self._applications.find(project_id, app)
        if there is None and given is None:
            raise not_found("Application")
        return there or self._applications.named_or_brought(project_id, app, given)

    def _endpoints_of(self, application: Application) -> Sequence[Endpoint]:
        """All endpoints of an application, read again only when one of them changed."""
        key = (application.project, application.app_id)
        remembered = self._known.get(key)
        if remembered is not None and remembered[0] == application.endpoints:
            return remembered[1]
        found = list(self._endpoints.endpoints(*key, Span()))
        self._known.put(key, (application.endpoints, found))
        return found


def webhook_message(
    application: Application,
    new: NewWebhook,
    engine_id: str,
    placed: PlacedBody,
    *,
    owed: tuple[str, ...],
    due_at: int,
) -> Message:
    """A message of the engine, as it is stored.

    Args:
        application: Its application.
        new: The posted message.
        engine_id: Its id.
        placed: Where its bytes are stored.
        owed: The endpoints it is owed to.
        due_at: Not sent before this time, epoch milliseconds.
    """
    key = new.fields.ordering_key
    return Message(
        project=application.project,
        queue=queue_of(application.app_id),
        queue_uid=queue_uid(application.app_id),
        message_id=engine_id,
        body=placed.inline,
        body_ref=placed.ref,
        body_size=placed.size,
        headers=new.fields.as_headers(),
        accepted_at=time_of_message_id(engine_id),
        due_at=due_at,
        expires_at=due_at + new.retention_ms,
        subscriber_ids=owed,
        ordering=None if key is None else Ordering(key=key),
        trace=new.trace,
    )
