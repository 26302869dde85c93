"""Integrations: endpoints registered by their URL. Their ``endpoint.json`` is turned into mappings and schedulers."""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

from pushhub.base.errors import NotFound, TryLater
from pushhub.base.ports import Clock, PushRequest, Sender
from pushhub.engine.component import Component
from pushhub.engine.model.reach import Reach
from pushhub.engine.projects.projects import allowed_targets
from pushhub.hub.model.integration import EndpointDescription, Integration, Service
from pushhub.hub.model.mapping import ServiceMapping
from pushhub.hub.model.object_ids import new_object_id
from pushhub.hub.model.parameters import Parameter, parameter_id
from pushhub.hub.model.schedule import Scheduler, period_ms
from pushhub.hub.ports import Integrations, Mappings, Parameters, Schedulers
from pushhub.hub.settings import check_target
from pushhub.hub.tokens import token_of
from pushhub.hub.wire.discovery import DESCRIPTION_LIMIT, description_url, read_description
from pushhub.hub.wire.fields import InvalidObject
from pushhub.hub.wire.request import service_url

if TYPE_CHECKING:
    from pushhub.engine.ports import ProjectStore
    from pushhub.engine.security.credentials import Credentials
    from pushhub.engine.security.stranger_calls import StrangerCalls

DESCRIPTION_SECONDS = 10
"""How long an endpoint may take to return its description, seconds; the caller who registers it waits for that."""


class IntegrationSettings(Integrations, Mappings, Schedulers, Parameters, Protocol):
    """Stored integrations, and the mappings and schedulers made for them."""


