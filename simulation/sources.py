"""What calls functions by itself: event sources that poll queues and streams, as Lambda has them."""

from __future__ import annotations

import base64
import zlib
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from typing import Any

from simulation.dynamodb import Change
from simulation.expressions import Item
from simulation.functions import Function, RunFailed
from simulation.ids import ids_in
from simulation.items import unpack
from simulation.scheduler import SECOND
from simulation.sqs import Lineage, Queue, Stored
from simulation.template import QueueEvents, StreamEvents
from simulation.weather import Kind

STREAM_KEEPS_MS = 86_400_000
"""A stream keeps its records for 24 hours."""

SHARDS = 2
"""Shards that a table's stream begins with."""

MOST_SPLITS = 4
"""How often one shard after another is split."""

MOST_RECEIVED = 10
"""Messages of one receive."""


class QueueSource:
    """Calls a function with what a queue holds. With a batching window, what is received waits, in flight, until the
    batch is full or the window over.

    Args:
        function: The function.
        queue: The queue.
        events: How it is polled.
    """

    def __init__(self, function: Function, queue: Queue, events: QueueEvents) -> None:
        self._function = function
        self._account = function.account
        self._queue = queue
        self._events = events
        self._running = 0
        self._looks_at: int | None = None
        self._gathered: list[Stored] = []
        self._gatherings = 0
        queue.changed = self._changed

    def _changed(self, at_ms: int) -> None:
        """Schedule a look for when a message can next be received."""
        scheduler = self._account.scheduler
        at = max(scheduler.now, self._account.moment(at_ms))
        if self._looks_at is None or at < self._looks_at:
            self._looks_at = at
            scheduler.at(at + self._account.random.randrange(100, 20_000), lambda: self._look(at))

    def _look(self, at: int) -> None:
        if self._looks_at != at:
            return
        self._looks_at = None
        while self._gathered or self._running < self._events.concurrency:
            received = self._queue.receive(self._wanted())
            if not received:
                break
            self._take(received)
        if self._running < self._events.concurrency:
            following = self._queue.next_at()
            if following is not None:
                # A queue at its limit, or with all its groups busy, is looked at again soon.
                self._changed(max(following, self._account.now_ms() + 200))

    def _wanted(self) -> int:
        """How many messages a poller asks for."""
        most = self._events.batch
        if self._events.window_s:
            return min(MOST_RECEIVED, most - len(self._gathered))
        return self._account.random.choice((most, most, 3, 1))

    def _take(self, received: Sequence[Stored]) -> None:
        """A poller has received messages: they are a batch, or become part of one that is gathered."""
        scheduler = self._account.scheduler
        if self._gathered:
            self._gathered += received
        else:
            self._running += 1
            if not self._events.window_s:
                scheduler.spawn(lambda: self._handle(received))
                return
            self._gathered, self._gatherings = [*received], self._gatherings + 1
            number = self._gatherings
            scheduler.spawn(lambda: self._window_ends(number), after=self._events.window_s * SECOND)
        if len(self._gathered) >= self._events.batch:
            batch, self._gathered = self._gathered, []
            scheduler.spawn(lambda: self._handle(batch))

    def _window_ends(self, number: int) -> None:
        if number != self._gatherings or not self._gathered:
            return
        batch, self._gathered = self._gathered, []
        self._account.weather.strike(Kind.WINDOW, self._queue.name, self._account.scheduler.now)
        self._handle(batch)

    def _handle(self, received: Sequence[Stored]) -> None:
        batch = [each for each in received if not self._function.ends(each.lineage)]
        for each in received:
            if each not in batch:
                self._account.chain_ended(self._function.settings.name, each.body)
                self._queue.end_chain(each.handle)
        try:
            if batch:
                self._run(batch)
        finally:
            self._running -= 1
            self._changed(self._account.now_ms())

    def _run(self, batch: Sequence[Stored]) -> None:
        event = {
            "Records": [
                {
                    "messageId": each.message_id,
                    "receiptHandle": each.handle,
                    "body": each.body,
                    "attributes": {
                        "ApproximateReceiveCount": str(each.receives),
                        "SentTimestamp": str(each.sent_at),
                        "MessageGroupId": each.group,
                    },
                    "eventSource": "aws:sqs",
                    "eventSourceARN": f"arn:aws:sqs:us-east-1:000000000000:{self._queue.name}",
                }
                for each in batch
            ]
        }
        began_ms = self._account.now_ms()
        try:
            result = self._function.invoke(event, lineage=_longest(each.lineage for each in batch))
        except RunFailed as failed:
            for each in batch:
                self._queue.run_failed(each.handle, self._account.now_ms() - began_ms)
            if str(failed) in {"throttled", "broken"}:
                # A poller backs off; the messages come back when the queue's own timeout ends.
                self._account.scheduler.sleep(20 * SECOND)
        else:
            kept = {each["itemIdentifier"] for each in (result or {}).get("batchItemFailures", ())}
            unknown = kept - {each.message_id for each in batch}
            for each in () if unknown else batch:
                if each.message_id not in kept and not self._account.weather.strikes(
                    Kind.DUPLICATES, self._queue.name, self._account.scheduler.now, partial(str, each.body)
                ):
                    self._queue.delete(each.handle)


