"""The record schema as Spark sees it, derived from the record itself (``docs/records.md``),
and the words that its columns may contain.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql.types import (
    ArrayType,
    BooleanType,
    DataType,
    DateType,
    DoubleType,
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

ENDED_OTHERWISE: Final = ("acknowledged", "expired", "cancelled")
"""No attempt leaves its delivery in one of these: it was under way when something else ended it, which has a record."""

STATES: Final = ("pending", "retrying", "reserved", "polling", "held", *SETTLED)
"""A state's place in this list is its code where states are packed into numbers."""

CORRUPT: Final = "_corrupt_record"
"""Where Spark puts a line that it could not parse."""

PARSING: Final = {
    "columnNameOfCorruptRecord": CORRUPT,
    "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSS'Z'",
    "enableDateTimeParsingFallback": "true",
}
"""How a line is parsed: a time is first taken for one as the hub writes it. Else Spark would compile two regular
expressions for the zone of each, a sixth of the work.
"""

_TYPES: Final[dict[str, DataType]] = {
    "int": IntegerType(),
    "bigint": LongType(),
    "string": StringType(),
    "timestamp": TimestampType(),
    "boolean": BooleanType(),
    "double": DoubleType(),
    "date": DateType(),
    "array<string>": ArrayType(StringType()),
}


def struct(*columns: str) -> StructType:
    """The columns of a table, in order.

    Args:
        columns: A type, and the names of some that have it: ``"string project queue"``, ``"timestamp hour"``.
    """
    split = [each.split() for each in columns]
    return StructType([StructField(name, _TYPES[kind]) for kind, *names in split for name in names])


_FIELDS: Final = tuple(StructField(name, _TYPES[column]) for name, column in COLUMNS.items())

RAW: Final = StructType([*_FIELDS, StructField(CORRUPT, StringType())])
"""A line as it is read."""

CURATED: Final = StructType([*_FIELDS, StructField("source", StringType())])
"""A record as it is kept, with the name of the object it came from."""
