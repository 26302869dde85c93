"""Refusals and faults as Notifications 2.0 answers: a status and ``{"error", "message", "info"}``.

Every client reads ``message`` without asking whether it is there, so every answer that is not a success has it.
"""

from __future__ import annotations

from pushhub.base.errors import Forbidden, Invalid, NotFound, RequestRefused, TooLarge, Unauthorized
from pushhub.notifications.model.backlog import AlreadyConnected
from pushhub.web.http import MethodNotAllowed

__all__ = [
    "ERROR_TYPE",
    "BacklogFull",
    "DuplicateSubscription",
    "SubscriberUnknown",
    "SubscriptionNotFound",
    "error_body",
    "fault_body",
    "status_of",
]

ERROR_TYPE = "application/vnd.com.nsn.cumulocity.error+json"
"""Content type of every refusal."""

_INFO = "https://www.cumulocity.com/guides/reference-guide/#error_reporting"


class DuplicateSubscription(RequestRefused):
    """A subscription of that source, context and name exists (409).

    Args:
        source: Of the subscription; the tenant's id in ``tenant`` context.
        context: ``mo`` or ``tenant``.
        name: Of the subscription.
    """

    def __init__(self, *, source: str, context: str, name: str) -> None:
        super().__init__(
            f"Subscription with source <'{source}'>, context <'{context}'> & subscription <'{name}'> already exists!"
        )


class SubscriptionNotFound(NotFound):
    """No subscription of that id in the tenant."""

    def __init__(self) -> None:
        super().__init__("Finding subscription from database failed")


class SubscriberUnknown(RequestRefused):
    """The subscriber is not there to be removed: 500, which clients take for "already unsubscribed".

    Args:
        message: What is the matter.
    """

    def __init__(self, message: str = "Topic or subscriber not found") -> None:
        super().__init__(message)


class BacklogFull(RequestRefused):
    """The topic's backlog has reached its quota: 500 to the publisher (Notifications 2.0).

    Args:
        topic: Its name.
        quota: Bytes it may hold.
    """

    def __init__(self, topic: str, quota: int) -> None:
        super().__init__(f"Backlog quota of {quota} bytes reached for topic {topic}: acknowledge or unsubscribe")


_KINDS: tuple[tuple[type[RequestRefused], int, str], ...] = (
    (Unauthorized, 401, "security/Unauthorized"),
    (Forbidden, 403, "security/Forbidden"),
    (NotFound, 404, "reliable-notification/Not Found"),
    (MethodNotAllowed, 405, "general/methodNotAllowed"),
    (DuplicateSubscription, 409, "reliable-notification/Duplicate"),
    (AlreadyConnected, 409, "reliable-notification/Conflict"),
    (TooLarge, 413, "reliable-notification/Too Large"),
    (SubscriberUnknown, 500, "reliable-notification/Not Found"),
    (BacklogFull, 500, "reliable-notification/Backlog Quota Exceeded"),
    (Invalid, 422, "reliable-notification/Invalid"),
)


def status_of(error: RequestRefused) -> int:
    """The HTTP status of a refusal: 422 unless it is one of a special kind."""
    return next((status for kind, status, _ in _KINDS if isinstance(error, kind)), 422)


def error_body(error: RequestRefused) -> dict[str, str]:
    """The JSON of a refusal."""
    name = next((name for kind, _, name in _KINDS if isinstance(error, kind)), "reliable-notification/Invalid")
    if type(error) is NotFound:
        # No path at all
        name = "general/notFound"
    return {"error": name, "message": error.message, "info": _INFO}


def fault_body() -> dict[str, str]:
    """The JSON of a 500; what went wrong is for the log."""
    return {"error": "general/internalError", "message": "Internal server error", "info": _INFO}
