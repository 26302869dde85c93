"""Endpoints that are disabled by what they answer, or by failing for too long."""

from __future__ import annotations

from dataclasses import replace

from pushhub.base.conflicts import ROUNDS
from pushhub.base.errors import Conflict, Unavailable
from pushhub.base.times import iso_time
from pushhub.engine.model.subscriber_event import SubscriberEvent, SubscriberEventKind
from pushhub.webhooks.endpoints import Tell
from pushhub.webhooks.model.application import PROTOCOL
from pushhub.webhooks.ports import Endpoints

__all__ = ["WebhooksDisabling"]


class WebhooksDisabling:
    """Implements :class:`pushhub.engine.ports.SubscriberEvents`.

    Args:
        endpoints: Endpoints.
        tell: Told what became of an endpoint.
    """

    def __init__(self, *, endpoints: Endpoints, tell: Tell) -> None:
        self._endpoints = endpoints
        self._tell = tell

    def happened(self, event: SubscriberEvent) -> None:
        """Disable an endpoint; one that is disabled already, or gone, is left alone."""
        protocol, _, app_id = event.queue.partition("/")
        if protocol != PROTOCOL or event.kind is not SubscriberEventKind.DISABLE:
            return
        for _ in range(ROUNDS):
            endpoint = self._endpoints.endpoint(event.project, app_id, event.subscriber_id)
            if endpoint is None or endpoint.fields.disabled:
                return
            fields = replace(endpoint.fields, disabled=True)
            try:
                after = self._endpoints.put_endpoint(replace(endpoint, fields=fields, updated_at=event.at), endpoint)
            except Conflict:
                continue
            since = event.at if event.failing_since is None else event.failing_since
            self._tell("endpoint.disabled", after, failSince=iso_time(since), trigger="automatic")
            return
        raise Unavailable("disabling an endpoint")
