"""Messages of stores are found by fields that mappings name, as those of queues are (docs/decisions/interfaces.md)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pushhub.base.errors import MessageNotFound
from pushhub.engine.bodies import body_of
from pushhub.engine.component import Component
from pushhub.engine.model.keys import MessageKey
from pushhub.engine.model.search import Found, Receiver
from pushhub.hub.model.message import HubMessage
from pushhub.hub.model.object_ids import to_object_id

if TYPE_CHECKING:
    from pushhub.engine.model.search import IndexEntry
    from pushhub.engine.ports import BodyStore, Messages
    from pushhub.hub.ports import Entries

KIND = "store"


class HubFinder(Component):
    """Implements :class:`pushhub.engine.ports.Finder` for a store's messages, and the copies of them that mappings
    get.
    """

    kind = KIND
    log: Entries
    messages: Messages
    bodies: BodyStore

    def found(self, entry: IndexEntry) -> Found | None:
        """The message, with its state; None when it was never stored."""
        listed = self.log.entry(entry.project, entry.message_id)
        if listed is None:
            return None
        receiver = Receiver(listed.mapping_id or "", listed.consumer or "", listed.shown_state.value)
        return Found(
            kind=KIND,
            of="",
            message_id=to_object_id(entry.message_id),
            field=entry.field,
            receivers=[receiver],
            accepted_at=listed.created_at,
            type=listed.type,
            content=self._content(entry),
        )

    def _content(self, entry: IndexEntry) -> bytes:
        """The payload; empty when it is gone."""
        message = self.messages.message(MessageKey(entry.project, entry.queue_uid, entry.message_id))
        if message is None:
            return b""
        try:
            return HubMessage.decode(body_of(message, self.bodies)).payload_text.encode(errors="surrogatepass")
        except MessageNotFound:
            return b""
