"""Hours unlike the same hours of the days before, subscribers that flip between well and sick, and sudden shifts of latency.

Everything is robust (medians and median deviations), needs a minimum of data, and says in words what was expected.
"""

from __future__ import annotations

from datetime import date
from typing import Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F
from pyspark.sql.types import DoubleType, StringType, StructField, StructType, TimestampType

from .cells import WHO

__all__ = ["ANOMALY", "flapping", "latency_shifts", "unusual_hours", "with_silent_hours"]

ANOMALY: Final = StructType(
    [
        *(StructField(name, StringType()) for name in ("anomaly", *WHO, "subscriber")),
        StructField("hour", TimestampType()),
        *(StructField(name, DoubleType()) for name in ("value", "expected", "score")),
        StructField("detail", StringType()),
    ]
)
"""Columns of an anomaly; ``score`` tells by how much more than its usual spread the value is off, for ranking."""

MIN_DAYS: Final = 4
"""Days with data at the same hour that a comparison needs."""

MIN_ATTEMPTS: Final = 20
"""Attempts an hour needs to be judged, and to be compared with."""

UNUSUAL: Final = 6.0
"""Spreads off the median from which an hour is unusual."""

SICK_SHARE: Final = 0.5
"""Failed share from which an hour of a subscriber is a sick one."""

FLIPS: Final = 4
"""Changes between well and sick within the report from which a subscriber is flapping."""

SHIFT_HOURS: Final = 6
"""Hours before and after that a latency shift is judged by."""

SHIFT_FACTOR: Final = 2.0
SHIFT_LEAST_MS: Final = 50
"""A shift is at least this factor and at least this many milliseconds."""


def with_silent_hours(hours: DataFrame) -> DataFrame:
    """The hours, and one of zero attempts wherever a subscriber had none between its first and everybody's last.

    Args:
        hours: See :func:`.cells.hourly`.
    """
    last = hours.agg(F.max("hour").alias("last"))
    in_time = Window.partitionBy(*WHO).orderBy("hour")
    hour = F.expr("interval 1 hour")
    following = hours.withColumn("until", F.lead("hour").over(in_time) - hour).crossJoin(F.broadcast(last))
    every = following.select(
        *hours.columns, F.posexplode(F.sequence("hour", F.coalesce("until", "last"), hour)).alias("silent", "each")
    )
    heard = F.col("silent") == 0
    counts = {name: F.when(heard, F.col(name)).otherwise(0) for name in ("attempts", "failed")}
    known = (*WHO, "subscriber")
    measured = {name: F.when(heard, F.col(name)) for name in hours.columns if name not in (*known, "hour", *counts)}
    return every.withColumns({**counts, **measured, "hour": F.col("each")}).select(*hours.columns)


def unusual_hours(hours: DataFrame, since: date, baseline_days: int) -> DataFrame:
    """Hours of a subscriber whose volume, failed share or p95 is far from that of the same hour on the days before.

    Spread is the median absolute deviation times 1.4826, but at least what chance alone makes: ``sqrt(median)`` of a count, 5 points of a share, a tenth of a latency.

    Args:
        hours: See :func:`with_silent_hours`, with the baseline's days.
        since: First day that is judged.
        baseline_days: Days that an hour is compared with.
    """
    measured = hours.select(
        *WHO,
        "subscriber",
        "hour",
        "attempts",
        F.explode(
            F.array(
                _measure("volume", F.col("attempts").cast("double")),
                _measure("failures", F.try_divide("failed", "attempts")),
                _measure("latency", F.col("p95_ms").cast("double")),
            )
        ).alias("measure"),
    ).select("*", "measure.*")
    by_measure = Window.partitionBy(*WHO, "anomaly", F.hour("hour")).orderBy(F.unix_date(F.to_date("hour")))
    before = by_measure.rangeBetween(-baseline_days, -1)
    # A quiet hour is a sign when the days before were busy, so volume is judged whatever the hour's own count.
    solid = (F.col("attempts") >= MIN_ATTEMPTS) | (F.col("anomaly") == "volume")
    past = F.collect_list(F.when(solid, F.col("value"))).over(before)
    judged = (
        measured.withColumn("past", past)
        .where(solid & (F.to_date("hour") >= F.lit(since)) & (F.size("past") >= MIN_DAYS))
        .withColumn("expected", _median(F.col("past")))
        .withColumn("spread", _median(F.transform("past", lambda each: F.abs(each - F.col("expected")))) * 1.4826)
    )
    least = (
        F.when(F.col("anomaly") == "volume", F.greatest(F.sqrt("expected"), F.col("expected") * 0.1, F.lit(2.0)))
        .when(F.col("anomaly") == "failures", F.lit(0.05))
        .otherwise(F.greatest(F.col("expected") * 0.1, F.lit(5.0)))
    )
    busy = (F.col("anomaly") != "volume") | (F.greatest("value", "expected") >= MIN_ATTEMPTS)
    scored = judged.withColumn("score", F.abs(F.col("value") - F.col("expected")) / F.greatest("spread", least)).where(
        busy & (F.col("score") >= UNUSUAL)
    )
    return _anomalies(scored, F.col("anomaly"), _in_words())


