"""Pulses: tiny items that pass through the stream of each table that has delivery records, so that silence of a stream
can be told from silence of its senders (``docs/records.md``). Pure.
"""

from __future__ import annotations

from dataclasses import dataclass

from pushhub.base.times import iso_time
from pushhub.engine.model.record import PULSE, PULSE_EVERY_S, SCHEMA_VERSION

KEPT_S = 10 * 86_400
"""How long a pulse stays in its table: longer than the days that the delivery report compares with the tables."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pulse:
    """A pulse that came out of a stream; it is written among the delivery records.

    Attributes:
        table: Name of the table.
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
