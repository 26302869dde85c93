"""Whether another try helps: success by try, and how long subscribers take to recover."""

from __future__ import annotations

from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import IntegerType, LongType, StringType, StructField, StructType

from .cells import WHO
from .driver import total
from .percentiles import bucket_of, rolled_up

RECOVERY: Final = {"p25_ms": 0.25, "p50_ms": 0.5, "p75_ms": 0.75, "p90_ms": 0.9, "p95_ms": 0.95, "p99_ms": 0.99}

TRIED: Final = StructType(
    [
        *(StructField(name, StringType()) for name in WHO),
        *(StructField(name, LongType()) for name in ("attempts", "won_attempt")),
        StructField("bucket", IntegerType()),
        *(StructField(name, LongType()) for name in ("n", "longest_ms")),
    ]
)
"""Columns of a cell of tried deliveries."""


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
        .select(*TRIED.fieldNames())
    )


def by_attempt(cells: str) -> str:
    """Per attempt number: deliveries that made it (``tried``), that it won (``won``), its ``share``,
    and the ``won_so_far`` share of all.

    Args:
        cells: See :func:`try_cells`.
    """
    return f"""
        SELECT *, won / tried AS share,
               sum(won) OVER (ORDER BY attempt) / first(tried) OVER (ORDER BY attempt) AS won_so_far
        FROM (
            SELECT attempt, {total("n", "tried")},
                   {total("CASE WHEN won_attempt = attempt THEN n ELSE 0 END", "won")}
            FROM (SELECT *, unnest(generate_series(1, attempts)) AS attempt FROM {cells}) GROUP BY attempt
        )"""


def recovery_times(cells: str) -> str:
    """How long deliveries that failed at first took to be taken for good: count and percentiles.

    Args:
        cells: See :func:`try_cells`.
    """
    recovered = f"(SELECT * FROM {cells} WHERE bucket IS NOT NULL)"
    return rolled_up(recovered, (), sums={"recovered": "n"}, count="n", largest="longest_ms", wanted=RECOVERY)
