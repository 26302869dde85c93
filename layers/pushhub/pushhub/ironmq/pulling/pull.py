"""Messages of pull queues: reserve, peek, get, touch, release, delete. Also dead letters, which are moved when they
have been reserved too often.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from pushhub.base import json_text
from pushhub.base.errors import Forbidden, Invalid, MessageNotFound, Overdue, Unanswerable, Unavailable, Unreadable
from pushhub.engine.bodies import body_of
from pushhub.engine.component import Component
from pushhub.engine.model.keys import MessageKey
from pushhub.engine.ports import ProjectStore, QueueSource
from pushhub.engine.projects.suspension import is_suspended
from pushhub.ironmq.wire.messages import RESERVATION_REQUIRED, Deletion, ReserveRequest, render_message
from pushhub.web.answer_size import ResponseBudget

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pushhub.base.ports import Clock, Telemetry
    from pushhub.engine.model.queue import Queue
    from pushhub.engine.ports import BodyStore, Waits
    from pushhub.ironmq.ports import PulledMessages, PullMessage
    from pushhub.ironmq.posting.intake import QueueIntake

ANSWER_WITHIN_MS = 28_000
"""A long poll ends by then: API Gateway gives up after 30 seconds."""

TOO_LATE_MS = 28_500
"""When a request is older than this, its reservations are taken back: the answer would no longer reach anybody."""

FIRST_PAUSE_S = 0.1
LONGEST_PAUSE_S = 1.0
"""Pauses between the reads of a long poll double from the first to the longest."""

SKIP_WITHIN_MS = 10_000
"""How long a call goes on past messages that its client cannot be handed. Each costs a read of its body."""

POP_RESERVATION_MS = 60_000
"""Minimum reservation for messages to be deleted at once, so that no other consumer gets them before that."""


class _NoRoom(Exception):
    """What the answer holds already leaves no room for a message."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadMessage:
    """A message as read, with its body.

    Attributes:
        held: The message and its reservation.
    """

    held: PullMessage
    body: bytes

    def shown(self, *, reserved: bool) -> dict[str, object]:
        """The message as shown in answers, with or without its reservation."""
        return render_message(
            self.held.message.message_id,
            self.body,
            reserved_count=self.held.reserved_count,
            reservation_id=self.held.reservation_id if reserved else None,
        )


class _Config(QueueSource, ProjectStore, Protocol):
    """Projects and their queues."""


