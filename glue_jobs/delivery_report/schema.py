"""The record schema as Spark sees it (``docs/records.md``), and the words its columns may hold."""

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

__all__ = ["CORRUPT", "CURATED", "KINDS", "RAW", "REQUIRED", "SCHEMA_VERSION", "SETTLED", "STATES"]

SCHEMA_VERSION: Final = 1

KINDS: Final = (
    "accepted",
    "attempt",
    "poll",
    "acknowledged",
    "delivered",
    "exhausted",
    "expired",
    "cancelled",
    "rescheduled",
    "reserved",
    "released",
)

SETTLED: Final = ("delivered", "acknowledged", "exhausted", "expired", "cancelled")

STATES: Final = ("pending", "retrying", "reserved", "polling", "parked", *SETTLED)
"""A state's place in this list is its code where states are packed into numbers."""

CORRUPT: Final = "_corrupt_record"
"""Where Spark leaves a line that it could not parse."""

REQUIRED: Final = (
    "record_id",
    "kind",
    "at",
    "project",
    "queue",
    "queue_uid",
    "message_id",
    "accepted_at",
    "expires_at",
)
"""Without one of these a record says nothing."""

_FIELDS: Final[tuple[tuple[str, DataType], ...]] = (
    ("schema_version", IntegerType()),
    ("record_id", StringType()),
    ("kind", StringType()),
    ("at", TimestampType()),
    ("project", StringType()),
    ("queue", StringType()),
    ("queue_uid", StringType()),
    ("message_id", StringType()),
    ("dialect", StringType()),
    ("accepted_at", TimestampType()),
    ("expires_at", TimestampType()),
    ("body_size", LongType()),
    ("owed", ArrayType(StringType())),
    ("due_at", TimestampType()),
    ("delivery_id", StringType()),
    ("subscriber_id", StringType()),
    ("subscriber", StringType()),
    ("state", StringType()),
    ("parked", BooleanType()),
    ("version", IntegerType()),
    ("reservations", IntegerType()),
    ("attempt", IntegerType()),
    ("tries", IntegerType()),
    ("tries_max", IntegerType()),
    ("verdict", StringType()),
    ("status_code", IntegerType()),
    ("error_class", StringType()),
    ("started_at", TimestampType()),
    ("finished_at", TimestampType()),
    ("duration_ms", LongType()),
    ("bytes_out", LongType()),
    ("bytes_in", LongType()),
    ("wait_before_ms", LongType()),
    ("wait_after_ms", LongType()),
    ("order_key", StringType()),
    ("sequence", LongType()),
)

RAW: Final = StructType([*(StructField(name, kind) for name, kind in _FIELDS), StructField(CORRUPT, StringType())])
"""A line as it is read."""

CURATED: Final = StructType([*(StructField(name, kind) for name, kind in _FIELDS), StructField("source", StringType())])
"""A record as it is kept, with the name of the object it came from."""
