"""A model of SQS: standard queues that repeat and reorder, FIFO queues with groups.

Delays, visibility, redrive, retention, limits.

What is modelled after which rule, and what is not: ``docs/simulation.md``.
"""

from __future__ import annotations

import heapq
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from types import MappingProxyType
from typing import Any

from simulation.dynamodb import service_error
from simulation.ids import ids_in
from simulation.items import Pace

RETENTION_MS = 14 * 86_400_000
"""A message is kept this long from its first enqueue, in a dead-letter queue too."""

HIDDEN_AT_MOST_MS = 43_200_000
"""Twelve hours from its receive a message is visible again, whatever was asked for."""

DEDUPLICATED_MS = 300_000
"""How long a FIFO queue remembers a deduplication id."""

HASTE_MS = 1_000
HASTY_RECEIVES = 4
"""Receives of one message, each within a second of the one before, that nobody has a reason for."""

LONG_MS = 65_000
"""A wait that no message should spend in flight: the hub's own bound is a minute, and seconds are rounded up."""

WORKED_ON_MS = 5_000
ABANDONED_MS = 120_000
"""A run that has worked for so long leaves messages behind, when it dies, that come back within so long."""

MOST_COPIES = 20
"""How often a queue hands out once more, in all, what is about one message. SQS repeats a message now and then, and its
copies end with what they are about. Without a bound, orders that wait for a service that is down, each of which is
received some times a minute, and each of their copies, too, would double every minute.
"""

Lineage = Mapping[str, int]
"""How often each function has run in a chain of requests, by its name. Lambda keeps it, and the SDK passes it on with
each message that a run sends.
"""

NO_LINEAGE: Lineage = MappingProxyType({})

