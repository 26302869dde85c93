"""Errors as IronMQ v3 answers them: a status and ``{"msg": ...}``.

503 and 504 are never used: clients take them as an invitation to retry immediately.
"""

from __future__ import annotations

from pushhub.base.errors import Forbidden, NotFound, QuotaExceeded, RequestRefused, TooLarge, Unanswerable, Unauthorized
from pushhub.web.http import MethodNotAllowed

FAULT_MESSAGE = "Internal server error"
"""The ``msg`` of a 500; the cause is only logged."""

_STATUSES: tuple[tuple[type[RequestRefused], int], ...] = (
    (Unauthorized, 401),
    (Forbidden, 403),
    (NotFound, 404),
    (MethodNotAllowed, 405),
    (Unanswerable, 406),
    (TooLarge, 413),
    (QuotaExceeded, 429),
)


def status_of(error: RequestRefused) -> int:
    """The HTTP status of a refusal: 400 unless its class has another."""
    return next((status for kind, status in _STATUSES if isinstance(error, kind)), 400)
