"""What the use cases need from the outside, as small interfaces.

Real ones are in the ``store`` parts of the packages, fakes for tests in ``tests/fakes``; one contract test per port
runs against both. Every method may raise :class:`pushhub.base.errors.Unavailable` when the service behind it fails:
then nothing may be assumed about its effect. Times are epoch milliseconds.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from pushhub.engine.model.activity import Activity, SubscriberActivity
    from pushhub.engine.model.attempt_counts import AttemptCounts, CountedSubscriber
    from pushhub.engine.model.circuit import Health, SubscriberKey
    from pushhub.engine.model.delivery import Delivery
    from pushhub.engine.model.keys import DeliveryKey, MessageKey
    from pushhub.engine.model.message import BodyRef, Message
    from pushhub.engine.model.project import Project, ProjectToken
    from pushhub.engine.model.queue import Queue
    from pushhub.engine.model.record import DeliveryRecord
    from pushhub.engine.model.schedule import Position, ScheduleEntry
    from pushhub.engine.model.seats import Seats
    from pushhub.engine.model.subscriber_event import SubscriberEvent
    from pushhub.engine.model.work import WorkOrder


class ProjectStore(Protocol):
    """Projects. Every key starts with the project, here and in all stores."""

    def put_project(self, project: Project) -> None:
        """Store a project; replaces one of the same id."""
        ...

    def project(self, project_id: str) -> Project | None:
        """The project, or None."""
        ...

    def projects(self) -> list[Project]:
        """All projects, oldest first. Reads the whole table: for operators."""
        ...


class TokenStore(Protocol):
    """Tokens of projects, known by their hashes only."""

    def put_token(
        self, project_id: str, token_hash: str, label: str, now: int, *, expires_at: int | None = None
    ) -> None:
        """Let a token (SHA-256 hex of it) act for a project until it expires; replaces what was known of it."""
        ...

    def tokens(self, project_id: str) -> list[ProjectToken]:
        """All tokens of a project, expired ones among them, oldest first."""
        ...

    def has_token(self, project_id: str, token_hash: str) -> bool:
        """Whether that token acts for that project now."""
        ...

    def project_of(self, token_hash: str) -> str | None:
        """The project a token acts for, where the caller does not say; None when it is unknown."""
        ...

    def remove_token(self, project_id: str, token_hash: str) -> None:
        """Take a token back; unknown ones are ignored."""
        ...


class Projects(ProjectStore, TokenStore, Protocol):
    """Projects and who may act for them."""


class QueueStore(Protocol):
    """Queues of projects."""

    def create_queue(self, queue: Queue) -> None:
        """Store a new queue (version 1).

        Raises:
            Conflict: A queue of that name exists.
        """
        ...

    def queue(self, project_id: str, name: str, *, fresh: bool = False) -> Queue | None:
        """The queue, or None. ``fresh`` bypasses caches and reads consistently."""
        ...

    def update_queue(self, queue: Queue) -> Queue:
        """Replace a queue if it still has ``queue.version``; returns it with the raised version.

        Raises:
            Conflict: It changed meanwhile, or is gone.
        """
        ...

    def delete_queue(self, project_id: str, name: str) -> bool:
        """Remove a queue; whether there was one."""
        ...

    def queues(self, project_id: str, *, prefix: str, after: str, limit: int) -> list[str]:
        """Names in byte order of their UTF-8 form, those greater than ``after`` only."""
        ...


class TotalStore(Protocol):
    """Statistics of queues."""

    def add_to_total(self, project_id: str, queue_uid: str, count: int) -> None:
        """Add to the count of messages ever posted to a queue (a statistic: may be off after a crash)."""
        ...

    def total(self, project_id: str, queue_uid: str) -> int:
        """Messages ever posted to a queue."""
        ...


class QueuesAndTotals(QueueStore, TotalStore, Protocol):
    """Queues, and how many messages each was posted."""


class Workers(Protocol):
    """Numbers of execution environments."""

    def next_worker(self) -> int:
        """A number no other execution environment alive has (for message ids)."""
        ...


class ConfigStore(Projects, QueuesAndTotals, Workers, Protocol):
    """All of them, as the one table keeps them; for whoever puts the hub together."""


class Once(StrEnum):
    """What became of a message that is to be stored only once."""

    STORED = "stored"
    """It was written now."""
    KNOWN = "known"
    """It had been written before, for the same cause."""
    TAKEN = "taken"
    """Its id belongs to a message of another cause."""


class MessageSink(Protocol):
    """Where accepted messages are written."""

    def accept(self, messages: Sequence[Message]) -> None:
        """Write messages durably; once this returns the hub owes them. Safe to repeat with the same messages."""
        ...

    def accept_once(self, message: Message) -> Once:
        """Write a message the hub makes itself (``cause`` set) unless its id is taken."""
        ...


class Messages(Protocol):
    """Messages of push queues."""

    def message(self, key: MessageKey) -> Message | None:
        """The message, or None. Its body may be a claim-check."""
        ...

    def messages(self, keys: Sequence[MessageKey]) -> dict[MessageKey, Message]:
        """Many messages at once, read consistently; those that are gone are missing."""
        ...

    def message_with_deliveries(self, key: MessageKey) -> tuple[Message, list[Delivery]] | None:
        """The message and the deliveries stored so far (untried ones are not), read consistently; or None."""
        ...

    def listed(
        self, project_id: str, queue_uid: str, *, above: str | None = None, below: str | None = None, up: bool = True
    ) -> Iterator[Message]:
        """The messages of a queue that can be listed (:data:`pushhub.engine.model.keys.LISTED`),
        page by page as they are asked for, read consistently.

        Args:
            project_id: Owner.
            queue_uid: Generation of the queue.
            above: Those with greater ids only.
            below: Those with lower ids only.
            up: From lower to higher ids.
        """
        ...

    def delete(self, message: Message) -> None:
        """Take a message away from its readers, bytes and headers included.

        Its id stays taken, so that it is not made anew for the same cause.
        """
        ...


class Deliveries(Protocol):
    """Deliveries, from their first outcome on."""

    def deliveries(self, keys: Sequence[DeliveryKey]) -> dict[DeliveryKey, Delivery]:
        """Many stored deliveries at once, read consistently; untried ones are missing."""
        ...

    def delivery(self, key: DeliveryKey) -> Delivery | None:
        """One stored delivery, read consistently."""
        ...

    def save(self, delivery: Delivery) -> None:
        """Write a delivery if the stored one still has version ``delivery.version - 1`` (absent when that is 0).

        With ``delivery.scheduled`` it also enters the schedule, before it is written: see :meth:`Schedule.enter`.

        Raises:
            Conflict: The stored one has another version.
        """
        ...


class StoredMessages(Messages, Deliveries, Protocol):
    """Messages, and deliveries from their first outcome on."""


class Schedule(Protocol):
    """Waits that are too long for a queue, in shards that are read one after the other's end,
    each by one run at a time.
    """

    def enter(self, delivery: Delivery) -> None:
        """Have a delivery woken at its ``wakes_at``, or two to three minutes from now if that is later.

        Safe to repeat. Entries are never taken out: one whose delivery has changed since is void.

        Raises:
            ValueError: It has no due time.
        """
        ...

    def positions(self) -> list[Position]:
        """How far each shard was read, in the order of their numbers."""
        ...

    def due(self, position: Position, now: int, limit: int) -> tuple[list[ScheduleEntry], Position]:
        """What comes next in a shard.

        Args:
            position: Where to read on.
            now: Epoch milliseconds; later entries are not read.
            limit: Entries at most.

        Returns:
            Entries in the order of their times, and the position behind them; none when nothing more is due, or when
            much that is empty was passed.
        """
        ...

    def move(self, before: Position, after: Position) -> None:
        """Note how far a shard was read, and whether a run reads on.

        Raises:
            Conflict: The shard is not at ``before`` any more.
        """
        ...


class ShardRuns(Protocol):
    """Starts further runs of the function that wakes deliveries."""

    def start(self, shard: int) -> None:
        """Have one shard of the schedule read by a run of its own; returns at once.

        A run that does not come about is made up for a minute later.
        """
        ...


class Unsettled(Protocol):
    """Deliveries that people have to know of."""

    def unsettled(
        self, project_id: str, queue_uid: str, *, limit: int, after: str | None = None
    ) -> tuple[list[Delivery], str | None]:
        """Deliveries of a queue that failed at least once and wait (retrying, reserved), then exhausted ones.

        With a cursor for more.
        """
        ...

    def given_up(
        self, project_id: str, queue_uid: str, *, limit: int, after: str | None = None
    ) -> tuple[list[Delivery], str | None]:
        """The deliveries of a queue that were given up, exhausted or held, with a cursor for more.

        Any text may be a cursor, also one that was never given out.
        """
        ...

    def unsettled_count(self, project_id: str, queue_uid: str) -> int:
        """How many deliveries of a queue wait after a first attempt (exhausted ones do not count)."""
        ...


class Restored(Protocol):
    """Where what was lost is put back."""

    def restore(self, message: Message | None, deliveries: Sequence[Delivery]) -> None:
        """Write a message, if it is known, and deliveries as they once stood. What is there already is left alone.

        Nothing follows from it: no record is made, no work order is sent.
        """
        ...


class Outstanding(Protocol):
    """All messages, part by part."""

    def outstanding(self, part: int, parts: int) -> Iterator[tuple[Message, list[Delivery]]]:
        """The messages in one part of the table with their deliveries stored so far,
        page by page as they are asked for.

        A message lies in one part whole. Eventually consistent. Costs a read of everything in it.
        """
        ...


class MessageStore(MessageSink, StoredMessages, Unsettled, Restored, Outstanding, Protocol):
    """All of them, as the one table keeps them; for whoever puts the hub together."""


class Descendants(Protocol):
    """Counts the messages that follow from accepted ones, so that none leads to more than it may."""

    def spend(self, project_id: str, root_id: str, *, cause: str, count: int) -> bool:
        """Take some of the descendants that an accepted message may have.

        Args:
            project_id: Its project.
            root_id: The accepted message, see :attr:`pushhub.engine.model.message.Message.root`.
            cause: What they are made for: repeating the call for it takes them once.
            count: How many.

        Returns:
            Whether there were that many left; if not, none were taken.
        """
        ...


class BodyStore(Protocol):
    """Bodies too large for a table (claim-check)."""

    def put(self, project_id: str, bodies: Sequence[bytes], now: int) -> list[BodyRef]:
        """Store the bodies of one post durably in one object; a reference for each, in order."""
        ...

    def get(self, ref: BodyRef) -> bytes:
        """The exact bytes. Raises ``MessageNotFound`` when the object is gone, or they were erased."""
        ...

    def erase(self, ref: BodyRef) -> None:
        """Destroy the bytes of one body; the others of its object stay. Nothing is done when they are gone already."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Received:
    """A work order as received from SQS.

    Attributes:
        order: What to look at.
        sqs_id: SQS message id, the key of a batch item failure; orders that travelled in one pack share it.
        receipt_handle: For changing its visibility.
        received_at: When SQS handed it over.
        receive_count: How often SQS has handed it over so far.
        sent_at: When it was sent, epoch milliseconds; None when that is not known.
    """

    order: WorkOrder
    sqs_id: str
    receipt_handle: str
    received_at: int
    receive_count: int = 1
    sent_at: int | None = None


