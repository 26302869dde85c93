"""SQS messages that a run has in hand: hidden from others for not much longer than the run lives.

Lambda wants a queue to hide messages for at least as long as its function may run, and so long nobody else would look
at the orders of a run that died. So a run hides its messages for a minute, again and again until it ends (decision
0073).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from pushhub.base.ports import Clock
    from pushhub.engine.ports import Received, WorkQueue

HIDDEN_S = 60
"""How long messages are hidden each time: at most so long after the end of a run that died they come back."""

AGAIN_MS = 20_000
"""How often they are hidden again: two of three such calls may fail."""

FAILED_MS = 3_000
"""How soon it is tried again when a call failed."""

PROMPT_MS = 500
"""A run that is over by then hides nothing, which would cost it a request."""

MANY_ORDERS = 40
"""So many orders are hidden at once: a request for each ten of their messages costs less than a cent a million."""


class InHand:
    """The messages of one run.

    Args:
        source: Their queue.
    """

    def __init__(self, source: WorkQueue, clock: Clock) -> None:
        self._source = source
        self._clock = clock
        self._handles: dict[str, str] = {}
        self._due_at: int | None = None

    def take(self, batch: Sequence[Received]) -> None:
        """Messages were received, for whatever orders of theirs."""
        if not batch:
            return
        self._handles |= {each.sqs_id: each.receipt_handle for each in batch}
        due_at = self._clock.now() + (0 if len(batch) >= MANY_ORDERS else PROMPT_MS)
        self._due_at = due_at if self._due_at is None else min(self._due_at, due_at)

    def let_go(self, sqs_ids: Iterable[str]) -> None:
        """Messages were deleted."""
        for each in sqs_ids:
            self._handles.pop(each, None)

    def keep_hidden(self, but: Collection[str]) -> set[str]:
        """Hide the messages again if it is time. To be called several times a second.

        Args:
            but: SQS ids of messages that are hidden until a time of their own.

        Returns:
            Receipt handles of those that could not be hidden.

        Raises:
            Unavailable: None could.
        """
        now = self._clock.now()
        if self._due_at is None or now < self._due_at:
            return set()
        self._due_at = now + FAILED_MS
        waits = [(handle, HIDDEN_S) for sqs_id, handle in self._handles.items() if sqs_id not in but]
        failed = self._source.defer(waits) if waits else set()
        if not failed:
            self._due_at = now + AGAIN_MS
        return failed
