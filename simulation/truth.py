"""What really happened, watched from outside: every write to the tables as it is made, what producers were told, and
what endpoints received.
"""

from __future__ import annotations

import bisect
import gzip
import json
from collections import defaultdict
from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pushhub.engine.model.circuit import Health
from pushhub.engine.model.message import Message
from pushhub.engine.model.queue import Queue
from pushhub.engine.model.record import NO_RECORDS
from pushhub.engine.store._delivery_items import decode_delivery
from pushhub.engine.store._queue_items import decode_queue
from pushhub.engine.store.dynamodb_messages import decode_message
from pushhub.engine.store.dynamodb_subscribers import decode_health
from pushhub.ironmq.store._pull_items import MESSAGE, decode_pull_message
from simulation.expressions import Item

if TYPE_CHECKING:
    from simulation.account import Account

MESSAGES, PULL, CONFIG, SCHEDULE, RECORDS = (
    "MessagesTable",
    "PullTable",
    "ConfigTable",
    "ScheduleTable",
    "RecordsBucket",
)


@dataclass(frozen=True)
class Written:
    """A delivery as one write left it.

    Attributes:
        at: Time of the write, microseconds.
        state: Its state.
        settled: Whether that is final.
        due_at: When it is looked at next, epoch milliseconds.
        tries: Tries used up.
        attempts: Requests made.
        version: Its version.
        asked: Whether a person has asked for a try that is still to be made.
    """

    at: int
    state: str
    settled: bool
    due_at: int | None
    tries: int
    attempts: int
    version: int
    asked: bool = False


@dataclass
class Accepted:
    """A message that the hub has accepted.

    Attributes:
        message: As it was stored.
        at: When it was stored, microseconds.
        pull: Whether it is in a pull queue.
        gone_at: When its item was removed, microseconds.
        ended: How it left a pull queue: its last stored state.
    """

    message: Message
    at: int
    pull: bool = False
    gone_at: int | None = None
    deleted: bool = False
    last: Item = field(default_factory=dict)


class Truth:
    """Watches an account.

    Attributes:
        accepted: Messages by queue generation and id.
        pushed: Messages that the hub delivers, by id.
        deliveries: The writes of each delivery, by message id and subscriber id.
        queues: The versions of each queue by name, each with the time from which on it applied (microseconds); None
            while there was none.
        circuits: The stored health of each subscriber that failed, with the times of its changes, by the subscriber's
            id.
        let_go: When orders left a subscriber's backlog, by its id.
    """

    def __init__(self, account: Account) -> None:
        self._account = account
        self.accepted: dict[tuple[str, str], Accepted] = {}
        self.pushed: dict[str, Message] = {}
        self.deliveries: dict[tuple[str, str], list[Written]] = defaultdict(list)
        self.removed_early: list[tuple[str, str]] = []
        self.queues: dict[str, list[tuple[int, Queue | None]]] = defaultdict(list)
        self.circuits: dict[str, list[tuple[int, Health]]] = defaultdict(list)
        self.let_go: dict[str, list[int]] = defaultdict(list)
        account.written.append(self._written)

    def settled_at(self, message_id: str, subscriber_id: str) -> int | None:
        """When a delivery was settled, microseconds."""
        return next((each.at for each in self.deliveries[message_id, subscriber_id] if each.settled), None)

    def asked_by_hand(self, owed: tuple[str, str], at: int) -> bool:
        """Whether a delivery (message and subscriber) had, at a given time (microseconds), a manual try to be made."""
        history = self.deliveries.get(owed, [])
        place = bisect.bisect_right(history, at, key=lambda each: each.at)
        return bool(place) and history[place - 1].asked

    def records(self, besides: Container[tuple[str, str]] = ()) -> Iterator[dict[str, Any]]:
        """Every delivery record in the records bucket, object by object, but for those of some objects."""
        for (bucket, key), content in self._account.s3.objects.items():
            if bucket == RECORDS and key.startswith("records/dt=") and (bucket, key) not in besides:
                lines = map(json.loads, gzip.decompress(content).decode().splitlines())
                yield from (each for each in lines if each["kind"] not in NO_RECORDS)

    def quarantined(self) -> Sequence[str]:
        """Stream records that could not be turned into delivery records."""
        return [
            f"{key}: {content.decode()[:300]}"
            for (bucket, key), content in self._account.s3.objects.items()
            if bucket == RECORDS and key.startswith("records/quarantine/")
        ]

    def _written(self, table: str, before: Item | None, after: Item | None) -> None:
        if table == MESSAGES:
            self._message_table(before, after)
        elif table == PULL:
            self._pull_table(before, after)
        elif table == CONFIG:
            self._config_table(before, after)
        elif table == SCHEDULE:
            self._schedule_table(before, after)

    def _config_table(self, before: Item | None, after: Item | None) -> None:
        item = after if after is not None else before or {}
        kind, _, name = item["sk"]["S"].partition("#")
        if kind == "QUEUE":
            project = item["pk"]["S"].removeprefix("P#")
            self.queues[name].append(
                (self._account.scheduler.now, None if after is None else decode_queue(after, project, name))
            )

    def _schedule_table(self, before: Item | None, after: Item | None) -> None:
        item = after if after is not None else before or {}
        kind, _, who = item["pk"]["S"].partition("#")
        if kind == "HEALTH" and after is not None:
            health = decode_health(after)
            self.circuits[health.key.subscriber_id].append((self._account.scheduler.now, health))
        elif kind == "WAITING" and after is None:
            self.let_go[who.split("#")[2]].append(self._account.scheduler.now)

    def _message_table(self, before: Item | None, after: Item | None) -> None:
        now = self._account.scheduler.now
        item = after if after is not None else before or {}
        if item["kind"]["S"] == "message":
            message = decode_message(item)
            key = message.queue_uid, message.message_id
            if before is None:
                self.accepted[key] = Accepted(message, now)
                self.pushed[message.message_id] = message
            elif after is None:
                self.accepted[key].gone_at = now
            elif "deleted" in after:
                self.accepted[key].deleted = True
            return
        if item["kind"]["S"] != "delivery":
            return
        delivery = decode_delivery(item)
        key = delivery.message_id, delivery.subscriber_id
        if after is None:
            if not delivery.settled:
                self.removed_early.append(key)
            return
        history = self.deliveries[key]
        if history and (history[-1].version, history[-1].state) == (delivery.version, delivery.state.value):
            # Written by a call that was repeated.
            return
        history.append(
            Written(
                at=now,
                state=delivery.state.value,
                settled=delivery.settled,
                due_at=delivery.due_at,
                tries=delivery.tries,
                attempts=delivery.attempts,
                version=delivery.version,
                asked=delivery.asked_at is not None,
            )
        )

    def _pull_table(self, before: Item | None, after: Item | None) -> None:
        now = self._account.scheduler.now
        item = after if after is not None else before or {}
        if item["sk"]["S"] != MESSAGE:
            return
        if before is None and after is not None:
            message = decode_pull_message(after).message
            self.accepted[message.queue_uid, message.message_id] = Accepted(message, now, pull=True, last=after)
            return
        _, pull_uid, message_id = item["pk"]["S"].rsplit("#", 2)
        key = pull_uid, message_id
        self.accepted[key].last = item
        if after is None:
            self.accepted[key].gone_at = now
