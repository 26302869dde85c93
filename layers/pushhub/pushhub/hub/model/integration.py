"""Integrations: endpoints registered by their URL, with the services they describe in ``endpoint.json``."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pushhub.base.fields import APART, field_metadata
from pushhub.hub.model.mapping import ServiceOptions

if TYPE_CHECKING:
    from pushhub.hub.model.filters import Filter


@dataclass(frozen=True, slots=True, kw_only=True)
class Recommendation:
    """What a service suggests for its mapping.

    Attributes:
        identifiers: Name and path pairs.
        every: Count and interval of a scheduler that the service needs (``(1, "hours")``), or None.
    """

    messages: tuple[str, ...] = ()
    identifiers: tuple[tuple[str, str], ...] = ()
    filters: tuple[Filter, ...] = ()
    options: ServiceOptions = field(default_factory=ServiceOptions)
    every: tuple[int, str] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """One service of an endpoint.

    Attributes:
        name: Unique in its endpoint.
        path: Appended to the endpoint's URL.
        parameters: Names of the parameters it requires, without the endpoint's prefix.
        recommends: The suggested settings of its mapping.
        required: Its mapping cannot be disabled.
        description: The service's whole description as the endpoint gave it, for display.
    """

    name: str
    path: str
    parameters: tuple[str, ...] = ()
    recommends: Recommendation = field(default_factory=Recommendation)
    required: bool = False
    description: dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class EndpointDescription:
    """What ``endpoint.json`` says.

    Attributes:
        display: Name for people.
        description: For people.
        help: Address of its documentation.
        services: The services that could be read.
        errors: What could not be read, one sentence each.
    """

    display: str | None = None
    description: str | None = None
    help: str | None = None
    icon_url: str | None = None
    services: tuple[Service, ...] = ()
    errors: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Integration:
    """A registered endpoint.

    Attributes:
        integration_id: Object id.
        name: Lower-case letters, digits, ``-`` and ``_``.
        url: Base URL of the endpoint.
        token: Sent as ``X-Augury-Token`` to all its services.
        category: For people.
        endpoint: The endpoint's description, None while pending.
        errors: Why it is pending, or which parts of its description could not be used.
        credentials: The token, encrypted (:class:`pushhub.engine.security.credentials.Credentials`); the token itself
            then reads ``********``.
    """

    integration_id: str
    name: str
    url: str
    token: str
    category: str = "custom"
    endpoint: EndpointDescription | None = None
    errors: tuple[str, ...] = ()
    credentials: bytes = field(default=b"", repr=False, metadata=field_metadata(stored=APART))
    created_at: int = 0
    version: int = 0
