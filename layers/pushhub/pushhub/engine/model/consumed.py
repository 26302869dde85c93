"""A message that the hub has taken from somebody else's queue or bus."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pushhub.engine.model.trace import Trace


@dataclass(frozen=True, slots=True, kw_only=True)
class Consumed:
    """A message as it was found there.

    Attributes:
        body: The exact bytes.
        event_id: The same whenever it comes again.
        at: When it was sent at first, epoch milliseconds; the same whenever it comes again.
        event_type: What it is about; empty if its sender does not say.
        order_key: Those with the same key are handed over in order, and go on in order; None for no order.
        hops: How many queues and sources of hubs it has passed.
        trace: The trace that it belongs to; None for none.
    """

    body: bytes
    event_id: str
    at: int
    event_type: str = ""
    order_key: str | None = None
    hops: int = 0
    trace: Trace | None = None