def _longest(lineages: Iterable[Lineage]) -> Lineage:
    """The lineage of a run for several messages. AWS does not say whose it is: this one ends chains soonest."""
    longest: dict[str, int] = {}
    for each in lineages:
        for function, runs in each.items():
            longest[function] = max(runs, longest.get(function, 0))
    return longest


@dataclass(slots=True)
class Streamed:
    """A record that a stream keeps.

    Attributes:
        change: The change it reports, packed only.
        number: Its number among all.
        at_ms: When it was written, epoch milliseconds.
        key: Of the item, both parts.
    """

    change: Change
    number: int
    at_ms: int
    key: str

    def record(self) -> dict[str, Any]:
        """As a function gets it: bytes as base64."""
        change = self.change
        before, after = (unpack(each) if each else None for each in (change.packed_before, change.packed_after))
        for image in (before, after):
            _encode_bytes(image or {})
        return _record(change, self.number, self.at_ms, before, after)


def _record(change: Change, number: int, at_ms: int, before: Item | None, after: Item | None) -> dict[str, Any]:
    image = after or before or {}
    stream: dict[str, Any] = {
        "ApproximateCreationDateTime": at_ms // 1000,
        "Keys": {"pk": image["pk"], "sk": image["sk"]},
        "SequenceNumber": f"{number:021d}",
        "StreamViewType": "NEW_AND_OLD_IMAGES",
    }
    if before is not None:
        stream["OldImage"] = before
    if after is not None:
        stream["NewImage"] = after
    record: dict[str, Any] = {
        "eventID": stream["SequenceNumber"],
        "eventName": "INSERT" if before is None else "REMOVE" if after is None else "MODIFY",
        "eventSource": "aws:dynamodb",
        "eventSourceARN": (
            f"arn:aws:dynamodb:us-east-1:000000000000:table/{change.table}/stream/2026-11-20T00:00:00.000"
        ),
        "dynamodb": stream,
    }
    if change.expired:
        record["userIdentity"] = {"type": "Service", "principalId": "dynamodb.amazonaws.com"}
    return record


@dataclass
class Lane:
    """The records of a shard that are handled one batch after the other: those of some of its partition keys.

    Attributes:
        records: Stream records not handled yet.
        working: Whether a batch of it is being handled.
        tries: Failed tries of the batch at its front.
        size: Most records in its next batch: halved when a batch fails, until those records are handled.
    """

    records: deque[Streamed] = field(default_factory=deque)
    working: bool = False
    tries: int = 0
    size: int = 0


@dataclass
class Shard:
    """A shard of a stream. Once it is split it takes no more records, and those of its children are handled when all
    of its own are.

    Attributes:
        lanes: Its records; as many lanes as batches of a shard are handled at a time.
        parent: The shard that it follows.
        children: Those that follow it; none while it is open.
        depth: Shards before it.
    """

    lanes: list[Lane]
    parent: Shard | None = None
    children: tuple[Shard, ...] = ()
    depth: int = 0

    @property
    def done(self) -> bool:
        """Whether all that it has is handled, and all that was before it."""
        own = not any(each.records or each.working for each in self.lanes)
        return own and (self.parent is None or self.parent.done)


