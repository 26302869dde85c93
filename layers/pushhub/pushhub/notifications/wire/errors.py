"""Refusals and faults as Notifications 2.0 answers: a status and ``{"error", "message", "info"}``.

Every client reads ``message`` without checking that it exists, so every error response has it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pushhub.base.errors import (
    Forbidden,
    Invalid,
    NotFound,
    Overloaded,
    RequestRefused,
    TooLarge,
    TryLater,
    Unauthorized,
)
from pushhub.notifications.model.backlog import AlreadyConnected
from pushhub.web.http import MethodNotAllowed

if TYPE_CHECKING:
    from pushhub.notifications.model.topic import Topic

ERROR_TYPE = "application/vnd.com.nsn.cumulocity.error+json"
"""Content type of every refusal."""

CONSUMER_CHALLENGE = 'Bearer realm="pushhub"'
"""``WWW-Authenticate`` of a 401 to a consumer, whose credentials are its token."""

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
    """The subscriber to remove does not exist: 500, which clients interpret as "already unsubscribed"."""

    def __init__(self, message: str = "Topic or subscriber not found") -> None:
        super().__init__(message)


class BacklogFull(RequestRefused):
    """Backlogs have reached their quota: 500 to the publisher (Notifications 2.0).

    Args:
        full: The topics that took nothing of the request.
        quota: Bytes a topic may hold.
        taken: The topics that took all of it.
        ids: Ids of the request's notifications.
        key: Idempotency key with which a repetition reaches only the full topics; empty when no topic took anything.
    """

    def __init__(
        self,
        full: Sequence[Topic],
        quota: int,
        *,
        taken: Sequence[Topic] = (),
        ids: Sequence[str] = (),
        key: str = "",
    ) -> None:
        names = ", ".join(f"{each.name} (non-persistent)" if each.non_persistent else each.name for each in full)
        topics = "topic" if len(full) == 1 else "topics"
        super().__init__(f"Backlog quota of {quota} bytes reached for {topics} {names}: acknowledge or unsubscribe")
        self.full = tuple(full)
        self.quota = quota
        self.taken = tuple(taken)
        self.ids = tuple(ids)
        self.key = key


KINDS: tuple[tuple[type[RequestRefused], int, str], ...] = (
    (Unauthorized, 401, "security/Unauthorized"),
    (Forbidden, 403, "security/Forbidden"),
    (NotFound, 404, "reliable-notification/Not Found"),
    (MethodNotAllowed, 405, "general/methodNotAllowed"),
    (DuplicateSubscription, 409, "reliable-notification/Duplicate"),
    (AlreadyConnected, 409, "reliable-notification/Conflict"),
    (TooLarge, 413, "reliable-notification/Too Large"),
    (TryLater, 429, "general/tooManyRequests"),
    (Overloaded, 503, "general/overloaded"),
    (SubscriberUnknown, 500, "reliable-notification/Not Found"),
    (BacklogFull, 500, "reliable-notification/Backlog Quota Exceeded"),
    (Invalid, 422, "reliable-notification/Invalid"),
)
"""Refusals with the status and the name of each; the first that fits counts."""


def status_of(error: RequestRefused) -> int:
    """The HTTP status of a refusal: 422 unless its kind has a status of its own."""
    return next((status for kind, status, _ in KINDS if isinstance(error, kind)), 422)


def error_body(error: RequestRefused) -> dict[str, Any]:
    """The JSON of a refusal. For full backlogs, ``details`` tell which topics took the request and which did not."""
    name = next((name for kind, _, name in KINDS if isinstance(error, kind)), "reliable-notification/Invalid")
    if type(error) is NotFound:
        # No path at all
        name = "general/notFound"
    body: dict[str, Any] = {"error": name, "message": error.message, "info": _INFO}
    if isinstance(error, BacklogFull):
        body["details"] = {
            "full": [_named(each) for each in error.full],
            "taken": [_named(each) for each in error.taken],
            "ids": list(error.ids),
        } | ({"idempotencyKey": error.key} if error.key else {})
    return body


def _named(topic: Topic) -> dict[str, str | bool]:
    return {"subscription": topic.name, "nonPersistent": topic.non_persistent}


def fault_body() -> dict[str, str]:
    """The JSON of a 500; the cause is only logged."""
    return {"error": "general/internalError", "message": "Internal server error", "info": _INFO}
