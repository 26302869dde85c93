"""Messages of stores are found by fields that mappings name, as those of queues are (docs/decisions/interfaces.md)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pushhub.engine.model.search import Found
from pushhub.hub.model.object_ids import to_object_id

if TYPE_CHECKING:
    from pushhub.engine.model.search import IndexEntry
    from pushhub.hub.ports import Entries

KIND = "store"


class HubFinder:
    """Implements :class:`pushhub.engine.ports.Finder` for the copies of messages that mappings get."""

    def __init__(self, log: Entries) -> None:
        self._log = log

    def found(self, entry: IndexEntry) -> Found | None:
        """The copy for a mapping, with its state; None when it was never stored."""
        listed = self._log.entry(entry.project, entry.message_id)
        if listed is None:
            return None
        states = [(listed.consumer or "", listed.shown_state.value)]
        return Found(kind=KIND, of="", message_id=to_object_id(entry.message_id), field=entry.field, states=states)
