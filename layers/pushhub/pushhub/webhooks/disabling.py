"""Endpoints that fail for long: their owners are warned, and in the end they are disabled,
or at once when they ask for it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

from pushhub.base.conflicts import until_saved
from pushhub.base.times import iso_time
from pushhub.engine.model.subscriber_event import SubscriberEvent, SubscriberEventKind
from pushhub.webhooks.queues import CIRCUIT

if TYPE_CHECKING:
    from pushhub.webhooks.model.endpoint import Endpoint
    from pushhub.webhooks.ports import Endpoints


class FoundOut(Protocol):
    """Tells what the hub found out about an endpoint."""

    def __call__(self, event: str, endpoint: Endpoint, /, *, cause: str, at: int, **more: object) -> None:
        """Tell an event, once for each cause. Raises ``Unavailable`` when it has to be told again."""
        ...


class WebhooksDisabling:
    """Implements :class:`pushhub.engine.ports.SubscriberEvents`.

    Args:
        endpoints: Endpoints.
        tell: Told what was found out about an endpoint.
    """

    def __init__(self, *, endpoints: Endpoints, tell: FoundOut) -> None:
        self._endpoints = endpoints
        self._tell = tell

    def happened(self, event: SubscriberEvent) -> None:
        """Warn of an endpoint or disable it; one that is disabled already, or gone, is left alone.

        It is told before it is done, under a cause that is the same for all who are at it: so it is told once, and
        never forgotten.

        Raises:
            Unavailable: It has to be told again.
        """
        app_id = event.queue.partition("/")[2]

        def once() -> None:
            endpoint = self._endpoints.endpoint(event.project, app_id, event.subscriber_id)
            if endpoint is None or endpoint.fields.disabled:
                return
            if event.kind is SubscriberEventKind.FAILING:
                self._warn(event, endpoint)
                return
            cause = f"endpoint.disabled/{endpoint.endpoint_id}/{endpoint.version}"
            since = iso_time(event.failing_since or event.at)
            self._tell("endpoint.disabled", endpoint, cause=cause, at=event.at, failSince=since, trigger="automatic")
            fields = replace(endpoint.fields, disabled=True)
            self._endpoints.put_endpoint(replace(endpoint, fields=fields, updated_at=event.at), endpoint)

        until_saved(once, doing="disabling an endpoint")

    def _warn(self, event: SubscriberEvent, endpoint: Endpoint) -> None:
        since = event.failing_since or event.at
        ends = (
            {} if CIRCUIT.disable_after_s is None else {"disabledAt": iso_time(since + CIRCUIT.disable_after_s * 1000)}
        )
        self._tell(
            "endpoint.failing",
            endpoint,
            cause=event.cause,
            at=event.at,
            failSince=iso_time(since),
            percent=event.percent,
            **ends,
        )
