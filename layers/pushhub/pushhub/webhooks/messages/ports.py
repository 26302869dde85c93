"""What messages, their listing and their attempts need from outside."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Protocol

from pushhub.base.errors import HubError

if TYPE_CHECKING:
    from pushhub.webhooks.model.attempt import LoggedAttempt
    from pushhub.webhooks.model.message import ListedMessage
    from pushhub.webhooks.model.page import KeyRange
    from pushhub.webhooks.ports import KeptAnswer, RequestKey


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

    def note_id(self, project_id: str, key: RequestKey, new_id: str, *, now: int, until: int) -> str:
        """Note which message (the engine's id) or task a request makes.

        Returns the one noted first, if that note is still valid.
        """


class MessageLog(Protocol):
    """Messages as their applications list them."""

    def list_message(self, message: ListedMessage) -> None:
        """Ensure that a message is listed, as expunged if it is. Idempotent: a message expunged since then stays so."""

    def listed(self, project_id: str, app_id: str, engine_id: str) -> ListedMessage | None:
        """A listed message, or None."""

    def messages(self, project_id: str, app_id: str, span: KeyRange) -> Iterator[ListedMessage]:
        """The messages of an application with the engine's ids in a span, in its direction,
        read page by page on demand.
        """

    def note_late(self, message: ListedMessage, position: str) -> None:
        """Record that a message became readable only after readers could have passed its place in the list.

        Args:
            position: The second place at which it is read: an engine id that no message has or will have.
        """

    def late(self, project_id: str, app_id: str, span: KeyRange) -> Iterator[tuple[str, str]]:
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
        self, project_id: str, endpoint_id: str, span: KeyRange, *, engine_id: str | None = None
    ) -> Iterator[LoggedAttempt]:
        """The attempts made at an endpoint with ids in a span, in its direction, read page by page on demand.

        Args:
            span: Of ids of attempts.
            engine_id: Only those made for that message; then no more than the first ten megabytes of the span are read.
        """
