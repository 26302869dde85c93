"""What the flow of orders needs from outside."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    pass


@dataclass(frozen=True, slots=True)
class QueueLevel:
    """How full a queue is, approximately.

    Attributes:
        messages: Those that can be received.
        in_flight: Those that were received and not deleted.
    """

    messages: int
    in_flight: int
