"""Posts the hub's own messages to an application, like any message, but once for each cause."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING

from pushhub.webhooks.model.endpoint import wants
from pushhub.webhooks.model.message import DAY_MS, MessageFields
from pushhub.webhooks.model.page import Span
from pushhub.webhooks.wire.message import NewWebhook

if TYPE_CHECKING:
    from pushhub.webhooks.intake import WebhooksIntake
    from pushhub.webhooks.model.application import Application
    from pushhub.webhooks.ports import ReadEndpoints

KEPT_MS = 90 * DAY_MS
"""How long these messages are kept, milliseconds: the default for payloads."""


class Saying:
    """Posts the hub's own messages."""

    def __init__(self, *, intake: WebhooksIntake, endpoints: ReadEndpoints) -> None:
        self._intake = intake
        self._endpoints = endpoints

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
        self._intake.once(application, new, owed, cause=cause, at=at)
