"""What somebody else's queue or bus hands over."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pushhub.engine.model.message import NewMessage


@dataclass(frozen=True, slots=True, kw_only=True)
class NewEvent:
    """An event that may come again.

    Attributes:
        message: What it becomes.
        event_id: The same whenever it comes; empty for none.
        at: When it was sent at first, epoch milliseconds: the same whenever it comes; None if unknown.
    """

    message: NewMessage
    event_id: str
    at: int | None
