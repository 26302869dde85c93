"""Posts the hub's own messages to an application, like any message, but once for each cause."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from pushhub.webhooks.model.endpoint import wants
from pushhub.webhooks.model.message import DAY_MS, ListedMessage, MessageFields
from pushhub.webhooks.model.page import Span
from pushhub.webhooks.posting import webhook_message
from pushhub.webhooks.wire.message import NewWebhook

if TYPE_CHECKING:
    from pushhub.engine.accept import Accept
    from pushhub.engine.model.message import Message
    from pushhub.engine.ports import BodyStore, MessageStore
    from pushhub.webhooks.model.application import Application
    from pushhub.webhooks.ports import MessageLog, ReadEndpoints

KEPT_MS = 90 * DAY_MS
"""How long these messages are kept, milliseconds: the default for payloads."""


class Saying:
    """Posts the hub's own messages.

    Args:
        accept: The single entry point for messages.
        messages: Where they are stored.
        bodies: Large bodies.
        endpoints: Endpoints of applications.
        log: Lists messages.
    """

    def __init__(
        self,
        *,
        accept: Accept,
        messages: MessageStore,
        bodies: BodyStore,
        endpoints: ReadEndpoints,
        log: MessageLog,
    ) -> None:
        self._accept = accept
        self._messages = messages
        self._bodies = bodies
        self._endpoints = endpoints
        self._log = log

    def say(
        self, application: Application, event_type: str, payload: Mapping[str, object], cause: str, at: int
    ) -> None:
        """Post a message; see :data:`pushhub.webhooks.operational.Say`. Nothing is stored if no endpoint wants it.

        Raises:
            Unavailable: The message may or may not have been posted; call again.
        """
        found = self._endpoints.endpoints(application.project, application.app_id, Span())
        owed = tuple(each.endpoint_id for each in found if wants(each, event_type, (), type_flags=()))
        if not owed:
            return
        text = json.dumps(payload, ensure_ascii=False, separators=(",", ":"))
        new = NewWebhook(
            fields=MessageFields(event_type=event_type),
            payload=dict(payload),
            payload_text=text,
            body=text.encode(),
            retention_ms=KEPT_MS,
            application=None,
        )
        [placed] = self._accept.placed(application.project, [new.body], self._bodies)

        def make(engine_id: str) -> Message:
            return replace(webhook_message(application, new, engine_id, placed, owed=owed, due_at=at), cause=cause)

        message, _ = self._accept.once(self._messages, make, cause=cause, at=at)
        self._log.list_message(ListedMessage.of(message))