class OrderSink(Protocol):
    """Where orders go."""

    def send(self, orders: Sequence[tuple[WorkOrder, int]]) -> None:
        """Send orders, each with a delay in seconds (0..900).

        All are sent, or ``Unavailable`` is raised (some may be sent then).
        """
        ...


class WorkQueue(OrderSink, Protocol):
    """One SQS queue of work orders."""

    @property
    def name(self) -> str:
        """The queue's name."""
        ...

    def send_packed(self, orders: Sequence[WorkOrder], delay_s: int = 0) -> None:
        """Send orders, several for the same subscriber in one SQS message (:func:`pushhub.engine.model.work.pack`).

        All have the same delay (0..900). All are sent, or ``Unavailable`` is raised (some may be sent then).
        """
        ...

    def defer(self, waits: Iterable[tuple[str, int]]) -> set[str]:
        """Hide received messages (receipt handle, seconds); the handles that could not be changed are returned."""
        ...

    def receive(self, wait_s: int) -> list[Received]:
        """The orders of up to ten messages, hidden as long as the queue hides them.

        What is no work order is left to others.

        Args:
            wait_s: Seconds to wait for a message when there is none.
        """
        ...

    def delete(self, handles: Sequence[str]) -> None:
        """Delete received messages by their receipt handles; those that are gone already are no error."""
        ...


