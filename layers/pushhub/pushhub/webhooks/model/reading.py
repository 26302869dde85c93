"""How a sink reads its stream: from its position on, batch by batch. Pure.

Before a batch is written, its end is stored; only after it was written, the position moves there. So whoever repeats an
interrupted batch writes the same events once more, under the same name.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

DEFAULT_SIZE = 100
MOST_SIZE = 1_000
MOST_WAIT_S = 300

LEASE_MS = 60_000
"""How long a sink is left to whoever writes a batch, milliseconds: longer than any write takes."""

_FIRST_WAIT_MS = 5_000
_MOST_WAIT_MS = 900_000


@dataclass(frozen=True, slots=True)
class Reading:
    """What the owner of a sink wants.

    Attributes:
        size: Events of a batch, at most.
        wait_s: Seconds that the oldest event waits for others, at most.
    """

    size: int = DEFAULT_SIZE
    wait_s: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Reader:
    """Where a sink is.

    Attributes:
        position: The engine's id up to which its stream was written, or needs not be.
        planned: The last id of the batch that is being written, or was not; empty for none.
        busy_until: Until when somebody writes it, epoch milliseconds.
        failures: How often the batch could not be written since the last one that could.
        next_at: When it is tried again, epoch milliseconds.
        reason: Why it could not be written.
        version: Raised by each change.
    """

    position: str
    planned: str = ""
    busy_until: int = 0
    failures: int = 0
    next_at: int = 0
    reason: str = ""
    version: int = 0

    def waits_ms(self, now: int) -> int:
        """Milliseconds until the next batch may be begun; 0 for now."""
        return max(self.busy_until, self.next_at, now) - now

    def begun(self, last: str, now: int) -> Reader:
        """Somebody is about to write the batch that ends with an id."""
        return replace(self, planned=last, busy_until=now + LEASE_MS)

    def written(self) -> Reader:
        """The batch is where it belongs."""
        return replace(self, position=self.planned, planned="", busy_until=0, failures=0, next_at=0, reason="")

    def failed(self, reason: str, now: int, asked_ms: int = 0) -> Reader:
        """The batch could not be written; the same one is tried again, each time after twice as long.

        Args:
            asked_ms: Milliseconds that the service wants to be left alone.
        """
        wait = min(_MOST_WAIT_MS, _FIRST_WAIT_MS << min(self.failures, 20))
        return replace(
            self,
            busy_until=0,
            failures=self.failures + 1,
            next_at=now + max(wait, asked_ms),
            reason=reason,
        )

    def released(self) -> Reader:
        """Nothing was sent, for a reason of the hub's own."""
        return replace(self, busy_until=0)

    def moved(self, position: str) -> Reader:
        """There is nothing for it up to an id."""
        return replace(self, position=max(self.position, position), planned="")

    def due_now(self) -> Reader:
        """A failed batch is tried again at once."""
        return replace(self, next_at=0)

    def without_batch(self, last: str) -> Reader:
        """The batch that ends with an id is left out."""
        return replace(self.moved(last), failures=0, next_at=0, reason="")
