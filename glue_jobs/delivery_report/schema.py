"""The record schema as Spark sees it, derived from the record itself (``docs/records.md``),
and the words that its columns may contain.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import (
    ArrayType,
    BooleanType,
    DataType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from pushhub.engine.model.record import COLUMNS, RecordKind

KINDS: Final = tuple(each.value for each in RecordKind)

SETTLED: Final = ("delivered", "acknowledged", "exhausted", "expired", "cancelled")

STATES: Final = ("pending", "retrying", "reserved", "polling", "held", *SETTLED)
"""A state's place in this list is its code where states are packed into numbers."""

CORRUPT: Final = "_corrupt_record"
"""Where Spark puts a line that it could not parse."""

_TYPES: Final[dict[str, DataType]] = {
    "int": IntegerType(),
    "bigint": LongType(),
    "string": StringType(),
    "timestamp": TimestampType(),
    "boolean": BooleanType(),
    "array<string>": ArrayType(StringType()),
}

_FIELDS: Final = tuple(StructField(name, _TYPES[column]) for name, column in COLUMNS.items())

_FORMER: Final = StructField("parked", BooleanType())
"""What ``scheduled`` was called in schema version 1."""

RAW: Final = StructType([*_FIELDS, _FORMER, StructField(CORRUPT, StringType())])
"""A line as it is read."""

CURATED: Final = StructType([*_FIELDS, StructField("source", StringType())])
"""A record as it is kept, with the name of the object it came from."""

STORED: Final = StructType([*CURATED.fields, _FORMER])
"""What files of kept records may hold: those written before schema version 2 say ``parked``."""


def in_todays_words(records: DataFrame) -> DataFrame:
    """Records of any version in the terms of the newest: version 1 wrote ``parked`` for the state ``held`` and for the
    field ``scheduled``.

    Args:
        records: With the columns of :data:`RAW` or :data:`STORED`.
    """
    state = F.col("state")
    return records.withColumns(
        {
            "state": F.when(state == "parked", "held").otherwise(state),
            "scheduled": F.coalesce("scheduled", _FORMER.name),
        }
    ).drop(_FORMER.name)
