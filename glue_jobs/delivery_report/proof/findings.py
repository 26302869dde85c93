"""What a finding is, and how it is told."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any, Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from ..storage.schema import struct

FINDING: Final = struct(
    "string severity finding project queue message_id delivery_id",
    "timestamp hour",
    "string detail",
)
"""Columns of a finding; ``severity`` is ``breach`` or ``notice``, ``hour`` that of the message's acceptance."""

NAMED: Final = 5
"""Objects that a finding names; of more it says how many."""

UNCOUNTED: Final = frozenset(
    {
        *("pulse_missing", "object_missing", "objects_gone", "open_deliveries_lost"),
        *("not_recorded", "not_compared", "unusable_records"),
    }
)
"""Breaches of which nobody knows how many deliveries they cost: these are in no sum."""


def found(rows: DataFrame, severity: str, finding: str | Column, detail: Column) -> DataFrame:
    """A finding of each row, which says whose it is in the columns that a finding has, as far as it has these."""
    whose = [
        F.col(each.name) if each.name in rows.columns else F.lit(None).cast(each.dataType).alias(each.name)
        for each in FINDING.fields[2:-1]
    ]
    kind = F.lit(finding) if isinstance(finding, str) else finding
    return rows.select(F.lit(severity).alias("severity"), kind.alias("finding"), *whose, detail.alias("detail"))


def finding_of(severity: str, finding: str, detail: str, hour: datetime | None = None) -> dict[str, Any]:
    """A finding about no delivery."""
    return {"severity": severity, "finding": finding, "detail": detail, "hour": hour}


def some(names: Iterable[str]) -> str:
    """The first few of some names, and how many more there are."""
    first = sorted(names)
    more = f" and {len(first) - NAMED} more" if len(first) > NAMED else ""
    return f"{', '.join(first[:NAMED])}{more}"
