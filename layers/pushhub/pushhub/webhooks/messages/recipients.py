"""Which endpoints of an application a message is owed to."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from pushhub.base.cache import ExpiringCache
from pushhub.base.errors import TooMuchWork
from pushhub.base.steps import MOST_STEPS, Steps
from pushhub.engine.component import Component
from pushhub.webhooks.model.endpoint import Endpoint, wants
from pushhub.webhooks.model.page import KeyRange
from pushhub.webhooks.model.refusals import unprocessable
from pushhub.webhooks.queues import subscriber_of

if TYPE_CHECKING:
    from pushhub.base.ports import Clock
    from pushhub.engine.model.queue import Subscriber
    from pushhub.webhooks.model.application import Application
    from pushhub.webhooks.ports import ReadEndpoints
    from pushhub.webhooks.wire.message import NewWebhook

FILTER_STEPS = MOST_STEPS
"""Steps for the payload filters of all endpoints of an application on one message: enough for a thousand endpoints with
ten filters of the usual kind each.
"""
_KEPT_MS = 600_000
_CAPACITY = 20_000
"""Endpoints that are cached, some 3 KB each; an application's are validated by its count of changes."""


class Recipients(Component):
    """Finds the endpoints that want a message."""

    endpoints: ReadEndpoints
    type_flags: Callable[[str, str], Sequence[str]]  # The feature flags of a project's event type, by its name.
    clock: Clock

    def __post_init__(self) -> None:
        self._known: ExpiringCache[tuple[int, Sequence[Endpoint]]] = ExpiringCache(
            self.clock, ttl_ms=_KEPT_MS, capacity=_CAPACITY
        )

    def owed(self, application: Application, new: NewWebhook) -> tuple[str, ...]:
        """The endpoints that a message is owed to.

        Raises:
            Unprocessable: Their filters take too many steps.
        """
        fields, steps = new.fields, Steps(FILTER_STEPS)
        type_flags = self.type_flags(application.project, fields.event_type)
        try:
            return tuple(
                each.endpoint_id
                for each in self._of(application)
                if wants(each, fields.event_type, fields.channels, new.payload, steps=steps, type_flags=type_flags)
            )
        except TooMuchWork as error:
            raise unprocessable(
                "The payload filters of the application's endpoints take too many steps", "path", "app"
            ) from error

    def any_wants(self, application: Application, event_type: str, channels: Sequence[str]) -> bool:
        """Whether any endpoint would get a message of an event type and channels."""
        type_flags = self.type_flags(application.project, event_type)
        return any(wants(each, event_type, channels, type_flags=type_flags) for each in self._of(application))

    def subscribers(self, application: Application, owed: Sequence[str]) -> list[Subscriber]:
        """Those of the engine that stand for endpoints."""
        found = {each.endpoint_id: each for each in self._of(application)}
        return [subscriber_of(found[each], application) for each in owed if each in found]

    def _of(self, application: Application) -> Sequence[Endpoint]:
        """All endpoints of an application, read again only when one of them changed."""
        key = (application.project, application.app_id)
        remembered = self._known.get(key)
        if remembered is not None and remembered[0] == application.endpoints:
            return remembered[1]
        found = list(self.endpoints.endpoints(*key, KeyRange()))
        self._known.put(key, (application.endpoints, found), weight=1 + len(found))
        return found
