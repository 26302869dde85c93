"""First tries of each subscriber in each five minutes: the finest that anomalies are judged by."""

from __future__ import annotations

from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import LongType, StringType, StructField, StructType, TimestampType

from .cells import WHO

SLOT_S: Final = 300
"""A slot: five minutes."""

SLOT: Final = StructType(
    [
        *(StructField(name, StringType()) for name in (*WHO, "subscriber")),
        StructField("slot", TimestampType()),
        StructField("tried", LongType()),
        StructField("failed", LongType()),
    ]
)
"""Columns of a slot."""


def slots_of(records: DataFrame) -> DataFrame:
    """First tries of each subscriber in each five minutes in which it had some: how many were ``tried``,
    how many ``failed``.

    The retries of a delivery that fails are left out: they would count one failure many times.
    """
    begin = F.floor(F.unix_timestamp("at") / SLOT_S) * SLOT_S
    return (
        records.where((F.col("kind") == "attempt") & (F.col("attempt") == 1))
        .select(
            *WHO,
            F.coalesce("subscriber", F.lit("")).alias("subscriber"),
            F.timestamp_seconds(begin).alias("slot"),
            (F.col("verdict") == "failed").cast("long").alias("fails"),
        )
        .groupBy(*WHO, "slot")
        .agg(
            F.max("subscriber").alias("subscriber"),
            F.count(F.lit(1)).alias("tried"),
            F.sum("fails").alias("failed"),
        )
        .select(*SLOT.fieldNames())
    )
