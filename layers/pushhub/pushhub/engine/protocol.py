"""What a protocol brings to the engine, in one value.

Everything is made when it is first asked for, as each function needs little of it.
"""

from __future__ import annotations

import typing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from threading import Lock
from typing import Any, Generic, TypeVar

if typing.TYPE_CHECKING:
    from pushhub.engine.model.keys import DeliveryKey
    from pushhub.engine.model.queue import Queue
    from pushhub.engine.model.record import DeliveryRecord
    from pushhub.engine.model.work import WorkOrder
    from pushhub.engine.ports import QueueSource, SubscriberEvents, Watcher
    from pushhub.engine.target import Target

ReadChange = Callable[[Mapping[str, Any]], "DeliveryRecord | Sequence[DeliveryRecord] | None"]
"""Makes the record, or records, of one record of a table's stream; None when nothing happened that is recorded.

Raises on what it cannot read, and ``Unavailable`` when it could not look something up.
"""


class Tick(typing.Protocol):
    """Something to be done each minute."""

    def run(self, remaining_ms: Callable[[], int]) -> int:
        """Do it, as far as the milliseconds that are left allow; how much was done.

        Raises:
            Unavailable: The next run goes on.
        """
        ...


class ExhaustedHandler(typing.Protocol):
    """What becomes of deliveries whose tries are used up."""

    def run(self, orders: Sequence[WorkOrder]) -> Mapping[DeliveryKey, Exception]:
        """Handle some; leaves alone what does not belong to its protocol. Safe to repeat.

        Returns:
            Those that could not be handled, and why: they have to come again. One of them does not touch the others.
        """
        ...


class Api(typing.Protocol):
    """A protocol's HTTP API."""

    def handle(self, event: Mapping[str, Any]) -> dict[str, Any]:
        """Answer an API Gateway HTTP API event. Never raises."""
        ...


@dataclass(frozen=True, slots=True)
class TargetOffer:
    """A kind of subscriber that a protocol brings.

    Attributes:
        schemes: Of the URLs that belong to it.
        make: Makes it, when the first such URL is met.
        public: Whether owners may register it as a subscriber of their queues.
        signed: Whether what it sends can carry a signature.
    """

    schemes: tuple[str, ...]
    make: Callable[[], Target]
    public: bool = True
    signed: bool = False


@dataclass(frozen=True, kw_only=True)
class Protocol:
    """What a protocol brings.

    Attributes:
        name: Of its package. Its internal queues, if it has any, are named ``<name>/...``.
        targets: Kinds of subscribers.
        queue_source: Knows its internal queues.
        internal: Says by its name whether the hub itself works on the messages of a queue, without waiting for
            anybody's answer.
        watchers: Told of each delivery of its internal queues as it is stored.
        subscriber_events: Told what becomes of the subscribers of its internal queues.
        ticks: Done each minute.
        exhausted: Handles deliveries that gave up.
        change_readers: By name of its own tables: what makes delivery records of the changes in it.
        apis: By prefix of the path: ``/api/`` and the like. The API of the empty prefix has all the rest.
        producer_apis: The same, with at least the routes that producers ask for; a function that serves only producers
            has these.
    """

    name: str
    targets: Sequence[TargetOffer] = ()
    queue_source: Callable[[], QueueSource] | None = None
    internal: Callable[[str], bool] = lambda _: False
    watchers: Sequence[Callable[[], Watcher]] = ()
    subscriber_events: Callable[[], SubscriberEvents] | None = None
    ticks: Sequence[Callable[[], Tick]] = ()
    exhausted: Callable[[], ExhaustedHandler] | None = None
    change_readers: Callable[[], Mapping[str, ReadChange]] = dict
    apis: Mapping[str, Callable[[], Api]] = field(default_factory=dict)
    producer_apis: Mapping[str, Callable[[], Api]] = field(default_factory=dict)


OWNERS = ""
"""Stands for the protocol of queues that owners made: their names never hold a slash."""

T = TypeVar("T")


class ByQueue(Generic[T]):
    """What each protocol has for its internal queues, made when the first of these is met.

    A hub without stores, or without webhooks, does not pay for theirs at its cold starts. Threads may share it.

    Args:
        made: What makes it, by the protocol's name.
    """

    def __init__(self, made: Mapping[str, Sequence[Callable[[], T]]]) -> None:
        self._made = made
        self._kept: dict[str, tuple[T, ...]] = {}
        self._lock = Lock()

    def of(self, queue: str) -> Sequence[T]:
        """What the protocol of a queue has, by the queue's name."""
        protocol, slash, _ = queue.partition("/")
        name = protocol if slash else OWNERS
        with self._lock:
            if name not in self._kept:
                self._kept[name] = tuple(make() for make in self._made.get(name, ()))
            return self._kept[name]


class AllQueues:
    """Queues of owners, and the internal ones of all protocols.

    Args:
        owners: Knows the queues of owners.
        protocols: Know those named after them.
    """

    def __init__(self, *, owners: QueueSource, protocols: Sequence[Protocol]) -> None:
        internal = {each.name: (each.queue_source,) for each in protocols if each.queue_source}
        self._sources: ByQueue[QueueSource] = ByQueue({OWNERS: (lambda: owners,), **internal})

    def queue(self, project_id: str, name: str, *, fresh: bool = False) -> Queue | None:
        """The queue, or None; as it is now if ``fresh``, else perhaps as it was a moment ago."""
        for source in self._sources.of(name):
            return source.queue(project_id, name, fresh=fresh)
        return None
