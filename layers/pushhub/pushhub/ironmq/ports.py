"""What IronMQ needs from outside besides the engine's ports: the store of pull queues.

The real one is in :mod:`pushhub.ironmq.store`, a fake for tests in ``tests/fakes``; one contract test runs against
both. Methods may raise :class:`pushhub.base.errors.Unavailable` when the service behind them fails; the effect of the
call is then unknown. Times are epoch milliseconds.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pushhub.engine.model.keys import MessageKey
    from pushhub.engine.model.message import Message
    from pushhub.engine.ports import Once


@dataclass(frozen=True, slots=True, kw_only=True)
class PullMessage:
    """A message waiting in a pull queue.

    Attributes:
        reserved_count: Times it was reserved or touched, as consumers see it.
        unseen: Further reservations that no consumer ever saw.
        reservation_id: Id of the current reservation, or None.
        reserved_until: End of that reservation.
    """

    message: Message
    reserved_count: int = 0
    unseen: int = 0
    reservation_id: str | None = None
    reserved_until: int = 0


class PullSink(Protocol):
    """Accepts messages of pull queues, by the queue's ``pull_uid`` (which :class:`Message` carries as ``queue_uid``).

    Order: first in, first out; timed-out and released messages return to their old place, which is the front. A message
    whose reservation timed out counts as available, an expired message as gone.
    """

    def put(self, messages: Sequence[Message]) -> None:
        """Append messages, all or none of each hundred; repeating the call within ten minutes changes nothing."""

    def put_once(self, message: Message, *, reserved_count: int = 0) -> Once:
        """Put a message made by the hub itself (``cause`` set) into its queue unless its id is taken."""


class PullSizes(Protocol):
    """How many messages pull queues hold."""

    def size(self, project_id: str, pull_uid: str, now: int, *, at_most: int | None = None, exact: bool = False) -> int:
        """Messages in the queue, including reserved and delayed ones.

        Counting stops at ``at_most``, because the store may have to read them all. What calls that were cut off have
        left behind may be counted, too, but with ``exact`` for seconds only; that needs the right to delete.
        """

    def sizes(self, project_id: str, pull_uids: Sequence[str], now: int) -> list[int]:
        """Messages in each of several queues, as :meth:`size` tells them, in fewer reads."""


class PulledMessages(Protocol):
    """Messages of pull queues, for their consumers."""

    def reserve(self, project_id: str, pull_uid: str, *, count: int, timeout_ms: int, now: int) -> list[PullMessage]:
        """Reserve up to ``count`` available messages in order.

        Each gets a new reservation id, and its count rises by one.
        """

    def peek(self, project_id: str, pull_uid: str, *, count: int, now: int) -> list[PullMessage]:
        """The next available messages without reserving them."""

    def get(self, key: MessageKey, now: int) -> PullMessage | None:
        """One message, or None when it is gone or expired. Read consistently."""

    def touch(self, key: MessageKey, *, reservation_id: str, timeout_ms: int, now: int) -> str:
        """Extend a reservation; returns the new reservation id (the old one becomes invalid, the count rises).

        Raises:
            MessageNotFound: No such message.
            Forbidden: The reservation is not the current one, or timed out.
        """

    def release(
        self,
        key: MessageKey,
        *,
        reservation_id: str,
        delay_ms: int,
        now: int,
        counted: bool = True,
    ) -> None:
        """Return a reserved message to the queue, at once or after a delay. Raises like :meth:`touch`.

        With ``counted`` False, the reservation does not count: no consumer saw the message.
        """

    def delete(
        self,
        key: MessageKey,
        *,
        reservation_id: str | None,
        now: int,
        leaving: str = "",
    ) -> None:
        """Delete a message: a reserved one with its reservation id, a free one without any.

        ``leaving`` tells the delivery records why a message goes that no consumer took: ``exhausted`` for a dead
        letter.

        Raises:
            MessageNotFound: No such message.
            Invalid: It is reserved and no reservation id was given ("A reservation_id is required").
            Forbidden: The reservation is not the current one, or timed out.
        """


class PullStore(PullSink, PullSizes, PulledMessages, Protocol):
    """All of them, as one table holds them; used where the hub is put together."""
