"""The rhythm of a subscriber: how many deliveries are usual at each hour of its week,
and what came in each five minutes of the report.
"""

from __future__ import annotations

from datetime import datetime
from typing import Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F
from pyspark.sql.types import LongType, StringType, StructField, StructType, TimestampType

from .cells import WHO

SLOT_S: Final = 300
"""A slot: five minutes."""

HOUR_S: Final = 3_600
WEEK: Final = 168
"""Hours."""

WEEKEND: Final = (2, 3)
"""Saturday and Sunday, counted from the weekday of 1 January 1970."""

SLOT: Final = StructType(
    [
        *(StructField(name, StringType()) for name in (*WHO, "subscriber")),
        StructField("slot", TimestampType()),
        StructField("tried", LongType()),
        StructField("failed", LongType()),
    ]
)
"""Columns of a slot."""

LEAST_WEEKLY: Final = 25.0
"""Usual deliveries in a week below which a subscriber has no rhythm to speak of."""

_BY_WEEKDAY_H: Final = 21 * 24
"""History from which each weekday is compared with itself.

Before, working days with working days and weekends with weekends.
"""


def slots_of(records: DataFrame) -> DataFrame:
    """First tries of each subscriber in each five minutes in which it had some: how many were ``tried``,
    how many ``failed``.

    The retries of a delivery that fails are left out: they would count one failure many times.

    Args:
        records: Delivery records.
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


def hour_number(seconds: Column) -> Column:
    """Hours since 1970 of an epoch time in seconds."""
    return F.floor(seconds / HOUR_S)


def whole_hours(hours: DataFrame, until: datetime) -> DataFrame:
    """The hours that were over.

    Args:
        hours: See :func:`.cells.hourly`.
        until: End of what is known.
    """
    return hours.where(F.unix_timestamp("hour") + HOUR_S <= int(until.timestamp()))


def usual_by_hour(hours: DataFrame, until: datetime) -> DataFrame:
    """The week of each subscriber that has a rhythm: ``usual`` deliveries by hour of the week,
    their sums ``upto`` each hour, and ``weekly``.

    What is usual is the mean of the same hour of the week without the largest and the smallest, so that one odd week
    counts for nothing; silent ones count zero. It takes three of them at least. Only hours that were ever heard of are
    kept on the way, however many subscribers are silent.

    Args:
        hours: See :func:`.cells.hourly`, with the days of the baseline.
        until: End of what is known.
    """
    end = int(until.timestamp()) // HOUR_S
    place, day = F.col("number") % WEEK, F.floor(F.col("number") % WEEK / 24)
    of_day = F.col("number") % 24
    by_weekday = F.lit(end) - F.col("first") >= _BY_WEEKDAY_H
    alike = F.when(by_weekday, F.array(place)).otherwise(
        F.when(day.isin(*WEEKEND), F.transform(_days(*WEEKEND), lambda each: each * 24 + of_day)).otherwise(
            F.transform(_days(0, 1, 4, 5, 6), lambda each: each * 24 + of_day)
        )
    )
    counted = (
        whole_hours(hours, until)
        .where(F.col("first_attempts") > 0)
        .withColumn("number", hour_number(F.unix_timestamp("hour")))
        .withColumn("first", F.min("number").over(Window.partitionBy(*WHO)))
        .withColumn("alike", alike)
        .groupBy(*WHO, "first", "alike")
        .agg(
            F.count(F.lit(1)).alias("heard"),
            F.sum("first_attempts").alias("sum"),
            F.max("first_attempts").alias("most"),
            F.min("first_attempts").alias("least"),
        )
    )
    first = F.col("first")
    times = F.aggregate(
        F.transform("alike", lambda each: F.floor((F.lit(end - 1) - first - _after(first, each)) / WEEK) + 1),
        F.lit(0).cast("long"),
        lambda total, each: total + F.greatest(each, F.lit(0)),
    )
    least = F.when(F.col("heard") >= F.col("times"), F.col("least")).otherwise(0)
    usual = (
        counted.withColumn("times", times)
        .where(F.col("times") >= 3)
        .withColumn("each", (F.col("sum") - F.col("most") - least) / (F.col("times") - 2))
        .where(F.col("each") > 0)
        .select(*WHO, F.explode("alike").alias("place"), "each")
    )
    weeks = (
        usual.groupBy(*WHO)
        .agg(
            F.sum("each").alias("weekly"),
            F.map_from_entries(F.collect_list(F.struct("place", "each"))).alias("by_place"),
        )
        .where(F.col("weekly") >= LEAST_WEEKLY)
    )
    whole = F.sequence(F.lit(0).cast("long"), F.lit(WEEK - 1).cast("long"))
    zero = F.lit(0.0)
    return (
        weeks.withColumn("usual", F.transform(whole, lambda each: F.coalesce(F.col("by_place")[each], zero)))
        .withColumn(
            "upto",
            F.transform(
                whole,
                lambda each: F.aggregate(
                    F.slice("usual", F.lit(1), each.cast("int")), zero, lambda total, one: total + one
                ),
            ),
        )
        .select(*WHO, "usual", "upto", "weekly")
    )


def usual_between(begin: Column, end: Column) -> Column:
    """How many deliveries are usual between two epoch times in seconds, in rows of :func:`usual_by_hour`."""
    return _usual_upto(end) - _usual_upto(begin)


def _usual_upto(seconds: Column) -> Column:
    hours = hour_number(seconds)
    place = (hours % WEEK).cast("int")
    part = seconds / HOUR_S - hours
    return F.floor(hours / WEEK) * F.col("weekly") + F.get("upto", place) + part * F.get("usual", place)


def _after(first: Column, place: Column) -> Column:
    """Hours from the first one on to the first of a place in the week."""
    return (place - first % WEEK + WEEK) % WEEK


def _days(*days: int) -> Column:
    return F.array(*(F.lit(day).cast("long") for day in days))
