"""What acceptance needs from outside."""

from __future__ import annotations

from typing import Protocol


class Workers(Protocol):
    """Numbers of execution environments."""

    def next_worker(self) -> int:
        """A number that no other live execution environment has (for message ids)."""
