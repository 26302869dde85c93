"""Whether another try helps.

Success by try, how long subscribers take to recover, and what :mod:`.advice` needs to know of each queue.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

import numpy as np
from pyspark.sql import Column, DataFrame, Row, SparkSession, Window
from pyspark.sql import functions as F
from pyspark.sql.types import (
    ArrayType,
    BooleanType,
    DoubleType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
)

from .advice import LEAST, advice
from .cells import WHO
from .cost import usd_per_try
from .percentiles import bucket_of, rolled_up
from .replay import Evidence, Life
from .storage import small_table

RECOVERY: Final = {"p25_ms": 0.25, "p50_ms": 0.5, "p75_ms": 0.75, "p90_ms": 0.9, "p95_ms": 0.95, "p99_ms": 0.99}

QUEUE: Final = ("project", "queue", "dialect")

TAKEN: Final = ("delivered", "reserved", "poll")
"""Verdicts after which nothing is tried again unless the subscriber fails to finish it."""

ADVISED: Final = 200
"""Queues that are given advice."""

LIVES: Final = 5_000
"""Deliveries of a subscriber that are replayed; of more, a part drawn by chance."""

WINS: Final = 250_000
"""Successful attempts of a subscriber that tell when it was well; of more, the same part is drawn of everything."""

SUBSCRIBERS: Final = 50
"""Subscribers of a queue that are replayed, those with the most failures."""

KNOWN: Final = 0.9
"""Share of a queue's deliveries that failed at first that these must have for an advice."""

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


