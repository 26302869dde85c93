"""Queues and subscribers: the settings that owners configure."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from pushhub.base.fields import APART, KEY, SPARSE, Setting, Stored, field_metadata
from pushhub.engine.model.answer_rules import NO_RULES, AnswerRules
from pushhub.engine.model.backoff import FixedDelay, RetryPolicy

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pushhub.base.gates import ClientCertificate
    from pushhub.engine.model.circuit import Circuit
    from pushhub.engine.model.flow import Limits


RAW = "raw"
"""The dialect of owners' queues."""


def dialect_of(queue: str) -> str:
    """The dialect that a queue's subscribers are sent, as delivery records name it.

    Internal queues are named ``<protocol>/...``. Names of owners' queues never contain a slash, and their subscribers
    get the body unchanged (``raw``).
    """
    protocol, slash, _ = queue.partition("/")
    return protocol if slash else RAW


MAX_EXPIRATION_S = 2_592_000
"""The longest life of a message, seconds."""


class QueueType(StrEnum):
    """How a queue hands out its messages; fixed when the queue is made (IronMQ v3: "Queue type is static")."""

    PULL = "pull"
    MULTICAST = "multicast"
    UNICAST = "unicast"


T = TypeVar("T")


class Attachment(Generic[T]):
    """A kind of value that a protocol attaches to subscribers of its internal queues, for its own targets. The engine
    carries it, and looks at none.
    """

    def to(self, value: T) -> Mapping[Attachment[Any], Any]:
        """The value as :attr:`Subscriber.attached`."""
        return {self: value}

    def of(self, subscriber: Subscriber) -> T:
        """What its protocol attached to a subscriber."""
        value: T = subscriber.attached[self]
        return value


