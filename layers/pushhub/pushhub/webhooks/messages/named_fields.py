"""The index of the fields that owners of applications have named."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pushhub.engine.model.search import index_entries

if TYPE_CHECKING:
    from collections.abc import Callable

    from pushhub.engine.model.message import Message
    from pushhub.engine.ports import SearchIndex
    from pushhub.webhooks.model.application import Application


class WebhooksFields:
    """Keeps the index of an application's named fields. Applications without any cost nothing."""

    def __init__(self, index: Callable[[], SearchIndex]) -> None:
        self._index = index

    def add(self, application: Application, message: Message, body: bytes) -> None:
        """Enter a message that is about to be stored. Fields that redaction withholds are left out.

        Raises:
            Unavailable: The effect is unknown; the message must not be stored.
        """
        entries = index_entries(application.fields.found_by, message, body)
        if entries:
            self._index().add(entries)

    def remove(self, application: Application, message: Message, body: bytes) -> None:
        """Remove a message whose content is erased.

        Raises:
            Unavailable: The effect is unknown; call again.
        """
        # Also by fields that redaction did not withhold when the message came.
        entries = index_entries(application.fields.search_fields, message, body)
        if entries:
            self._index().remove(entries)
