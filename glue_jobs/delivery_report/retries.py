"""Whether another try helps: success by try, and how long subscribers take to recover."""

from __future__ import annotations

from typing import Final

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from .cells import WHO
from .percentiles import bucket_of, rolled_up

RECOVERY: Final = {"p25_ms": 0.25, "p50_ms": 0.5, "p75_ms": 0.75, "p90_ms": 0.9, "p95_ms": 0.95, "p99_ms": 0.99}


def try_cells(deliveries: DataFrame) -> DataFrame:
    """Tried deliveries counted by subscriber, attempts made, the attempt that won, and the time they took to recover.

    That time is from the first answer to success, for those that did not win at once. Success is only seen when it is
    tried, so these times are those of the schedule in use, rounded up to its next try.

    Args:
        deliveries: See :mod:`.deliveries`.
    """
    # A poll has the number of an attempt, but asks for what was taken before.
    tries = F.col("attempts") - F.col("polls")
    won = F.when(F.col("won_attempt").isNotNull(), F.least(F.col("won_attempt").cast("long"), tries))
    recovered = (won > 1) & F.col("settled_at").isNotNull()
    took = F.when(recovered, F.unix_millis("settled_at") - F.unix_millis("first_answer_at"))
    return (
        deliveries.where(tries > 0)
        .select(*WHO, took.alias("took"), won.alias("won_attempt"), tries.alias("attempts"))
        .withColumn("bucket", bucket_of(F.col("took")))
        .groupBy(*WHO, "attempts", "won_attempt", "bucket")
        .agg(F.count(F.lit(1)).alias("n"), F.max("took").alias("longest_ms"))
    )


def by_attempt(cells: DataFrame, keys: tuple[str, ...] = ()) -> DataFrame:
    """Per attempt number: deliveries that made it (``tried``), that it won (``won``), its ``share``,
    and the ``won_so_far`` share of all.

    Args:
        cells: See :func:`try_cells`.
        keys: Columns to group by; none for everything together.
    """
    counted = cells.groupBy(*keys, "attempts", "won_attempt").agg(F.sum("n").alias("n"))
    each = counted.withColumn("attempt", F.explode(F.expr("sequence(1, cast(attempts as int))")))
    by_number = each.groupBy(*keys, "attempt").agg(
        F.sum("n").alias("tried"),
        F.sum(F.when(F.col("won_attempt") == F.col("attempt"), F.col("n")).otherwise(0)).alias("won"),
    )
    so_far = Window.partitionBy(*(keys or (F.lit(0),))).orderBy("attempt")
    first = F.first("tried").over(so_far)
    return by_number.select(
        *keys,
        "attempt",
        "tried",
        "won",
        (F.col("won") / F.col("tried")).alias("share"),
        (F.sum("won").over(so_far) / first).alias("won_so_far"),
    )


def recovery_times(cells: DataFrame, keys: tuple[str, ...] = ()) -> DataFrame:
    """How long deliveries that failed at first took to be taken for good: count and percentiles.

    Args:
        cells: See :func:`try_cells`.
        keys: Columns to group by; none for everything together.
    """
    return rolled_up(
        cells.where(F.col("bucket").isNotNull()),
        keys,
        sums={"recovered": F.col("n")},
        count="n",
        largest="longest_ms",
        wanted=RECOVERY,
    )
