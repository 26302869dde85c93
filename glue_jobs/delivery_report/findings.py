"""What a finding is."""

from __future__ import annotations

from typing import Final

from pyspark.sql.types import StringType, StructField, StructType, TimestampType

FINDING: Final = StructType(
    [
        *(StructField(name, StringType()) for name in ("severity", "finding", "project", "queue", "message_id")),
        StructField("delivery_id", StringType()),
        StructField("hour", TimestampType()),
        StructField("detail", StringType()),
    ]
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
