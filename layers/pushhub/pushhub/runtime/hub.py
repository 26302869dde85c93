"""The whole hub, put together from ports.

Functions, tests and local tools all call :func:`build`, so the wiring exists only once.
"""

from __future__ import annotations

import typing
from collections.abc import Callable
from functools import cache
from typing import Any, TypeVar

from pushhub.cloud.clients import Clients
from pushhub.cloud.settings import EnvironmentSetting, Settings
from pushhub.engine.wiring import SETTINGS, AwsEnginePorts, Engine
from pushhub.hub.wiring import Hub
from pushhub.ironmq.wiring import Ironmq
from pushhub.notifications.wiring import Notifications
from pushhub.sinks.wiring import Sinks
from pushhub.webhooks.wiring import Webhooks

if typing.TYPE_CHECKING:
    from pushhub.engine.protocol import Protocol


class BuiltProtocol(typing.Protocol):
    """A protocol, as built by its package's wiring."""

    @property
    def protocol(self) -> Protocol:
        """Its contributions to the engine."""


PROTOCOLS: tuple[type[Any], ...] = (Ironmq, Hub, Notifications, Webhooks)
"""All protocols.

Each is a class made from its own ports and the engine, see :class:`BuiltProtocol`; its ``aws_ports`` makes those ports
on AWS, its ``settings`` says what it reads in each function, and its ``routes`` lists its HTTP routes.
"""

PARTS: tuple[type[Any], ...] = (*PROTOCOLS, Sinks)
"""The protocols, and what adds kinds of subscribers to all of them without an API of its own."""

P = TypeVar("P", bound=BuiltProtocol)


class Pushhub:
    """Engine and protocols, put together.

    Args:
        own_ports: Returns the ports of a protocol, given its class.

    Attributes:
        engine: The engine.
    """

    def __init__(self, ports: AwsEnginePorts, own_ports: Callable[[type[Any]], Any]) -> None:
        self.engine = Engine(ports)
        self._parts: dict[type[Any], Any] = {each: each(own_ports(each), self.engine) for each in PARTS}
        self.engine.protocols += [each.protocol for each in self._parts.values()]

    def part(self, kind: type[P]) -> P:
        """A protocol, by its class."""
        protocol: P = self._parts[kind]
        return protocol


def build(ports: AwsEnginePorts, own_ports: Callable[[type[Any]], Any]) -> Pushhub:
    """Put the hub together; each use case is created on first use.

    Args:
        own_ports: Returns the ports of a part, given its class in :data:`PARTS`.
    """
    return Pushhub(ports, own_ports)


WARM: dict[str, Callable[[Pushhub], object]] = {
    "ingest": lambda hub: hub.part(Ironmq).posting_api,
    "control": lambda hub: hub.part(Ironmq).api,
    "dispatch": lambda hub: hub.engine.dispatch,
    "push": lambda hub: (hub.engine.push, hub.engine.targets.of("https:")),
    "poll": lambda hub: (hub.engine.poll, hub.engine.targets.of("hub:")),
    "sweep": lambda hub: hub.engine.sweep,
    "wake": lambda hub: (hub.engine.wake, hub.part(Hub).ticks),
    "errors": lambda hub: hub.part(Ironmq).error_queue_post,
    "consumers": lambda hub: hub.part(Notifications).consumers,
    "notify": lambda hub: (hub.part(Notifications).sender_batch, hub.part(Notifications).idle_connections),
    "past": lambda hub: hub.part(Ironmq).past_api,
    "records": lambda hub: (
        hub.engine.ports.records,
        hub.engine.ports.activity,
    ),
}
"""What each function creates at start-up, while Lambda gives it a full CPU, rather than at its first event.

What only some hubs need is not included: other kinds of subscribers are created at the first delivery to one.
"""


def settings_of(function: str) -> set[EnvironmentSetting[Any]]:
    """The settings of a function, by the name of its folder."""
    if function == "console":
        from pushhub.runtime import console  # noqa: PLC0415 (the other functions do without what serves its files)

        return {*console.SETTINGS}
    found = {each for settings in (SETTINGS, *(each.settings for each in PARTS)) for each in settings.get(function, ())}
    if function == "ingest":
        from pushhub.runtime import consuming  # noqa: PLC0415 (only ingest has them)

        found |= {*consuming.SETTINGS}
    if function == "control":
        from pushhub.runtime import auditing, source_addresses  # noqa: PLC0415 (only control has them)

        found |= {*source_addresses.SETTINGS, *auditing.SETTINGS}
    return found


@cache
def start(function: str) -> Pushhub:
    """The hub of this execution environment, on AWS; created once.

    Args:
        function: The function that runs here, by the name of its folder.

    Raises:
        MissingSettingError: One of the function's settings is absent or unusable.
    """
    aws = AwsEnginePorts(Settings(settings_of(function)), Clients())
    hub = build(aws, lambda each: each.aws_ports(aws))
    WARM[function](hub)
    if function == "control":
        from pushhub.runtime import auditing  # noqa: PLC0415 (only control changes settings)

        auditing.keep(aws)
    return hub
