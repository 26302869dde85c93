"""A consumer of a polling endpoint: how far it has come, and what it was given to work on."""

from __future__ import annotations

from dataclasses import dataclass, replace

DEFAULT_LEASE_MS = 30_000
MOST_LEASE_MS = 43_200_000


@dataclass(frozen=True, slots=True, kw_only=True)
class PollingConsumer:
    """Where a consumer is. Messages are numbered as they are given to it: clients acknowledge by these numbers.

    Attributes:
        position: The engine's id up to which it has acknowledged.
        offset: The number of the last message that it has acknowledged.
        given: Places of the messages behind that, which it works on.
        leased_until: Until when nobody else is given them, epoch milliseconds.
        version: Raised by each change.
    """

    position: str
    offset: int = 0
    given: tuple[str, ...] = ()
    leased_until: int = 0
    version: int = 0

    def works_at(self, now: int) -> bool:
        """Whether it still works on what it was given."""
        return now < self.leased_until

    def leased(self, places: tuple[str, ...], until: int) -> PollingConsumer:
        """It is given the messages at these places."""
        return replace(self, given=places, leased_until=until)

    def moved(self, position: str) -> PollingConsumer:
        """There is nothing for it up to an id."""
        return replace(self, position=max(self.position, position), given=(), leased_until=0)

    def acknowledged(self, offset: int) -> PollingConsumer | None:
        """It has done what it was given, up to a number; None if it was never given that.

        What it has not done is given again, at once.
        """
        if offset <= self.offset:
            return self
        done = offset - self.offset
        if done > len(self.given):
            return None
        return replace(self, position=self.given[done - 1], offset=offset, given=(), leased_until=0)
