"""Messages of pull queues in memory."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass, replace

from pushhub.base.errors import Forbidden, Invalid, MessageNotFound
from pushhub.base.ids import new_reservation_id
from pushhub.engine.model.keys import MessageKey
from pushhub.engine.model.message import Message
from pushhub.engine.ports import Once
from pushhub.ironmq.ports import PullMessage


@dataclass
class _Entry:
    message: Message
    available_at: int
    reserved_count: int = 0
    reservation_id: str | None = None

    def available(self, now: int) -> bool:
        return self.available_at <= now

    def seen_at(self, now: int) -> PullMessage:
        if self.reservation_id is None or self.available(now):
            return PullMessage(message=self.message, reserved_count=self.reserved_count)
        return PullMessage(
            message=self.message,
            reserved_count=self.reserved_count,
            reservation_id=self.reservation_id,
            reserved_until=self.available_at,
        )


class FakePullStore:
    """Keeps one dictionary of messages for each queue; every call is atomic."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._pull: dict[tuple[str, str], dict[str, _Entry]] = {}

    def put(self, messages: Sequence[Message]) -> None:
        with self._lock:
            for message in messages:
                self._queue(message.project, message.queue_uid).setdefault(message.message_id, _entry(message))

    def put_once(self, message: Message, *, reserved_count: int = 0) -> Once:
        with self._lock:
            entry = replace(_entry(message), reserved_count=reserved_count)
            stored = self._queue(message.project, message.queue_uid).setdefault(message.message_id, entry)
            if stored is entry:
                return Once.STORED
            return Once.KNOWN if stored.message.cause == message.cause else Once.TAKEN

    def reserve(self, project_id: str, pull_uid: str, *, count: int, timeout_ms: int, now: int) -> list[PullMessage]:
        with self._lock:
            queue = self._queue(project_id, pull_uid)
            for message_id in [each for each, entry in queue.items() if entry.message.expires_at <= now]:
                del queue[message_id]
            taken = [queue[each] for each in sorted(queue) if queue[each].available(now)][:count]
            for entry in taken:
                _hold(entry, now + timeout_ms)
            return [entry.seen_at(now) for entry in taken]

    def peek(self, project_id: str, pull_uid: str, *, count: int, now: int) -> list[PullMessage]:
        with self._lock:
            queue = self._queue(project_id, pull_uid)
            live = [queue[each] for each in sorted(queue) if queue[each].message.expires_at > now]
            return [entry.seen_at(now) for entry in live if entry.available(now)][:count]

    def get(self, key: MessageKey, now: int) -> PullMessage | None:
        with self._lock:
            entry = self._queue(key.project, key.queue_uid).get(key.message_id)
            return entry.seen_at(now) if entry and entry.message.expires_at > now else None

    def touch(self, key: MessageKey, *, reservation_id: str, timeout_ms: int, now: int) -> str:
        with self._lock:
            return _hold(self._held(key, reservation_id, now), now + timeout_ms)

    def release(
        self,
        key: MessageKey,
        *,
        reservation_id: str,
        delay_ms: int,
        now: int,
        counted: bool = True,
    ) -> None:
        with self._lock:
            entry = self._held(key, reservation_id, now)
            entry.reservation_id, entry.available_at = None, now + delay_ms
            entry.reserved_count -= not counted

    def delete(
        self,
        key: MessageKey,
        *,
        reservation_id: str | None,
        now: int,
        leaving: str = "",
    ) -> None:
        with self._lock:
            if reservation_id is not None:
                self._held(key, reservation_id, now)
            elif self._live(key, now).seen_at(now).reservation_id is not None:
                raise Invalid("A reservation_id is required")
            del self._queue(key.project, key.queue_uid)[key.message_id]

    def size(self, project_id: str, pull_uid: str, now: int, *, at_most: int | None = None, exact: bool = False) -> int:
        with self._lock:
            count = sum(entry.message.expires_at > now for entry in self._queue(project_id, pull_uid).values())
            return count if at_most is None else min(count, at_most)

    def sizes(self, project_id: str, pull_uids: Sequence[str], now: int) -> list[int]:
        return [self.size(project_id, each, now) for each in pull_uids]

    def _queue(self, project_id: str, pull_uid: str) -> dict[str, _Entry]:
        return self._pull.setdefault((project_id, pull_uid), {})

    def _live(self, key: MessageKey, now: int) -> _Entry:
        entry = self._queue(key.project, key.queue_uid).get(key.message_id)
        if entry is None or entry.message.expires_at <= now:
            raise MessageNotFound
        return entry

    def _held(self, key: MessageKey, reservation_id: str, now: int) -> _Entry:
        entry = self._live(key, now)
        if entry.seen_at(now).reservation_id != reservation_id:
            raise Forbidden("Reservation has timed out")
        return entry


def _entry(message: Message) -> _Entry:
    return _Entry(message=message, available_at=message.due_at if message.due_at > message.accepted_at else 0)


def _hold(entry: _Entry, until: int) -> str:
    entry.reservation_id, entry.available_at = new_reservation_id(), until
    entry.reserved_count += 1
    return entry.reservation_id
