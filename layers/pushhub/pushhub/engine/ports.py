"""What the use cases need from outside, as small interfaces.

The real implementations are in the ``store`` parts of the packages, the fakes for tests in ``tests/fakes``; one
contract test per port runs against both. Every method may raise :class:`pushhub.base.errors.Unavailable` when the
service behind it fails; the effect of the call is then unknown. So may everything that calls one; no docstring says it
where there is no more to say. Times are epoch milliseconds, ``now`` everywhere.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from pushhub.base.signature_schemes import Scheme
    from pushhub.engine.model.circuit import SubscriberKey
    from pushhub.engine.model.delivery import Delivery
    from pushhub.engine.model.keys import DeliveryKey, MessageKey
    from pushhub.engine.model.message import BodyRef, Message
    from pushhub.engine.model.project import Project, ProjectToken
    from pushhub.engine.model.queue import Queue
    from pushhub.engine.model.received import Received
    from pushhub.engine.model.search import Found, IndexEntry
    from pushhub.engine.model.span_export import SpanExport
    from pushhub.engine.model.subscriber_event import SubscriberEvent
    from pushhub.engine.model.work import WorkOrder

PROJECT_MS = 30_000
"""How old a copy of a project may be where nothing else is said, milliseconds."""


class ProjectStore(Protocol):
    """Projects. Every key starts with the project, here and in all stores."""

    def put_project(self, project: Project) -> None:
        """Store a new project; replaces one of the same id. Nobody else may know it yet."""

    def project(self, project_id: str, *, within_ms: int = PROJECT_MS) -> Project | None:
        """The project, or None. A copy that was read longer ago than this is not enough; 0 for none at all."""

    def change_project(self, project_id: str, change: Callable[[Project], Project]) -> Project:
        """Change a project, and nothing that others change meanwhile; returns it as stored.

        Args:
            change: Makes the new state from the stored one. Called again when somebody else came first; what it raises
                is passed on.

        Raises:
            NotFound: There is no such project.
            Contended: Others kept changing it.
        """

    def sign_project(self, project_id: str, signatures: Sequence[Scheme]) -> None:
        """Set the signature schemes of an existing project, and nothing else of it.

        Raises:
            Conflict: It does not exist.
        """

    def projects(self) -> list[Project]:
        """All projects, oldest first. Reads the whole table: for operators."""


class SpanExports(Protocol):
    """Where projects export spans to."""

    def span_export(self, project_id: str, *, fresh: bool = False) -> SpanExport | None:
        """What a project has set, or None; may be half a minute old unless ``fresh``."""

    def put_span_export(self, export: SpanExport) -> None:
        """Store; replaces what the project had set."""

    def remove_span_export(self, project_id: str) -> None:
        """Forget it; safe to repeat."""


class TokenStore(Protocol):
    """Tokens of projects, known by their hashes only."""

    def put_token(
        self, project_id: str, token_hash: str, label: str, now: int, *, expires_at: int | None = None
    ) -> None:
        """Let a token (its SHA-256 in hex) act for a project until it expires; replaces an existing entry."""

    def end_token(self, project_id: str, token: ProjectToken, at: int) -> None:
        """Let a token expire at a time, unless it does so sooner; one that is gone stays so."""

    def tokens(self, project_id: str) -> list[ProjectToken]:
        """All tokens of a project, including expired ones, oldest first."""

    def has_token(self, project_id: str, token_hash: str) -> bool:
        """Whether that token acts for that project now."""

    def project_of(self, token_hash: str) -> str | None:
        """The project a token acts for, when the caller does not name one; None when the token is unknown."""

    def remove_token(self, project_id: str, token_hash: str) -> None:
        """Revoke a token; unknown ones are ignored."""


class ProjectDirectory(ProjectStore, TokenStore, Protocol):
    """Projects and who may act for them."""


class QueueStore(Protocol):
    """Queues of projects."""

    def create_queue(self, queue: Queue) -> None:
        """Store a new queue (version 1).

        Raises:
            Conflict: A queue of that name exists.
        """

    def queue(self, project_id: str, name: str, *, fresh: bool = False) -> Queue | None:
        """The queue, or None. ``fresh`` bypasses caches and reads consistently."""

    def update_queue(self, queue: Queue) -> Queue:
        """Replace a queue if the stored version is still ``queue.version``; returns it with the new version.

        Raises:
            Conflict: It has changed since, or is gone.
        """

    def delete_queue(self, queue: Queue) -> bool:
        """Remove a queue if the stored version is still ``queue.version``; returns whether it was there.

        Raises:
            Conflict: It has changed since.
        """

    def queues(self, project_id: str, *, prefix: str, after: str, limit: int) -> list[str]:
        """Queue names in byte order of their UTF-8 form, starting after ``after``."""

    def whole_queues(self, project_id: str, *, prefix: str, after: str, limit: int) -> list[Queue]:
        """The same queues themselves, for the cost of few reads."""


class TotalStore(Protocol):
    """Statistics of queues."""

    def add_to_total(self, project_id: str, queue_uid: str, count: int) -> None:
        """Add to the number of messages ever posted to a queue (a statistic: may be off after a crash)."""

    def total(self, project_id: str, queue_uid: str) -> int:
        """Messages ever posted to a queue."""


class QueuesAndTotals(QueueStore, TotalStore, Protocol):
    """Queues, and the number of messages posted to each."""


class Waits(Protocol):
    """Requests that wait for something. Each occupies an execution environment, so their number per project is
    limited.
    """

    def enter(self, project_id: str, *, now: int, until: int) -> str | None:
        """Take a waiting place until ``until`` at the latest; None when all places are taken."""

    def leave(self, project_id: str, place: str) -> None:
        """Give the place back."""


class Once(StrEnum):
    """Outcome of storing a message that must be stored only once."""

    STORED = "stored"
    """Written now."""
    KNOWN = "known"
    """Already written before, for the same cause."""
    TAKEN = "taken"
    """The id is taken by a message with another cause."""


class MessageSink(Protocol):
    """Where accepted messages are written."""

    def accept(self, messages: Sequence[Message]) -> None:
        """Write messages durably; once this returns the hub owes them. Safe to repeat with the same messages."""

    def accept_once(self, message: Message) -> Once:
        """Write a message made by the hub itself (``cause`` set) unless its id is taken."""


class Messages(Protocol):
    """Messages of push queues."""

    def message(self, key: MessageKey) -> Message | None:
        """The message, or None. It may have a claim check instead of a body."""

    def messages(self, keys: Sequence[MessageKey]) -> dict[MessageKey, Message]:
        """Many messages at once, read consistently; missing messages are left out."""

    def message_with_deliveries(self, key: MessageKey) -> tuple[Message, list[Delivery]] | None:
        """The message and its stored deliveries (untried ones are not stored), read consistently; or None."""

    def listed(
        self,
        project_id: str,
        queue_uid: str,
        *,
        above: str | None = None,
        below: str | None = None,
        up: bool = True,
        wanted: int | None = None,
    ) -> Iterator[Message]:
        """The messages of a queue that can be listed (:data:`pushhub.engine.model.keys.LISTED`), fetched lazily page by
        page, read consistently.

        Args:
            queue_uid: Generation of the queue.
            above: Only greater ids.
            below: Only lower ids.
            up: Whether to go from lower to higher ids.
            wanted: How many are wanted, if that is known: not many more are read at once.
        """

    def delete(self, message: Message) -> None:
        """Delete a message for its readers, including bytes and headers.

        Its id stays taken, so that it is not made again for the same cause.
        """


class Deliveries(Protocol):
    """Deliveries, once they have a first outcome."""

    def deliveries(self, keys: Sequence[DeliveryKey], *, consistent: bool = True) -> dict[DeliveryKey, Delivery]:
        """Many stored deliveries at once; untried ones are missing. Unless read consistently, at half the price, they
        may be seconds old.
        """

    def delivery(self, key: DeliveryKey) -> Delivery | None:
        """One stored delivery, read consistently."""

    def save(self, delivery: Delivery) -> None:
        """Write a delivery if the stored one still has version ``delivery.version - 1`` (absent when that is 0).

        With ``delivery.scheduled``, the schedule entry is made first: see :meth:`Schedule.enter`.

        Raises:
            Conflict: The stored one has another version.
        """


class StoredMessages(Messages, Deliveries, Protocol):
    """Messages, and deliveries once they have a first outcome."""


class Descendants(Protocol):
    """Counts the messages derived from accepted ones, so that none produces more than it may."""

    def spend(self, project_id: str, root_id: str, *, cause: str, count: int) -> bool:
        """Use up some of the descendants that an accepted message may have.

        Args:
            root_id: The accepted message, see :attr:`pushhub.engine.model.message.Message.root`.
            cause: What the new messages are made for; repeating the call with the same cause counts once.
            count: Number of new messages.

        Returns:
            Whether that many were left; if not, none were used up.
        """


class BodyStore(Protocol):
    """Bodies too large for a table (claim-check)."""

    def put(self, project_id: str, bodies: Sequence[bytes], now: int) -> list[BodyRef]:
        """Store the bodies of one post durably in one object; returns a reference for each, in order."""

    def get(self, ref: BodyRef) -> bytes:
        """The exact bytes. Raises ``MessageNotFound`` when the object is gone or the bytes were erased."""

    def erase(self, ref: BodyRef) -> None:
        """Destroy the bytes of one body; others in the same object stay. Does nothing if they are already gone."""


class OrderSink(Protocol):
    """Where orders are sent."""

    def send(self, orders: Sequence[tuple[WorkOrder, int]]) -> None:
        """Send orders, each with a delay in seconds (0..900).

        Either all are sent, or ``Unavailable`` is raised (and some may have been sent).
        """


class WorkQueue(OrderSink, Protocol):
    """One SQS queue of work orders."""

    @property
    def name(self) -> str:
        """The queue's name."""

    def send_packed(self, orders: Sequence[WorkOrder], delay_s: int = 0) -> None:
        """Send orders, several for the same subscriber in one SQS message (:func:`pushhub.engine.model.work.pack`).

        All have the same delay (0..900). Either all are sent, or ``Unavailable`` is raised (and some may have been
        sent).
        """

    def defer(self, waits: Iterable[tuple[str, int]]) -> set[str]:
        """Hide received messages (receipt handle, seconds); returns the handles that could not be changed."""

    def receive(self, wait_s: int) -> list[Received]:
        """The orders of up to ten messages, hidden for the queue's visibility timeout.

        Messages that are not work orders are skipped.

        Args:
            wait_s: Seconds to wait for a message when there is none.
        """

    def delete(self, handles: Sequence[str]) -> None:
        """Delete received messages by their receipt handles; handles already gone are not an error."""


