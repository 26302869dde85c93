"""When to try again: one pure function per question, time and randomness passed in.

Limits and their sources: SQS can hide a message for at most 12 h after its receive; ``DelaySeconds`` goes up to 900;
IronMQ v3 allows 100 retries 86,400 s apart; the hub protocol asks for endless exponential back-off; Standard Webhooks
and Svix publish lists of waits.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

MAX_VISIBILITY_MS = 43_000_000
"""The longest an SQS message may stay invisible after its receive. SQS refuses 43,200 s itself, hence the margin."""

MAX_DELAY_MS = 900_000
"""Maximum ``DelaySeconds`` of SQS. The hub keeps no longer wait in a queue: longer ones are scheduled in DynamoDB."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FixedDelay:
    """IronMQ v3: a first try and ``retries`` more at a fixed interval.

    Attributes:
        retries: Tries after the first (0..100).
        delay_s: Seconds from the end of a try to the next.
    """

    retries: int
    delay_s: int

    @property
    def max_tries(self) -> int | None:
        """Tries in total."""
        return self.retries + 1

    @property
    def holds(self) -> bool:
        """False: a delivery that is out of tries is exhausted, not held."""
        return False

    def wait_ms(self, tries: int, jitter: float) -> int | None:  # noqa: ARG002 (same shape as Exponential)
        """Milliseconds to wait after failed try number ``tries`` (from 1), or None when it was the last."""
        return self.delay_s * 1000 if tries <= self.retries else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Exponential:
    """Waits that double up to a cap. Jitter never makes a wait shorter than the one before it.

    Attributes:
        base_s: First wait in seconds.
        cap_s: Longest wait in seconds.
        max_attempts: Tries in total; None for no limit.
        spread: Largest share of the wait that jitter may add (0..1); at most 1, so that waits keep growing.
        holds: Whether a delivery that is out of tries is held for a person instead of exhausted.
    """

    base_s: float
    cap_s: float
    max_attempts: int | None = None
    spread: float = 0.2
    holds: bool = False

    @property
    def max_tries(self) -> int | None:
        """Tries in total; None for no limit."""
        return self.max_attempts

    def wait_ms(self, tries: int, jitter: float) -> int | None:
        """Milliseconds to wait after failed try number ``tries`` (from 1), or None when it was the last.

        Args:
            tries: Failed tries so far, at least 1.
            jitter: Random number in 0..1.
        """
        if self.max_attempts is not None and tries >= self.max_attempts:
            return None
        doublings = min(tries - 1, 62)
        spread_out = self.base_s * 2.0**doublings * (1 + self.spread * jitter)
        return round(min(self.cap_s, spread_out) * 1000)


@dataclass(frozen=True, slots=True, kw_only=True)
class RetrySchedule:
    """A list of waits, each randomized so that deliveries that failed together do not come back together.

    Attributes:
        waits_s: Seconds to wait after failed try 1, 2 and so on; one more failure is the last. An empty list means a
            single try.
        spread: Smallest and largest factor applied to a wait.
        holds: Whether a delivery that is out of tries is held for a person instead of exhausted.

    Raises:
        ValueError: A wait or a factor is negative, or the factors are in the wrong order.
    """

    waits_s: tuple[float, ...]
    spread: tuple[float, float] = (0.8, 1.2)
    holds: bool = False

    def __post_init__(self) -> None:
        least, greatest = self.spread
        if not 0 <= least <= greatest or any(wait < 0 for wait in self.waits_s):
            raise ValueError("waits and spread factors must not be negative, and the smaller factor must come first")

    @property
    def max_tries(self) -> int | None:
        """Tries in total."""
        return len(self.waits_s) + 1

    def wait_ms(self, tries: int, jitter: float) -> int | None:
        """Milliseconds to wait after failed try number ``tries`` (from 1), or None when it was the last.

        Args:
            tries: Failed tries so far, at least 1.
            jitter: Random number in 0..1.
        """
        if tries > len(self.waits_s):
            return None
        least, greatest = self.spread
        return round(self.waits_s[tries - 1] * (least + (greatest - least) * jitter) * 1000)


RetryPolicy = FixedDelay | Exponential | RetrySchedule

SCHEDULES: Final[Mapping[str, RetrySchedule]] = {
    "svix": RetrySchedule(waits_s=(5, 300, 1800, 7200, 18_000, 36_000, 36_000)),
    "standard-webhooks": RetrySchedule(waits_s=(5, 300, 1800, 7200, 18_000, 36_000, 50_400, 72_000, 86_400)),
}
"""Published lists of waits, by name: Svix's (8 tries in about 28 hours).

Svix's is the default of its open-source server; the other is what Standard Webhooks recommends (10 tries in about 76
hours; its specification, "Retry schedule").
"""


def visibility_seconds(wait_ms: int, *, received_at: int, now: int) -> int:
    """How long to hide a received SQS message, in whole seconds.

    Rounded up so that the message never comes back early, and capped at what is left of the twelve hours since its
    receive. A message that comes back early because of that cap is hidden again.

    Args:
        wait_ms: Milliseconds still to wait.
        received_at: When SQS delivered the message to us, epoch milliseconds.
    """
    left = MAX_VISIBILITY_MS - max(0, now - received_at)
    return max(0, -(-min(wait_ms, left) // 1000))
