"""The internal queues of webhooks: one for each application, whose subscribers are its endpoints,
looked up one by one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pushhub.base.cache import ExpiringCache
from pushhub.engine.model.answer_rules import STANDARD_RULES
from pushhub.engine.model.backoff import SCHEDULES
from pushhub.engine.model.circuit import Circuit
from pushhub.engine.model.queue import PushSettings, Queue, QueueType, Subscriber
from pushhub.engine.model.seats import Limits
from pushhub.webhooks.model.internal_queues import PROTOCOL, queue_uid

if TYPE_CHECKING:
    from pushhub.base.ports import Clock
    from pushhub.webhooks.model.application import Application
    from pushhub.webhooks.model.endpoint import Endpoint
    from pushhub.webhooks.ports import ReadApplications, ReadEndpoints

TIMEOUT_S = 30
"""Seconds that an endpoint has for its whole answer."""

CIRCUIT = Circuit(failures=20)
"""A single message is retried on its own schedule to the end.

An endpoint that fails for many messages is probed instead, and disabled after five days.
"""

_KEPT_MS = 2_000
"""How long first attempts may use a cached application or endpoint, milliseconds; a retry reads again."""

_CAPACITY = 5_000


@dataclass(frozen=True, slots=True, kw_only=True)
class EndpointSubscriber(Subscriber):
    """An endpoint as a subscriber.

    Attributes:
        endpoint: The endpoint.
        read_at: When it was read, epoch milliseconds.
    """

    endpoint: Endpoint
    read_at: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class EndpointPush(PushSettings):
    """The push settings of an application: it may have thousands of endpoints, but a delivery needs only one.

    Attributes:
        find: Finds an endpoint by its id, and says when it was read.
        application: The application.
    """

    find: Callable[[str], tuple[Endpoint, int] | None]
    application: Application

    def subscriber(self, subscriber_id: str) -> Subscriber | None:
        """The endpoint with that id, or None when it was deleted."""
        found = self.find(subscriber_id)
        return subscriber_of(found[0], self.application, found[1]) if found else None


def subscriber_of(endpoint: Endpoint, application: Application, read_at: int) -> EndpointSubscriber:
    """An endpoint as a subscriber, as read at the given time.

    If it has no rate of its own, its application's applies; the rate it consented to always applies.
    """
    own = endpoint.fields.throttle_rate or application.fields.throttle_rate
    rates = [each for each in (own, (endpoint.allowed_rate or 0) / 60) if each]
    return EndpointSubscriber(
        subscriber_id=endpoint.endpoint_id,
        name=endpoint.uid or endpoint.endpoint_id,
        url=f"{PROTOCOL}:{endpoint.fields.url}",
        timeout_s=TIMEOUT_S,
        limits=Limits(rate_per_s=min(rates)) if rates else None,
        disabled=not endpoint.active,
        endpoint=endpoint,
        read_at=read_at,
    )


class WebhooksQueues:
    """Looks up the internal queues.

    Args:
        applications: Applications.
        endpoints: Their endpoints.
        clock: Tells the age of cached reads.
    """

    def __init__(self, *, applications: ReadApplications, endpoints: ReadEndpoints, clock: Clock) -> None:
        self._applications = applications
        self._endpoints = endpoints
        self._clock = clock
        self._known: ExpiringCache[Application] = ExpiringCache(clock, ttl_ms=_KEPT_MS, capacity=_CAPACITY)
        self._read: ExpiringCache[tuple[Endpoint, int]] = ExpiringCache(clock, ttl_ms=_KEPT_MS, capacity=_CAPACITY)

    def queue(self, project_id: str, name: str, *, fresh: bool = False) -> Queue | None:
        """The queue, or None when its application was deleted."""
        app_id = name.partition("/")[2]
        application = self._application(project_id, app_id, fresh=fresh)
        if application is None:
            return None
        push = EndpointPush(
            subscribers=(),
            retry=SCHEDULES["svix"],
            rules=STANDARD_RULES,
            circuit=CIRCUIT,
            application=application,
            find=lambda endpoint_id: self._endpoint(project_id, app_id, endpoint_id, fresh=fresh),
        )
        uid = queue_uid(app_id)
        # Nothing is signed with its secret: endpoints have their own keys.
        return Queue(
            project=project_id,
            name=name,
            uid=uid,
            pull_uid=uid,
            type=QueueType.MULTICAST,
            push=push,
            secret="",
            created_at=0,
        )

    def _application(self, project_id: str, app_id: str, *, fresh: bool) -> Application | None:
        remembered = None if fresh else self._known.get((project_id, app_id))
        if remembered is not None:
            return remembered
        application = self._applications.application(project_id, app_id)
        if application is not None:
            self._known.put((project_id, app_id), application)
        return application

    def _endpoint(self, project_id: str, app_id: str, endpoint_id: str, *, fresh: bool) -> tuple[Endpoint, int] | None:
        remembered = None if fresh else self._read.get((project_id, endpoint_id))
        if remembered is not None:
            return remembered
        read_at = self._clock.now()
        endpoint = self._endpoints.endpoint(project_id, app_id, endpoint_id)
        if endpoint is None:
            return None
        self._read.put((project_id, endpoint_id), (endpoint, read_at))
        return endpoint, read_at
