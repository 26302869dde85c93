"""Tells owners that the client certificates of their subscribers end.

A note in a list says when the next warning is due. Whoever finds a note that no longer fits its subscriber drops it, so
nothing has to be removed when a certificate is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from pushhub.base.gates import ClientCertificate
    from pushhub.base.ports import Clock

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
        group: Where the subscriber is: its queue or application.
        subscriber_id: The subscriber.
        digest: The certificate's.
    """

    at: int
    project: str
    group: str
    subscriber_id: str
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


def tell_hourly(
    notes: EndNotes, now: int, remaining_ms: Callable[[], int], see_to: Callable[[EndNote, int], int]
) -> int:
    """Once an hour, see to the notes that are due, and drop each; returns how much was told.

    Args:
        notes: The notes.
        now: Epoch milliseconds.
        remaining_ms: Milliseconds that the run has left; what does not fit in is seen to by the next.
        see_to: Tells of what a note says if it is still so, and notes the next warning; returns how much it told.

    Raises:
        Unavailable: It failed; the next run continues.
    """
    told = 0
    if now // 60_000 % 60 != LOOKS_AT_MINUTE:
        return told
    for note in notes.due_ends(now):
        if remaining_ms() < MARGIN_MS:
            break
        told += see_to(note, now)
        notes.forget_end(note)
    return told


Tell = Callable[["ClientCertificate", int], None]
"""Tells a subscriber's owner of a certificate that ends, and in how many days."""

Find = Callable[[EndNote], "tuple[ClientCertificate | None, Tell] | None"]
"""Looks up a note's subscriber: the certificate that it has now, and what tells its owner; None if there is none.

Raises ``Unavailable``.
"""


class CertificateEnds:
    """Implements :class:`pushhub.engine.protocol.Tick`: looks once an hour, and tells 30, 7 and 1 days before an end,
    and when it has come.

    Args:
        notes: What is to be told, and when.
        find: Looks up subscribers.
        clock: Time.
    """

    def __init__(self, *, notes: EndNotes, find: Find, clock: Clock) -> None:
        self._notes = notes
        self._find = find
        self._clock = clock

    def run(self, remaining_ms: Callable[[], int]) -> int:
        """Tell what is due; returns how much that was.

        Raises:
            Unavailable: It failed; the next run continues, and tells nothing twice.
        """
        return tell_hourly(self._notes, self._clock.now(), remaining_ms, self._see_to)

    def _see_to(self, note: EndNote, now: int) -> int:
        certificate, tell = self._find(note) or (None, None)
        if certificate is None or tell is None or certificate.digest != note.digest:
            return 0
        tell(certificate, max(0, -(-(certificate.ends_at - now) // DAY_MS)))
        at = next_warning(certificate.ends_at, now)
        if at is not None:
            self._notes.note_end(replace(note, at=at))
        return 1