class QueueSource(Protocol):
    """Looks up the queues of owners."""

    def queue(self, project_id: str, name: str, *, fresh: bool = False) -> Queue | None:
        """The queue, or None; current if ``fresh``, otherwise possibly slightly out of date."""


class AttemptQueues(Protocol):
    """Looks up the queues that attempts go by."""

    def queue(self, project_id: str, name: str, *, since: int | None = None) -> Queue | None:
        """The queue, or None.

        Args:
            since: Every change made before this time (epoch milliseconds) must be in it, and every one made half a
                second ago; None for the queue as it is now. Only the latter may be believed that something is missing.
        """


class Watcher(Protocol):
    """Maintains data derived from deliveries."""

    def seen(self, message: Message, delivery: Delivery) -> None:
        """Called at least once for each stored delivery: after each write, and whenever an order finds nothing to do.

        Raises:
            Unavailable: The order is retried.
        """


class SubscriberEvents(Protocol):
    """Acts on what the engine learns about subscribers."""

    def happened(self, event: SubscriberEvent) -> None:
        """Called at least once for each event; ignores the queues of other protocols. Safe to repeat.

        Raises:
            Unavailable: The event is reported again.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class BacklogOrder:
    """An order in a subscriber's backlog.

    Attributes:
        order: The order, without the message's body.
        place: Its position.
    """

    order: WorkOrder
    place: str


class WaitingOrders(Protocol):
    """Backlogs of subscribers, for those who release orders from them."""

    def waiting(self, key: SubscriberKey, limit: int) -> list[BacklogOrder]:
        """The orders that have waited longest, approximately in order; at most ``limit``."""

    def remove(self, key: SubscriberKey, waiting: Sequence[BacklogOrder]) -> None:
        """Remove orders; one that has been added again since has another place and stays. Safe to repeat."""


class SearchIndex(Protocol):
    """Messages by the values of their fields; they may be gone."""

    def add(self, entries: Sequence[IndexEntry]) -> None:
        """Add entries; safe to repeat. They go by themselves when their messages expire."""

    def find(
        self, project_id: str, value: str, limit: int, after: str | None = None
    ) -> tuple[list[IndexEntry], str | None]:
        """Entries of a project with a value, the newest messages first.

        Args:
            value: The value; case and spaces around it do not matter.
            after: What the previous call returned; None to begin.

        Returns:
            The entries, and where the next ones begin; None when there are no more.
        """

    def remove(self, entries: Sequence[IndexEntry]) -> None:
        """Remove entries; safe to repeat."""


class Finder(Protocol):
    """Shows what the indexes have found in the internal queues of a protocol."""

    kind: str
    """What its messages belong to, in a word."""

    def found(self, entry: IndexEntry) -> Found | None:
        """The message; None when it is gone, or may not be found by that field.

        Args:
            entry: Its field is empty if the message was found by something in its body, or is just listed.
        """
