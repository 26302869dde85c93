"""What the flow of orders needs from outside."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pushhub.engine.model.flow import BacklogEntry, FlowKey, LeaseState, Terms
    from pushhub.engine.model.keys import DeliveryKey, MessageKey
    from pushhub.engine.model.received import ReadTogether
    from pushhub.engine.model.work import WorkOrder


@dataclass(frozen=True, slots=True)
class QueueLevel:
    """How full a queue is, approximately.

    Attributes:
        messages: Those that can be received.
        in_flight: Those that were received and not deleted.
    """

    messages: int
    in_flight: int


class AttemptReads(Protocol):
    """What is read before attempts, consistently, and in one call for a hundred items."""

    def read(self, deliveries: Sequence[DeliveryKey], messages: Sequence[MessageKey]) -> ReadTogether:
        """Stored deliveries (:meth:`pushhub.engine.ports.Deliveries.deliveries`) and messages
        (:meth:`pushhub.engine.ports.Messages.messages`); what is not there is missing.
        """

    def read_with_notes(
        self, deliveries: Sequence[DeliveryKey], messages: Sequence[MessageKey]
    ) -> tuple[ReadTogether, Mapping[int, int]]:
        """The same, and the notes of changes (:meth:`pushhub.engine.projects.ports.ChangeNoteStore.noted_changes`)."""


class Backlogs(Protocol):
    """What waits for a lease at subscribers with limits, and at slow ones."""

    def flow(self, key: FlowKey) -> LeaseState | None:
        """What is stored of a flow, read consistently; None when nobody ever had its lease."""

    def note_wake_up(self, key: FlowKey, now: int, at: int) -> bool:
        """Note that a wake-up for the lease is about to be sent and arrives at the given time.

        Returns:
            False when another one is still on its way, or nobody ever had the lease; then none needs to be sent.
        """

    def add_to_backlog(self, key: FlowKey, orders: Sequence[WorkOrder], now: int) -> None:
        """Put orders, all for one subscriber, at the end of its backlog, without their messages."""

    def set_aside(self, key: FlowKey, orders: Sequence[WorkOrder], until: int) -> str:
        """Put orders behind the backlog, out of reach until epoch milliseconds; returns their place."""

    def backlog(self, key: FlowKey, limit: int, *, now: int | None = None) -> list[BacklogEntry]:
        """The first entries of a backlog, read consistently; at most ``limit``.

        Args:
            now: Epoch milliseconds; leaves out those that are set aside for longer. None leaves out none.
        """

    def remove_from_backlog(self, key: FlowKey, place: str, rest: Sequence[WorkOrder]) -> None:
        """Leave only the rest of an entry's orders in the backlog, or nothing if there is none. Safe to repeat."""

    def list_backlog(self, key: FlowKey, now: int) -> None:
        """Add a backlog to the list of those that are tended; safe to repeat."""

    def listed_backlogs(self) -> Iterator[tuple[FlowKey, int]]:
        """Backlogs that may hold orders, and when each was last added."""

    def unlist_backlog(self, key: FlowKey, added_at: int) -> None:
        """Remove a backlog from that list, unless it was added again since; safe to repeat."""


class FlowStore(Backlogs, Protocol):
    """Who has the lease at subscribers with limits, and at slow ones; and what waits for it."""

    def take_lease(self, key: FlowKey, holder: str, terms: Terms, *, now: int, until: int) -> LeaseState | None:
        """Take the lease if nobody has it, or extend one's own.

        Args:
            holder: Random text of the run that takes it.
            terms: Under which terms.
            now: Epoch milliseconds; a lease that has ended by then counts as nobody's.
            until: Until when.

        Returns:
            The state before: with ``until`` when it was not given back by the one who had it. None when somebody else
            has the lease.
        """

    def give_back(self, key: FlowKey, holder: str, *, mark: int, places: int, woken_at: int | None = None) -> None:
        """Give a lease back; does nothing if somebody else has it.

        Args:
            holder: Who has it.
            mark: When the next attempt may begin by the rate.
            places: Concurrent attempts that the subscriber has earned.
            woken_at: When the wake-up that is about to be sent arrives; None for none.
        """


class SlowSubscribers(Protocol):
    """Subscribers that any execution environment has found to answer slowly."""

    def note_slow(self, keys: Sequence[tuple[str, str, str]], until: int) -> None:
        """List subscribers (project, queue generation, id) as slow at least until a given time; safe to repeat."""

    def slow(self, now: int, limit: int) -> dict[tuple[str, str, str], int]:
        """The listed subscribers, each with its end time; possibly slightly out of date.

        If there are more than the limit, the ones noted last.
        """
