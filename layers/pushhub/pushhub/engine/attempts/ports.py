"""What attempts need from outside."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from pushhub.engine.ports import WaitingOrders

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pushhub.engine.model.circuit import Health, SubscriberKey
    from pushhub.engine.model.delivery import Delivery
    from pushhub.engine.model.keys import DeliveryKey
    from pushhub.engine.model.work import WorkOrder

    pass


class AttemptProjects(Protocol):
    """Projects, as attempts go by them."""

    def is_suspended(self, project_id: str, *, since: int) -> bool:
        """Whether a project is suspended, with every change that was made before the given time (epoch milliseconds) or
        half a second ago.
        """

    def exports_spans(self, project_id: str) -> bool:
        """Whether a project exports spans of its attempts; may be half a minute old."""


class Unsettled(Protocol):
    """Deliveries that people need to know about."""

    def unsettled(
        self, project_id: str, queue_uid: str, *, limit: int, after: str | None = None
    ) -> tuple[list[Delivery], str | None]:
        """Deliveries of a queue that failed at least once and are waiting (retrying, reserved), then exhausted ones.

        Also returns a cursor for the next page.
        """

    def given_up(
        self, project_id: str, queue_uid: str, *, limit: int, after: str | None = None
    ) -> tuple[list[Delivery], str | None]:
        """The deliveries of a queue that were given up (exhausted or held), and a cursor for the next page.

        Accepts any text as a cursor, even one that was never issued.
        """

    def retried(self, project_id: str, queue_uid: str, *, limit: int) -> list[tuple[str, str]]:
        """Message and subscriber of the deliveries of a queue that are waiting after a first attempt, in no order; at
        most ``limit``. May be seconds old.
        """

    def unsettled_counts(self, project_id: str, queue_uids: Sequence[str]) -> list[int]:
        """How many deliveries of each of these queues are waiting after a first attempt (exhausted ones do not
        count).
        """


class Healths(Protocol):
    """State of the subscribers whose circuits are watched."""

    def health(self, key: SubscriberKey) -> Health | None:
        """A subscriber's health, read consistently; None when it never had a problem."""

    def healths(self, keys: Sequence[SubscriberKey]) -> dict[SubscriberKey, Health]:
        """What is stored of many subscribers; may be seconds old. Those that never had a problem are missing."""

    def healths_of(self, project_id: str) -> Iterator[Health]:
        """What is stored of the subscribers of a project; may be seconds old."""

    def save(self, health: Health) -> None:
        """Write a health if the stored one still has version ``health.version - 1`` (absent when that is 0).

        Raises:
            Conflict: The stored one has another version.
        """

    def look_after(self, key: SubscriberKey, now: int) -> None:
        """Add a subscriber to the list returned by :meth:`looked_after`; if it is there, it is added anew."""

    def looked_after(self) -> Iterator[SubscriberKey]:
        """Subscribers whose circuits were opened and that have not been removed from the list."""

    def leave(self, key: SubscriberKey, since: int) -> None:
        """Remove a subscriber from that list, unless it was added since then; safe to repeat."""


class SubscriberBacklog(WaitingOrders, Protocol):
    """Orders that wait because their subscriber's circuit is open, or because it is paused."""

    def add(self, key: SubscriberKey, order: WorkOrder, now: int) -> None:
        """Append an order to the backlog, without the message's body."""

    def waiting_ids(self, key: SubscriberKey, limit: int) -> list[str]:
        """Ids of the messages whose orders wait, in no order; at most ``limit``. May be seconds old."""


class Successors(Protocol):
    """Orders that wait until the delivery before them, with the same ordering key, has ended.

    Each delivery has at most one successor.
    """

    def wait_behind(self, before: DeliveryKey, order: WorkOrder) -> None:
        """Make an order wait; the message is left out. Safe to repeat."""

    def behind(self, ended: DeliveryKey) -> WorkOrder | None:
        """The order that waits behind a delivery, read consistently."""

    def take(self, before: DeliveryKey, order: WorkOrder, *, by_itself: bool) -> bool:
        """Decide who lets a waiting order go on: the delivery before it, which has ended, or the order by itself, which
        has found that out.

        Returns:
            Whether it is the one who asks: the first of the two, and however often it asks. False too when no order
            waits.
        """

    def let_go(self, ended: DeliveryKey) -> None:
        """Forget the order that waits behind a delivery. Safe to repeat."""