class RecordStore(Protocol):
    """Where delivery records are kept for analysis (``docs/records.md``)."""

    def write(self, records: Sequence[DeliveryRecord], *, table: str, first: str, last: str) -> bool:
        """Keep the records of one stream batch that happened in one hour; whether this call did, not an earlier one.

        Args:
            records: At least one, all of the same date and hour.
            table: Name of the table whose stream it is.
            first: Sequence number of the stream record that the first was made from.
            last: The same of the last.
        """
        ...

    def quarantine(self, stream_record: Mapping[str, object], *, error: str, table: str, sequence: str) -> None:
        """Keep a stream record from which no delivery record could be made, whole, with the reason."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """A delivery report.

    Attributes:
        name: Of its folder: its first and last day, ``2026-11-15_2026-11-21``.
        as_of: When deliveries were judged, ISO 8601.
    """

    name: str
    as_of: str


class ReportStore(Protocol):
    """Delivery reports (``docs/report.md``). They tell of all projects."""

    def newest(self) -> Report | None:
        """The newest report, or None."""
        ...

    def rows(self, report: str, table: str) -> list[dict[str, Any]]:
        """The first rows of a table of a report, as many as it keeps for reading; none when it has no such table."""
        ...


class ActivityStore(Protocol):
    """How much went on, by project or subscriber and hour. A statistic: what is added twice counts twice."""

    def add_activity(self, project_id: str, hour: int, activity: Activity) -> None:
        """Add to what is known of an hour.

        Args:
            project_id: The project.
            hour: When the hour began, epoch milliseconds.
            activity: What to add.
        """
        ...

    def activity(self, project_id: str, first: int, last: int) -> dict[int, Activity]:
        """What is known of the hours from ``first`` to ``last``, each by when it began.

        One in which nothing happened is missing.
        """
        ...

    def add_subscriber_activity(
        self, project_id: str, subscriber_id: str, hour: int, activity: SubscriberActivity
    ) -> None:
        """Add to what is known of a subscriber in an hour.

        Args:
            project_id: The project.
            subscriber_id: The hub's id of the subscriber.
            hour: When the hour began, epoch milliseconds.
            activity: What to add.
        """
        ...

    def subscriber_activity(
        self, project_id: str, subscriber_id: str, first: int, last: int
    ) -> dict[int, SubscriberActivity]:
        """As :meth:`activity`, of one subscriber."""
        ...


class AttemptCountStore(Protocol):
    """What came of attempts, by subscriber and hour. A statistic: what is added twice counts twice."""

    def add_attempts(self, subscriber: CountedSubscriber, hour: int, counts: AttemptCounts) -> None:
        """Add to what is known of an hour.

        Args:
            subscriber: Whose attempts.
            hour: When the hour began, epoch milliseconds.
            counts: What to add.
        """
        ...

    def attempts(self, subscriber: CountedSubscriber, first: int, last: int) -> dict[int, AttemptCounts]:
        """What is known of the hours from ``first`` to ``last``, each by when it began; others are missing."""
        ...


class QueueSource(Protocol):
    """Where a delivery's queue comes from: the queues of owners, or a protocol's internal ones."""

    def queue(self, project_id: str, name: str, *, fresh: bool = False) -> Queue | None:
        """The queue, or None; as it is now if ``fresh``, else perhaps as it was a moment ago."""
        ...


class Watcher(Protocol):
    """Keeps something beside the deliveries that follows from them."""

    def seen(self, message: Message, delivery: Delivery) -> None:
        """Told of each delivery as it is stored, once at least: after each write, and whenever it is looked at in vain.

        Raises:
            Unavailable: The order comes again.
        """
        ...


class SubscriberEvents(Protocol):
    """Acts on what the engine finds out about subscribers."""

    def happened(self, event: SubscriberEvent) -> None:
        """Told of each event, once at least; leaves alone the queues of other protocols. Safe to repeat.

        Raises:
            Unavailable: The event comes again.
        """
        ...


class Healths(Protocol):
    """What is known of subscribers whose circuits are watched."""

    def health(self, key: SubscriberKey) -> Health | None:
        """A subscriber's health, read consistently; None when nothing was ever wrong with it."""
        ...

    def save(self, health: Health) -> None:
        """Write a health if the stored one still has version ``health.version - 1`` (absent when that is 0).

        Raises:
            Conflict: The stored one has another version.
        """
        ...

    def look_after(self, key: SubscriberKey) -> None:
        """Enter a subscriber into the list of those that :meth:`looked_after` names; safe to repeat."""
        ...

    def looked_after(self) -> Iterator[SubscriberKey]:
        """Subscribers whose circuits were opened, until they leave."""
        ...

    def leave(self, key: SubscriberKey) -> None:
        """Take a subscriber from that list; safe to repeat."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """An order that waits on its subscriber.

    Attributes:
        order: The order, without the message's body.
        place: Where it stands.
    """

    order: WorkOrder
    place: str


class WaitingOrders(Protocol):
    """Orders that wait on their subscriber, for whoever lets them go."""

    def waiting(self, key: SubscriberKey, limit: int) -> list[Waiting]:
        """Those that have waited longest, about in their order; so many at most."""
        ...

    def remove(self, key: SubscriberKey, waiting: Sequence[Waiting]) -> None:
        """Take orders away; one that waits again by now has another place and stays. Safe to repeat."""
        ...


class SubscriberBacklog(WaitingOrders, Protocol):
    """Orders that wait on their subscriber because its circuit is open."""

    def add(self, key: SubscriberKey, order: WorkOrder, now: int) -> None:
        """Let an order wait; it takes the last place. The body is left out."""
        ...

    def count_waiting(self, key: SubscriberKey, most: int) -> int:
        """How many wait; counted as far as ``most``."""
        ...


class TroubledSubscribers(Protocol):
    """Subscribers whose circuits were opened, by project."""

    def looked_after_of(self, project_id: str, limit: int) -> list[SubscriberKey]:
        """Those of one project that :meth:`Healths.looked_after` names; so many at most."""
        ...


class Successors(Protocol):
    """Orders that wait until the delivery before them, of the same ordering key, has ended.

    Each delivery has one successor at most.
    """

    def wait_behind(self, before: DeliveryKey, order: WorkOrder) -> None:
        """Let an order wait; the message is left out. Safe to repeat."""
        ...

    def behind(self, ended: DeliveryKey) -> WorkOrder | None:
        """The order that waits behind a delivery, read consistently."""
        ...

    def let_go(self, ended: DeliveryKey) -> None:
        """Forget who waits behind a delivery. Safe to repeat."""
        ...


class SeatStore(Protocol):
    """Who shares the limits of subscribers."""

    def seats(self, key: SubscriberKey) -> Seats | None:
        """The seats of a subscriber, read consistently."""
        ...

    def save_seats(self, seats: Seats) -> None:
        """Write seats if the stored ones still have version ``seats.version - 1`` (absent when that is 0).

        Raises:
            Conflict: The stored ones have another version.
        """
        ...


class SlowSubscribers(Protocol):
    """Subscribers that took long to answer, as all execution environments found."""

    def note_slow(self, keys: Sequence[tuple[str, str, str]], until: int) -> None:
        """Enter subscribers (project, queue generation, id) into the list until a time, at least; safe to repeat."""
        ...

    def slow(self, now: int, limit: int) -> dict[tuple[str, str, str], int]:
        """Those on the list, and until when; perhaps as it was a moment ago.

        When there are more than the limit, those noted last.
        """
        ...


class SubscriberStore(
    Healths, TroubledSubscribers, SubscriberBacklog, SeatStore, Successors, SlowSubscribers, Protocol
):
    """All of them, as one table keeps them; for whoever puts the hub together."""
