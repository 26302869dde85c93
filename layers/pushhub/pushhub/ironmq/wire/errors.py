"""Errors as IronMQ v3 answers them: a status and ``{"msg": ...}``.

Clients take 503 as an invitation to repeat the request, so only a hub that is too busy answers it; 504 is never used.
"""

from __future__ import annotations

from pushhub.base.errors import (
    Forbidden,
    NotFound,
    Overloaded,
    RequestRefused,
    TooLarge,
    TryLater,
    Unanswerable,
    Unauthorized,
)
from pushhub.web.http import MethodNotAllowed

NO_SUBSCRIBERS = "Pull queues cannot have subscribers"
"""Why a request about subscribers is refused."""
FAULT_MESSAGE = "Internal server error"
"""The ``msg`` of a 500; the cause is only logged."""

_STATUSES: tuple[tuple[type[RequestRefused], int], ...] = (
    (Unauthorized, 401),
    (Forbidden, 403),
    (NotFound, 404),
    (MethodNotAllowed, 405),
    (Unanswerable, 406),
    (TooLarge, 413),
    (TryLater, 429),
    (Overloaded, 503),
)


def status_of(error: RequestRefused) -> int:
    """The HTTP status of a refusal: 400 unless its class has another."""
    return next((status for kind, status in _STATUSES if isinstance(error, kind)), 400)
