"""Tells owners that something of their subscribers ends: a client certificate, a signature scheme.

A note in a list says when the next warning is due. Whoever finds a note that no longer fits its subscriber drops it, so
nothing has to be removed when what ends is.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple, Protocol

from pushhub.base.times import epoch_ms, iso_time
from pushhub.engine.component import Component

if TYPE_CHECKING:
    from pushhub.base.gates import ClientCertificate
    from pushhub.base.ports import Clock
    from pushhub.base.signature_schemes import Scheme

DAY_MS = 86_400_000
CERTIFICATE_DAYS = (30, 7, 1, 0)
"""Days before the end of a certificate at which its owner is told."""

SCHEME_DAYS = (7, 1)
"""Days before the end of a signature scheme at which its owner is told."""

CHANGING_MS = 300_000
"""How long a note may be there before its subscriber shows what ends: it is written first."""

MARGIN_MS = 10_000
"""Time kept free at the end of a run."""


@dataclass(frozen=True, slots=True)
class EndNote:
    """That something is to be told of an end.

    Attributes:
        group: Where the subscriber is: its queue or application; empty, as the id is, for what the project
            hands down.
        digest: What ends: a certificate's digest, or :func:`scheme_digest`.
    """

    at: int
    project: str
    group: str
    subscriber_id: str
    digest: str


class EndNotes(Protocol):
    """Where such notes are kept."""

    def note_end(self, note: EndNote) -> None:
        """Keep a note; the same note twice is one."""
        ...

    def due_ends(self, now: int) -> Iterator[EndNote]:
        """The notes up to a time, earliest first."""
        ...

    def forget_end(self, note: EndNote) -> None:
        """Drop a note."""
        ...


def next_warning(ends_at: int, after: int, days: Sequence[int] = CERTIFICATE_DAYS) -> int | None:
    """When an end is told next; None if everything has been said.

    Args:
        ends_at: The end, epoch milliseconds.
        after: Warnings up to this time are past.
        days: How many days before it is told, falling.
    """
    return next((at for at in (ends_at - each * DAY_MS for each in days) if at > after), None)


def first_warning(ends_at: int, now: int) -> int | None:
    """When the end of a certificate that is set now is told first: at once, if it is near."""
    return now if now < ends_at <= now + CERTIFICATE_DAYS[0] * DAY_MS else next_warning(ends_at, now)


def days_left(ends_at: int, now: int) -> int:
    """Days until an end, counted up; 0 when it has come."""
    return max(0, -(-(ends_at - now) // DAY_MS))


def shown_ends(schemes: Iterable[Scheme]) -> dict[str, str]:
    """When schemes end, as owners are shown it, by the headers of their signatures; those that do not are left out."""
    return {each.header: iso_time(each.ends_at) for each in schemes if each.ends_at}


def scheme_digest(header: str, ends_at: int) -> str:
    """What names the end of a signature scheme among all ends of a subscriber.

    Args:
        header: Carries the scheme's signature.
        ends_at: Its end, epoch milliseconds.
    """
    return f"{ends_at}-{hashlib.sha256(header.lower().encode()).hexdigest()[:12]}"


def scheme_note(place: tuple[str, str, str], header: str, ends_at: int, now: int) -> EndNote | None:
    """The next note of a scheme's end; None if there is nothing more to say.

    Args:
        place: Owner, group and subscriber, see :class:`EndNote`.
        header: Carries the scheme's signature.
        ends_at: Its end, epoch milliseconds; 0 for none.
    """
    at = next_warning(ends_at, now, SCHEME_DAYS) if ends_at else None
    return None if at is None else EndNote(at, *place, scheme_digest(header, ends_at))


class Ending(NamedTuple):
    """Something that ends.

    Attributes:
        digest: Names it, see :class:`EndNote`.
        ends_at: When, epoch milliseconds.
        days: Days before its end at which its owner is told.
        tell: Tells its owner, given the days that are left.
    """

    digest: str
    ends_at: int
    days: Sequence[int]
    tell: Callable[[int], None]


def ending_certificate(
    certificate: ClientCertificate | None, tell: Callable[[ClientCertificate, int], None]
) -> list[Ending]:
    """A subscriber's certificate as what ends; nothing if it has none.

    Args:
        tell: Tells its owner, given the days that are left.
    """
    if certificate is None:
        return []
    return [
        Ending(certificate.digest, certificate.ends_at, CERTIFICATE_DAYS, lambda left: tell(certificate, left)),
    ]


def ending_schemes(ends: Mapping[str, str], tell: Callable[[str, str, int], None]) -> list[Ending]:
    """Signature schemes as what ends.

    Args:
        ends: Their ends, as their owner is shown them, by the headers of their signatures.
        tell: Tells their owner, given header, end and the days that are left.
    """

    def ending(header: str, end: str) -> Ending:
        at = epoch_ms(end)
        return Ending(scheme_digest(header, at), at, SCHEME_DAYS, lambda left: tell(header, end, left))

    return [ending(*each) for each in ends.items()]


Find = Callable[[EndNote], Iterable[Ending]]
"""What ends where a note is: at its subscriber, or of what its project hands down. Raises ``Unavailable``."""


class Ends(Component):
    """Implements :class:`pushhub.engine.protocol.Tick`: looks each minute, and tells of ends when they are due.

    A scheme that has ended already is told nothing of; a certificate is.
    """

    notes: EndNotes
    find: Find  # Looks up what ends.
    clock: Clock

    def run(self, remaining_ms: Callable[[], int]) -> int:
        """Tell what is due; returns how much that was.

        Args:
            remaining_ms: Milliseconds that the run has left; what does not fit in is seen to by the next.

        Raises:
            Exception: What the last note that failed did. It stays, for the next run, and keeps no other waiting;
                nothing is told twice.
        """
        noted, now = 0, self.clock.now()
        failed: Exception | None = None
        for note in self.notes.due_ends(now):
            if remaining_ms() < MARGIN_MS:
                break
            try:
                noted += self._see_to(note, now)
            except Exception as error:  # noqa: BLE001 (raised when all have had their turn)
                failed = error
        if failed is not None:
            raise failed
        return noted

    def _see_to(self, note: EndNote, now: int) -> bool:
        """Tell what a note says, if it is still so; returns whether something was told."""
        ending = next((each for each in self.find(note) if each.digest == note.digest), None)
        if ending is None and now - note.at < CHANGING_MS:
            return False
        due = ending is not None and (ending.ends_at > now or 0 in ending.days)
        if ending is not None and due:
            self._tell(note, ending, now)
        self.notes.forget_end(note)
        return due

    def _tell(self, note: EndNote, ending: Ending, now: int) -> None:
        ending.tell(days_left(ending.ends_at, now))
        at = next_warning(ending.ends_at, now, ending.days)
        if at is not None:
            self.notes.note_end(replace(note, at=at))