class StreamSource:
    """Calls a function with what a table's stream holds, in order for each partition key."""

    def __init__(self, function: Function, events: StreamEvents) -> None:
        self._function = function
        self._account = function.account
        self._events = events
        self._open = [self._shard() for _ in range(SHARDS)]
        self._shards = [*self._open]

    def _shard(self, parent: Shard | None = None) -> Shard:
        depth = parent.depth + 1 if parent else 0
        return Shard([Lane() for _ in range(self._events.parallel)], parent, depth=depth)

    @property
    def waiting(self) -> int:
        """Records not handled yet."""
        return sum(len(lane.records) for each in self._shards for lane in each.lanes)

    def unhandled(self) -> Iterator[str]:
        """Keys of the items, both parts, of the records that are not handled yet."""
        return (record.key for each in self._shards for lane in each.lanes for record in lane.records)

    def may_split(self, partition: str) -> bool:
        """Whether the shard that takes the records of a partition key can be split."""
        return self._shard_of(zlib.crc32(partition.encode())).depth < MOST_SPLITS

    def split(self, partition: str) -> None:
        """Close the shard that takes the records of a partition key; two others follow it."""
        shard = self._shard_of(zlib.crc32(partition.encode()))
        shard.children = self._shard(shard), self._shard(shard)
        self._shards += shard.children

    def _shard_of(self, number: int) -> Shard:
        shard = self._open[number % SHARDS]
        while shard.children:
            shard = shard.children[number >> (20 + shard.depth) & 1]
        return shard

    def written(self, change: Change, number: int) -> None:
        """A change was written to the stream, as its record of this number."""
        at_ms, events = self._account.now_ms(), self._events
        if events.filters and not events.takes(_record(change, number, at_ms, change.before, change.after)):
            return
        item = change.after or change.before or {}
        partition, place = item["pk"]["S"], item["sk"]["S"]
        record = Streamed(change.packed_only(), number, at_ms, f"{partition} {place}")
        key = zlib.crc32(partition.encode())
        shard = self._shard_of(key)
        lane = shard.lanes[key // SHARDS % events.parallel]
        lane.records.append(record)
        if shard.parent is None or shard.parent.done:
            self._begin(shard, lane)

    def _begin(self, shard: Shard, lane: Lane) -> None:
        if not lane.working and lane.records:
            lane.working = True
            window = self._events.window_s * SECOND
            self._account.scheduler.spawn(
                lambda: self._work(shard, lane), after=self._account.random.randrange(50_000, 500_000) + window
            )

    def _follow(self, shard: Shard) -> None:
        """Begin with the shards after one, if that is done."""
        if not shard.done:
            return
        for child in shard.children:
            for lane in child.lanes:
                self._begin(child, lane)
            self._follow(child)

    def _work(self, shard: Shard, lane: Lane) -> None:
        account = self._account
        while lane.records:
            now_ms = account.now_ms()
            while lane.records and now_ms - lane.records[0].at_ms > STREAM_KEEPS_MS:
                account.lose(Kind.STOPPED, ids_in(lane.records.popleft().key))
                account.telemetry.count("StreamRecordsTrimmed")
            size = min(len(lane.records), lane.size or self._events.batch)
            if not size:
                break
            batch = [each.record() for each in islice(lane.records, size)]
            try:
                self._function.invoke({"Records": batch})
            except RunFailed as failed:
                lane.tries += 1
                if str(failed) != "throttled":
                    # Bisected: the front half comes again by itself.
                    lane.size = max(1, size // 2)
                account.scheduler.sleep(min(60, 2 ** min(lane.tries, 6)) * SECOND)
                continue
            lane.tries, lane.size = 0, 0
            name = self._function.settings.name
            if account.weather.strikes(Kind.REPLAY, name, account.scheduler.now, partial(str, batch)):
                # Done, but the stream's position was not kept.
                account.note(f"{name} gets a batch again")
                continue
            for _ in range(size):
                lane.records.popleft()
        lane.working = False
        self._follow(shard)


def _encode_bytes(item: Item) -> None:
    for value in item.values():
        if "B" in value:
            value["B"] = base64.b64encode(value["B"]).decode()
        elif "M" in value:
            _encode_bytes(value["M"])
        elif "L" in value:
            for each in value["L"]:
                _encode_bytes({"": each})
