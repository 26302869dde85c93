"""The ports that webhooks need, as small interfaces.

Real ones live in :mod:`pushhub.webhooks.store`, fakes for tests in ``tests/fakes/webhooks.py``; one contract test per
port runs against both. Every method may raise :class:`pushhub.base.errors.Unavailable`. Times are epoch milliseconds.
All reads are consistent.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from pushhub.base.errors import HubError

if TYPE_CHECKING:
    from pushhub.webhooks.model.application import Application
    from pushhub.webhooks.model.endpoint import Endpoint
    from pushhub.webhooks.model.event_type import EventType
    from pushhub.webhooks.model.page import KeyRange


class UidTaken(HubError):
    """Another object of the same owner has that uid."""


class Scripts(Protocol):
    """Runs strangers' code, somewhere where it can do no harm."""

    def run(self, request: Mapping[str, object]) -> Mapping[str, Any]:
        """Run code: a request and its result are those of :meth:`pushhub.scripting.sandbox.Sandbox.run`."""
        ...


class ReadApplications(Protocol):
    """Applications by their ids. Sources are applications, too; only the uids of each kind are apart."""

    def application(self, project_id: str, name: str) -> Application | None:
        """The application with that id or uid, or the source or stream with that id; None for none."""

    def stream(self, project_id: str, name: str) -> Application | None:
        """The stream with that id or uid, or None."""


class Applications(ReadApplications, Protocol):
    """Applications of projects."""

    def source(self, project_id: str, name: str) -> Application | None:
        """The source with that id or uid, or None."""

    def applications(self, project_id: str, span: KeyRange) -> Iterator[Application]:
        """The applications with ids in a span, in its direction, read page by page on demand."""

    def put_application(self, application: Application, before: Application | None) -> Application:
        """Store an application in place of another version of it, or as a new one; returns it with its version raised.

        Raises:
            Conflict: It has changed or no longer exists.
            UidTaken: Another application has its uid.
        """

    def delete_application(self, application: Application) -> bool:
        """Delete an application and free its uid; returns whether it existed.

        Its endpoints are deleted before it, as by :meth:`Endpoints.delete_endpoint`: their secrets are gone, too.
        """


class ReadEndpoints(Protocol):
    """Endpoints as deliveries need them."""

    def endpoint(self, project_id: str, app_id: str, name: str) -> Endpoint | None:
        """The endpoint with that id or uid, or None; deleted ones are not found."""

    def endpoints(self, project_id: str, app_id: str, span: KeyRange) -> Iterator[Endpoint]:
        """The endpoints of an application with ids in a span, in its direction, read page by page on demand."""


class Endpoints(ReadEndpoints, Protocol):
    """Endpoints of applications. Each change raises :attr:`Application.endpoints`."""

    def put_endpoint(self, endpoint: Endpoint, before: Endpoint | None) -> Endpoint:
        """Store an endpoint in place of another version of it, or as a new one; returns it with its version raised.

        Raises:
            Conflict: It has changed, or it or its application no longer exists.
            UidTaken: Another endpoint of the application has its uid.
        """

    def delete_endpoint(self, endpoint: Endpoint) -> None:
        """Mark an endpoint as ``deleted``, keeping it only for the record, and free its uid.

        Raises:
            Conflict: It is not as it was.
        """

    def disabled(self, project_id: str) -> Iterator[Endpoint]:
        """The disabled endpoints of all applications of a project, read page by page on demand."""

    def deleted_endpoint(self, project_id: str, app_id: str, endpoint_id: str) -> Endpoint | None:
        """What is kept of a deleted endpoint, or None."""


class EventTypes(Protocol):
    """Event types of projects."""

    def event_type(self, project_id: str, name: str) -> EventType | None:
        """The event type, or None."""

    def event_types(self, project_id: str, span: KeyRange) -> Iterator[EventType]:
        """The event types with names in a span, in its direction, read page by page on demand."""

    def event_types_named(self, project_id: str, names: Sequence[str]) -> list[EventType]:
        """The existing event types among some distinct names, in no particular order."""

    def put_event_type(self, event_type: EventType) -> EventType:
        """Store an event type in place of its version (0 for a new one); returns it with its version raised.

        Raises:
            Conflict: The stored one has another version.
        """

    def delete_event_type(self, project_id: str, name: str) -> None:
        """Delete an event type; does nothing if it does not exist."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptAnswer:
    """The answer to a request with an idempotency key.

    Attributes:
        status: HTTP status.
        body: JSON.
        headers: Headers besides the content type.
    """

    status: int
    body: str
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RequestKey:
    """What identifies a request that may be repeated.

    Attributes:
        digest: Digest of its caller, idempotency key and URL.
        content: Digest of its body, which is the same in every repetition.
    """

    digest: str
    content: str
