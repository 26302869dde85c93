"""What one run of push has in hand, and what becomes of the SQS messages it came in. Pure.

A run attempts a delivery once, however many orders for it come. A further order is kept as a *duplicate* beside the one
in hand: if that one turns out to wait elsewhere, the duplicate may be what was sent from there, and all there is.

An SQS message may carry several orders. It is deleted once all of them are settled, and stays if one of them is kept.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from pushhub.engine.model.actions import States
    from pushhub.engine.model.keys import DeliveryKey
    from pushhub.engine.model.received import Loaded, Received


class Ledger:
    """The orders of one run.

    Args:
        batch: What the run begins with. Lambda deletes these messages, but for those that are kept; what the run
            receives later it deletes itself.

    Attributes:
        waiting: Orders that wait for a thread.
    """

    def __init__(self, batch: Iterable[Received]) -> None:
        self.waiting: list[Loaded] = []
        self._batch = frozenset(each.sqs_id for each in batch)
        self._in_hand: dict[DeliveryKey, bool] = {}
        self._duplicates: dict[DeliveryKey, Received] = {}
        self._handles: dict[str, str] = {}
        self._open: Counter[str] = Counter()
        self._kept: set[str] = set()

    # -- deliveries

    @property
    def in_hand(self) -> Mapping[DeliveryKey, bool]:
        """Deliveries that wait or are attempted; each with whether for a manual try only."""
        return self._in_hand

    def unknown(self, batch: Iterable[Received]) -> list[DeliveryKey]:
        """Deliveries of a batch that are not in hand."""
        return [*dict.fromkeys(each.order.key for each in batch if each.order.key not in self._in_hand)]

    def admit(
        self,
        batch: Sequence[Received],
        states: States,
        in_backlog: Collection[DeliveryKey],
    ) -> list[Received]:
        """Take a batch in hand: one order for each delivery, and at most one duplicate beside it.

        The order for a manual try is for that try only, so it must not replace the automatic one, nor be replaced: the
        person may have asked for it after the attempt in hand began, and then it is one more.

        Args:
            states: What was read for the batch.
            in_backlog: Deliveries in hand whose orders come from a backlog. Whoever had the lease before and does not
                know yet that it has lost it may take them away there, so another order of theirs may be all there is.

        Returns:
            Orders that have to wait in their queue until the one in hand is done.
        """
        new = {*self.unknown(batch)}
        firsts: dict[DeliveryKey, Received] = {}
        behind: list[Received] = []
        for received in sorted(batch, key=lambda each: each.order.manual):
            order = received.order
            if order.key in new:
                if received.is_void(states.found.get(order.key)):
                    continue
                first = firsts.setdefault(order.key, received)
                if order.manual and not first.order.manual:
                    behind.append(received)
                elif first is not received and not order.manual:
                    self._keep_duplicate(received)
            elif self._in_hand[order.key] or order.manual or order.key in in_backlog:
                behind.append(received)
            else:
                self._keep_duplicate(received)
        self._open.update(each.sqs_id for each in firsts.values())
        self.hold(firsts.values())
        self.waiting += map(states.loaded, firsts.values())
        return behind

    def hold(self, orders: Iterable[Received]) -> None:
        """Deliveries are in hand from now on."""
        self._in_hand |= {each.order.key: each.order.manual for each in orders}

    def release(self, key: DeliveryKey) -> Received | None:
        """A delivery is in hand no longer; returns the duplicate beside its order, which is dropped."""
        self._in_hand.pop(key, None)
        return self._drop_duplicate(key)

    def _keep_duplicate(self, received: Received) -> None:
        """Keep an order beside that in hand: one for any state of its delivery rather than one for a single state."""
        key = received.order.key
        known = self._duplicates.get(key)
        if known is not None and known.order.version is None:
            return
        self._drop_duplicate(key)
        self._duplicates[key] = received
        self._open[received.sqs_id] += 1

    def _drop_duplicate(self, key: DeliveryKey) -> Received | None:
        duplicate = self._duplicates.pop(key, None)
        if duplicate is not None:
            self._open[duplicate.sqs_id] -= 1
        return duplicate

    # -- SQS messages

    @property
    def kept(self) -> Collection[str]:
        """SQS ids of messages that stay in their queue."""
        return self._kept

    @property
    def kept_of_batch(self) -> set[str]:
        """Those of the batch that the run began with: its batch item failures."""
        return self._kept & self._batch

    def keep(self, sqs_ids: Iterable[str]) -> None:
        """Messages stay in their queue."""
        self._kept.update(sqs_ids)

    def receive(self, batch: Iterable[Received]) -> None:
        """The run has received these itself, so it deletes them itself."""
        self._handles |= {each.sqs_id: each.receipt_handle for each in batch}

    def settle(self, orders: Iterable[Received]) -> None:
        """Orders are done, or wait elsewhere."""
        self._open.subtract(each.sqs_id for each in orders)

    def pop_finished(self) -> dict[str, str]:
        """Messages that the run received itself and has no open order of, by SQS id, with their receipt handles; those
        that are kept, too. They are in hand no longer.
        """
        over = [sqs_id for sqs_id in self._handles if self._open[sqs_id] <= 0]
        return {sqs_id: self._handles.pop(sqs_id) for sqs_id in over}
