"""Everything a protocol contributes to the engine, in one value.

Parts are made on first use, because each function needs only a few of them.
"""

from __future__ import annotations

import typing
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from threading import Lock
from typing import Any, Generic, TypeVar

if typing.TYPE_CHECKING:
    from pushhub.engine.ends import EndNotes
    from pushhub.engine.model.catalogue import Accepted
    from pushhub.engine.model.consumed import Consumed
    from pushhub.engine.model.keys import DeliveryKey
    from pushhub.engine.model.queue import Queue
    from pushhub.engine.model.record import DeliveryRecord
    from pushhub.engine.model.work import WorkOrder
    from pushhub.engine.ports import AttemptQueues, Finder, SubscriberEvents, Watcher
    from pushhub.engine.target import TargetOffer

ReadChange = Callable[[Mapping[str, Any]], "DeliveryRecord | Sequence[DeliveryRecord] | None"]
"""Makes the record or records of one stream record; None when the change is not recorded.

Raises on stream records it cannot read, and ``Unavailable`` when a lookup failed.
"""


ReadAccepted = Callable[[Mapping[str, Any]], "Sequence[Accepted]"]
"""The messages that an inserted item, in a stream record, has brought; none if it is something else."""


class Tick(typing.Protocol):
    """A task that runs every minute."""

    def run(self, remaining_ms: Callable[[], int]) -> int:
        """Do the work, as far as the remaining milliseconds allow; returns how much was done."""


class ProjectWork(typing.Protocol):
    """Work for one project that is done in a run of its own."""

    def run_project(self, project_id: str, remaining_ms: Callable[[], int]) -> int:
        """Do it, as far as the remaining milliseconds allow; returns how much was done."""


class RecordListener(typing.Protocol):
    """Does something with delivery records, away from deliveries."""

    def recorded(self, records: Sequence[DeliveryRecord], batch: str) -> None:
        """Called at least once for the records of each batch and hour. Never raises: records matter more.

        Args:
            records: In the order of their table's stream.
            batch: Names the batch and hour; the same on each repetition.
        """


class ExhaustedHandler(typing.Protocol):
    """Handles deliveries that are out of tries."""

    def run(
        self, orders: Sequence[WorkOrder], *, repeated: Collection[DeliveryKey], remaining_ms: Callable[[], int]
    ) -> Mapping[DeliveryKey, Exception]:
        """Handle a batch; ignores deliveries of other protocols. Safe to repeat.

        Args:
            repeated: Deliveries of which there was a run before.
            remaining_ms: Milliseconds that the run has left.

        Returns:
            The deliveries that could not be handled, with the reason; they have to be retried. The others are not
            affected.
        """


class TakesIn(typing.Protocol):
    """Takes in what the hub consumes from other people's queues and buses."""

    def take_in(self, project_id: str, name: str, messages: Sequence[Consumed]) -> list[Exception | None]:
        """Accept messages, each once however often it comes. Uses up no quota: how fast they come is the operator's
        choice.

        Args:
            name: Of the destination; nothing of it has to be right.
            messages: Those among them that have an order are of different ordering keys.

        Returns:
            For each message why it was not accepted; None if it was.

        Raises:
            HubError: None of them was accepted, or the effect is unknown for all of them.
        """
        ...


class ProtocolApi(typing.Protocol):
    """A protocol's HTTP API."""

    def handle(self, event: Mapping[str, Any]) -> dict[str, Any]:
        """Answer an API Gateway HTTP API event. Never raises."""


@dataclass(frozen=True, kw_only=True)
class OwnIds:
    """How a protocol names the messages of its internal queues.

    Attributes:
        kind: What such a message belongs to, in a word (``application``).
        has_owner: Whether the rest of the queue's name is the id of that; otherwise a project has only one.
        to_engine: The engine's id in a protocol's id; None when no message can have it.
        from_engine: The protocol's id for an engine's id.
    """

    kind: str
    has_owner: bool
    to_engine: Callable[[str], str | None]
    from_engine: Callable[[str], str]


