"""Ids of notifications and subscriptions: numbers that no other process makes, rising with time."""

from __future__ import annotations

from pushhub.base.ids import MessageIds
from pushhub.base.ports import Clock
from pushhub.engine.ports import ConfigStore

__all__ = ["NotificationIds"]


class NotificationIds:
    """Makes ids; asks for this process's number when the first is made.

    Args:
        config: Gives the number.
        clock: Time.
    """

    def __init__(self, *, config: ConfigStore, clock: Clock) -> None:
        self._config = config
        self._clock = clock
        self._made: MessageIds | None = None

    def next(self) -> str:
        """The next id, 19 decimal digits."""
        if self._made is None:
            self._made = MessageIds(self._config.next_worker())
        return self._made.next(self._clock.now())