@dataclass(frozen=True, slots=True, kw_only=True)
class Subscriber:
    """A destination of a push queue.

    Attributes:
        subscriber_id: The hub's own id (12 hex), kept when the subscriber is updated by name.
        name: The owner's name for it; may be empty (some IronMQ clients send none).
        url: Its scheme determines its kind, see :class:`pushhub.engine.target.Target`.
        headers: Sent with each push.
        timeout_s: Seconds to wait for the whole answer (1..180).
        retry: Its own retry policy; None uses the queue's. Not used in unicast, where a try is a round of all
            subscribers.
        rules: What its answers may ask for; None uses the queue's.
        limits: Maximum rate and concurrency. Not used in unicast.
        disabled: Nothing is sent to it; its deliveries end when they fall due.
        paused: Nothing is sent to it except at a person's request; its deliveries wait in its backlog until it is
            resumed or they expire. Not used in unicast.
        sealed: Its signing keys, encrypted (:class:`pushhub.engine.security.signing.Signing`); empty: requests to it
            are not signed.
        signing_ends: When schemes that sign its requests end, by the header of their signature.
        oauth: How the tokens are obtained that it is sent, encrypted; empty for no tokens.
        certificate: The certificate that its requests are sent with.
        identity: That certificate, its key and authorities, encrypted (:mod:`pushhub.engine.security.gates`).
        attached: What its protocol attached; never stored.

    The stored ones show ``********`` for what is in :attr:`PushSettings.credentials`.
    """

    subscriber_id: str
    name: str
    url: str
    headers: Mapping[str, str] = field(default_factory=dict)
    timeout_s: int = 10
    retry: RetryPolicy | None = None
    rules: AnswerRules | None = None
    limits: Limits | None = None
    disabled: bool = field(default=False, metadata=field_metadata(stored=SPARSE))
    paused: bool = field(default=False, metadata=field_metadata(stored=SPARSE))
    sealed: bytes = field(default=b"", repr=False, metadata=field_metadata(stored=SPARSE))
    signing_ends: Mapping[str, str] = field(default_factory=dict, metadata=field_metadata(stored=SPARSE))
    oauth: bytes = field(default=b"", repr=False, metadata=field_metadata(stored=SPARSE))
    certificate: ClientCertificate | None = field(default=None, metadata=field_metadata(stored=SPARSE))
    identity: bytes = field(default=b"", repr=False, metadata=field_metadata(stored=SPARSE))
    attached: Mapping[Attachment[Any], Any] = field(
        default_factory=dict, repr=False, metadata=field_metadata(stored=APART)
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class FormerSubscriber:
    """A subscriber that was removed or replaced: deliveries that it never got still have to be told of.

    Attributes:
        url: As stored, so without what opens something.
    """

    subscriber_id: str
    name: str
    url: str


MAX_FORMER = 20
"""Former subscribers that a queue remembers, the latest."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PushSettings:
    """The push half of a push queue.

    Attributes:
        subscribers: In the owner's order.
        retries_delay: How long a 202 reserves, too.
        retry: The retry policy; None means ``retries`` retries ``retries_delay`` apart.
        rules: What answers may ask for.
        circuit: How failing subscribers are protected; None for no protection: each delivery then follows its own
            waits. Not used in unicast.
        credentials: What opens something in the URLs and headers of the subscribers, encrypted
            (:class:`pushhub.engine.security.credentials.Credentials`); empty if nothing does.
        former: Subscribers that were removed, the latest last.
        eager: See :mod:`pushhub.engine.model.eager`.
        find: Finds a subscriber by its id, where there may be too many to list; never stored.

    The meaning of the others stands on them.
    """

    subscribers: tuple[Subscriber, ...] = field(metadata=field_metadata(Setting(means="")))
    retries: int = field(
        default=3,
        metadata=field_metadata(
            Setting(means="Tries after the first.", least=0, most=100, zero=True, left_out="3 when left out.")
        ),
    )
    retries_delay: int = field(
        default=60,
        metadata=field_metadata(
            Setting(
                means="Seconds from the end of one try to the next.",
                least=3,
                most=86_400,
                left_out="60 when left out.",
            )
        ),
    )
    error_queue: str = field(
        default="", metadata=field_metadata(Setting(means="Where failed messages are reported; empty for none."))
    )
    retry: RetryPolicy | None = None
    rules: AnswerRules = field(default=NO_RULES, metadata=field_metadata(stored=SPARSE))
    circuit: Circuit | None = None
    credentials: bytes = field(default=b"", repr=False, metadata=field_metadata(stored=SPARSE))
    former: tuple[FormerSubscriber, ...] = field(default=(), metadata=field_metadata(stored=SPARSE))
    eager: bool = field(
        default=False,
        metadata=field_metadata(
            Setting(
                means="Whether a post sends the first orders itself: faster on AWS, for one more SQS message.",
                shown="There and true if posts send the first orders themselves.",
                hidden=True,
            ),
            SPARSE,
        ),
    )
    find: Callable[[str], Subscriber | None] | None = field(
        default=None, repr=False, compare=False, metadata=field_metadata(stored=APART)
    )

    def with_subscribers(self, subscribers: tuple[Subscriber, ...]) -> PushSettings:
        """The settings with another list of subscribers; those that are no longer in it are remembered."""
        present = {each.subscriber_id for each in subscribers}
        gone = [
            FormerSubscriber(subscriber_id=each.subscriber_id, name=each.name, url=each.url)
            for each in self.subscribers
            if each.subscriber_id not in present
        ]
        return replace(self, subscribers=subscribers, former=(*self.former, *gone)[-MAX_FORMER:])

    def once(self, subscriber_id: str) -> FormerSubscriber | None:
        """The removed subscriber with that id, if it is remembered."""
        return next((each for each in self.former if each.subscriber_id == subscriber_id), None)

    @property
    def policy(self) -> RetryPolicy:
        """The effective retry policy."""
        return self.retry or FixedDelay(retries=self.retries, delay_s=self.retries_delay)

    def policy_of(self, subscriber_id: str) -> RetryPolicy:
        """The retry policy for deliveries to a subscriber.

        For a unicast delivery (``*``), or a removed subscriber, the queue's.
        """
        return self.policy_for(self.subscriber(subscriber_id), subscriber_id)

    def policy_for(self, asked: Subscriber | None, owed: str) -> RetryPolicy:
        """Same as :meth:`policy_of`, when the subscriber has already been looked up.

        Args:
            asked: The subscriber asked next; None when it was removed.
            owed: The ``subscriber_id`` of the delivery.
        """
        own = asked.retry if asked is not None and asked.subscriber_id == owed else None
        return own or self.policy

    def subscriber(self, subscriber_id: str) -> Subscriber | None:
        """The subscriber with that id; None when it was removed."""
        if self.find is not None:
            return self.find(subscriber_id)
        return next((each for each in self.subscribers if each.subscriber_id == subscriber_id), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadLetter:
    """Where a pull queue's messages go when they have been reserved too often.

    Attributes:
        queue_name: Never empty.
        max_reservations: The next one moves the message.
    """

    queue_name: str = field(
        metadata=field_metadata(Setting(means="Where messages go after too many reservations.", shown=""))
    )
    max_reservations: int = field(
        default=10, metadata=field_metadata(Setting(means="The number of reservations.", least=1, most=1000, shown=""))
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Alert:
    """Posts a message to ``queue`` when a pull queue's size crosses ``trigger`` (IronMQ alerts).

    Attributes:
        alert_id: The hub's id (12 hex).
        type: ``fixed`` (size crosses trigger) or ``progressive`` (each multiple of trigger).
        trigger: Number of messages, at least 1.
        direction: ``asc`` or ``desc``.
        queue: Name of the queue that gets the alert.
        snooze: Seconds of silence after an alert.
        fired_at: When it last fired, epoch milliseconds; only kept for alerts with a snooze.
    """

    alert_id: str
    type: str
    trigger: int
    direction: str
    queue: str
    snooze: int = 0
    fired_at: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class AcceptedSender:
    """Whose webhooks a queue takes.

    Attributes:
        kind: One of :data:`pushhub.base.webhook_senders.SENDERS`.
        sealed: The secret with which it signs, encrypted (:class:`pushhub.base.ports.Vault`).
    """

    kind: str
    sealed: bytes = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Queue:
    """A queue with all its settings.

    Attributes:
        name: Anything without ``/``.
        uid: Generation: a queue deleted and created again has another, so it sees none of the old messages.
        pull_uid: Generation of a pull queue's messages; clearing the queue starts a new one.
        type: Fixed at creation, but a pull queue may be converted.
        push: Set on push queues only.
        dead_letter: Pull queues only.
        alerts: Pull queues only, at most five.
        search_fields: By which values of its messages people can find them: paths in a JSON body, or ``header:NAME``
            (:mod:`pushhub.engine.model.search`).
        sender: Whose webhooks it takes; None for anybody's who has a token.
        secret: Key of the push reservations (see :func:`pushhub.base.ids.push_reservation_id`); never shown.
        cleared_at: Push queues: messages accepted up to then (epoch milliseconds) count as deleted.
        uncopied_until: Push queues: when posts may go by copies of it again, epoch milliseconds
            (:mod:`pushhub.engine.projects.queue_copies`).
        converted_at: Push queues that were pull queues: when they changed, epoch milliseconds. Messages may be left
            under ``pull_uid``.
        version: Incremented by each write; guards concurrent changes.
    """

    project: str = field(metadata=field_metadata(stored=KEY))
    name: str = field(metadata=field_metadata(stored=KEY))
    uid: str
    pull_uid: str = field(metadata=field_metadata(stored=Stored(name="line_uid")))
    type: QueueType = QueueType.PULL
    message_timeout: int = field(
        default=60,
        metadata=field_metadata(
            Setting(
                means="Seconds that a reservation lasts unless its request says otherwise.",
                least=1,
                most=86_400,
                left_out="60 when left out.",
            )
        ),
    )
    message_expiration: int = field(
        default=604_800,
        metadata=field_metadata(
            Setting(
                means="Seconds that a message lives.", least=1, most=MAX_EXPIRATION_S, left_out="A week when left out."
            )
        ),
    )
    push: PushSettings | None = None
    dead_letter: DeadLetter | None = None
    alerts: tuple[Alert, ...] = field(default=(), metadata=field_metadata(stored=SPARSE))
    search_fields: tuple[str, ...] = field(default=(), metadata=field_metadata(stored=SPARSE))
    sender: AcceptedSender | None = field(default=None, metadata=field_metadata(stored=SPARSE))
    secret: str
    cleared_at: int = 0
    uncopied_until: int = field(default=0, metadata=field_metadata(stored=SPARSE))
    converted_at: int = field(default=0, metadata=field_metadata(stored=SPARSE))
    created_at: int
    version: int = 0

    @property
    def is_push(self) -> bool:
        """Whether the hub delivers its messages (multicast or unicast)."""
        return self.type is not QueueType.PULL


def internal_queue(project: str, name: str, uid: str, push: PushSettings) -> Queue:
    """A queue of the hub's own, made from a protocol's settings whenever it is needed, and stored nowhere.

    No API reaches it: nobody reserves or acknowledges its messages with its secret, and nothing is signed with it.

    Args:
        name: As its messages have it.
        uid: As its messages have it.
        push: Who gets them.
    """
    return Queue(
        project=project, name=name, uid=uid, pull_uid=uid, type=QueueType.MULTICAST, push=push, secret="", created_at=0
    )
