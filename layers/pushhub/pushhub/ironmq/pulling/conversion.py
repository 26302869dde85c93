"""Turns a pull queue into a push queue while producers post.

The queue itself changes in one write: what is posted from then on is pushed. What it holds for consumers is then moved,
message by message, each with its id, into what is pushed. Nothing is lost whenever this ends: what is left stays where
it is, the queue says how much that is, and the same request goes on with it.
"""

from __future__ import annotations

from collections import deque
from contextlib import suppress
from typing import TYPE_CHECKING

from pushhub.base.errors import Forbidden, HubError, MessageNotFound, TryLater
from pushhub.engine.bodies import body_of
from pushhub.engine.component import Component
from pushhub.engine.model.keys import MessageKey

if TYPE_CHECKING:
    from pushhub.base.ports import Clock
    from pushhub.engine.model.queue import Queue
    from pushhub.engine.ports import BodyStore
    from pushhub.engine.security.stranger_calls import StrangerCalls
    from pushhub.ironmq.ports import PullMessage, PullStore
    from pushhub.ironmq.posting.intake import QueueIntake

SETTLES_S = 1.0
"""How long posts that found the queue still a pull queue are waited for."""

TIME_MS = 15_000
"""How long a request moves messages. API Gateway waits for 30 s, of which the change itself takes some."""

LONGEST_MS = 30_000
"""Longer than a request takes: its place is free then, even if it died."""

RETRY_AFTER_S = 5
_AT_A_TIME = 20
_RESERVED_MS = 60_000


class Conversion(Component):
    """Moves the messages of former pull queues."""

    pull: PullStore
    bodies: BodyStore
    intake: QueueIntake  # Puts them into the push queue.
    # Limits how many requests of a project do this, or call a stranger, at the same time: each occupies an execution
    # environment for many seconds.
    calls: StrangerCalls
    clock: Clock

    def left(self, queue: Queue) -> int:
        """How many messages a push queue still holds from when it was a pull queue."""
        return self.pull.size(queue.project, queue.pull_uid, self.clock.now())

    def run(self, queue: Queue) -> int:
        """Move the messages of a former pull queue, as long as time allows.

        Those that are reserved or delayed stay until they are free.

        Args:
            queue: The push queue, as stored.

        Returns:
            How many are left.

        Raises:
            TryLater: The project has too many such requests.
            Unavailable: Some were not moved; call again.
        """
        with self.calls.begun(queue.project, within_ms=LONGEST_MS) as may:
            if not may:
                raise TryLater("Too many queues are being converted", retry_after_s=RETRY_AFTER_S)
            self._move_all(queue)
        return self.left(queue)

    def _move_all(self, queue: Queue) -> None:
        self.clock.sleep(SETTLES_S)
        until = self.clock.now() + TIME_MS
        while self.clock.now() < until:
            held = self.pull.reserve(
                queue.project, queue.pull_uid, count=_AT_A_TIME, timeout_ms=_RESERVED_MS, now=self.clock.now()
            )
            if not held:
                break
            self._move_batch(queue, held)

    def _move_batch(self, queue: Queue, held: list[PullMessage]) -> None:
        waiting = deque(held)
        try:
            while waiting:
                self._move(queue, waiting[0])
                waiting.popleft()
        except Exception:
            # Free again, so that the repeated request finds them and need not wait for the reservation's end.
            for each in waiting:
                self._give_back(queue, each)
            raise

    def _give_back(self, queue: Queue, held: PullMessage) -> None:
        key = MessageKey(queue.project, queue.pull_uid, held.message.message_id)
        # What cannot be given back now is free when its reservation ends.
        with suppress(HubError):
            self.pull.release(
                key, reservation_id=held.reservation_id or "", delay_ms=0, now=self.clock.now(), counted=False
            )

    def _move(self, queue: Queue, held: PullMessage) -> None:
        message = held.message
        try:
            body = body_of(message, self.bodies)
            self.intake.transfer(queue.project, queue.name, message, body, reserved_count=0)
        except MessageNotFound:
            # Its body is gone, and with it what there was to push.
            pass
        try:
            self.pull.delete(
                MessageKey(queue.project, queue.pull_uid, message.message_id),
                reservation_id=held.reservation_id,
                now=self.clock.now(),
            )
        except (Forbidden, MessageNotFound):
            # It took longer than the reservation. Whoever has it now finds that it was moved.
            return
