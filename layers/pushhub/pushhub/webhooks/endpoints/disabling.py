"""Endpoints that keep failing: their owners are warned, and finally the endpoints are disabled; at once if an endpoint
asks for it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

from pushhub.base.conflicts import until_saved
from pushhub.base.times import iso_time
from pushhub.engine.component import Component
from pushhub.engine.model.subscriber_event import SubscriberEvent, SubscriberEventKind
from pushhub.webhooks.queues import CIRCUIT

if TYPE_CHECKING:
    from pushhub.engine.projects.copies import ChangeNotes
    from pushhub.webhooks.model.endpoint import Endpoint
    from pushhub.webhooks.ports import Endpoints


class FoundOut(Protocol):
    """Sends an event about an endpoint that the hub itself noticed."""

    def __call__(self, event: str, endpoint: Endpoint, /, *, cause: str, at: int, **more: object) -> None:
        """Send an event, once for each cause. Raises ``Unavailable`` when the caller has to retry."""


class WebhooksDisabling(Component):
    """Implements :class:`pushhub.engine.ports.SubscriberEvents`."""

    endpoints: Endpoints
    notes: ChangeNotes
    tell: FoundOut

    def happened(self, event: SubscriberEvent) -> None:
        """Warn about an endpoint or disable it; one that is already disabled or deleted is left alone.

        The event is sent before the endpoint is disabled, with a cause that is the same for all concurrent workers, so
        it is sent exactly once and never lost.

        Raises:
            Unavailable: The caller has to retry.
        """
        app_id = event.queue.partition("/")[2]

        def once() -> None:
            endpoint = self.endpoints.endpoint(event.project, app_id, event.subscriber_id)
            if endpoint is None or endpoint.fields.disabled:
                return
            if event.kind is SubscriberEventKind.FAILING:
                self._warn(event, endpoint)
                return
            cause = f"endpoint.disabled/{endpoint.endpoint_id}/{endpoint.version}"
            since = iso_time(event.failing_since or event.at)
            self.tell("endpoint.disabled", endpoint, cause=cause, at=event.at, failSince=since, trigger="automatic")
            fields = replace(endpoint.fields, disabled=True)
            self.notes.note(endpoint.project, event.queue)
            self.endpoints.put_endpoint(replace(endpoint, fields=fields, updated_at=event.at), endpoint)

        until_saved(once, doing="disabling an endpoint")

    def _warn(self, event: SubscriberEvent, endpoint: Endpoint) -> None:
        since = event.failing_since or event.at
        ends = (
            {} if CIRCUIT.disable_after_s is None else {"disabledAt": iso_time(since + CIRCUIT.disable_after_s * 1000)}
        )
        self.tell(
            "endpoint.failing",
            endpoint,
            cause=event.cause,
            at=event.at,
            failSince=iso_time(since),
            percent=event.percent,
            **ends,
        )
