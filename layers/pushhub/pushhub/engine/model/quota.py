"""How many messages a project may post: a rate with a burst, as a mark that moves along with time. Pure.

The mark says until when a project's quota is spent (the generic cell rate algorithm, which is a token bucket in one
number). Each message moves it by the time that the rate gives to one; it may be ahead of now by the burst's time.
"""

from __future__ import annotations

from dataclasses import dataclass

BURST_S = 10
"""Seconds' worth of messages that may come at once when no burst is set."""

LEAST_BURST = 100
"""The least such burst: the messages of the largest batch."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Quota:
    """A bound on what producers post.

    Attributes:
        per_second: Messages per second on average; 0 for no bound.
        burst: Messages that may come at once.

    Raises:
        ValueError: The rate is negative, or the burst is not positive.
    """

    per_second: int
    burst: int

    def __post_init__(self) -> None:
        if self.per_second < 0 or self.burst < 1:
            raise ValueError("a quota must have a rate of at least 0 and a burst of at least 1")

    @classmethod
    def of(cls, per_second: int, burst: int | None = None) -> Quota:
        """A quota with the default burst unless one is given."""
        return cls(per_second=per_second, burst=burst or max(LEAST_BURST, BURST_S * per_second))

    def us(self, messages: int) -> int:
        """The time that the rate gives to a number of messages, microseconds."""
        return messages * 1_000_000 // self.per_second

    def messages(self, us: int) -> int:
        """Number of messages that fit into a time."""
        return max(0, us) * self.per_second // 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """Until when a project's quota is spent.

    Attributes:
        until: Epoch microseconds.
        moved: Whether the call that returned it has moved it.
    """

    until: int
    moved: bool