class PullQueues(Component):
    """Operations on the messages of pull queues. Methods raise ``MessageNotFound`` for what is not there."""

    config: _Config  # Shows whether a queue was cleared during a long poll.
    pull: PulledMessages
    bodies: BodyStore
    intake: QueueIntake  # Moves dead letters and fires alerts.
    waits: Waits  # Limits how many requests of a project wait at the same time.
    clock: Clock
    telemetry: Telemetry  # Told of what cannot be read.

    def reserve(self, queue: Queue, request: ReserveRequest, *, compressed: bool = False) -> list[ReadMessage]:
        """Reserve messages, waiting for the first one as long as requested if a waiting place is free.

        A message that does not fit into an uncompressed answer, not even alone, blocks nobody: it stays reserved as if
        its consumer had died, so that the next ones are handed out, and its reservations are counted.

        Returns none when none came.

        Args:
            queue: A pull queue.
            request: How many, for how long, and whether to delete them at once.
            compressed: The answer may be compressed, so that any single message fits.

        Raises:
            Unanswerable: There are only messages that do not fit.
        """
        began = self.clock.now()
        deadline = began + min(request.wait_s * 1000, ANSWER_WITHIN_MS)
        skipped = False
        place: str | None = None
        pause_s = FIRST_PAUSE_S
        try:
            while True:
                try:
                    taken, skips = self._take(queue, request, compressed=compressed)
                except Overdue:
                    if place is None:
                        raise
                    # Looks before this one found nothing, which is an answer.
                    return []
                skipped |= skips
                now = self.clock.now()
                if now - began > TOO_LATE_MS:
                    self._give_back(queue, [each.held for each in taken])
                    return []
                if taken:
                    return self._deleted(queue, taken, by=began + TOO_LATE_MS) if request.delete else taken
                if skips and now - began < SKIP_WITHIN_MS:
                    continue
                if skipped:
                    raise Unanswerable
                if now >= deadline:
                    return []
                place = place or self.waits.enter(queue.project, now=now, until=deadline)
                if place is None:
                    return []
                self.clock.sleep(min(pause_s, (deadline - now) / 1000))
                pause_s = min(pause_s * 2, LONGEST_PAUSE_S)
                if is_suspended(self.config, queue.project):
                    return []
                queue = self.config.queue(queue.project, queue.name) or queue
        finally:
            if place is not None:
                with suppress(Unavailable):
                    self.waits.leave(queue.project, place)

    def _take(self, queue: Queue, request: ReserveRequest, *, compressed: bool) -> tuple[list[ReadMessage], bool]:
        """Reserve messages and move dead letters among them away, until there are enough or no more are found.

        Returns them, and whether others do not fit into any answer.
        """
        timeout_ms = (request.timeout_s or queue.message_timeout) * 1000
        if request.delete:
            timeout_ms = max(timeout_ms, POP_RESERVATION_MS)
        taken: list[PullMessage] = []
        more = True
        while more and len(taken) < request.count:
            wanted = request.count - len(taken)
            try:
                held = self.pull.reserve(
                    queue.project, queue.pull_uid, count=wanted, timeout_ms=timeout_ms, now=self.clock.now()
                )
            except Unavailable:
                if not taken:
                    raise
                break
            more = self._sort_out(queue, held, taken)
        return self._read(queue, taken, compressed=compressed)

    def _sort_out(self, queue: Queue, held: Sequence[PullMessage], taken: list[PullMessage]) -> bool:
        """Add messages to those taken, except dead letters; returns whether there may be more after these."""
        moved = False
        for position, each in enumerate(held):
            try:
                dead = self._moved_to_dead_letters(queue, each)
            except Unavailable:
                self._give_back(queue, held[position:])
                if not taken:
                    raise
                return False
            moved |= dead
            if not dead:
                taken.append(each)
        return moved

    def _moved_to_dead_letters(self, queue: Queue, held: PullMessage) -> bool:
        if queue.dead_letter is None or held.reserved_count <= queue.dead_letter.max_reservations:
            return False
        message, began = held.message, self.clock.now()
        try:
            body = body_of(message, self.bodies)
        except (MessageNotFound, Unreadable):
            # Left to _read, which drops messages whose body is gone, and passes over those whose body cannot be read.
            return False
        self.intake.transfer(
            queue.project, queue.dead_letter.queue_name, message, body, reserved_count=held.reserved_count - 1
        )
        self._remove(queue, message.message_id, held.reservation_id, leaving="exhausted")
        self.intake.size_changed(queue, -1, began=began)
        return True

    def _read(self, queue: Queue, held: Sequence[PullMessage], *, compressed: bool) -> tuple[list[ReadMessage], bool]:
        """Read the bodies of as many messages as fit into one answer; the rest return to the front of the queue.

        Those that fit into none stay reserved. Returns the messages, and whether there are such.
        """
        room = ResponseBudget()
        read: list[ReadMessage] = []
        skipped = False
        for position, each in enumerate(held):
            try:
                message = self._fitting(each, room, first=not read, compressed=compressed)
            except MessageNotFound:
                # Its body is gone; without it, the message would only block the queue.
                self._remove(queue, each.message.message_id, each.reservation_id)
                continue
            except Unanswerable:
                skipped = True
                continue
            except Unreadable as error:
                # It stays reserved, as if its consumer had died: it keeps no other waiting.
                self._tell(each, error)
                continue
            except (_NoRoom, Unavailable) as error:
                self._give_back(queue, held[position:])
                if not read and isinstance(error, Unavailable):
                    raise
                break
            read.append(message)
        return read, skipped

    def _tell(self, held: PullMessage, error: Unreadable) -> None:
        key = held.message.key
        self.telemetry.count("ItemsUnreadable")
        self.telemetry.event("item_unreadable", error=type(error).__name__, pk="#".join(key), sk="body")

    def _fitting(self, held: PullMessage, room: ResponseBudget, *, first: bool, compressed: bool) -> ReadMessage:
        """The message with its body, if the answer has room for it.

        Raises:
            MessageNotFound: Its body is gone.
            Unanswerable: No answer to this client has room for it.
            _NoRoom: This answer has none left.
        """
        if not (first or room.may_take(held.message.body_size)):
            raise _NoRoom
        read = ReadMessage(held=held, body=body_of(held.message, self.bodies))
        shown = json_text.write(read.shown(reserved=True), spaced=True)
        if not room.takes(shown):
            if not (compressed or ResponseBudget().takes(shown)):
                raise Unanswerable
            if not first:
                raise _NoRoom
            room.close()
        return read

    def _give_back(self, queue: Queue, held: Sequence[PullMessage]) -> None:
        """Undo reservations that no consumer has seen.

        A message that cannot be given back returns when its reservation ends.
        """
        for each in held:
            with suppress(Forbidden, MessageNotFound, Unavailable):
                self.pull.release(
                    MessageKey(queue.project, queue.pull_uid, each.message.message_id),
                    reservation_id=each.reservation_id or "",
                    delay_ms=0,
                    now=self.clock.now(),
                    counted=False,
                )

    def _deleted(self, queue: Queue, taken: Sequence[ReadMessage], *, by: int) -> list[ReadMessage]:
        """Delete messages that are handed out for good; those whose deletion is uncertain are handed out, too.

        Messages not deleted in time for the answer are given back.
        """
        deleted: list[ReadMessage] = []
        began = self.clock.now()
        for position, each in enumerate(taken):
            if self.clock.now() > by:
                self._give_back(queue, [later.held for later in taken[position:]])
                break
            try:
                self._remove(queue, each.held.message.message_id, each.held.reservation_id)
            except (Forbidden, MessageNotFound):
                # Its reservation ended meanwhile, so another consumer may have it.
                continue
            except Unavailable:
                deleted.append(each)
                self._give_back(queue, [later.held for later in taken[position + 1 :]])
                break
            deleted.append(each)
        self.intake.size_changed(queue, -len(deleted), began=began)
        return deleted

    def _remove(self, queue: Queue, message_id: str, reservation_id: str | None, leaving: str = "") -> None:
        self.pull.delete(
            MessageKey(queue.project, queue.pull_uid, message_id),
            reservation_id=reservation_id,
            now=self.clock.now(),
            leaving=leaving,
        )

    def peek(self, queue: Queue, count: int, *, compressed: bool = False) -> list[ReadMessage]:
        """The next messages, without reserving them; reserved and delayed ones are not shown, nor are those that do not
        fit into an answer.

        Args:
            queue: A pull queue.
            compressed: As for :meth:`reserve`.

        Raises:
            Unanswerable: There are only messages that do not fit.
        """
        until = self.clock.now() + SKIP_WITHIN_MS
        room = ResponseBudget()
        shown: list[ReadMessage] = []
        seen: set[str] = set()
        looked_at, more = count, True
        skipped = False
        while more and len(shown) < count:
            found = self.pull.peek(queue.project, queue.pull_uid, count=looked_at, now=self.clock.now())
            skips = False
            for each in found:
                if each.message.message_id in seen or len(shown) == count:
                    continue
                seen.add(each.message.message_id)
                try:
                    shown.append(self._fitting(each, room, first=not shown, compressed=compressed))
                except MessageNotFound:
                    continue
                except Unreadable as error:
                    self._tell(each, error)
                except Unanswerable:
                    skips = True
                except _NoRoom:
                    return shown
            skipped |= skips
            more = skips and len(found) >= looked_at and self.clock.now() < until
            looked_at *= 2
        if skipped and not shown:
            raise Unanswerable
        return shown

    def get(self, queue: Queue, message_id: str) -> ReadMessage:
        """One message, reserved or not."""
        held = self.pull.get(MessageKey(queue.project, queue.pull_uid, message_id), self.clock.now())
        if held is None:
            raise MessageNotFound
        return ReadMessage(held=held, body=body_of(held.message, self.bodies))

    def touch(self, queue: Queue, message_id: str, reservation_id: str, timeout_s: int | None) -> str:
        """Renew the reservation of a message; returns the new reservation id, and the old one becomes invalid.

        Raises:
            Forbidden: The reservation is not the current one, or timed out.
        """
        return self.pull.touch(
            MessageKey(queue.project, queue.pull_uid, message_id),
            reservation_id=reservation_id,
            timeout_ms=(timeout_s or queue.message_timeout) * 1000,
            now=self.clock.now(),
        )

    def release(self, queue: Queue, message_id: str, reservation_id: str, delay_s: int) -> None:
        """Return a reserved message to the front of the queue, at once or after a delay.

        Raises:
            Forbidden: The reservation is not the current one, or timed out.
        """
        self.pull.release(
            MessageKey(queue.project, queue.pull_uid, message_id),
            reservation_id=reservation_id,
            delay_ms=delay_s * 1000,
            now=self.clock.now(),
        )

    def delete(self, queue: Queue, deletions: Sequence[Deletion]) -> None:
        """Delete messages: reserved ones with their reservation, others without. One invalid entry refuses them all.

        Raises:
            MessageNotFound: One does not exist.
            Invalid: One is reserved and no reservation was given for it.
            Forbidden: A reservation is not the current one, or timed out.
        """
        began = self.clock.now()
        if len(deletions) > 1:
            for each in deletions:
                self._check(queue, each)
        for each in deletions:
            self._remove(queue, each.message_id, each.reservation_id)
        self.intake.size_changed(queue, -len(deletions), began=began)

    def _check(self, queue: Queue, deletion: Deletion) -> None:
        """Check the rule of :meth:`pushhub.ironmq.ports.PulledMessages.delete` without deleting."""
        held = self.pull.get(MessageKey(queue.project, queue.pull_uid, deletion.message_id), self.clock.now())
        if held is None:
            raise MessageNotFound
        current = held.reservation_id if held.reserved_until > self.clock.now() else None
        if deletion.reservation_id is None and current is not None:
            raise Invalid(RESERVATION_REQUIRED)
        if deletion.reservation_id is not None and deletion.reservation_id != current:
            raise Forbidden("Reservation has timed out")
