"""The health of endpoints: how they are doing, their signing keys, and which ones need attention."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from typing import TYPE_CHECKING, TypeVar

from pushhub.base.errors import Unreadable
from pushhub.engine.component import Component
from pushhub.engine.model.circuit import SubscriberKey
from pushhub.engine.waiting.health import Watched
from pushhub.webhooks.applications.applications import found_application
from pushhub.webhooks.endpoints.endpoints import found_endpoint
from pushhub.webhooks.model.health import EndpointCheckup, EndpointHealth
from pushhub.webhooks.model.internal_queues import OPERATIONAL_APP, PROTOCOL, queue_of, queue_uid
from pushhub.webhooks.queues import CIRCUIT, subscriber_of

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from pushhub.base.ports import Clock
    from pushhub.base.signature_schemes import Scheme
    from pushhub.base.signing import KeyRing
    from pushhub.engine.model.subscriber_health import SubscriberHealth
    from pushhub.engine.ports import ProjectStore
    from pushhub.engine.waiting.health import SubscriberHealths
    from pushhub.webhooks.model.application import Application
    from pushhub.webhooks.model.endpoint import Endpoint
    from pushhub.webhooks.ports import Endpoints, ReadApplications

Found = TypeVar("Found")

MOST_SHOWN = 1_000
"""Maximum number of endpoints that need attention in one answer; all of them are counted."""


class WebhooksHealth(Component):
    """Reports the health of endpoints. Applications and endpoints are named by id or uid."""

    applications: ReadApplications
    endpoints: Endpoints
    healths: Callable[[], SubscriberHealths]
    keys: Callable[[Endpoint], KeyRing]
    projects: ProjectStore
    executor: Executor  # Reads several endpoints in parallel.
    clock: Clock

    def of(self, application: Application, endpoints: Sequence[Endpoint]) -> list[SubscriberHealth]:
        """The health of endpoints of an application, in their order."""
        return self.healths().of(application.project, [_watched(each, application) for each in endpoints])

    def of_endpoints(self, project_id: str, app: str, endpoints: Sequence[Endpoint]) -> list[SubscriberHealth]:
        """The same; raises ``NotFound`` if there is no such application."""
        return self.of(found_application(self.applications, project_id, app), endpoints)

    def checkup(self, project_id: str, app: str, name: str) -> EndpointCheckup:
        """The health of one endpoint."""
        application = found_application(self.applications, project_id, app)
        endpoint = found_endpoint(self.endpoints, application, name)
        (health,) = self.of(application, [endpoint])
        now, keys = self.clock.now(), self.keys(endpoint)
        return EndpointCheckup(
            application=application,
            endpoint=endpoint,
            health=health,
            disables_at=_disables_at(health),
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
        """All endpoints of a project that get no messages, or not all of them."""
        by_app = self._found(project_id)
        # The application for operational events has its own routes; of a deleted one the engine still knows how it did.
        names = sorted(by_app.keys() - {OPERATIONAL_APP})
        read = self.executor.map(
            lambda name: _if_readable(lambda: self.applications.application(project_id, name)), names
        )
        pairs = [
            (each, application)
            for name, application in zip(names, read, strict=True)
            if application is not None
            for each in by_app[name]
        ]
        healths = self.healths().of(project_id, [_watched(*each) for each in pairs])
        return [
            EndpointHealth(application=application, endpoint=endpoint, health=health, disables_at=_disables_at(health))
            for (endpoint, application), health in zip(pairs, healths, strict=True)
            if not health.well
        ]

    def _found(self, project_id: str) -> dict[str, list[Endpoint]]:
        """Endpoints that may need attention, by application."""
        failing, gated = self.healths().unwell(project_id)
        places = [
            *((each.queue.partition("/")[2], each.subscriber_id) for each in failing if _is_ours(each)),
            *(_place(each) for each in gated if "#" in each),
        ]
        found = {each.endpoint_id: each for each in self.endpoints.disabled(project_id)}
        wanted = [each for each in dict.fromkeys(places) if each[1] not in found]
        read = self.executor.map(
            lambda place: _if_readable(lambda: self.endpoints.endpoint(project_id, *place)), wanted
        )
        return _by_app(chain(found.values(), (each for each in read if each is not None)))


def _if_readable(read: Callable[[], Found | None]) -> Found | None:
    """What is read, or None if it cannot be: that is told where it is read."""
    try:
        return read()
    except Unreadable:
        return None


def _is_ours(key: SubscriberKey) -> bool:
    return key.queue.startswith(f"{PROTOCOL}/")


def _place(tokens: str) -> tuple[str, str]:
    """Application and endpoint whose tokens have a name."""
    app_id, _, endpoint_id = tokens.partition("#")
    return app_id, endpoint_id


def _by_app(endpoints: Iterable[Endpoint]) -> dict[str, list[Endpoint]]:
    found: dict[str, list[Endpoint]] = defaultdict(list)
    for each in endpoints:
        found[each.app_id].append(each)
    return found


def _watched(endpoint: Endpoint, application: Application) -> Watched:
    return Watched(
        key=SubscriberKey(
            project=endpoint.project,
            queue=queue_of(endpoint.app_id),
            queue_uid=queue_uid(endpoint.app_id),
            subscriber_id=endpoint.endpoint_id,
        ),
        tokens=endpoint.receiver if endpoint.oauth else "",
        disabled=endpoint.fields.disabled or endpoint.deleted,
        awaits_consent=endpoint.awaits_consent,
        limits=subscriber_of(endpoint, application).limits,
        certificate_ends_at=endpoint.certificate.ends_at if endpoint.certificate else None,
    )


def _disables_at(health: SubscriberHealth) -> int | None:
    after_s, since = CIRCUIT.disable_after_s, health.stored.failing_since if health.stored else None
    return None if since is None or after_s is None else since + after_s * 1000
