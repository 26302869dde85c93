"""The record schema as Spark sees it, derived from the record itself (``docs/records.md``),
and the words that its columns may contain.
"""

from __future__ import annotations

from typing import Final

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

RAW: Final = StructType([*_FIELDS, StructField(CORRUPT, StringType())])
"""A line as it is read."""

CURATED: Final = StructType([*_FIELDS, StructField("source", StringType())])
"""A record as it is kept, with the name of the object it came from."""
