"""Messages that a search has found."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pushhub.engine.model.delivery import Delivery
    from pushhub.engine.model.queue import Queue


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundMessage:
    """A message that has the value somebody looks for.

    Attributes:
        deliveries: Its deliveries by ``subscriber_id``; none in a pull queue.
    """

    queue: Queue
    message_id: str
    field: str
    deliveries: Mapping[str, Delivery]
