"""A batch of wake-ups: one look per subscriber, in parallel. Wake-ups that must be redelivered are kept."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from typing import TYPE_CHECKING

from pushhub.base.errors import Unavailable
from pushhub.engine.component import Component

if TYPE_CHECKING:
    from pushhub.base.ports import Telemetry
    from pushhub.notifications.ports import ReceivedWake, WakeQueue
    from pushhub.notifications.sender import NotificationSender

_AFTER_FAILURE_S = 2
_AFTER_DEATH_S = 2


class SenderBatch(Component):
    """Processes the backlogs of a batch of wake-ups."""

    sender: NotificationSender
    queue: WakeQueue  # Where the wake-ups came from.
    executor: Executor  # Processes backlogs in parallel.
    telemetry: Telemetry

    def run(self, wakes: Sequence[ReceivedWake], remaining_ms: Callable[[], int]) -> list[str]:
        """Process the batch; returns the SQS ids of wake-ups that must be redelivered.

        Args:
            wakes: In the order received; several for one subscriber are handled by one look for the newest.
            remaining_ms: Milliseconds the invocation has left.
        """
        # If this run dies, they are redelivered as soon as it must have ended, not after the queue's longer visibility
        # timeout.
        held_s = remaining_ms() // 1000 + _AFTER_DEATH_S
        held = self.executor.submit(self.queue.defer, {each.receipt_handle: held_s for each in wakes})
        groups: dict[str, list[ReceivedWake]] = {}
        for each in wakes:
            groups.setdefault(each.wake.subscriber_uid, []).append(each)
        looks = {uid: self.executor.submit(self._look, group, remaining_ms) for uid, group in groups.items()}
        held.result()
        keep: list[str] = []
        for uid, look in looks.items():
            seconds = look.result()
            if seconds is not None:
                # All wake-ups of a group are redelivered together, which preserves their order.
                self.queue.defer({each.receipt_handle: seconds for each in groups[uid]})
                keep += [each.sqs_id for each in groups[uid]]
        return keep

    def _look(self, group: Sequence[ReceivedWake], remaining_ms: Callable[[], int]) -> int | None:
        newest = max((each.wake for each in group), key=lambda wake: wake.version)
        try:
            return self.sender.look(newest, remaining_ms)
        except Unavailable as error:
            self.telemetry.count("LooksFailed")
            self.telemetry.event("look_failed", subscriber_uid=newest.subscriber_uid, operation=error.operation)
        except Exception as error:  # noqa: BLE001 (one subscriber's trouble must not keep the others waiting)
            self.telemetry.count("LooksFailed")
            self.telemetry.event("look_failed", subscriber_uid=newest.subscriber_uid, error=repr(error))
        return _AFTER_FAILURE_S
