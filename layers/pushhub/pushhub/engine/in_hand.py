"""SQS messages that a run has in hand: hidden from others for not much longer than the run lives.

Lambda wants a queue to hide messages for at least as long as its function may run, and so long nobody else would look
at the orders of a run that died. So a run hides its messages for a minute, again and again until it ends (decision
0073). One that is over within half a second makes no such request: it notes what it has in hand where it runs, and
whoever runs there next, after its process has died, makes that visible (decision 0088). Where nobody may follow soon,
as nobody ran before, it makes the request after all (decision 0132).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

from pushhub.base.errors import Unavailable

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from pushhub.base.ports import Clock, Telemetry
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

QUIET_MS = 60_000
"""A run in an environment that had none for so long hides its messages at once: the next one there may be as far away,
and until then nobody would find a note. At most a request a minute, less than two cents a month.
"""

LEFT_MS = 400_000
"""What was left so long ago is left alone: its queue shows it soon by itself (after 450 s), and what somebody else has
received since must not be shown.
"""


class LeftBehind(NamedTuple):
    """What a run had in hand and had not hidden when its process died.

    Attributes:
        queue: Name of the queue.
        at: When it was noted, epoch milliseconds.
        handles: Receipt handles of the messages.
    """

    queue: str
    at: int
    handles: Sequence[str]


class HandNotes(Protocol):
    """Notes of the processes of one execution environment, which outlive them. They raise nothing: without a note, what
    was in hand comes back later.
    """

    def note(self, left: LeftBehind) -> None:
        """Note what this process has in hand, in place of what it noted before."""

    def forget(self) -> None:
        """It has nothing in hand any more, or has hidden it."""

    def left(self) -> Iterator[LeftBehind]:
        """What processes that are dead have noted. A note is gone when the next one is asked for."""


class InHand:
    """The messages of one run.

    Args:
        source: Their queue.
        notes: Where they are noted until they are hidden.
        quiet: Whether there was no run here for :data:`QUIET_MS`.
    """

    def __init__(self, source: WorkQueue, clock: Clock, notes: HandNotes, *, quiet: bool = False) -> None:
        self._source = source
        self._clock = clock
        self._notes = notes
        self._at_once = quiet
        self._handles: dict[str, str] = {}
        self._noted: dict[str, str] = {}
        self._first_at: int | None = None
        self._again_at: int | None = None

    def take(self, batch: Sequence[Received]) -> None:
        """Messages were received, for whatever orders of theirs."""
        if not batch:
            return
        new = {each.sqs_id: each.receipt_handle for each in batch}
        self._handles |= new
        self._noted |= new
        now = self._clock.now()
        self._notes.note(LeftBehind(self._source.name, now, [*self._noted.values()]))
        due_at = now + (0 if self._at_once or len(batch) >= MANY_ORDERS else PROMPT_MS)
        self._at_once = False
        self._first_at = due_at if self._first_at is None else min(self._first_at, due_at)

    def let_go(self, sqs_ids: Iterable[str]) -> None:
        """Messages were deleted."""
        for each in sqs_ids:
            self._handles.pop(each, None)
            self._noted.pop(each, None)

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
            return self._hide(self._noted, but, now)
        return set()

    def _hide(self, handles: Mapping[str, str], but: Collection[str], now: int) -> set[str]:
        again_at, all_of_them = self._again_at, handles is self._handles
        self._first_at = None
        self._again_at = now + FAILED_MS
        waits = [(handle, HIDDEN_S) for sqs_id, handle in handles.items() if sqs_id not in but]
        failed = self._source.defer(waits) if waits else set()
        if not failed:
            self._again_at = now + AGAIN_MS if all_of_them or again_at is None else again_at
            self._forget()
        return failed

    def end(self) -> None:
        """The run is over, and says itself what becomes of its messages."""
        self._forget()

    def _forget(self) -> None:
        if self._noted:
            self._noted.clear()
            self._notes.forget()


class Hands:
    """What the runs of one environment have in hand, and what dead ones had.

    Args:
        notes: What they note.
        queues: The queues of the function.
        clock: Time.
        telemetry: Told of it.
    """

    def __init__(self, *, notes: HandNotes, queues: Iterable[WorkQueue], clock: Clock, telemetry: Telemetry) -> None:
        self._notes = notes
        self._queues = {each.name: each for each in queues}
        self._clock = clock
        self._telemetry = telemetry

    def of(self, source: WorkQueue, *, quiet: bool) -> InHand:
        """The hand of a new run.

        Args:
            source: The queue of its messages.
            quiet: Whether there was no run here for :data:`QUIET_MS`.
        """
        return InHand(source, self._clock, self._notes, quiet=quiet)

    def show_again(self) -> int:
        """Make what dead runs left behind visible again; returns how many messages were shown. What cannot be shown now
        is left to the next run.
        """
        shown = 0
        for left in self._notes.left():
            queue = self._queues.get(left.queue)
            if queue is None or self._clock.now() >= left.at + LEFT_MS:
                continue
            try:
                failed = queue.defer([(each, 0) for each in left.handles])
            except Unavailable as error:
                self._telemetry.count("CallsFailed")
                self._telemetry.event("not_shown_again", error=str(error), queue=left.queue)
                break
            shown += len(left.handles) - len(failed)
            self._telemetry.event("shown_again", queue=left.queue, messages=len(left.handles), refused=len(failed))
        return shown
