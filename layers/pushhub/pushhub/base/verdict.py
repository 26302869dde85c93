"""The answer to one attempt, and what it means.

The three stages of an attempt decide who is charged: *nothing was sent* (our fault: the queue redelivers, and the
subscriber is not charged), *the subscriber answered or failed* (an expected outcome), *sent but not recorded*
(redelivered: at least once, same id).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum


class Verdict(StrEnum):
    """What an answer means for its delivery."""

    DELIVERED = "delivered"
    """Accepted for good."""
    RESERVED = "reserved"
    """202: the subscriber is working on it and will acknowledge."""
    POLL = "poll"
    """Asynchronous answer: poll ``update_url`` later (hub protocol)."""
    POSTPONED = "postponed"
    """Delay without ``update_url``: post again later; not a failure (hub protocol)."""
    FAILED = "failed"
    """Not accepted; the retry policy decides what follows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """One HTTP request and its result.

    Attributes:
        status_code: HTTP status, 0 when no answer came.
        message: One line for people, at most 200 characters: the reason phrase, or what went wrong.
        error_class: Empty when an answer came; else one of ``timeout connect dns tls reset refused_by_guard
            bad_response too_large invalid_url invalid_header oauth credentials
            transformation``.
        body: The part of the answer's body that was read (capped by the sender).
        headers: The answer's headers, names in lower case.
        started_at: Epoch milliseconds when the request began.
        finished_at: Epoch milliseconds when the answer was complete or the request was given up.
        bytes_out: Bytes of the request body.
        bytes_in: Bytes of the answer's body that were read.
    """

    status_code: int
    message: str
    error_class: str = ""
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)
    started_at: int
    finished_at: int
    bytes_out: int = 0
    bytes_in: int = 0

    @property
    def duration_ms(self) -> int:
        """Milliseconds the attempt took."""
        return self.finished_at - self.started_at


def iron_verdict(answer: Answer) -> Verdict:
    """IronMQ v3: 202 reserves, any other 2xx is success, everything else (redirects too) is a failure."""
    if answer.error_class or not 200 <= answer.status_code < 300:
        return Verdict.FAILED
    return Verdict.RESERVED if answer.status_code == 202 else Verdict.DELIVERED