class HubIntegrations(Component):
    """Registers endpoints. Methods raise ``NotFound`` for what is not there."""

    settings: IntegrationSettings
    config: ProjectStore
    calls: StrangerCalls  # Checks where URLs lead, and limits how many descriptions are fetched at a time.
    sender: Sender
    credentials: Credentials
    clock: Clock

    def integration(self, project_id: str, integration_id: str) -> Integration:
        """An integration."""
        integration = self.settings.integration(project_id, integration_id)
        if integration is None:
            raise NotFound("Integration not found.")
        return integration

    def new(self) -> Integration:
        """An integration of which nothing is known yet but a token, for owners who give none."""
        now = self.clock.now()
        return Integration(
            integration_id=new_object_id(now), name="", url="", token=secrets.token_hex(20), created_at=now
        )

    def register(self, project_id: str, integration: Integration) -> Integration:
        """Register a new integration, with the mappings that its endpoint describes.

        If the description cannot be read, the integration stays pending and holds the errors.

        If its token was generated, the owner passes it on to the endpoint: the integration returned here is the only
        one that shows it.

        Raises:
            InvalidObject: Its name is taken, or its URL cannot be used.
            TryLater: Too many requests of the project wait for descriptions.
        """
        self._check_name(project_id, integration)
        return replace(self._describe(project_id, integration), token=integration.token)

    def _check_name(self, project_id: str, integration: Integration) -> None:
        others = (each for each in self.settings.integrations(project_id) if each.name == integration.name)
        if any(each.integration_id != integration.integration_id for each in others):
            raise InvalidObject({"name": ["has already been taken"]})

    def change(self, project_id: str, integration: Integration, before: Integration) -> Integration:
        """Change an integration's settings and read its endpoint's description again.

        Raises:
            InvalidObject: Its name would change, or its URL cannot be used.
            TryLater: Too many requests of the project wait for descriptions.
        """
        if integration.name != before.name:
            raise InvalidObject({"name": ["can't be changed: parameters and mappings are named after it"]})
        return self._describe(project_id, integration)

    def delete(self, project_id: str, integration_id: str) -> None:
        """Remove an integration, its mappings, and the schedulers that were made for them."""
        self.integration(project_id, integration_id)
        self._remove_made_for(project_id, integration_id)
        self.settings.delete_integration(project_id, integration_id)
        # And what was made for it meanwhile, by whoever found it still there.
        self._remove_made_for(project_id, integration_id)
        self._schedule_again(project_id)

    def _remove_made_for(self, project_id: str, integration_id: str) -> None:
        for mapping in self._mappings(project_id, integration_id):
            self.settings.delete_mapping(project_id, mapping.mapping_id)
        for scheduler in self.settings.schedulers(project_id):
            if scheduler.integration_id == integration_id:
                self.settings.delete_scheduler(project_id, scheduler.scheduler_id)

    def _check_still_there(self, project_id: str, integration_id: str) -> None:
        """Check that an integration was not deleted while something was made for it, which is removed if it was.

        Raises:
            NotFound: It was.
        """
        if self.settings.integration(project_id, integration_id) is None:
            self._remove_made_for(project_id, integration_id)
            self._schedule_again(project_id)
            raise NotFound("Integration not found.")

    def _schedule_again(self, project_id: str) -> None:
        """Recreate schedulers that other integrations still need but shared with the deleted one."""
        enabled = {(each.integration_id, each.name) for each in self.settings.mappings(project_id) if each.enabled}
        for integration in self.settings.integrations(project_id):
            for service in integration.endpoint.services if integration.endpoint else ():
                if (integration.integration_id, f"{integration.name}.{service.name}") in enabled:
                    self._schedule(project_id, integration.integration_id, service)

    def sign_up(
        self, project_id: str, integration: Integration, parameters: Iterable[Parameter], enabled: Sequence[str]
    ) -> None:
        """Set an endpoint's parameters, and enable exactly the named services (required ones are always enabled)."""
        prefix, now = f"{integration.name}.", self.clock.now()
        for parameter in parameters:
            self.settings.put_parameter(replace(parameter, as_of=now), keep_type=False)
        for mapping in self._mappings(project_id, integration.integration_id):
            wanted = mapping.required or not {mapping.name, mapping.name.removeprefix(prefix)}.isdisjoint(enabled)
            self.settings.put_mapping(project_id, replace(mapping, enabled=wanted))
        for service in integration.endpoint.services if integration.endpoint else ():
            if service.name in enabled or service.required:
                self._schedule(project_id, integration.integration_id, service)
        self._check_still_there(project_id, integration.integration_id)

    def set_enabled(self, project_id: str, integration_id: str, *, enabled: bool) -> None:
        """Enable or disable all mappings of an integration; required ones stay enabled."""
        self.integration(project_id, integration_id)
        for mapping in self._mappings(project_id, integration_id):
            wanted = enabled or mapping.required
            if mapping.enabled != wanted:
                self.settings.put_mapping(project_id, replace(mapping, enabled=wanted))

    def _mappings(self, project_id: str, integration_id: str) -> list[ServiceMapping]:
        return [each for each in self.settings.mappings(project_id) if each.integration_id == integration_id]

    def _describe(self, project_id: str, integration: Integration) -> Integration:
        check_target(integration.url, project_id, config=self.config, calls=self.calls)
        with self.calls.begun(project_id, within_ms=DESCRIPTION_SECONDS * 1000) as may:
            if not may:
                raise TryLater(
                    "Too many integrations of this store are being registered", retry_after_s=DESCRIPTION_SECONDS
                )
            endpoint = self._fetch(project_id, integration)
        described = replace(
            integration,
            endpoint=endpoint if endpoint.services else integration.endpoint,
            errors=endpoint.errors,
        )
        stored = self.settings.put_integration(project_id, described)
        if not integration.version:
            try:
                # Another may have been registered meanwhile. Of two that see each other, none stays.
                self._check_name(project_id, stored)
            except InvalidObject:
                self.settings.delete_integration(project_id, stored.integration_id)
                raise
        for service in stored.endpoint.services if stored.endpoint else ():
            self._map(project_id, stored, service)
        self._check_still_there(project_id, stored.integration_id)
        return stored

    def _fetch(self, project_id: str, integration: Integration) -> EndpointDescription:
        answer = self.sender.send(
            PushRequest(
                method="GET",
                url=description_url(integration.url),
                body=b"",
                headers={
                    "Accept": "application/json",
                    "X-Augury-Token": token_of(integration, project_id, self.credentials),
                },
                timeout_s=DESCRIPTION_SECONDS,
                answer_limit=DESCRIPTION_LIMIT + 1,
                allowed_targets=allowed_targets(self.config, project_id, Reach.PROJECT),
            )
        )
        return read_description(answer)

    def _map(self, project_id: str, integration: Integration, service: Service) -> None:
        """The mapping of a service, created as the endpoint recommends.

        After that, only its URL and token are updated from the endpoint.
        """
        name = f"{integration.name}.{service.name}"
        stored = next(
            (each for each in self._mappings(project_id, integration.integration_id) if each.name == name), None
        )
        url = service_url(integration.url, service.path)
        if stored is not None:
            moved = replace(stored, url=url, token=integration.token, credentials=integration.credentials)
            if moved != stored:
                self.settings.put_mapping(project_id, moved)
            return
        now, recommends = self.clock.now(), service.recommends
        parameters = tuple(parameter_id(project_id, f"{integration.name}.{each}") for each in service.parameters)
        self.settings.put_mapping(
            project_id,
            ServiceMapping(
                mapping_id=new_object_id(now),
                name=name,
                url=url,
                token=integration.token,
                credentials=integration.credentials,
                messages=recommends.messages,
                parameter_ids=parameters,
                filters=recommends.filters,
                identifiers=dict(recommends.identifiers),
                options=recommends.options,
                # A service that needs parameters starts disabled until sign-up, unless it is required.
                enabled=service.required or not service.parameters,
                required=service.required,
                integration_id=integration.integration_id,
                created_at=now,
            ),
        )
        if service.required or not service.parameters:
            self._schedule(project_id, integration.integration_id, service)

    def _schedule(self, project_id: str, integration_id: str, service: Service) -> None:
        """Create the scheduler that a service recommends, unless its message type is already scheduled."""
        every, messages = service.recommends.every, service.recommends.messages
        if every is None or not messages:
            return
        if any(each.key == messages[0] for each in self.settings.schedulers(project_id)):
            return
        now = self.clock.now()
        self.settings.put_scheduler(
            Scheduler(
                project=project_id,
                scheduler_id=new_object_id(now),
                key=messages[0],
                count=every[0],
                interval=every[1],
                created_at=now,
                next_at=now + period_ms(*every),
                integration_id=integration_id,
            )
        )
        # Another service may have recommended the same meanwhile: whoever sees both keeps the same one.
        recommended = (each for each in self.settings.schedulers(project_id) if each.integration_id is not None)
        same = sorted(each.scheduler_id for each in recommended if each.key == messages[0])
        for each in same[1:]:
            self.settings.delete_scheduler(project_id, each)
