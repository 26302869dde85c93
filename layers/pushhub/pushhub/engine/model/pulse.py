"""Pulses: tiny items that pass through the stream of each table that has delivery records, so that silence of a stream
can be told from silence of its senders (``docs/records.md``). Pure.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pushhub.base.times import iso_time
from pushhub.engine.model.record import PULSE, PULSE_EVERY_S, SCHEMA_VERSION

if TYPE_CHECKING:
    from pushhub.engine.model.record import DeliveryRecord

NAMES_MS = 600_000
"""How far into an hour the pulse is with which all objects of the hour before are named: what was late has come."""

HOUR_MS = 3_600_000

KEPT_S = 10 * 86_400
"""How long a pulse stays in its table: longer than the days that the delivery report compares with the tables."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pulse:
    """A pulse that came out of a stream; it is written among the delivery records.

    Attributes:
        at: The time it stands for (epoch milliseconds), see :func:`pulse_time`.
    """

    table: str
    at: int

    @property
    def hour(self) -> tuple[str, str]:
        """Date and hour (UTC), as used in the object key."""
        return iso_time(self.at)[:10], iso_time(self.at)[11:13]

    def as_fields(self) -> dict[str, object]:
        """The fields, ready for JSON."""
        at = iso_time(self.at)
        return {"schema_version": SCHEMA_VERSION, "record_id": f"{PULSE}/{self.table}/{at}", "kind": PULSE, "at": at}


def pulse_time(now: int) -> int:
    """The time that a pulse sent now stands for: the begin of its five minutes. Epoch milliseconds, both."""
    every = PULSE_EVERY_S * 1000
    return now // every * every


def names_the_hour_before(line: DeliveryRecord | Pulse) -> str | None:
    """The folder of the hour whose objects an object with this line names, ``dt=2026-11-18/hour=10``; None if it does
    not. One pulse of an hour does, through each table's stream: also what no object names that came after it, as its
    environment wrote no more, is then named by three.
    """
    if not isinstance(line, Pulse) or line.at % HOUR_MS != NAMES_MS:
        return None
    before = iso_time(line.at - HOUR_MS)
    return f"dt={before[:10]}/hour={before[11:13]}"
