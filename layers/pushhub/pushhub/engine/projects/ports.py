"""What projects and copies need from outside."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from pushhub.engine.ports import ChangeNoteStore, QueueStore

if TYPE_CHECKING:
    pass


class QueuesAndNotes(QueueStore, ChangeNoteStore, Protocol):
    """Queues, and notes of their changes."""
