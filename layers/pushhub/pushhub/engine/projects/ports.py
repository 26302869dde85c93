"""What projects and copies need from outside."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from pushhub.engine.ports import QueueStore

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pushhub.engine.model.quota import Mark


class ChangeNoteStore(Protocol):
    """Notes of changes that are about to be made (:mod:`pushhub.engine.projects.copies`)."""

    def note_change(self, slot: int, until: int) -> None:
        """Note a change in a slot; the note lasts until the given time (epoch milliseconds)."""

    def noted_changes(self) -> Mapping[int, int]:
        """Until when the last note of each slot lasts, read consistently."""


class QueuesAndNotes(QueueStore, ChangeNoteStore, Protocol):
    """Queues, and notes of their changes."""


class QuotaStore(Protocol):
    """Until when the quotas of projects are spent."""

    def move_mark(self, project_id: str, by_us: int, *, now: int, most_us: int, ahead: bool) -> Mark:
        """Move a project's mark ahead, starting from now if it is in the past, unless that would take it too far ahead.

        Args:
            by_us: How far, microseconds; at most ``most_us``.
            now: Epoch microseconds.
            most_us: How far ahead of now it may be, microseconds.
            ahead: Whether it is probably ahead of now; a wrong guess costs a write.
        """
