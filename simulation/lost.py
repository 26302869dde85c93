"""Lost orders: whenever the sweeper requeues a delivery, this looks for its order, and if there is none, for a valid
reason.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from pushhub.engine.model.keys import DeliveryKey
from pushhub.engine.model.work import decode_pack
from simulation.expressions import Item
from simulation.promises.judgement import Violation
from simulation.scheduler import SECOND
from simulation.truth import SCHEDULE

if TYPE_CHECKING:
    from simulation.account import Account


class Lost:
    """Watches the sweeper of an account.

    Args:
        account: The account.

    Attributes:
        swept: Number of deliveries requeued.
    """

    def __init__(self, account: Account) -> None:
        self._account = account
        self._unexplained: list[tuple[int, DeliveryKey]] = []
        self.swept = 0
        account.sweeps.append(self._swept)

    def violations(self) -> Iterator[Violation]:
        """Deliveries whose order was lost without a valid reason."""
        for at, key in self._unexplained:
            detail = f"to {key.subscriber_id}: swept at {at / SECOND:.0f} s, and nobody had purged it"
            yield Violation("lost without a reason", key.message_id, detail)

    def _swept(self, body: str) -> None:
        for order in decode_pack(body):
            self.swept += 1
            key = order.key
            if key.message_id in self._account.purged | self._account.unqueued:
                continue
            if not (self._is_queued(key) or self._waits(key)):
                self._unexplained.append((self._account.scheduler.now, key))

    def _is_queued(self, key: DeliveryKey) -> bool:
        """Whether an order for a delivery is in any queue, or its message still in a stream."""
        for queue in self._account.queues.values():
            for body in queue.bodies():
                if key.message_id in body and any(each.key == key for each in decode_pack(body)):
                    return True
        return any(key.message_id in ids for ids in self._account.streamed())

    def _waits(self, key: DeliveryKey) -> bool:
        """Whether an order for a delivery waits in the schedule, in its subscriber's backlog, or behind another
        delivery.
        """
        positions: dict[str, int] = {}
        waits: list[tuple[str, Item]] = []
        name = "#".join(key)
        for item in self._account.dynamodb.tables[SCHEDULE].everything():
            pk, sk = item["pk"]["S"], item["sk"]["S"]
            if pk.startswith("POSITION#"):
                positions[pk.partition("#")[2]] = int(item["minute"]["N"])
            elif f"#{name}#" in sk or ("order" in item and key.message_id in item["order"]["S"]):
                waits.append((pk, item))
        for pk, item in waits:
            if "order" in item:
                if any(each.key == key for each in decode_pack(item["order"]["S"])):
                    return True
                continue
            minute, _, shard = pk.partition("#")
            # A run that has moved past an entry has queued it first.
            if int(minute) >= positions.get(shard, 0):
                return True
        return False
