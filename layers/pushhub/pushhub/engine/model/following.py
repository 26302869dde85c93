"""What comes next for a delivery once a run has worked on it, and where its order waits until then. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from pushhub.engine.model.flow import Terms
    from pushhub.engine.model.received import Received

UNSURE_WAIT_MS, MOST_UNSURE_MS = 10_000, 120_000
"""How soon an order is retried when one of our own calls failed with unknown effect.

Doubled with each receive up to two minutes only, as an order is received again for each of its retries, too.
"""

MOST_DOUBLINGS = 10
"""A wait is doubled no more often than this, however often its order was received."""


class Follow(StrEnum):
    """What to do with the SQS message of a delivery after working on it."""

    NOTHING = "nothing"
    """Settled, or scheduled: delete the message."""
    ANOTHER = "another"
    """Another order for it comes, or came meanwhile, from where this one waits or was made: delete the message."""
    LATER = "later"
    """Look at the delivery again at ``due_at``."""
    POLL = "poll"
    """Look at it again at ``due_at``, from the poll queue."""
    ERROR = "error"
    """Exhausted or expired: pass it on to the errors queue."""
    LEASE = "lease"
    """Not attempted: its subscriber has limits, and the order needs a lease under ``terms``."""
    FAULT = "fault"
    """Our own code failed: look at it again at ``due_at``, until the message ends up in the dead-letter queue."""


@dataclass(frozen=True, slots=True)
class Following:
    """What comes next for a delivery.

    Attributes:
        due_at: When, epoch milliseconds; with ``LATER`` and ``POLL`` only.
        answered: Whether the subscriber answered the last request and did not refuse it; None when none was made.
        terms: The terms that the subscriber's limits ask for; None when it has none, or was not looked at. Where no
            attempt was begun because the run may end before it, how long it may take, with limits or without.
        long: Whether the next attempt may take longer than :data:`~pushhub.engine.model.flow.SHORT_ATTEMPT_MS`; with
            ``LATER`` only.
    """

    follow: Follow
    due_at: int = 0
    answered: bool | None = None
    terms: Terms | None = None
    long: bool = False

    def outlasts(self, longest_ms: int) -> bool:
        """Whether an attempt was not begun because it may take longer than these runs' longest one."""
        return self.answered is None and self.terms is not None and self.terms.longest_ms > longest_ms


class Ended(NamedTuple):
    """An order that the run is done with, and what comes next for its delivery."""

    received: Received
    following: Following


class Wait(NamedTuple):
    """An order that waits until a time, epoch milliseconds."""

    received: Received
    until: int


def doubled(wait_ms: int, received: Received, most_ms: int) -> int:
    """A wait in milliseconds that is doubled with each receive of its order."""
    return min(wait_ms << min(received.receive_count - 1, MOST_DOUBLINGS), most_ms)


def unsure(received: Received, now: int, most_ms: int = MOST_UNSURE_MS) -> Wait:
    """How long an order waits after an internal error."""
    return Wait(received, now + doubled(UNSURE_WAIT_MS, received, most_ms))
