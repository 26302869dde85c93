"""A store's mappings, schedulers and parameters, as its owner changes them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

from pushhub.base.errors import FieldRefused, Invalid, NotFound
from pushhub.base.gates import KEEP_GATES
from pushhub.engine.component import Component
from pushhub.engine.model.reach import Reach
from pushhub.engine.projects.projects import allowed_targets
from pushhub.hub.model.internal_queues import DIALECT
from pushhub.hub.model.mapping import ServiceMapping
from pushhub.hub.model.object_ids import new_object_id
from pushhub.hub.model.schedule import Scheduler, period_ms
from pushhub.hub.ports import Mappings, Parameters, Schedulers
from pushhub.hub.wire.fields import InvalidObject

if TYPE_CHECKING:
    from pushhub.base.gates import GateChange
    from pushhub.base.ports import Clock
    from pushhub.engine.ports import ProjectStore
    from pushhub.engine.security.gates import GateSettings
    from pushhub.engine.security.signing import Signing
    from pushhub.engine.security.stranger_calls import StrangerCalls
    from pushhub.hub.model.parameters import Parameter
    from pushhub.hub.wire.mapping import WantedMapping


def check_target(url: str, project_id: str, *, config: ProjectStore, calls: StrangerCalls) -> None:
    """Refuse a URL that the egress guard refuses, as ``InvalidObject``."""
    refusal = calls.refusal(project_id, [url], allowed_targets(config, project_id, Reach.PROJECT))
    if refusal is not None:
        raise InvalidObject({"url": [refusal]})


class OwnersSettings(Mappings, Schedulers, Parameters, Protocol):
    """What a store's owner changes directly."""


class HubSettingsOfStore(Component):
    """Reads and changes settings. Concurrent changes raise ``Conflict``; what is not there, ``NotFound``."""

    settings: OwnersSettings
    config: ProjectStore
    calls: StrangerCalls
    signing: Signing
    gates: Callable[[], GateSettings]  # Keeps what their services demand; made when the first one is asked for.
    clock: Clock

    def mapping(self, project_id: str, mapping_id: str) -> ServiceMapping:
        """A mapping."""
        mapping = self.settings.mapping(project_id, mapping_id)
        if mapping is None:
            raise NotFound("Mapping not found.")
        return mapping

    def new_mapping(self) -> ServiceMapping:
        """A mapping of which nothing is known yet."""
        now = self.clock.now()
        return ServiceMapping(mapping_id=new_object_id(now), name="", url="", token="", messages=(), created_at=now)

    def put_mapping(self, project_id: str, wanted: WantedMapping) -> ServiceMapping:
        """Store a mapping, which is new or was changed.

        Raises:
            InvalidObject: The hub may not reach it, or its signatures or gates could not be right.
        """
        mapping = wanted.mapping
        check_target(mapping.url, project_id, config=self.config, calls=self.calls)
        try:
            sealed = self.signing.changed(project_id, mapping.sealed, wanted.signing)
        except Invalid as error:
            raise InvalidObject({"signing": [error.message]}) from error
        if sealed != mapping.sealed:
            ends = self.signing.ends(project_id, sealed, protocol=DIALECT, place=("", mapping.mapping_id))
            mapping = replace(mapping, sealed=sealed, signing_ends=ends)
        return self.settings.put_mapping(project_id, self._gated(project_id, mapping, wanted.gates))

    def delete_mapping(self, project_id: str, mapping_id: str) -> None:
        """Remove a mapping. Its pending messages are archived when they are next processed, and its identities are
        forgotten.

        Raises:
            InvalidObject: It is required.
        """
        if self.mapping(project_id, mapping_id).required:
            raise InvalidObject({"base": ["The mapping is required by its endpoint"]})
        self.settings.delete_mapping(project_id, mapping_id)

    def _gated(self, project_id: str, mapping: ServiceMapping, change: GateChange) -> ServiceMapping:
        """A mapping with its gates after a change. Who has none, and wants none, pays nothing."""
        if change == KEEP_GATES and not (mapping.oauth or mapping.certificate):
            return mapping
        try:
            gates = self.gates().changed(
                project_id, mapping, change, protocol=DIALECT, place=("", mapping.mapping_id), url=mapping.url
            )
        except FieldRefused as refused:
            gate, *place = refused.place
            raise InvalidObject({gate: [f"{'.'.join(place)} {refused.text}".strip()]}) from refused
        return replace(mapping, oauth=gates.oauth, certificate=gates.certificate, identity=gates.identity)

    def scheduler(self, project_id: str, scheduler_id: str) -> Scheduler:
        """A scheduler."""
        scheduler = self.settings.scheduler(project_id, scheduler_id)
        if scheduler is None:
            raise NotFound("Scheduler not found.")
        return scheduler

    def new_scheduler(self, project_id: str) -> Scheduler:
        """A scheduler of which nothing is known yet."""
        now = self.clock.now()
        return Scheduler(
            project=project_id,
            scheduler_id=new_object_id(now),
            key="",
            count=1,
            interval="hours",
            created_at=now,
            next_at=now,
        )

    def put_scheduler(self, scheduler: Scheduler, before: Scheduler) -> Scheduler:
        """Store a scheduler; if it is new or its interval has changed, its next tick is one period from now.

        Raises:
            Conflict: Somebody else changed it meanwhile, or it just ticked.
        """
        every = (scheduler.count, scheduler.interval)
        if not before.version or every != (before.count, before.interval):
            scheduler = replace(scheduler, next_at=self.clock.now() + period_ms(*every))
        return self.settings.put_scheduler(scheduler)

    def delete_scheduler(self, project_id: str, scheduler_id: str) -> None:
        """Remove a scheduler."""
        if not self.settings.delete_scheduler(project_id, scheduler_id):
            raise NotFound("Scheduler not found.")

    def parameter(self, project_id: str, parameter_id: str) -> Parameter:
        """A parameter."""
        found = (each for each in self.settings.parameters(project_id) if each.parameter_id == parameter_id)
        parameter = next(found, None)
        if parameter is None:
            raise NotFound("Parameter not found.")
        return parameter

    def put_parameter(self, parameter: Parameter, *, keep_type: bool) -> Parameter:
        """Create a parameter, or change its value and, unless it keeps it, its type."""
        parameter = replace(parameter, as_of=self.clock.now())
        self.settings.put_parameter(parameter, keep_type=keep_type)
        return parameter

    def delete_parameter(self, project_id: str, parameter_id: str) -> None:
        """Remove a parameter. Mappings that name it no longer send it."""
        name = self.parameter(project_id, parameter_id).name
        self.settings.delete_parameter(project_id, name, self.clock.now())
