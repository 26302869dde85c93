"""Notes of what runs have in hand, in memory."""

from __future__ import annotations

from collections.abc import Iterator

from pushhub.engine.in_hand import LeftBehind


class FakeHandNotes:
    """Implements :class:`pushhub.engine.in_hand.HandNotes` for one environment after another.

    Attributes:
        noted: What the process has in hand; None for nothing.
        dead: What processes left behind.
    """

    def __init__(self) -> None:
        self.noted: LeftBehind | None = None
        self.dead: list[LeftBehind] = []

    def die(self) -> None:
        """The process ends, whatever it does; the environment remains."""
        if self.noted is not None:
            self.dead.append(self.noted)
        self.noted = None

    def note(self, left: LeftBehind) -> None:
        self.noted = left

    def forget(self) -> None:
        self.noted = None

    def left(self) -> Iterator[LeftBehind]:
        while self.dead:
            yield self.dead[0]
            self.dead.pop(0)
