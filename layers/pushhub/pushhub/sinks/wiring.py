"""Puts subscribers on AWS together: kinds of subscribers for every protocol, and no API of their own."""

# ruff: noqa: PLC0415 (a function imports only what it uses)

from __future__ import annotations

from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, ClassVar

from pushhub.cloud.settings import EnvironmentSetting, listed
from pushhub.engine.model.reach import Scope
from pushhub.engine.protocol import Protocol as WireProtocol
from pushhub.engine.target import TargetOffer
from pushhub.sinks.kinds import KINDS

if TYPE_CHECKING:
    from pushhub.engine.wiring import AwsEnginePorts, Engine
    from pushhub.sinks.keys import SinkKeys
    from pushhub.sinks.kinds import KindOffer
    from pushhub.sinks.ports import AssumeRole, Sign
    from pushhub.sinks.roles import RoleKeys
    from pushhub.sinks.target import SinkTarget

OWN_ROLES = listed("OWN_ROLES")
"""Roles of the account that the hub runs in that owners may name, by their ARNs."""


class AwsSinksPorts:
    """What subscribers on AWS need besides the engine's ports."""

    def __init__(self, aws: AwsEnginePorts) -> None:
        self._aws = aws

    @property
    def own_roles(self) -> tuple[str, ...]:
        return self._aws.settings[OWN_ROLES]

    @cached_property
    def assume_role(self) -> AssumeRole:
        from pushhub.sinks.store.sts_roles import StsRoles

        return StsRoles(lambda: self._aws.clients.of("sts"))

    @cached_property
    def sign(self) -> Sign:
        from pushhub.sinks.store.signature_v4 import sign

        return sign


class Sinks:
    """Subscribers on AWS, each kind made on first use."""

    aws_ports = AwsSinksPorts
    settings: ClassVar[dict[str, tuple[EnvironmentSetting[Any], ...]]] = dict.fromkeys(
        ("control", "push", "poll"), (OWN_ROLES,)
    )

    def __init__(self, ports: AwsSinksPorts, engine: Engine) -> None:
        self.ports = ports
        self._engine = engine

    @cached_property
    def protocol(self) -> WireProtocol:
        return WireProtocol(
            name="sinks",
            targets=[
                TargetOffer(
                    (each.scheme,),
                    partial(self._target, each),
                    Scope.PUBLIC,
                    signed=each.carries_headers,
                    headers=each.carries_headers,
                )
                for each in KINDS
            ],
        )

    def _target(self, offer: KindOffer) -> SinkTarget:
        from pushhub.sinks.target import SinkTarget

        outside = self._engine.ports
        return SinkTarget(
            kind=offer.load(),
            sender=outside.sender,
            keys=self._keys,
            sign=lambda: self.ports.sign,
            signing=self._engine.signing,
            projects=outside.config,
            clock=outside.clock,
        )

    @cached_property
    def _keys(self) -> SinkKeys:
        from pushhub.sinks.keys import SinkKeys

        return SinkKeys(
            roles=lambda: self._roles, external_ids=self._engine.external_ids, own_roles=self.ports.own_roles
        )

    @cached_property
    def _roles(self) -> RoleKeys:
        from pushhub.sinks.roles import RoleKeys

        outside = self._engine.ports
        return RoleKeys(assume=self.ports.assume_role, clock=outside.clock, telemetry=outside.telemetry)
