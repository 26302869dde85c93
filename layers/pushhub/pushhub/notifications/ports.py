"""The ports that the use cases of Notifications 2.0 need.

The rules of :mod:`pushhub.engine.ports` apply here, too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from pushhub.base.errors import HubError

if TYPE_CHECKING:
    from pushhub.notifications.model.backlog import Backlog
    from pushhub.notifications.model.request import CommitPart, PublishRequest
    from pushhub.notifications.model.subscription import Subscription
    from pushhub.notifications.model.topic import Commit, Head, Reservation, Topic


class SubscriptionStore(Protocol):
    """Publishing rules. Every read is consistent: a subscription takes effect once its creation has been
    acknowledged.
    """

    def create(self, rule: Subscription) -> None:
        """Store a new one.

        Raises:
            Conflict: One of the same source, context and name exists.
        """

    def subscription(self, project_id: str, subscription_id: str) -> Subscription | None:
        """One by its id, or None."""

    def subscriptions(self, project_id: str) -> list[Subscription]:
        """All of a project, oldest first."""

    def concerning(self, project_id: str, source: str) -> list[Subscription]:
        """Subscriptions that watch a source, and those that watch the whole project."""

    def delete(self, rule: Subscription) -> bool:
        """Remove one; returns whether it existed."""


class TopicFull(HubError):
    """A topic's backlog has reached its ceiling.

    Args:
        head: The current state of the topic.
    """

    def __init__(self, head: Head) -> None:
        super().__init__("topic is full")
        self.head = head


class AlreadyAppended(HubError):
    """The part of a request that a commit was to hold is already in the topic, in another commit of the same
    request.
    """


class RequestStore(Protocol):
    """Publish requests that may be repeated."""

    def note(self, request: PublishRequest, now: int) -> PublishRequest:
        """Note a request; returns the one already noted under its key, if any. Idempotent.

        A key may be reused for another request once :data:`~pushhub.notifications.model.request.REPEATABLE_MS` have
        passed.
        """


class TopicStore(Protocol):
    """Topics: their heads, and the commits in their logs. Every read is consistent."""

    def admit(self, topic: Topic, subscriber_uid: str, *, ceiling: int) -> Head:
        """Owe a subscriber every commit from now on; creates the topic if it does not exist. Idempotent.

        Args:
            subscriber_uid: Id of the subscriber.
            ceiling: Ceiling of the topic if it is created.

        Returns:
            The head at that moment: commits up to its ``sequence`` are owed only if they were before.
        """

    def dismiss(self, topic: Topic, subscriber_uid: str) -> None:
        """Stop owing commits to a subscriber. Idempotent."""

    def head(self, topic: Topic) -> Head | None:
        """The current state of a topic; None before its first subscriber."""

    def reserve(self, topic: Topic, size: int, now: int, *, admitted: bool = False) -> Reservation | None:
        """Reserve the next place in a topic's log; None when it has no subscriber.

        Args:
            size: Bytes of the commit.
            admitted: Whether to ignore the ceiling, because an earlier part of the same request was accepted.

        Raises:
            TopicFull: The backlog has reached its ceiling.
        """

    def raise_ceiling(self, topic: Topic, ceiling: int) -> None:
        """Raise the ceiling; a lower value than the current one is ignored."""

    def append(self, commit: Commit, part: CommitPart | None = None) -> None:
        """Write a commit into its place. Safe to repeat.

        Args:
            part: The part of a noted request that it holds; recorded as taken in the same transaction.

        Raises:
            AlreadyAppended: That part is already in the topic, in this commit or another one.
            Conflict: The place was voided meanwhile, or belongs to another commit.
        """

    def commits(self, topic: Topic, first: int, limit: int) -> list[Commit]:
        """Commits in order from sequence ``first`` on, at most ``limit`` and perhaps fewer.

        Empty only when there are none.
        """

    def commits_at(self, topic: Topic, sequences: Sequence[int]) -> dict[int, Commit]:
        """Commits by sequence; those that are gone are missing."""


class BacklogStore(Protocol):
    """Subscribers' backlogs. Every read is consistent."""

    def backlog(self, topic: Topic, subscriber: str) -> Backlog | None:
        """One, or None."""

    def backlogs(self, topic: Topic) -> list[Backlog]:
        """All of a topic."""

    def save(self, backlog: Backlog) -> None:
        """Write one if the stored one has version ``backlog.version - 1`` and the same uid (absent when the version is
        1).

        Raises:
            Conflict: It does not.
        """

    def delete(self, backlog: Backlog) -> None:
        """Remove one; does nothing if there is none with that uid.

        Raises:
            Conflict: It has another version.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class Connection:
    """A WebSocket connection of a consumer.

    Attributes:
        topic: What it consumes.
        subscriber: The subscriber it consumes as.
        acknowledged: Positions it acknowledged that are not absorbed yet.
        stalled: Whether more is waiting than its window has room for; if so, an acknowledgement wakes the sender.
        token_id: Id of the consumer token it was opened with.
        issued_by: Hash of the project's token which that token was issued with; empty for connections older than this
            field.
        leaving: Whether its consumer has asked to be unsubscribed and is leaving.
    """

    connection_id: str
    topic: Topic
    subscriber: str
    subscriber_uid: str
    shared: bool
    opened_at: int
    acknowledged: frozenset[int] = frozenset()
    stalled: bool = False
    token_id: str = ""
    issued_by: str = ""
    leaving: bool = False


class ConnectionStore(Protocol):
    """Connections, and the acknowledgements that arrive on them. All reads except :meth:`idle` are consistent."""

    def open(self, connection: Connection, *, check_at: int) -> None:
        """Store a new connection.

        Args:
            check_at: When to check whether it is idle, epoch milliseconds.
        """

    def connections(self, connection_ids: Sequence[str]) -> dict[str, Connection]:
        """Connections by id; those that are gone are missing."""

    def acknowledge(self, connection_id: str, positions: Set[int], *, shared: bool) -> Connection | None:
        """Note acknowledgements, in one write whatever the size of the backlog. Idempotent.

        Args:
            connection_id: The connection they arrived on.
            positions: The acknowledged positions, at least one.
            shared: Whether their ack ids were made for a shared subscriber's connection.

        Returns:
            The connection as it is now; None when nothing was noted because it is gone or not of that kind.
        """

    def stall(self, connection_id: str, *, stalled: bool) -> Connection | None:
        """Set or clear ``stalled``; returns the connection as it is now, None when it is gone."""

    def leave(self, connection_id: str) -> None:
        """Set ``leaving``; nothing happens when the connection is gone."""

    def everyone(self) -> Iterator[Connection]:
        """Iterate over all connections, read lazily (eventually consistent)."""

    def forget(self, connection_id: str, positions: Iterable[int]) -> None:
        """Drop noted acknowledgements that a backlog has absorbed; nothing happens when the connection is gone."""

    def close(self, connection_id: str) -> Connection | None:
        """Remove a connection; returns it as it was, None when it was already gone."""

    def idle(self, now: int, limit: int) -> list[str]:
        """Ids of connections whose ``check_at`` has passed (eventually consistent)."""

    def check_again(self, connection_id: str, check_at: int) -> None:
        """Set when to check next; nothing happens when the connection is gone."""


class Sockets(Protocol):
    """The other ends of the connections (API Gateway's management API)."""

    def send(self, connection_id: str, text: str) -> bool:
        """Send a text frame; False when the connection is gone."""

    def close(self, connection_id: str) -> None:
        """Close a connection normally; one that is gone is ignored."""

    def active_at(self, connection_id: str) -> int | None:
        """When its client was last active, epoch milliseconds; None when the connection is gone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WakeUp:
    """Tells the sender to look at a backlog.

    Attributes:
        version: Version of the backlog, read *after* the change to look at was written. Wake-ups with the same version
            are duplicates.
    """

    topic: Topic
    subscriber: str
    subscriber_uid: str
    version: int

    @classmethod
    def of(cls, backlog: Backlog) -> WakeUp:
        """The wake-up for a backlog just read or written."""
        return cls(
            topic=backlog.topic,
            subscriber=backlog.subscriber,
            subscriber_uid=backlog.uid,
            version=backlog.version,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ReceivedWake:
    """A wake-up as received from SQS.

    Attributes:
        wake: What to look at.
        sqs_id: SQS message id, the key of a batch item failure.
        receipt_handle: For changing its visibility.
    """

    wake: WakeUp
    sqs_id: str
    receipt_handle: str


class WakeQueue(Protocol):
    """The FIFO queue of wake-ups: one group per subscriber, so one sender at a time."""

    def wake(self, wakes: Sequence[WakeUp]) -> None:
        """Send wake-ups; those for a version sent within the last few minutes are dropped.

        All are sent, or ``Unavailable`` is raised.
        """

    def defer(self, waits: Mapping[str, int]) -> None:
        """Have received wake-ups (by receipt handle) redelivered after the given number of seconds.

        Never raises: if it fails, they are redelivered later.
        """


class SigningKeys(Protocol):
    """The secrets used for tokens and ack ids."""

    def secrets(self) -> Sequence[bytes]:
        """The one that signs first, then those still valid for verification; none before the first token was made."""

    def signing(self) -> Sequence[bytes]:
        """The same for who is about to sign: makes the first one if there is none; raises ``Unavailable``."""
