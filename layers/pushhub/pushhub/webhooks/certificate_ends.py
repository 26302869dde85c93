"""Tells owners that the client certificates of their endpoints end.

A note in a list says when the next warning is due. Whoever finds a note that no longer fits its endpoint drops it, so
nothing has to be removed when a certificate is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol

from pushhub.base.times import iso_time

if TYPE_CHECKING:
    from pushhub.base.ports import Clock
    from pushhub.webhooks.disabling import FoundOut
    from pushhub.webhooks.ports import ReadEndpoints

DAY_MS = 86_400_000
WARNED_DAYS = (30, 7, 1, 0)
"""Days before the end of a certificate at which its owner is told."""

LOOKS_AT_MINUTE = 23
"""Minute of each hour at which ends are looked at."""

MARGIN_MS = 10_000
"""Time kept free at the end of a run."""


@dataclass(frozen=True, slots=True)
class EndNote:
    """That something is to be told of a certificate's end.

    Attributes:
        at: When, epoch milliseconds.
        project: Owner.
        app_id: The application.
        endpoint_id: The endpoint.
        digest: The certificate's.
    """

    at: int
    project: str
    app_id: str
    endpoint_id: str
    digest: str


class EndNotes(Protocol):
    """Where such notes are kept."""

    def note_end(self, note: EndNote) -> None:
        """Keep a note; the same note twice is one.

        Raises:
            Unavailable: The effect is unknown.
        """
        ...

    def due_ends(self, now: int) -> Iterator[EndNote]:
        """The notes up to a time, earliest first.

        Raises:
            Unavailable: They could not be read.
        """
        ...

    def forget_end(self, note: EndNote) -> None:
        """Drop a note.

        Raises:
            Unavailable: The effect is unknown.
        """
        ...


def next_warning(ends_at: int, after: int) -> int | None:
    """When the end of a certificate is told next; None if everything has been said.

    Args:
        ends_at: Its end, epoch milliseconds.
        after: Warnings up to this time are past.
    """
    return next((at for at in (ends_at - days * DAY_MS for days in WARNED_DAYS) if at > after), None)


class CertificateEnds:
    """Implements :class:`pushhub.engine.protocol.Tick`: looks once an hour, and tells 30, 7 and 1 days before an end,
    and when it has come.

    Args:
        notes: What is to be told, and when.
        endpoints: Endpoints.
        tell: Sends events about endpoints.
        clock: Time.
    """

    def __init__(self, *, notes: EndNotes, endpoints: ReadEndpoints, tell: FoundOut, clock: Clock) -> None:
        self._notes = notes
        self._endpoints = endpoints
        self._tell = tell
        self._clock = clock

    def run(self, remaining_ms: Callable[[], int]) -> int:
        """Tell what is due; returns how much that was.

        Raises:
            Unavailable: It failed; the next run continues, and tells nothing twice.
        """
        now, told = self._clock.now(), 0
        if now // 60_000 % 60 != LOOKS_AT_MINUTE:
            return 0
        for note in self._notes.due_ends(now):
            if remaining_ms() < MARGIN_MS:
                break
            told += self._see_to(note, now)
            self._notes.forget_end(note)
        return told

    def _see_to(self, note: EndNote, now: int) -> int:
        endpoint = self._endpoints.endpoint(note.project, note.app_id, note.endpoint_id)
        found = endpoint.certificate if endpoint is not None else None
        if endpoint is None or found is None or found.digest != note.digest:
            return 0
        self._tell(
            "endpoint.certificate_ending",
            endpoint,
            cause=f"endpoint.certificate_ending/{endpoint.endpoint_id}/{found.digest}/{note.at}",
            at=note.at,
            subject=found.subject,
            endsAt=iso_time(found.ends_at),
            daysLeft=max(0, -(-(found.ends_at - now) // DAY_MS)),
        )
        at = next_warning(found.ends_at, now)
        if at is not None:
            self._notes.note_end(replace(note, at=at))
        return 1