LIFE: Final = StructType(
    [
        *(StructField(name, StringType()) for name in (*QUEUE, "subscriber_id")),
        *(StructField(name, ArrayType(LongType())) for name in ("started", "finished", "wait")),
        StructField("expires", LongType()),
        StructField("won", BooleanType()),
        StructField("given_up", IntegerType()),
        StructField("odd", BooleanType()),
        StructField("drawn", DoubleType()),
    ]
)
"""Columns of a delivery whose first try failed: its tries in order with the planned waits after them (-1: none), in
milliseconds; ``odd`` ones are not replayed; ``drawn`` is a number by chance.
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


def failed_at_first(records: DataFrame, since: datetime, until: datetime) -> DataFrame:
    """Deliveries whose first try failed, one row each, as :data:`LIFE` lists the columns.

    Polls are no tries: an answer that is to be polled for was taken. Odd ones, whose waits are not only the setting's:
    tries that persons asked for; unicast, whose tries go around; order, in which a message waits for another.

    Args:
        since: Only messages accepted from then on, so that every try is known.
        until: The replay ends then.
    """
    failed = F.col("verdict") == "failed"
    after_first = F.col("attempt") > 1
    odd = F.col("manual").isNotNull() | F.col("order_key").isNotNull() | F.col("delivery_id").endswith("*")
    never = F.lit(1 << 30)
    lives = (
        records.where(_is_try() & (F.col("accepted_at") >= F.lit(since)) & (failed | after_first))
        .groupBy(*QUEUE, "subscriber_id", "queue_uid", "message_id", "delivery_id")
        .agg(
            F.min(F.when(failed, F.col("attempt"))).alias("first_failed"),
            F.coalesce(F.min(F.when(F.col("verdict").isin(*TAKEN), F.col("attempt"))), never).alias("taken"),
            F.collect_list(
                F.struct(
                    "attempt",
                    F.unix_millis("started_at").alias("started"),
                    F.unix_millis("finished_at").alias("finished"),
                    F.coalesce("wait_after_ms", F.lit(-1)).cast("long").alias("wait"),
                )
            ).alias("tries"),
            F.max((failed & F.col("state").isin("exhausted", "held")).cast("int")).alias("gave_up"),
            F.unix_millis(F.least(F.min("expires_at"), F.lit(until))).alias("expires"),
            F.max(odd).alias("odd"),
        )
        # Deliveries that were accepted first and came back are not considered here.
        .where(F.col("first_failed").isNotNull() & (F.col("taken") > F.col("first_failed")))
    )
    tries = F.filter(
        F.array_sort("tries"),
        lambda each: (each["attempt"] >= F.col("first_failed")) & (each["attempt"] <= F.col("taken")),
    )
    won = F.col("taken") < never
    return (
        lives.withColumn("tries", tries)
        .select(
            *QUEUE,
            "subscriber_id",
            *(F.col(f"tries.{name}").alias(name) for name in ("started", "finished", "wait")),
            "expires",
            won.alias("won"),
            F.when(~won, F.col("gave_up")).otherwise(0).alias("given_up"),
            "odd",
            _by_chance().alias("drawn"),
        )
        .select(*LIFE.fieldNames())
    )


def settings_seen(records: DataFrame) -> DataFrame:
    """What the failed tries of each queue show about its settings, see :func:`.advice.setting_in_use`."""
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


def advised(lives: DataFrame, records: DataFrame) -> DataFrame:
    """The advice for the :data:`ADVISED` queues with the most deliveries that failed at first,
    as :data:`ADVICE` lists the columns.

    Args:
        lives: See :func:`failed_at_first`, kept.
    """
    spark = records.sparkSession
    by_subscriber = lives.groupBy(*QUEUE, "subscriber_id").agg(
        F.count(F.lit(1)).alias("all"),
        F.sum("given_up").alias("given_up"),
        F.sum(F.col("odd").cast("long")).alias("odd"),
        F.sum((F.col("won") & ~F.col("odd")).cast("long")).alias("recovered"),
    )
    subscriber = F.struct("all", "odd", "recovered", "subscriber_id")
    most = by_subscriber.groupBy(*QUEUE).agg(
        F.sum("all").alias("all"),
        F.sum("given_up").alias("given_up"),
        F.sum("odd").alias("odd"),
        F.slice(F.sort_array(F.collect_list(subscriber), asc=False), 1, SUBSCRIBERS).alias("of"),
    )
    queues = (
        most.where(F.col("all") >= LEAST)
        .orderBy(F.desc("all"), *QUEUE)
        .limit(ADVISED)
        .join(settings_seen(records), list(QUEUE))
    )
    known = {_queue_of(row): row.asDict(recursive=True) for row in queues.collect() if _is_known(row)}
    if not known:
        return small_table(spark, [], ADVICE)
    of = small_table(
        spark,
        [
            dict(zip(QUEUE, queue, strict=True)) | {"subscriber_id": each["subscriber_id"]}
            for queue, row in known.items()
            for each in row["of"]
        ],
        StructType([*(StructField(name, StringType()) for name in (*QUEUE, "subscriber_id"))]),
    )
    price = usd_per_try(spark)
    found = _evidence(spark, known, lives, records, F.broadcast(of))
    rows = [advice(known[queue], evidence, price) for queue, evidence in found.items()]
    return small_table(spark, [row for row in rows if row is not None], ADVICE)


def _is_known(row: Row) -> bool:
    """Whether the deliveries that are replayed are as good as all that the queue has."""
    return bool(sum(each["all"] - each["odd"] for each in row["of"]) >= KNOWN * row["all"])


def _evidence(
    spark: SparkSession,
    known: Mapping[tuple[str, ...], Mapping[str, Any]],
    lives: DataFrame,
    records: DataFrame,
    of: DataFrame,
) -> dict[tuple[str, ...], list[Evidence]]:
    """The attempts of each subscriber of each queue."""
    keys = [*QUEUE, "subscriber_id"]
    taken = records.where(_is_try() & F.col("verdict").isin(*TAKEN)).join(of, keys, "left_semi")
    won = taken.groupBy(*keys).agg(F.count(F.lit(1)).alias("n")).collect()
    wins = {tuple(row[name] for name in keys): row["n"] for row in won}
    counts = {
        (*queue, each["subscriber_id"]): (each["all"] - each["odd"], each["recovered"])
        for queue, row in known.items()
        for each in row["of"]
    }
    share = {
        each: min(1.0, LIVES / max(1, failed), WINS / max(1, wins.get(each, 0))) for each, (failed, _) in counts.items()
    }
    shares = F.broadcast(
        small_table(
            spark,
            [dict(zip(keys, each, strict=True)) | {"share": part} for each, part in share.items()],
            StructType([*(StructField(name, StringType()) for name in keys), StructField("share", DoubleType())]),
        )
    )
    drawn = (
        lives.where(~F.col("odd"))
        .join(shares, keys)
        .where(F.col("drawn") < F.col("share"))
        .groupBy(*keys)
        .agg(F.collect_list(F.struct("started", "finished", "wait", "won", "expires")).alias("lives"))
    )
    well = (
        taken.withColumn("drawn", _by_chance())
        .join(shares, keys)
        .where(F.col("drawn") < F.col("share"))
        .groupBy(*keys)
        .agg(F.sort_array(F.collect_list(F.unix_millis("started_at"))).alias("well"))
    )
    found: dict[tuple[str, ...], list[Evidence]] = {}
    # One subscriber at a time: together they may be larger than the driver's memory.
    for row in drawn.join(well, keys, "left").toLocalIterator():
        who = tuple(row[name] for name in keys)
        failed, recovered = counts[who]
        its = [
            Life(started=each["started"], finished=each["finished"], won=each["won"], expires=each["expires"])
            for each in row["lives"]
        ]
        late = [
            begin - end - wait
            for each in row["lives"]
            for begin, end, wait in zip(each["started"][1:], each["finished"], each["wait"], strict=False)
            if wait >= 0
        ]
        found.setdefault(who[:-1], []).append(
            Evidence(
                lives=its,
                recovered=recovered,
                lost=failed - recovered,
                well=np.array(row["well"] or [], dtype=np.int64),
                won=wins.get(who, 0),
                lag_ms=max(0, round(float(np.median(late)))) if late else 0,
            )
        )
    return found


def _by_chance() -> Column:
    """A number from 0 up to 1 that is the same for all attempts of a delivery."""
    return F.pmod(F.xxhash64("queue_uid", "message_id"), F.lit(1_000_003)) / 1_000_003


def _is_try() -> Column:
    return (F.col("kind") == "attempt") & ~F.col("dialect").isin("pull", "notifications")


def _queue_of(row: Row) -> tuple[str, ...]:
    return tuple(row[name] for name in QUEUE)
