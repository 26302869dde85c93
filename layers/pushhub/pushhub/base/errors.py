"""Everything that can be wrong with a request or with stored state, as exceptions that carry data.

::

    HubError
    ├── RequestRefused            the caller must change the request (a dialect maps it to a 4xx)
    │   ├── Invalid               malformed, wrong type, out of range
    │   │   ├── FieldRefused      at a place in what was asked for
    │   │   └── TooMuchWork       a rule takes too many steps on this data
    │   ├── TooLarge              body over the limit
    │   ├── TryLater              the project does more at a time than it may; later it can be carried out
    │   │   └── QuotaExceeded     it posts more
    │   ├── Overloaded            the hub does more than it can
    │   ├── Unanswerable          the result does not fit into an answer
    │   ├── Unauthorized          no token, or not one of this project
    │   ├── Forbidden             wrong or timed-out reservation, immutable setting
    │   │   └── ProjectSuspended  the operator suspended the project
    │   └── NotFound              queue, message, store ... unknown
    │       ├── QueueNotFound
    │       └── MessageNotFound
    ├── Conflict                  somebody else wrote first; look again
    └── Unavailable               a service we depend on did not answer; the effect is unknown
        ├── Contended             others changed the same thing in every round
        ├── Unreadable            what is stored is damaged: only a person can mend it
        └── Overdue               it was not called, because the request's time is over
"""

from __future__ import annotations


class HubError(Exception):
    """Root of all errors the hub raises on purpose."""


class RequestRefused(HubError):
    """The request cannot be carried out as it is; ``message`` says what to change.

    Args:
        message: One sentence for the caller; never holds secrets or internals.
    """

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class Invalid(RequestRefused):
    """Malformed, of a wrong type, or out of range."""


class FieldRefused(Invalid):
    """Something inside of what was asked for could not be right.

    Args:
        text: Why; never repeats a secret.
        place: Where in it, from outside inwards, in the words of the request.
    """

    def __init__(self, text: str, *place: str) -> None:
        super().__init__(f"{'.'.join(place)}: {text}" if place else text)
        self.text = text
        self.place = place

    def within(self, *outer: str) -> FieldRefused:
        """The same of something that this was inside of."""
        return FieldRefused(self.text, *outer, *self.place)


class TooMuchWork(Invalid):
    """A rule takes more steps on some data than one evaluation may; see :mod:`pushhub.base.steps`."""

    def __init__(self, message: str = "This takes too many steps to evaluate") -> None:
        super().__init__(message)


class TooLarge(RequestRefused):
    """The body is larger than the hub accepts.

    Args:
        limit: The limit in bytes.
        what: What is too large.
    """

    def __init__(self, limit: int, what: str = "Request body") -> None:
        super().__init__(f"{what} is larger than {limit} bytes")
        self.limit = limit


class TryLater(RequestRefused):
    """A project does more at a time than it may.

    Args:
        message: One sentence for the caller.
        retry_after_s: Seconds after which to try again, at least 1.
    """

    def __init__(self, message: str, *, retry_after_s: int) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


class QuotaExceeded(TryLater):
    """A project posts more than its quota.

    Args:
        per_second: The quota, messages per second on average.
        retry_after_s: Seconds after which to try again, at least 1.
    """

    def __init__(self, per_second: int, *, retry_after_s: int) -> None:
        super().__init__(
            f"The project may post {per_second} messages per second on average: try again in {retry_after_s} s",
            retry_after_s=retry_after_s,
        )
        self.per_second = per_second


class Overloaded(RequestRefused):
    """A request could not be carried out in its time because the hub is busy: repeat it, a little later.

    Attributes:
        retry_after_s: Seconds after which to try again.
    """

    retry_after_s = 5

    def __init__(self) -> None:
        super().__init__("The hub is busy and did not finish in time: try again")


class Unanswerable(RequestRefused):
    """The result does not fit into an answer unless that is compressed."""

    def __init__(self) -> None:
        super().__init__("The answer is too large to send uncompressed: send Accept-Encoding: gzip")


class Unauthorized(RequestRefused):
    """No token, or not a token of the project."""

    def __init__(self, message: str = "Invalid project/token combination") -> None:
        super().__init__(message)


class Forbidden(RequestRefused):
    """The caller is known but the action is not allowed: stale reservation, immutable setting."""


class ProjectSuspended(Forbidden):
    """The operator has suspended the project: it can be looked at, and nothing else."""

    def __init__(self) -> None:
        super().__init__("The project is suspended")


class NotFound(RequestRefused):
    """What the request names does not exist (or belongs to someone else)."""

    def __init__(self, message: str = "Not found") -> None:
        super().__init__(message)


class QueueNotFound(NotFound):
    """No queue of that name in the project (IronMQ v3 wording)."""

    def __init__(self) -> None:
        super().__init__("Queue not found")


class MessageNotFound(NotFound):
    """No message of that id in the queue (IronMQ v3 wording)."""

    def __init__(self) -> None:
        super().__init__("Message not found")


class Conflict(HubError):
    """A conditional write found newer state than the decision was based on; read and decide again."""


THROTTLED = frozenset(
    {
        *("Throttling", "ThrottlingException", "ThrottledException", "Throttled", "RequestThrottled"),
        *("RequestThrottledException", "TooManyRequestsException", "OverLimit", "KMSThrottling", "KmsThrottled"),
        *(
            "KMSThrottlingException",
            "EC2ThrottledException",
            "SlowDown",
            "RequestLimitExceeded",
            "PriorRequestNotComplete",
            "ProvisionedThroughputExceededException",
        ),
    }
)
"""What services call it when they are asked too often."""

_ONLY_PARTLY = frozenset({"UnprocessedItems", "UnprocessedKeys", "ThrottlingError", "ProvisionedThroughputExceeded"})
"""The same, of some of what was asked for together."""


class Unavailable(HubError):
    """A dependency failed or did not answer in time: the effect of the call is unknown.

    Args:
        operation: What was attempted, e.g. ``"dynamodb:UpdateItem"``.
        reason: Code or kind of the failure, e.g. ``"AccessDeniedException"``; empty when unknown.
    """

    def __init__(self, operation: str, reason: str = "") -> None:
        super().__init__(f"{operation} failed: {reason}" if reason else f"{operation} failed")
        self.operation = operation
        self.reason = reason

    @property
    def throttled(self) -> bool:
        """Whether the service was asked too often: a little later it can be done."""
        return self.reason in THROTTLED or self.reason in _ONLY_PARTLY


class Contended(Unavailable):
    """Other writers came first in every round (:mod:`pushhub.base.conflicts`): a little later it can be done."""


class Unreadable(Unavailable):
    """What is stored under a key cannot be read, and will not be until somebody mends it: an order for it is kept, and
    everybody else is served.
    """

    def __init__(self) -> None:
        super().__init__("reading an item", "unreadable")


class SearchUnavailable(Unavailable):
    """What searches the past failed, or cannot be reached: nothing was changed, and a little later it can be done."""


class Overdue(Unavailable):
    """A service was not called, because the answer would come too late (:mod:`pushhub.cloud.deadline`)."""
