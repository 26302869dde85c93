"""The health of a subscriber on the wire: the same member in the answers of every protocol."""

from __future__ import annotations

from typing import Any, Protocol

from pushhub.base.times import iso_time


class _Owed(Protocol):
    @property
    def waiting(self) -> int: ...
    @property
    def complete(self) -> bool: ...


class ShownHealth(Protocol):
    """The health of a subscriber, as far as it is shown. Times are epoch milliseconds."""

    @property
    def state(self) -> str:
        """In one word."""
        ...

    @property
    def text(self) -> str:
        """In words for people."""
        ...

    @property
    def since(self) -> int | None:
        """Since when."""
        ...

    @property
    def until(self) -> int | None:
        """When it is tried next."""
        ...

    @property
    def reason(self) -> str:
        """Why, where the state does not say it."""
        ...

    @property
    def owed(self) -> _Owed:
        """What waits for it."""
        ...


def health_view(health: ShownHealth) -> dict[str, Any]:
    """The health as clients read it."""
    return {
        "state": str(health.state),
        "text": health.text,
        "since": None if health.since is None else iso_time(health.since),
        "until": None if health.until is None else iso_time(health.until),
        "reason": health.reason,
        "waiting": health.owed.waiting,
        "complete": health.owed.complete,
    }
