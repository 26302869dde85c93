"""Whether another try helps.

Success by try, how long subscribers take to recover, and what :mod:`.advice` needs to know of each queue.
"""

from __future__ import annotations

from datetime import datetime
from typing import Final

from pyspark.sql import Column, DataFrame, Row, Window
from pyspark.sql import functions as F
from pyspark.sql.types import (
    BooleanType,
    DoubleType,
    LongType,
    StringType,
    StructField,
    StructType,
)

from .advice import LEAST, Failed, advice
from .cells import WHO
from .cost import usd_per_try
from .percentiles import bucket_of, rolled_up
from .storage import small_table

RECOVERY: Final = {"p25_ms": 0.25, "p50_ms": 0.5, "p75_ms": 0.75, "p90_ms": 0.9, "p95_ms": 0.95, "p99_ms": 0.99}

QUEUE: Final = ("project", "queue", "dialect")

TAKEN: Final = ("delivered", "reserved", "poll")
"""Verdicts after which nothing is tried again unless the subscriber fails to finish it."""

ADVISED: Final = 200
"""Queues that are given advice."""

_SETTINGS: Final = ("retries", "retries_delay", "retry_base", "retry_cap", "max_attempts")

ADVICE: Final = StructType(
    [
        *(StructField(name, StringType()) for name in QUEUE),
        StructField("change", BooleanType()),
        *(StructField(f"{name}_now", LongType()) for name in _SETTINGS),
        *(StructField(name, LongType()) for name in _SETTINGS),
        *(StructField(name, LongType()) for name in ("failed_first", "given_up", "tries_saved", "deliveries_saved")),
        StructField("usd_saved", DoubleType()),
    ]
)
"""Columns of an advice: the settings in use, those suggested (the protocol's own.

The others are null), and what they would have saved, negative what they cost.
"""


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


def failed_at_first(records: DataFrame, since: datetime) -> DataFrame:
    """Deliveries whose first try failed, counted by queue, by how long was waited in all before their last try,
    and by whether that one was taken.

    Polls are no tries: an answer that is to be polled for was taken. Deliveries that gave up are among those that were
    not taken.

    Args:
        records: Delivery records.
        since: Only messages accepted from then on, so that every try is known.
    """
    failed = F.col("verdict") == "failed"
    after_first = F.col("attempt") > 1
    lives = (
        records.where(_is_try() & (F.col("accepted_at") >= F.lit(since)) & (failed | after_first))
        .groupBy(*QUEUE, "queue_uid", "message_id", "delivery_id")
        .agg(
            F.min(F.when(failed, F.col("attempt"))).alias("first_failed"),
            F.min(F.when(F.col("verdict").isin(*TAKEN), F.col("attempt"))).alias("taken"),
            F.collect_list(F.struct("attempt", F.coalesce("wait_before_ms", F.lit(0)).alias("waited"))).alias("tries"),
            F.max((failed & F.col("state").isin("exhausted", "held")).cast("int")).alias("gave_up"),
        )
        # Deliveries that were accepted first and came back are not considered here.
        .where(F.col("first_failed").isNotNull() & (F.coalesce("taken", F.lit(1 << 30)) > F.col("first_failed")))
    )
    upto = F.filter(
        "tries",
        lambda each: (
            (each["attempt"] > F.col("first_failed")) & (each["attempt"] <= F.coalesce(F.col("taken"), F.lit(1 << 30)))
        ),
    )
    waited = F.aggregate(upto, F.lit(0).cast("long"), lambda total, each: total + each["waited"])
    return (
        lives.select(*QUEUE, waited.alias("waited_ms"), F.col("taken").isNotNull().alias("won"), "gave_up")
        .withColumn("bucket", bucket_of(F.col("waited_ms")))
        .groupBy(*QUEUE, "bucket", "won")
        .agg(
            F.count(F.lit(1)).alias("n"),
            F.max("waited_ms").alias("waited_ms"),
            F.sum(F.when(~F.col("won"), F.col("gave_up")).otherwise(0)).alias("given_up"),
        )
    )


def settings_seen(records: DataFrame) -> DataFrame:
    """What the failed tries of each queue show about its settings, see :func:`.advice.setting_in_use`.

    Args:
        records: Delivery records.
    """
    wait = F.col("wait_after_ms")
    return (
        records.where(_is_try() & (F.col("verdict") == "failed"))
        .groupBy(*QUEUE)
        .agg(
            F.max("tries_max").alias("tries_max"),
            F.percentile_approx(wait, 0.5).alias("wait_ms"),
            F.min(F.when(F.col("tries") == 1, wait)).alias("first_wait_ms"),
            F.max(wait).alias("longest_wait_ms"),
        )
    )


def advised(cells: DataFrame, records: DataFrame) -> DataFrame:
    """The advice for the :data:`ADVISED` queues with the most deliveries that failed at first,
    as :data:`ADVICE` lists the columns.

    Args:
        cells: See :func:`failed_at_first`, kept.
        records: Delivery records.
    """
    spark = records.sparkSession
    most = cells.groupBy(*QUEUE).agg(F.sum("n").alias("all"), F.sum("given_up").alias("given_up"))
    queues = (
        most.where(F.col("all") >= LEAST)
        .orderBy(F.desc("all"), *QUEUE)
        .limit(ADVISED)
        .join(settings_seen(records), list(QUEUE))
    )
    known = {_queue_of(row): row.asDict() for row in queues.collect()}
    if not known:
        return small_table(spark, [], ADVICE)
    failed: dict[tuple[str, ...], list[Failed]] = {queue: [] for queue in known}
    for row in cells.join(F.broadcast(queues.select(*QUEUE)), list(QUEUE), "left_semi").collect():
        each = Failed(waited_s=row["waited_ms"] / 1000, won=row["won"], n=row["n"])
        failed[_queue_of(row)].append(each)
    price = usd_per_try(spark)
    rows = [advice(known[queue], each, price) for queue, each in failed.items()]
    return small_table(spark, [row for row in rows if row is not None], ADVICE)


def _is_try() -> Column:
    return (F.col("kind") == "attempt") & ~F.col("dialect").isin("pull", "notifications")


def _queue_of(row: Row) -> tuple[str, ...]:
    return tuple(row[name] for name in QUEUE)
