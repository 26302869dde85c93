"""Pulses: what the hub sends through the stream of each table every five minutes, and what came out as records.

A pulse that is in its table and among no records says that its stream, or the records of that time, were lost, however
quiet the hub was. docs/decisions/records.md. Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import groupby
from typing import Final

from pushhub.engine.model.record import PULSE_EVERY_S

EVERY: Final = timedelta(seconds=PULSE_EVERY_S)
"""From one pulse to the next."""

ON_ITS_WAY: Final = timedelta(minutes=10)
"""A pulse may take so long through its stream into the records, however little the report's own grace is."""

IN_TABLE: Final = timedelta(days=9)
"""For so long a pulse is in its table at least; the hub keeps it for ten days, and DynamoDB removes it
some time later."""

Pulses = Mapping[str, Set[datetime]]
"""Times of pulses, by the name of the table."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Gap:
    """Pulses in a row that are not among the records of a table.

    Attributes:
        start: Time of the first.
        stop: The time of the next after the last.
        lost: Whether records are missing: the pulses were sent, or nobody can tell that they were not.
    """

    table: str
    start: datetime
    stop: datetime
    lost: bool

    @property
    def count(self) -> int:
        """How many pulses."""
        return round((self.stop - self.start) / EVERY)


def recorded_pulses(ids: Iterable[str]) -> dict[str, set[datetime]]:
    """The pulses (``pulse/{table}/{time}``) among the records."""
    found: dict[str, set[datetime]] = {}
    for each in ids:
        _, table, at = each.split("/", 2)
        found.setdefault(table, set()).add(datetime.fromisoformat(at).astimezone(UTC))
    return found


def gaps(
    recorded: Pulses,
    in_tables: Pulses | None,
    *,
    since: datetime,
    until: datetime,
    now: datetime,
    before: Callable[[], Set[str]] = frozenset,
) -> list[Gap]:
    """What is missing among the records, by table and time.

    A pulse is expected in every stream from the first one on that there is or was anywhere: a hub that began later, or
    that sent none yet, lacks none. One that is not in its table either was not sent, as when the hub stood still.

    Args:
        in_tables: Those in the tables, with an entry for each table; None if the tables were not read.
        since: Begin of what was asked for.
        until: Pulses before this time should be there, unless they are still on their way.
        now: When the tables were read.
        before: The tables that had pulses before that; asked for only if the first one comes late.
    """
    until = min(until, now - ON_ITS_WAY)
    known = in_tables or {}
    every = [at for pulses in (*recorded.values(), *known.values()) for at in pulses if since <= at < until]
    first = min(every, default=until)
    tables: Set[str] = recorded.keys() | known.keys()
    if first >= since + EVERY and (former := before()):
        first, tables = _next(since), tables or former
    times = list(_times(first, until))
    found: list[Gap] = []
    for table in sorted(tables):
        missing = [at for at in times if at not in recorded.get(table, ())]

        def is_lost(at: datetime, table: str = table) -> bool:
            if in_tables is None or at in known.get(table, ()):
                return True
            # What is no longer in any table was sent if it came through another one.
            return at < now - IN_TABLE and any(at in of_another for of_another in recorded.values())

        found += _runs(table, [(at, is_lost(at)) for at in missing])
    return found


def _next(moment: datetime) -> datetime:
    """The time of the first pulse that is not before a moment."""
    epoch = datetime.fromtimestamp(0, UTC)
    return epoch + -((epoch - moment) // EVERY) * EVERY


def _times(first: datetime, until: datetime) -> Iterator[datetime]:
    while first < until:
        yield first
        first += EVERY


def _runs(table: str, missing: Iterable[tuple[datetime, bool]]) -> Iterator[Gap]:
    """Pulses in a row, together."""
    in_row = groupby(enumerate(missing), key=lambda each: (each[1][0] - each[0] * EVERY, each[1][1]))
    for (_, lost), some in in_row:
        times = [at for _, (at, _) in some]
        yield Gap(table=table, start=times[0], stop=times[-1] + EVERY, lost=lost)
