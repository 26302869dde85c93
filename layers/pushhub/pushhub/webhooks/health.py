"""The health of endpoints: their circuits, waiting deliveries and signing keys, and which ones need attention."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import islice
from typing import TYPE_CHECKING

from pushhub.engine.component import Component
from pushhub.engine.model.circuit import Health, SubscriberKey
from pushhub.webhooks.applications import found_application
from pushhub.webhooks.endpoints import found_endpoint
from pushhub.webhooks.model.health import EndpointCheckup, EndpointHealth
from pushhub.webhooks.model.internal_queues import OPERATIONAL_APP, PROTOCOL, queue_of, queue_uid
from pushhub.webhooks.queues import CIRCUIT

if TYPE_CHECKING:
    from pushhub.base.ports import Clock
    from pushhub.base.signature_schemes import Scheme
    from pushhub.base.signing import KeyRing
    from pushhub.engine.ports import ProjectStore, SubscriberStore
    from pushhub.webhooks.model.application import Application
    from pushhub.webhooks.model.endpoint import Endpoint
    from pushhub.webhooks.ports import Endpoints, ReadApplications

MOST_COUNTED = 1_000
"""Deliveries waiting for an endpoint are counted up to this number."""

MOST_TROUBLED = 50
"""Maximum number of endpoints reported, of each kind."""


class WebhooksHealth(Component):
    """Reports the health of endpoints. Applications and endpoints are named by id or uid."""

    applications: ReadApplications
    endpoints: Endpoints
    subscribers: Callable[[], SubscriberStore]
    keys: Callable[[Endpoint], KeyRing]
    projects: ProjectStore
    clock: Clock

    def checkup(self, project_id: str, app: str, name: str) -> EndpointCheckup:
        """The health of one endpoint."""
        application = found_application(self.applications, project_id, app)
        endpoint = found_endpoint(self.endpoints, application, name)
        health, now, keys = self._known(endpoint), self.clock.now(), self.keys(endpoint)
        return EndpointCheckup(
            application=application,
            endpoint=endpoint,
            health=health,
            disables_at=_disables_at(health),
            waiting=self.subscribers().count_waiting(_key(endpoint), MOST_COUNTED),
            old_keys_end=tuple(ends_at for _, ends_at in keys.old if ends_at > now),
            signatures_end={
                each.header: each.ends_at
                for each in endpoint.signed_by(*self._inherited(application, keys))
                if each.ends_at and each.signs_at(now)
            },
            seen_at=now,
        )

    def _inherited(self, application: Application, keys: KeyRing) -> Sequence[tuple[Scheme, ...]]:
        """The schemes of an endpoint's application and project; none if its own keys sign as Standard Webhooks only."""
        if not keys.as_secrets(self.clock.now()):
            return ()
        project = self.projects.project(application.project)
        return (application.signatures, project.signatures if project else ())

    def troubled(self, project_id: str) -> list[EndpointHealth]:
        """The endpoints of a project that are disabled, then those whose circuit is not closed.

        At most :data:`MOST_TROUBLED` of each kind.
        """
        found = {each.endpoint_id: each for each in islice(self.endpoints.disabled(project_id), MOST_TROUBLED)}
        for key in self.subscribers().looked_after_of(project_id, MOST_TROUBLED):
            protocol, _, app_id = key.queue.partition("/")
            if protocol == PROTOCOL and key.subscriber_id not in found:
                endpoint = self.endpoints.endpoint(project_id, app_id, key.subscriber_id)
                found |= {endpoint.endpoint_id: endpoint} if endpoint else {}
        # The application for operational events has its own routes; a deleted application leaves its endpoints behind.
        names = {each.app_id for each in found.values()} - {OPERATIONAL_APP}
        owners = {name: self.applications.application(project_id, name) for name in names}
        shown = [self._shown(each, owners.get(each.app_id)) for each in found.values()]
        return [each for each in shown if each and each.troubled]

    def _shown(self, endpoint: Endpoint, owner: Application | None) -> EndpointHealth | None:
        if owner is None:
            return None
        health = self._known(endpoint)
        return EndpointHealth(application=owner, endpoint=endpoint, health=health, disables_at=_disables_at(health))

    def _known(self, endpoint: Endpoint) -> Health:
        key = _key(endpoint)
        return self.subscribers().health(key) or Health(key=key)


def _key(endpoint: Endpoint) -> SubscriberKey:
    return SubscriberKey(
        project=endpoint.project,
        queue=queue_of(endpoint.app_id),
        queue_uid=queue_uid(endpoint.app_id),
        subscriber_id=endpoint.endpoint_id,
    )


def _disables_at(health: Health) -> int | None:
    after_s = CIRCUIT.disable_after_s
    return None if health.failing_since is None or after_s is None else health.failing_since + after_s * 1000
