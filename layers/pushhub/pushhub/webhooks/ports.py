"""The ports that webhooks need, as small interfaces.

Real ones live in :mod:`pushhub.webhooks.store`, fakes for tests in ``tests/fakes/webhooks.py``; one contract test per
port runs against both. Every method may raise :class:`pushhub.base.errors.Unavailable`. Times are epoch milliseconds.
All reads are consistent.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from pushhub.base.errors import HubError

if TYPE_CHECKING:
    from pushhub.webhooks.model.application import Application
    from pushhub.webhooks.model.attempt import LoggedAttempt
    from pushhub.webhooks.model.endpoint import Endpoint
    from pushhub.webhooks.model.event_type import EventType
    from pushhub.webhooks.model.message import ListedMessage
    from pushhub.webhooks.model.page import Span


class UidTaken(HubError):
    """Another object of the same owner has that uid."""


class ReadApplications(Protocol):
    """Applications by their ids."""

    def application(self, project_id: str, name: str) -> Application | None:
        """The application with that id or uid, or None."""


class Applications(ReadApplications, Protocol):
    """Applications of projects."""

    def applications(self, project_id: str, span: Span) -> Iterator[Application]:
        """The applications with ids in a span, in its direction, read page by page on demand."""

    def put_application(self, application: Application, before: Application | None) -> Application:
        """Store an application in place of another version of it, or as a new one; returns it with its version raised.

        Raises:
            Conflict: It has changed or no longer exists.
            UidTaken: Another application has its uid.
        """

    def delete_application(self, application: Application) -> bool:
        """Delete an application and free its uid; returns whether it existed."""


class ReadEndpoints(Protocol):
    """Endpoints as deliveries need them."""

    def endpoint(self, project_id: str, app_id: str, name: str) -> Endpoint | None:
        """The endpoint with that id or uid, or None; deleted ones are not found."""

    def endpoints(self, project_id: str, app_id: str, span: Span) -> Iterator[Endpoint]:
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

    def event_types(self, project_id: str, span: Span) -> Iterator[EventType]:
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


class KeyBusy(HubError):
    """A request with the same idempotency key is being worked on."""


class KeyReused(HubError):
    """The idempotency key was used for a request with another body."""


class IdempotencyKeys(Protocol):
    """Requests that may be repeated, by project and key. Methods raise ``KeyReused`` for another body."""

    def begin(self, project_id: str, key: RequestKey, *, now: int, locked_ms: int) -> KeptAnswer | None:
        """Begin a request. Returns None when the caller holds it for the given number of milliseconds, or the first
        answer if there is one.

        Raises:
            KeyBusy: Another caller is working on it.
        """

    def keep(self, project_id: str, key: RequestKey, answer: KeptAnswer, *, until: int) -> None:
        """Keep the answer to a request that was begun."""

    def release(self, project_id: str, key: RequestKey) -> None:
        """Release a request that was begun, or an id that was noted."""

    def note_id(self, project_id: str, key: RequestKey, made: str, *, now: int, until: int) -> str:
        """Note which message (the engine's id) or task a request makes.

        Returns the one noted first, if that note is still valid.
        """


class MessageLog(Protocol):
    """Messages as their applications list them."""

    def list_message(self, message: ListedMessage) -> None:
        """Ensure that a message is listed, as expunged if it is. Idempotent: a message expunged since then stays so."""

    def listed(self, project_id: str, app_id: str, engine_id: str) -> ListedMessage | None:
        """A listed message, or None."""

    def messages(self, project_id: str, app_id: str, span: Span) -> Iterator[ListedMessage]:
        """The messages of an application with the engine's ids in a span, in its direction,
        read page by page on demand.
        """

    def note_late(self, message: ListedMessage, position: str) -> None:
        """Record that a message became readable only after readers could have passed its place in the list.

        Args:
            position: The second place at which it is read: an engine id that no message has or will have.
        """

    def late(self, project_id: str, app_id: str, span: Span) -> Iterator[tuple[str, str]]:
        """Positions in a span, in its direction, each with the engine's id of the late message that is read there."""

    def claim_event(self, project_id: str, app_id: str, event_id: str, engine_id: str, *, until: int) -> str:
        """Give a producer's own id to a message until it is no longer listed.

        Returns the message (the engine's id) that has it.
        """

    def message_of_event(self, project_id: str, app_id: str, event_id: str) -> str | None:
        """The engine's id of the message with a producer's own id, or None."""


class AttemptLog(Protocol):
    """Attempts, by endpoint."""

    def log_attempts(self, attempts: Sequence[LoggedAttempt]) -> None:
        """Log attempts made at one endpoint, in one write as far as they began within seconds of each other.

        Idempotent for the same attempts.
        """

    def change_attempt(self, attempt: LoggedAttempt) -> None:
        """Replace a logged attempt; nothing of the old version remains."""

    def attempts(
        self, project_id: str, endpoint_id: str, span: Span, *, engine_id: str | None = None
    ) -> Iterator[LoggedAttempt]:
        """The attempts made at an endpoint with ids in a span, in its direction, read page by page on demand.

        Args:
            span: Of ids of attempts.
            engine_id: Only those made for that message; then no more than the first ten megabytes of the span are read.
        """