def flapping(hours: DataFrame) -> DataFrame:
    """Subscribers that went from well to sick or back at least :data:`FLIPS` times.

    Args:
        hours: See :func:`.cells.hourly`, those of the report.
    """
    in_time = Window.partitionBy(*WHO).orderBy("hour")
    judged = hours.where(F.col("attempts") >= 5).withColumn("sick", F.col("failed") / F.col("attempts") >= SICK_SHARE)
    flips = judged.withColumn("flip", (F.lag("sick").over(in_time) != F.col("sick")).cast("int"))
    counted = flips.groupBy(*WHO).agg(
        F.max("subscriber").alias("subscriber"),
        F.sum("flip").alias("flips"),
        F.sum(F.col("sick").cast("int")).alias("sick_hours"),
        F.count(F.lit(1)).alias("hours"),
        F.max(F.when(F.col("flip") == 1, F.col("hour"))).alias("hour"),
    )
    detail = F.format_string(
        "changed %d times between well and sick; sick in %d of %d hours", "flips", "sick_hours", "hours"
    )
    return _anomalies(
        counted.where(F.col("flips") >= FLIPS).withColumns(
            {
                "value": F.col("flips").cast("double"),
                "expected": F.lit(0.0),
                "score": F.col("flips").cast("double"),
            }
        ),
        F.lit("flapping"),
        detail,
    )


def latency_shifts(hours: DataFrame) -> DataFrame:
    """The strongest lasting shift of each subscriber's median attempt time: the hours after it against the hours before.

    Args:
        hours: See :func:`.cells.hourly`, those of the report.
    """
    in_time = Window.partitionBy(*WHO).orderBy("hour")
    p50 = F.col("p50_ms").cast("double")
    solid = hours.where((F.col("attempts") >= MIN_ATTEMPTS) & F.col("p50_ms").isNotNull())
    around = solid.withColumns(
        {
            "before": F.collect_list(p50).over(in_time.rowsBetween(-SHIFT_HOURS, -1)),
            "after": F.collect_list(p50).over(in_time.rowsBetween(0, SHIFT_HOURS - 1)),
        }
    ).where((F.size("before") == SHIFT_HOURS) & (F.size("after") == SHIFT_HOURS))
    shifted = around.withColumns({"expected": _median(F.col("before")), "value": _median(F.col("after"))}).withColumn(
        "score", F.greatest("value", "expected") / F.greatest(F.least("value", "expected"), F.lit(1.0))
    )
    lasting = (F.col("score") >= SHIFT_FACTOR) & (F.abs(F.col("value") - F.col("expected")) >= SHIFT_LEAST_MS)
    # Every hour of one side must lie beyond the other's median, or a single spike would count as a shift.
    apart = (F.array_min("after") > F.col("expected")) | (F.array_max("after") < F.col("expected"))
    strongest = Window.partitionBy(*WHO).orderBy(F.desc("score"), "hour")
    kept = shifted.where(lasting & apart).withColumn("place", F.row_number().over(strongest)).where("place = 1")
    detail = F.format_string(
        "median attempt time from %.0f ms to %.0f ms for at least %d hours", "expected", "value", F.lit(SHIFT_HOURS)
    )
    return _anomalies(kept, F.lit("latency_shift"), detail)


def _measure(name: str, value: Column) -> Column:
    return F.struct(F.lit(name).alias("anomaly"), value.alias("value"))


def _median(values: Column) -> Column:
    """The median of an array, the mean of the middle two when it is even."""
    ordered = F.array_sort(values)
    size = F.size(values)
    low = F.get(ordered, F.floor((size - 1) / 2).cast("int"))
    high = F.get(ordered, F.floor(size / 2).cast("int"))
    return (low + high) / 2


def _in_words() -> Column:
    days = F.size("past")
    percent = "%.0f %% of attempts failed, usually %.0f %% at this hour (%d days)"
    return (
        F.when(
            F.col("anomaly") == "volume",
            F.format_string("%.0f attempts, usually %.0f at this hour (%d days)", "value", "expected", days),
        )
        .when(
            F.col("anomaly") == "failures",
            F.format_string(percent, F.col("value") * 100, F.col("expected") * 100, days),
        )
        .otherwise(F.format_string("p95 %.0f ms, usually %.0f ms at this hour (%d days)", "value", "expected", days))
    )


def _anomalies(rows: DataFrame, anomaly: Column, detail: Column) -> DataFrame:
    return rows.select(
        anomaly.alias("anomaly"), *WHO, "subscriber", "hour", "value", "expected", "score", detail.alias("detail")
    )
