"""Whether what is posted is as its event type describes it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pushhub.base.cache import ExpiringCache
from pushhub.engine.component import Component
from pushhub.webhooks.model.event_type import Enforcement, EventType
from pushhub.webhooks.model.json_schema import violation
from pushhub.webhooks.model.refusals import unprocessable

if TYPE_CHECKING:
    from pushhub.base.ports import Clock, Telemetry
    from pushhub.webhooks.ports import EventTypes
    from pushhub.webhooks.wire.message import NewWebhook

_KEPT_MS = 30_000
_CAPACITY = 2_000
"""Event types that are cached."""


class PayloadCheck(Component):
    """Knows event types as they were at most half a minute ago."""

    event_types: EventTypes
    telemetry: Telemetry
    clock: Clock

    def __post_init__(self) -> None:
        self._known: ExpiringCache[tuple[EventType | None]] = ExpiringCache(
            self.clock, ttl_ms=_KEPT_MS, capacity=_CAPACITY
        )

    def check(self, project_id: str, new: NewWebhook) -> None:
        """Refuse, as ``Unprocessable``, a payload that does not match its event type's schema, if that is enforced."""
        event_type = self._event_type(project_id, new.fields.event_type)
        if event_type is None or event_type.enforcement is Enforcement.OFF or event_type.schema is None:
            return
        wrong = violation(event_type.schema, new.payload)
        if wrong is None:
            return
        if event_type.enforcement is Enforcement.REJECT:
            raise unprocessable(
                f"The payload does not match the schema of {event_type.name}: {wrong}", "body", "payload"
            )
        self.telemetry.count("PayloadsUnexpected")
        self.telemetry.event("payload_not_as_described", project=project_id, event_type=event_type.name)

    def flags(self, project_id: str, name: str) -> Sequence[str]:
        """The feature flags of an event type; none of an unknown one."""
        event_type = self._event_type(project_id, name)
        return event_type.feature_flags if event_type else ()

    def _event_type(self, project_id: str, name: str) -> EventType | None:
        remembered = self._known.get((project_id, name))
        if remembered is None:
            remembered = (self.event_types.event_type(project_id, name),)
            self._known.put((project_id, name), remembered)
        return remembered[0]
