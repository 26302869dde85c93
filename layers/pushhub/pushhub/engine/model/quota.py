"""How many messages a project may post: a rate with a burst, kept as a single point in time. Pure.

The *mark* says until when a project's quota is spent (the generic cell rate algorithm, a token bucket in one number).
Each message moves it ahead by the interval between two messages at the given rate; it may be as far ahead of now as the
burst takes at that rate.
"""

from __future__ import annotations

from dataclasses import dataclass

BURST_S = 10
"""The default burst: as many messages as the rate allows in this many seconds."""

LEAST_BURST = 100
"""The smallest default burst: the messages of the largest batch."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Quota:
    """A limit on what producers post.

    Attributes:
        per_second: Messages per second on average; 0 for no limit.
        burst: Messages that may arrive at once.

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
        """Microseconds that this many messages take at the rate."""
        return messages * 1_000_000 // self.per_second

    def messages(self, us: int) -> int:
        """Number of messages that the rate allows in this many microseconds."""
        return max(0, us) * self.per_second // 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """Until when a project's quota is spent.

    Attributes:
        until: Epoch microseconds.
        moved: Whether the call that returned this value has moved the mark.
    """

    until: int
    moved: bool