MOST_BYTES = 1_048_576
MOST_DELAY_S = 900
MOST_ENTRIES = 10
FORBIDDEN = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""What no message may contain."""
_ENTRY_ID = re.compile("[A-Za-z0-9_-]{1,80}")
_GROUP_ID = re.compile(r"[\x21-\x7e]{1,128}")
"""What the id of an entry of a batch may be; and those of a message group and for deduplication."""


@dataclass(frozen=True)
class QueueSettings:
    """A queue as the template says it.

    Attributes:
        name: Its name.
        visibility_s: Seconds a received message is hidden.
        fifo: Whether it is a FIFO queue.
        dead_letters: Name of its dead-letter queue.
        receives: Receives after which a message goes there.
    """

    name: str
    visibility_s: int = 30
    fifo: bool = False
    dead_letters: str = ""
    receives: int = 0


@dataclass(slots=True, eq=False)
class Stored:
    """A message in a queue.

    Attributes:
        message_id: Its id; a duplicate has the same one.
        body: Its text.
        group: Message group.
        sent_at: When it was first sent, epoch milliseconds.
        visible_at: When it can be received (again).
        receives: How often it was received.
        received_at: When it was last received.
        handle: Of the last receive; empty while it can be received.
        wanted_at: When the receiver that hid it last wanted it back; 0 when nobody hid it.
        hasty: Consecutive receives, each within a second of the one before.
        failed_runs: Receives whose run failed.
        last: Handle of the last receive, also when that is over.
        entry: Its number among what is hidden.
        place: Its place in a FIFO queue.
        lineage: Runs of each function in the chain that it was sent in.
    """

    message_id: str
    body: str
    group: str
    sent_at: int
    visible_at: int
    receives: int = 0
    received_at: int = 0
    handle: str = ""
    wanted_at: int = 0
    hasty: int = 0
    failed_runs: int = 0
    last: str = ""
    entry: int = 0
    place: int = 0
    lineage: Lineage = field(default_factory=lambda: NO_LINEAGE)

    def copy(self) -> Stored:
        """A copy."""
        return Stored(
            self.message_id,
            self.body,
            self.group,
            self.sent_at,
            self.visible_at,
            self.receives,
            self.received_at,
            self.handle,
            self.wanted_at,
            self.hasty,
            self.failed_runs,
            self.last,
            self.entry,
            self.place,
            self.lineage,
        )


@dataclass
class Chances:
    """How a service misbehaves; called for each message or entry.

    Attributes:
        repeats: Whether a message (its body) that is received is kept for another receiver as well.
        undone: Whether an entry of a batch fails.
    """

    repeats: Callable[[str], bool] = lambda _: False
    undone: Callable[[], bool] = lambda: False


class Queue:
    """One queue.

    Args:
        settings: How it was made.
        now_ms: SQS's own clock, epoch milliseconds.
        random: Chooses among messages that can be received.
        chances: How it misbehaves.
        most_in_flight: With this many messages in flight, no more are handed out.

    Attributes:
        dead: Where messages go that were received too often; None without such a queue.
        changed: Called when a message may be received at that time (epoch milliseconds) that could not be before.
        awaiting: Called once, and forgotten, when the same happens.
        most_seen: The most messages that were in flight at a time.
        stopped: How often nothing was handed out because too many were in flight.
        early: Receives of messages before the time that the receiver that hid them last had asked for.
        expired: Messages dropped for their age.
        hasty: Messages received again and again within seconds: there was nothing to do with them yet.
        long: Messages that are hidden for longer than :data:`LONG_MS`, which keeps them in flight: when that was
            wanted, epoch milliseconds, for how many seconds, and the text.
        sent: Messages sent, by message group where the queue keeps groups in order.
        requests: Requests made of it, by operation.
        abandoned: Messages of runs that died, which are hidden for longer than :data:`ABANDONED_MS` all the same: when
            the run died, epoch milliseconds, how long they are hidden from then on, and the text.
        worn_out: Messages that went to the dead-letter queue although most of their runs did not fail.
        passed: How often each identifier was sent in a message, if anybody wants to know.
        copied: How often a message that holds the identifier was handed out once more, which a standard queue may do.
    """

    def __init__(
        self,
        settings: QueueSettings,
        *,
        now_ms: Callable[[], int],
        random: Random,
        chances: Chances,
        most_in_flight: int,
    ) -> None:
        self.settings = settings
        self.name = settings.name
        self.dead: Queue | None = None
        self.hasty: dict[str, Stored] = {}
        self.worn_out: list[Stored] = []
        self.passed: Counter[str] | None = None
        self.copied: Counter[str] = Counter()
        self.long: list[tuple[int, int, str]] = []
        self.abandoned: list[tuple[int, int, str]] = []
        self.changed: Callable[[int], None] = lambda _: None
        self.awaiting: list[Callable[[], None]] = []
        self.most_seen = self.stopped = self.early = self.expired = 0
        self.sent, self.requests = Pace(), Pace()
        self._now_ms = now_ms
        self._random = random
        self._chances = chances
        self._most = most_in_flight
        self._number = 0
        self._hidden: list[tuple[int, int, Stored]] = []
        self._ready: list[Stored] = []
        self._by_handle: dict[str, Stored] = {}
        self._gone: set[int] = set()
        self._in_flight = 0
        self._groups_busy: dict[str, int] = {}
        self._seen: dict[tuple[str, str], int] = {}

    def __len__(self) -> int:
        return len(self._ready) + sum(number not in self._gone for _, number, _ in self._hidden)

    @property
    def in_flight(self) -> int:
        """Messages received and not deleted, whose time has not come."""
        self._catch_up()
        return self._in_flight

    @property
    def visible(self) -> int:
        """Messages that can be received."""
        self._catch_up()
        return len(self._ready)

    def next_at(self) -> int | None:
        """When a message can be received next (epoch milliseconds, may be past); None when there is none."""
        self._catch_up()
        if any(self._free(each) for each in self._ready) if self.settings.fifo else self._ready:
            return self._now_ms()
        while self._hidden and self._hidden[0][1] in self._gone:
            self._gone.discard(heapq.heappop(self._hidden)[1])
        return self._hidden[0][0] if self._hidden else None

    def requested(self, operation: str) -> None:
        """Count a request."""
        self.requests.add(operation, self._now_ms())

    def send(
        self, body: str, *, group: str = "", delay_s: int = 0, once: str = "", lineage: Lineage = NO_LINEAGE
    ) -> str:
        """Add a message; its id."""
        now = self._now_ms()
        self.sent.add(group if self.settings.fifo else self.name, now)
        if self.passed is not None:
            self.passed.update({*ids_in(body)})
        if self.settings.fifo:
            key = group, once
            if now - self._seen.get(key, -DEDUPLICATED_MS) < DEDUPLICATED_MS:
                return "known"
            self._seen[key] = now
        self._number += 1
        message_id = f"{self.name}-{self._number}"
        sent = Stored(message_id, body, group, now, now + delay_s * 1000, place=self._number, lineage=lineage)
        self._add(sent)
        return message_id

    def receive(self, limit: int) -> list[Stored]:
        """Up to this many messages, which are hidden from now on; copies, as a receiver gets them."""
        self._catch_up()
        now = self._now_ms()
        if self._in_flight >= self._most:
            # With long polling, as Lambda's pollers use, this is silent.
            self.stopped += 1
            return []
        taken: list[Stored] = []
        for each in self._candidates(limit):
            if len(taken) == limit:
                break
            if each.sent_at + RETENTION_MS <= now:
                self._ready.remove(each)
                self.expired += 1
                continue
            if self.dead is not None and each.receives >= self.settings.receives:
                self._ready.remove(each)
                if each.failed_runs < each.receives // 2:
                    self.worn_out.append(each)
                self.dead.adopt(each)
                continue
            taken.append(self._hand_out(each, now))
        return taken

    def _candidates(self, limit: int) -> list[Stored]:
        if self.settings.fifo:
            return [each for each in self._ready if self._free(each)]
        # A standard queue keeps order as well as it can: what is received is found among the oldest.
        near = self._ready[: 3 * limit]
        self._random.shuffle(near)
        return near

    def _free(self, each: Stored) -> bool:
        """Whether a message may be handed out: of a FIFO queue's group one batch is in flight at a time."""
        return not self.settings.fifo or not self._groups_busy.get(each.group, 0)

    def _hand_out(self, each: Stored, now: int) -> Stored:
        self._ready.remove(each)
        if each.wanted_at > now:
            self.early += 1
        about = ids_in(each.body) or [each.body]
        few = all(self.copied[one] < MOST_COPIES for one in about)
        if few and not self.settings.fifo and self._chances.repeats(each.body):
            self.copied.update(about)
            copy = each.copy()
            copy.visible_at = now + round(self._random.expovariate(1 / 20_000))
            self._hide(copy)
        self._number += 1
        each.hasty = each.hasty + 1 if each.receives and now - each.received_at < HASTE_MS else 0
        if each.hasty >= HASTY_RECEIVES:
            self.hasty[each.message_id] = each
        each.receives += 1
        self._by_handle.pop(each.last, None)
        each.handle = each.last = f"{self.name}/{self._number}"
        each.received_at, each.visible_at = now, now + self.settings.visibility_s * 1000
        each.wanted_at = 0
        self._by_handle[each.handle] = each
        self._in_flight += 1
        self.most_seen = max(self.most_seen, self._in_flight)
        if self.settings.fifo:
            self._groups_busy[each.group] = self._groups_busy.get(each.group, 0) + 1
        self._hide(each)
        return each.copy()

    def delete(self, handle: str) -> bool:
        """Delete a message; a stale handle does nothing, and in a FIFO queue neither does one whose time is over.
        Whether it was deleted.
        """
        self._catch_up()
        stored = self._by_handle.get(handle)
        if stored is None or (self.settings.fifo and stored.handle != handle):
            return False
        del self._by_handle[handle]
        if stored.handle == handle:
            self._land(stored)
            self._gone.add(stored.entry)
            return True
        # Its time was over, but nobody has received it since.
        self._ready = [each for each in self._ready if each is not stored]
        return True

    def defer(self, handle: str, seconds: int) -> str:
        """Hide a message for this long from now; returns why that is refused, or an empty string."""
        self._catch_up()
        stored, now = self._by_handle.get(handle), self._now_ms()
        if stored is None or stored.handle != handle:
            return "MessageNotInflight"
        until = now + seconds * 1000
        if seconds < 0 or until - stored.received_at >= HIDDEN_AT_MOST_MS:
            return "InvalidParameterValue"
        if seconds * 1000 > LONG_MS:
            self.long.append((now, seconds, stored.body))
        self._gone.add(stored.entry)
        stored.visible_at = stored.wanted_at = until
        self._hide(stored)
        return ""

    def run_failed(self, handle: str, after_ms: int) -> None:
        """The run that received a message failed, this long after it began."""
        stored, now = self._by_handle.get(handle), self._now_ms()
        if stored is not None:
            stored.failed_runs += 1
            if after_ms >= WORKED_ON_MS and stored.handle == handle and stored.visible_at > now + ABANDONED_MS:
                self.abandoned.append((now, stored.visible_at - now, stored.body))

    def adopt(self, message: Stored) -> None:
        """Take a message over from the queue where it was received too often."""
        message.handle, message.visible_at = "", self._now_ms()
        self._add(message)

    def end_chain(self, handle: str) -> None:
        """Lambda would not run a function for this message: it goes to the dead-letter queue, or nowhere."""
        stored = self._by_handle.get(handle)
        if stored is not None and self.delete(handle) and self.dead is not None:
            self.dead.adopt(stored)

    def purge(self) -> int:
        """Remove everything; how many messages there were."""
        count = len(self)
        self._hidden, self._ready, self._in_flight = [], [], 0
        self._by_handle.clear()
        self._gone.clear()
        self._groups_busy.clear()
        return count

    def bodies(self) -> list[str]:
        """The texts of all messages."""
        return [
            *(each.body for each in self._ready),
            *(each.body for _, number, each in self._hidden if number not in self._gone),
        ]

    def _add(self, stored: Stored) -> None:
        if stored.visible_at <= self._now_ms():
            self._ready.append(stored)
            self._tell(self._now_ms())
        else:
            self._hide(stored)

    def _hide(self, stored: Stored) -> None:
        self._number += 1
        stored.entry = self._number
        heapq.heappush(self._hidden, (stored.visible_at, self._number, stored))
        self._tell(stored.visible_at)

    def _tell(self, at_ms: int) -> None:
        self.changed(at_ms)
        awaiting, self.awaiting = self.awaiting, []
        for each in awaiting:
            each()

    def _land(self, stored: Stored) -> None:
        """A message is no longer in flight."""
        stored.handle = ""
        self._in_flight -= 1
        if self.settings.fifo:
            self._groups_busy[stored.group] -= 1

    def _catch_up(self) -> None:
        now = self._now_ms()
        while self._hidden and self._hidden[0][0] <= now:
            _, number, stored = heapq.heappop(self._hidden)
            if number in self._gone:
                self._gone.discard(number)
                continue
            if stored.handle:
                self._land(stored)
            self._return(stored)

    def _return(self, stored: Stored) -> None:
        if self.settings.fifo:
            # It goes back to its place, before what was sent to its group later.
            behind = next(
                (index for index, each in enumerate(self._ready) if each.place > stored.place), len(self._ready)
            )
            self._ready.insert(behind, stored)
        else:
            self._ready.append(stored)


