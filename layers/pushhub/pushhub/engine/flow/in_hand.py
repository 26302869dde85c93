"""SQS messages that a run has in hand: hidden from others for not much longer than the run lives.

Lambda wants a queue to hide messages for at least as long as its function may run. Push runs for 85 s, so its queues
show what a dead run had within two minutes whatever happens; a run of theirs that has worked for half a second hides it
for a minute at a time until it ends, so that it comes sooner and is safe for as long as the run needs.
What may take long needs long runs, and so long no queue should hide what a dead one had: those hide it for a minute in
their first call (docs/flow-control.md).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from pushhub.base.ports import Clock
    from pushhub.engine.model.received import Received
    from pushhub.engine.ports import WorkQueue

HIDDEN_S = 60
"""How long messages are hidden each time: at most so long after the end of a run that died they come back."""

AGAIN_MS = 20_000
"""How often they are hidden again: two of three such calls may fail."""

FAILED_MS = 3_000
"""How soon it is tried again when a call failed."""

PROMPT_MS = 500
"""A short run that is over by then hides nothing, which would cost it a request."""


class InHand:
    """The messages of one run.

    Args:
        first_ms: How long after they were received they are hidden for the first time.
    """

    def __init__(self, source: WorkQueue, clock: Clock, *, first_ms: int) -> None:
        self._source = source
        self._clock = clock
        self._first_ms = first_ms
        self._handles: dict[str, str] = {}
        self._new: dict[str, str] = {}
        self._first_at: int | None = None
        self._again_at: int | None = None

    def take(self, batch: Sequence[Received]) -> None:
        """Messages were received, for whatever orders of theirs."""
        if not batch:
            return
        new = {each.sqs_id: each.receipt_handle for each in batch}
        self._handles |= new
        self._new |= new
        due_at = self._clock.now() + self._first_ms
        self._first_at = due_at if self._first_at is None else min(self._first_at, due_at)

    def let_go(self, sqs_ids: Iterable[str]) -> None:
        """Messages were deleted."""
        for each in sqs_ids:
            self._handles.pop(each, None)
            self._new.pop(each, None)

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
        if self._again_at is not None and now >= self._again_at:
            return self._hide(self._handles, but, now)
        if self._first_at is not None and now >= self._first_at:
            # Not all of them each time that some come: a run that receives a thousand orders has a hundred messages.
            return self._hide(self._new, but, now)
        return set()

    def _hide(self, handles: Mapping[str, str], but: Collection[str], now: int) -> set[str]:
        again_at, all_of_them = self._again_at, handles is self._handles
        self._first_at = None
        self._again_at = now + FAILED_MS
        waits = [(handle, HIDDEN_S) for sqs_id, handle in handles.items() if sqs_id not in but]
        failed = self._source.defer(waits) if waits else set()
        if not failed:
            self._again_at = now + AGAIN_MS if all_of_them or again_at is None else again_at
            self._new.clear()
        return failed
