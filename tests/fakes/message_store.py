"""Messages and deliveries in memory, with an outbox in place of the table's stream."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace

from tests.fakes.schedule import FakeSchedule

from pushhub.base.errors import Conflict
from pushhub.engine.model.delivery import Delivery, DeliveryState
from pushhub.engine.model.keys import DeliveryKey, MessageKey
from pushhub.engine.model.message import Message
from pushhub.engine.ports import Once

_WAITING = frozenset({DeliveryState.RETRYING, DeliveryState.RESERVED, DeliveryState.POLLING})
_GIVEN_UP = frozenset({DeliveryState.EXHAUSTED, DeliveryState.HELD})


class FakeMessageStore:
    """Keeps messages and deliveries in dictionaries; indexes are computed, so they are never late.

    Attributes:
        saved: Every delivery written, in order, for assertions.

    Args:
        schedule: Scheduled deliveries enter it.
    """

    def __init__(self, schedule: FakeSchedule) -> None:
        self._schedule = schedule
        self._lock = threading.Lock()
        self._messages: dict[MessageKey, Message] = {}
        self._deleted: set[MessageKey] = set()
        self._deliveries: dict[DeliveryKey, Delivery] = {}
        self._stream: list[Message] = []
        self._orders: dict[tuple[str, str, str], tuple[int, dict[str, str]]] = {}
        self.saved: list[Delivery] = []

    def accept(self, messages: Sequence[Message]) -> None:
        with self._lock:
            for message in messages:
                stored = self._messages.get(message.key)
                if stored is None:
                    self._insert(message)
                elif (len(messages) == 1 or message.ordering) and replace(stored, ordering=message.ordering) != message:
                    raise Conflict(f"message id {message.message_id} is taken")

    def accept_once(self, message: Message) -> Once:
        with self._lock:
            stored = self._messages.get(message.key)
            if stored is None:
                self._insert(message)
                return Once.STORED
            return Once.KNOWN if stored.cause == message.cause else Once.TAKEN

    def message(self, key: MessageKey) -> Message | None:
        return None if key in self._deleted else self._messages.get(key)

    def messages(self, keys: Sequence[MessageKey]) -> dict[MessageKey, Message]:
        found = {key: self.message(key) for key in keys}
        return {key: message for key, message in found.items() if message is not None}

    def message_with_deliveries(self, key: MessageKey) -> tuple[Message, list[Delivery]] | None:
        with self._lock:
            message = self._messages.get(key)
            if message is None or key in self._deleted:
                return None
            return message, [each for place, each in sorted(self._deliveries.items()) if place[:3] == key]

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
        with self._lock:
            found = [
                each
                for key, each in self._messages.items()
                if key[:2] == (project_id, queue_uid)
                and key not in self._deleted
                and (above is None or key.message_id > above)
                and (below is None or key.message_id < below)
            ]
        return iter(sorted(found, key=lambda each: each.message_id, reverse=not up))

    def delete(self, message: Message) -> None:
        with self._lock:
            key = message.key
            if key in self._messages:
                self._messages[key] = replace(message, body=None, body_ref=None, headers={})
                self._deleted.add(key)

    def restore(self, message: Message | None, deliveries: Sequence[Delivery]) -> None:
        with self._lock:
            if message is not None:
                self._messages.setdefault(message.key, message)
            for each in deliveries:
                stored = self._deliveries.get(each.key)
                if stored is None or stored.version < each.version:
                    self._deliveries[each.key] = each

    def lose(self) -> None:
        """Lose everything, without a trace in the outbox."""
        with self._lock:
            self._messages.clear()
            self._deliveries.clear()
            self._stream.clear()

    def deliveries(self, keys: Sequence[DeliveryKey], *, consistent: bool = True) -> dict[DeliveryKey, Delivery]:
        del consistent
        stored = {key: self.delivery(key) for key in keys}
        return {key: delivery for key, delivery in stored.items() if delivery is not None}

    def delivery(self, key: DeliveryKey) -> Delivery | None:
        return self._deliveries.get(key)

    def save(self, delivery: Delivery) -> None:
        if delivery.scheduled:
            self._schedule.enter(delivery)
        key = delivery.key
        with self._lock:
            stored = self._deliveries.get(key)
            if stored == delivery:
                return
            if (stored.version if stored else 0) != delivery.version - 1:
                raise Conflict(f"delivery {delivery.delivery_id} changed")
            self._deliveries[key] = delivery
            self.saved.append(delivery)

    def outstanding(self, part: int, parts: int) -> Iterator[tuple[Message, list[Delivery]]]:
        """Parts by the message's id."""
        for message in self.all_messages():
            if int(message.message_id) % parts == part and message.key not in self._deleted:
                owed = [
                    each
                    for each in self.all_deliveries()
                    if (each.project, each.queue_uid, each.message_id)
                    == (message.project, message.queue_uid, message.message_id)
                ]
                yield message, owed

    def unsettled(
        self, project_id: str, queue_uid: str, *, limit: int, after: str | None = None
    ) -> tuple[list[Delivery], str | None]:
        with self._lock:
            found = sorted(
                (_unsettled_key(each), each.message_id, each.subscriber_id, key)
                for key, each in self._deliveries.items()
                if key[:2] == (project_id, queue_uid) and _unsettled_key(each)
            )
            rest = [(entry[0], entry[3]) for entry in found if after is None or entry[0] > after]
            page = rest[:limit]
            cursor = page[-1][0] if len(rest) > limit else None
            return [self._deliveries[key] for _, key in page], cursor

    def given_up(
        self, project_id: str, queue_uid: str, *, limit: int, after: str | None = None
    ) -> tuple[list[Delivery], str | None]:
        return self.unsettled(project_id, queue_uid, limit=limit, after=max(after or "", "2#"))

    def retried(self, project_id: str, queue_uid: str, *, limit: int) -> list[tuple[str, str]]:
        with self._lock:
            found = [
                (each.message_id, each.subscriber_id)
                for key, each in self._deliveries.items()
                if key[:2] == (project_id, queue_uid) and each.state in _WAITING
            ]
            return found[:limit]

    def unsettled_counts(self, project_id: str, queue_uids: Sequence[str]) -> list[int]:
        with self._lock:
            waiting = Counter(key[:2] for key, each in self._deliveries.items() if each.state in _WAITING)
            return [waiting[project_id, each] for each in queue_uids]

    def drop(self, delivery: Delivery) -> None:
        """Remove a delivery, as its time to live would, at any time."""
        with self._lock:
            del self._deliveries[delivery.key]

    def take_inserted(self) -> list[Message]:
        """Messages inserted since the last call, as the table's stream would deliver them to dispatch."""
        with self._lock:
            taken, self._stream = self._stream, []
            return taken

    def all_messages(self) -> list[Message]:
        """Every message stored, for assertions."""
        return list(self._messages.values())

    def all_deliveries(self) -> list[Delivery]:
        """Every delivery stored, for assertions."""
        return list(self._deliveries.values())

    def scheduled(self) -> list[Delivery]:
        """Every scheduled delivery, due or not, for assertions."""
        return [each for _, each in sorted(self._deliveries.items()) if each.scheduled]

    def _insert(self, message: Message) -> None:
        if message.ordering is not None:
            key = (message.project, message.queue_uid, message.ordering.key)
            sequence, last = self._orders.get(key, (0, {}))
            owed = message.delivery_subscribers
            before = {each: last[each] for each in owed if each in last}
            self._orders[key] = sequence + 1, last | dict.fromkeys(owed, message.message_id)
            message = replace(message, ordering=replace(message.ordering, sequence=sequence + 1, previous=before))
        self._messages[message.key] = message
        self._stream.append(message)


def _unsettled_key(delivery: Delivery) -> str:
    if delivery.state in _WAITING:
        return f"1#{delivery.message_id}#{delivery.subscriber_id}"
    if delivery.state in _GIVEN_UP:
        return f"2#{delivery.message_id}#{delivery.subscriber_id}"
    return ""