class Sqs:
    """The service: the operations of the low-level client that the hub uses.

    Args:
        queues: By name.
        chances: How it misbehaves.
        lineage: Of the run that makes the present call.
    """

    def __init__(
        self, queues: Mapping[str, Queue], chances: Chances, lineage: Callable[[], Lineage] = lambda: NO_LINEAGE
    ) -> None:
        self.queues = queues
        self._chances = chances
        self._lineage = lineage

    def send_message(self, *, QueueUrl: str, MessageBody: str) -> dict[str, Any]:  # noqa: N803 (the service's)
        """SendMessage."""
        _check(len(MessageBody.encode()) <= MOST_BYTES, "InvalidParameterValue")
        _check_body(MessageBody)
        return {"MessageId": self._queue(QueueUrl, "SendMessage").send(MessageBody, lineage=self._lineage())}

    def send_message_batch(self, *, QueueUrl: str, Entries: Sequence[Any]) -> dict[str, Any]:  # noqa: N803
        """SendMessageBatch."""
        _check_entries(Entries)
        _check(sum(len(each["MessageBody"].encode()) for each in Entries) <= MOST_BYTES, "BatchRequestTooLong")
        queue = self._queue(QueueUrl, "SendMessageBatch")
        for each in Entries:
            _check_body(each["MessageBody"])
            _check(0 <= each.get("DelaySeconds", 0) <= MOST_DELAY_S, "InvalidParameterValue")
            fifo = queue.settings.fifo
            _check(not fifo or ("DelaySeconds" not in each and "MessageGroupId" in each), "InvalidParameterValue")
            ids = [each[name] for name in ("MessageGroupId", "MessageDeduplicationId") if name in each]
            _check(all(_GROUP_ID.fullmatch(one) for one in ids), "InvalidParameterValue")
        failed = [each["Id"] for each in Entries if self._chances.undone()]
        for each in Entries:
            if each["Id"] in failed:
                continue
            queue.send(
                each["MessageBody"],
                group=each.get("MessageGroupId", ""),
                delay_s=each.get("DelaySeconds", 0),
                once=each.get("MessageDeduplicationId", ""),
                lineage=self._lineage(),
            )
        return _answered(failed)

    def receive_message(self, *, QueueUrl: str, MaxNumberOfMessages: int, **_: Any) -> dict[str, Any]:  # noqa: N803
        """ReceiveMessage; the caller itself waits for ``WaitTimeSeconds`` (:class:`simulation.functions.Client`)."""
        found = self._queue(QueueUrl, "ReceiveMessage").receive(MaxNumberOfMessages)
        return {
            "Messages": [
                {
                    "MessageId": each.message_id,
                    "ReceiptHandle": each.handle,
                    "Body": each.body,
                    "Attributes": {
                        "ApproximateReceiveCount": str(each.receives),
                        "SentTimestamp": str(each.sent_at),
                    },
                }
                for each in found
            ]
        }

    def delete_message_batch(self, *, QueueUrl: str, Entries: Sequence[Any]) -> dict[str, Any]:  # noqa: N803
        """DeleteMessageBatch."""
        _check_entries(Entries)
        queue = self._queue(QueueUrl, "DeleteMessageBatch")
        failed = [each["Id"] for each in Entries if self._chances.undone()]
        for each in Entries:
            if each["Id"] not in failed and not queue.delete(each["ReceiptHandle"]) and queue.settings.fifo:
                failed.append(each["Id"])
        return _answered(failed)

    def change_message_visibility_batch(self, *, QueueUrl: str, Entries: Sequence[Any]) -> dict[str, Any]:  # noqa: N803
        """ChangeMessageVisibilityBatch."""
        _check_entries(Entries)
        queue = self._queue(QueueUrl, "ChangeMessageVisibilityBatch")
        failed = []
        for each in Entries:
            if self._chances.undone() or queue.defer(each["ReceiptHandle"], each["VisibilityTimeout"]):
                failed.append(each["Id"])
        return _answered(failed)

    def get_queue_attributes(self, *, QueueUrl: str, AttributeNames: Sequence[str]) -> dict[str, Any]:  # noqa: N803
        """GetQueueAttributes: messages that can be received, and those in flight."""
        queue = self._queue(QueueUrl, "GetQueueAttributes")
        known = {
            "ApproximateNumberOfMessages": queue.visible,
            "ApproximateNumberOfMessagesNotVisible": queue.in_flight,
        }
        _check(set(AttributeNames) <= set(known), "InvalidAttributeName")
        return {"Attributes": {name: str(known[name]) for name in AttributeNames}}

    def _queue(self, url: str, operation: str) -> Queue:
        """The queue that a request is for, which counts it."""
        queue = self.queues[url.rpartition("/")[2]]
        queue.requested(operation)
        return queue


def _check(holds: bool, code: str) -> None:
    if not holds:
        raise service_error(code, "SQS")


def _check_body(body: str) -> None:
    _check(body != "", "MissingParameter")
    _check(FORBIDDEN.search(body) is None, "InvalidMessageContents")


def _check_entries(entries: Sequence[Any]) -> None:
    _check(len(entries) > 0, "EmptyBatchRequest")
    _check(len(entries) <= MOST_ENTRIES, "TooManyEntriesInBatchRequest")
    ids = [each["Id"] for each in entries]
    _check(all(_ENTRY_ID.fullmatch(each) for each in ids), "InvalidBatchEntryId")
    _check(len({*ids}) == len(ids), "BatchEntryIdsNotDistinct")


def _answered(failed: Sequence[str]) -> dict[str, Any]:
    if not failed:
        return {}
    return {"Failed": [{"Id": each, "SenderFault": False, "Code": "InternalError"} for each in failed]}
