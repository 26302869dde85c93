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

LEAST_ROOM_S = 2
"""A post is accepted whatever its size if the mark is at most this many seconds ahead. So a batch larger than the burst
passes, and a producer loses nothing that comes up to two seconds later than it could, as ``Retry-After`` has whole
seconds.
"""


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

    def room_us(self, messages: int) -> int:
        """How far ahead of now the mark may be for a post of this many messages to be accepted, microseconds.

        The mark is then moved by all of them, so what exceeds the burst is borrowed, and repaid before the next one.
        """
        return max(self.us(self.burst - messages), LEAST_ROOM_S * 1_000_000)


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """Until when a project's quota is spent.

    Attributes:
        until: Epoch microseconds.
        moved: Whether the call that returned this value has moved the mark.
    """

    until: int
    moved: bool