@dataclass(frozen=True, kw_only=True)
class Protocol:
    """What a protocol contributes.

    Attributes:
        name: Name of its package. Its internal queues, if any, are named ``<name>/...``.
        targets: Its kinds of subscribers.
        queue_source: Looks up its internal queues.
        internal: Whether the hub itself handles the messages of a queue (by name), without waiting for an external
            answer.
        long: Whether attempts of a queue's deliveries (by name) may take long, so that they go at once to where such
            are made; the time limits of its subscribers decide in the end.
        uncounted: Whether what happens in a queue (by name) is left out of the statistics of its project.
        watchers: Told of each delivery of its internal queues when it is stored.
        subscriber_events: Told about the subscribers of its internal queues.
        ticks: Tasks that run every minute.
        end_notes: Where it keeps notes of what ends at its receivers, if these inherit what ends.
        project_work: Work for one project, done when a run of ``wake`` is started for it.
        finder: Shows messages of its internal queues that a search has found.
        own_ids: How it names the messages of its internal queues, if not as the engine does.
        exhausted: Handles deliveries that were given up.
        record_listeners: Told of the delivery records of all protocols.
        change_readers: For each of its own tables, by name: makes delivery records of changes in it.
        accepted_readers: For each of its own tables, by name: finds the messages that inserted items bring.
        apis: Its APIs by path prefix: ``/api/`` and the like. The API with the empty prefix handles everything else.
        producer_apis: The same, with at least the routes that producers use; for functions that serve only producers.
        takes_in: What takes in, for its kinds of destinations, what the hub consumes from elsewhere.
    """

    name: str
    targets: Sequence[TargetOffer] = ()
    queue_source: Callable[[], AttemptQueues] | None = None
    internal: Callable[[str], bool] = lambda _: False
    long: Callable[[str], bool] = lambda _: False
    uncounted: Callable[[str], bool] = lambda _: False
    watchers: Sequence[Callable[[], Watcher]] = ()
    subscriber_events: Callable[[], SubscriberEvents] | None = None
    ticks: Sequence[Callable[[], Tick]] = ()
    end_notes: Callable[[], EndNotes] | None = None
    project_work: Sequence[Callable[[], ProjectWork]] = ()
    finder: Callable[[], Finder] | None = None
    own_ids: Callable[[], OwnIds] | None = None
    exhausted: Callable[[], ExhaustedHandler] | None = None
    record_listeners: Sequence[Callable[[], RecordListener]] = ()
    change_readers: Callable[[], Mapping[str, ReadChange]] = dict
    accepted_readers: Callable[[], Mapping[str, ReadAccepted]] = dict
    apis: Mapping[str, Callable[[], ProtocolApi]] = field(default_factory=dict)
    producer_apis: Mapping[str, Callable[[], ProtocolApi]] = field(default_factory=dict)
    takes_in: Mapping[str, Callable[[], TakesIn]] = field(default_factory=dict)


OWNERS = ""
"""Stands for the protocol of owners' queues, whose names never contain a slash."""

T = TypeVar("T")


class ByQueue(Generic[T]):
    """What each protocol contributes for its internal queues, made on first use.

    A hub that uses no stores or webhooks does not pay for theirs in its cold starts. Thread-safe.

    Args:
        factories: Of contributions, by protocol name.
    """

    def __init__(self, factories: Mapping[str, Sequence[Callable[[], T]]]) -> None:
        self._factories = factories
        self._kept: dict[str, tuple[T, ...]] = {}
        self._lock = Lock()

    def of(self, queue: str) -> Sequence[T]:
        """The contributions of a queue's protocol, by the queue's name."""
        protocol, slash, _ = queue.partition("/")
        name = protocol if slash else OWNERS
        with self._lock:
            if name not in self._kept:
                self._kept[name] = tuple(make() for make in self._factories.get(name, ()))
            return self._kept[name]


class AllQueues:
    """Queues of owners, and the internal ones of all protocols.

    Args:
        owners: Looks up the queues of owners.
        protocols: Look up the queues named after them.
    """

    def __init__(self, *, owners: AttemptQueues, protocols: Sequence[Protocol]) -> None:
        internal = {each.name: (each.queue_source,) for each in protocols if each.queue_source}
        self._sources: ByQueue[AttemptQueues] = ByQueue({OWNERS: (lambda: owners,), **internal})

    def queue(self, project_id: str, name: str, *, since: int | None = None) -> Queue | None:
        """See the port."""
        for source in self._sources.of(name):
            return source.queue(project_id, name, since=since)
        return None
