"""Messages of pull queues: reserve, peek, get, touch, release, delete; and dead letters, which move when reserved too often."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pushhub.dialects.ironmq_messages import RESERVATION_REQUIRED, Deletion, ReserveRequest
from pushhub.domain.errors import Forbidden, Invalid, MessageNotFound
from pushhub.domain.queue import Queue
from pushhub.ports import BodyStore, Clock, ConfigStore, LineMessage, LineStore
from pushhub.services.ingest import Ingest
from pushhub.services.message_bodies import body_of

__all__ = ["Lines", "ReadMessage"]

ANSWER_WITHIN_MS = 28_000
"""A long poll ends by then: API Gateway gives an answer up after 30 seconds."""

FIRST_PAUSE_S = 0.1
LONGEST_PAUSE_S = 1.0
"""Pauses between the looks of a long poll double from the first to the longest."""

ANSWER_BODY_BYTES = 4_194_304
"""Bodies in one answer, in bytes, unless the first alone is larger: a function's answer is limited to 6 MB."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadMessage:
    """A message as read, with its bytes.

    Attributes:
        held: The message and its reservation.
        body: Its bytes.
    """

    held: LineMessage
    body: bytes


class Lines:
    """Works with the lines of pull queues.

    Args:
        config: Notices a queue that was cleared during a long poll.
        lines: The lines.
        bodies: Large bodies.
        ingest: Moves dead letters and fires alerts.
        clock: Time.
    """

    def __init__(
        self, *, config: ConfigStore, lines: LineStore, bodies: BodyStore, ingest: Ingest, clock: Clock
    ) -> None:
        self._config = config
        self._lines = lines
        self._bodies = bodies
        self._ingest = ingest
        self._clock = clock

    def reserve(self, queue: Queue, request: ReserveRequest) -> list[ReadMessage]:
        """Reserve messages, waiting for a first one as long as asked for; none when none came.

        Args:
            queue: A pull queue.
            request: How many, how long, and whether to delete them at once.
        """
        deadline = self._clock.now() + min(request.wait_s * 1000, ANSWER_WITHIN_MS)
        pause_s = FIRST_PAUSE_S
        while True:
            taken = self._take(queue, request)
            left_s = (deadline - self._clock.now()) / 1000
            if taken or left_s <= 0:
                return self._deleted(queue, taken) if request.delete else taken
            self._clock.sleep(min(pause_s, left_s))
            pause_s = min(pause_s * 2, LONGEST_PAUSE_S)
            queue = self._config.queue(queue.project, queue.name) or queue

    def _take(self, queue: Queue, request: ReserveRequest) -> list[ReadMessage]:
        """Reserve messages and move the dead letters among them out of the way until enough or no more are found."""
        timeout_ms = (request.timeout_s or queue.message_timeout) * 1000
        taken: list[LineMessage] = []
        while len(taken) < request.count:
            wanted = request.count - len(taken)
            held = self._lines.reserve(
                queue.project, queue.line_uid, count=wanted, timeout_ms=timeout_ms, now=self._clock.now()
            )
            alive = [each for each in held if not self._moved_to_dead_letters(queue, each)]
            taken.extend(alive)
            if len(alive) == len(held):
                break
        return self._read(queue, self._fitting(queue, taken))

    def _moved_to_dead_letters(self, queue: Queue, held: LineMessage) -> bool:
        if queue.dead_letter is None or held.reserved_count <= queue.dead_letter.max_reservations:
            return False
        message = held.message
        try:
            body = body_of(message, self._bodies)
        except MessageNotFound:
            # Left to _read, which drops messages without bytes.
            return False
        self._ingest.transfer(
            queue.project, queue.dead_letter.queue_name, message, body, reserved_count=held.reserved_count - 1
        )
        self._remove(queue, message.message_id, held.reservation_id, leaving="exhausted")
        self._ingest.size_changed(queue, -1)
        return True

    def _fitting(self, queue: Queue, held: Sequence[LineMessage]) -> list[LineMessage]:
        """As many as fit into one answer; the others are given back to the front of the line."""
        fitting: list[LineMessage] = []
        size = 0
        for each in held:
            size += each.message.body_size
            if not fitting or size <= ANSWER_BODY_BYTES:
                fitting.append(each)
                continue
            self._lines.release(
                queue.project,
                queue.line_uid,
                each.message.message_id,
                reservation_id=each.reservation_id or "",
                delay_ms=0,
                now=self._clock.now(),
            )
        return fitting

    def _read(self, queue: Queue, held: Iterable[LineMessage]) -> list[ReadMessage]:
        read: list[ReadMessage] = []
        for each in held:
            try:
                read.append(ReadMessage(held=each, body=body_of(each.message, self._bodies)))
            except MessageNotFound:
                # Its bytes outlived their time; without them it would only block the line.
                self._remove(queue, each.message.message_id, each.reservation_id)
        return read

    def _deleted(self, queue: Queue, taken: list[ReadMessage]) -> list[ReadMessage]:
        for each in taken:
            self._remove(queue, each.held.message.message_id, each.held.reservation_id)
        self._ingest.size_changed(queue, -len(taken))
        return taken

    def _remove(self, queue: Queue, message_id: str, reservation_id: str | None, leaving: str = "") -> None:
        self._lines.delete(
            queue.project,
            queue.line_uid,
            message_id,
            reservation_id=reservation_id,
            now=self._clock.now(),
            leaving=leaving,
        )

    def peek(self, queue: Queue, count: int) -> list[ReadMessage]:
        """The next messages without reserving them; reserved and delayed ones are not shown."""
        found = self._lines.peek(queue.project, queue.line_uid, count=count, now=self._clock.now())
        shown: list[ReadMessage] = []
        size = 0
        for each in found:
            size += each.message.body_size
            if shown and size > ANSWER_BODY_BYTES:
                break
            try:
                shown.append(ReadMessage(held=each, body=body_of(each.message, self._bodies)))
            except MessageNotFound:
                continue
        return shown

    def get(self, queue: Queue, message_id: str) -> ReadMessage:
        """One message, reserved or not.

        Raises:
            MessageNotFound: No such message.
        """
        held = self._lines.get(queue.project, queue.line_uid, message_id, self._clock.now())
        if held is None:
            raise MessageNotFound
        return ReadMessage(held=held, body=body_of(held.message, self._bodies))

    def touch(self, queue: Queue, message_id: str, reservation_id: str, timeout_s: int | None) -> str:
        """Reserve a reserved message anew; the new reservation id, the old one dies.

        Raises:
            MessageNotFound: No such message.
            Forbidden: The reservation is not the current one, or timed out.
        """
        return self._lines.touch(
            queue.project,
            queue.line_uid,
            message_id,
            reservation_id=reservation_id,
            timeout_ms=(timeout_s or queue.message_timeout) * 1000,
            now=self._clock.now(),
        )

    def release(self, queue: Queue, message_id: str, reservation_id: str, delay_s: int) -> None:
        """Give a reserved message back to the front of the line, at once or after a delay.

        Raises:
            MessageNotFound: No such message.
            Forbidden: The reservation is not the current one, or timed out.
        """
        self._lines.release(
            queue.project,
            queue.line_uid,
            message_id,
            reservation_id=reservation_id,
            delay_ms=delay_s * 1000,
            now=self._clock.now(),
        )

    def delete(self, queue: Queue, deletions: Sequence[Deletion]) -> None:
        """Delete messages: reserved ones with their reservation, others without. One bad entry refuses them all.

        Raises:
            MessageNotFound: One does not exist.
            Invalid: One is reserved and its reservation was not shown.
            Forbidden: A reservation is not the current one, or timed out.
        """
        if len(deletions) > 1:
            for each in deletions:
                self._check(queue, each)
        for each in deletions:
            self._remove(queue, each.message_id, each.reservation_id)
        self._ingest.size_changed(queue, -len(deletions))

    def _check(self, queue: Queue, deletion: Deletion) -> None:
        """The rule of :meth:`pushhub.ports.LineStore.delete`, asked without deleting."""
        held = self._lines.get(queue.project, queue.line_uid, deletion.message_id, self._clock.now())
        if held is None:
            raise MessageNotFound
        current = held.reservation_id if held.reserved_until > self._clock.now() else None
        if deletion.reservation_id is None and current is not None:
            raise Invalid(RESERVATION_REQUIRED)
        if deletion.reservation_id is not None and deletion.reservation_id != current:
            raise Forbidden("Reservation has timed out")
