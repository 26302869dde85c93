"""Accepted messages and their outcomes, by hour of acceptance: deliveries, eventual success, time to delivery."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import LongType

from .cells import OWN, WHO, is_copy, is_own, is_routed
from .percentiles import at_levels, bucket_of, regrouped, rolled_up
from .schema import SETTLED
from .usage import INLINE_BODY_BYTES

FATE_KEYS: Final = (*WHO, "hour")

GIVEN_UP: Final = ("exhausted", "expired", "cancelled")

WAITING: Final = ("pending", "retrying", "reserved", "polling", "scheduled", "held")
"""Standings of what is not settled and not missing."""

_SUMS: Final = (
    *("messages", "deliveries", "first_won", "tried", "attempts", "retries", "body_bytes"),
    *("inline_bytes", "large_bodies"),
)

LARGEST: Final = "delivery_longest_ms"
PERCENTILES: Final = {"delivery_p50_ms": 0.5, "delivery_p95_ms": 0.95, "delivery_p99_ms": 0.99}


def fate_cells(standings: DataFrame) -> DataFrame:
    """Deliveries counted by project, queue, subscriber, hour of acceptance, state, standing and time to delivery:
    every report on deliveries is a sum of these.

    Args:
        standings: See :func:`.conservation.with_standing`.
    """
    won = F.col("state").isin("delivered", "acknowledged")
    took = F.when(won, F.unix_millis("settled_at") - F.unix_millis("accepted_at"))
    large = F.col("body_size") > INLINE_BODY_BYTES
    # A notification's acknowledgement does not say which sending it is for; of one sent once there is no doubt.
    at_first = F.when(F.col("notification"), won & (F.col("attempts") == 1)).otherwise(F.col("first_won"))
    counted = {
        "messages": F.col("leads_message"),
        "deliveries": F.col("owed"),
        "owing": (F.col("owed") > 0).cast("long"),
        "unexpected": (F.col("acceptances") == 0).cast("long"),
        "first_won": at_first.cast("long"),
        "tried": (F.col("attempts") > 0).cast("long"),
        "attempts": F.col("attempts"),
        "retries": F.greatest(F.col("attempts") - 1, F.lit(0)),
        "body_bytes": F.col("body_size") * F.col("leads_message"),
        "inline_bytes": F.when(large, 0).otherwise(F.col("body_size")) * F.col("leads_message"),
        "large_bodies": large.cast("long") * F.col("leads_message"),
        "n": took.isNotNull().cast("long"),
    }
    return (
        standings.withColumns({"took": took, "bucket": bucket_of(took)})
        .groupBy(*FATE_KEYS, "state", "standing", "bucket")
        .agg(*(F.sum(value).alias(name) for name, value in counted.items()), F.max("took").alias(LARGEST))
    )


def fate_sums(cells: DataFrame) -> dict[str, Column]:
    """What is added up over cells, by name; over coarser cells, in which states are columns already, just these."""
    names = ("messages", "deliveries", *SETTLED, "open", *_SUMS[2:])
    if "state" not in cells.columns:
        return {name: F.col(name) for name in names}
    state = F.col("state")
    by_state = {each: F.when(state == each, F.col("owing")).otherwise(0) for each in SETTLED}
    by_state["open"] = F.when(state.isin(*SETTLED), 0).otherwise(F.col("owing"))
    return {name: by_state.get(name, F.col(name)) for name in names}


def fates(cells: DataFrame, keys: tuple[str, ...]) -> DataFrame:
    """Deliveries of each group by outcome, with percentiles of the time from acceptance to delivery.

    ``messages`` counts a message once, at its first delivery, so it adds up over whole queues only. ``first_won``: the
    first attempt was taken for good; of notifications: acknowledged and sent only once. ``retries``: attempts after the
    first.

    Args:
        cells: See :func:`fate_cells`; or coarser ones, in which states are columns.
    """
    return rolled_up(cells, keys, sums=fate_sums(cells), count="n", largest=LARGEST, wanted=PERCENTILES)


def fate_levels(cells: DataFrame) -> DataFrame:
    """:func:`fates` of five groupings in one pass, told apart by ``level``: ``overall``, by ``project``, ``queue``,
    ``hour`` and ``day``; and of the hub's own messages :data:`.cells.OWN`, by project.

    A hub message counts as a message when it was posted, and as a delivery where a service gets it.

    Args:
        cells: See :func:`fate_cells`.
    """
    levels = {
        "overall": (),
        "project": ("project",),
        "queue": ("project", "queue"),
        "hour": ("hour",),
        "day": ("day",),
    }
    keys = ("level", "project", "queue", "hour", "day")
    sums = [name for name, kind in cells.dtypes if kind == "bigint" and name != LARGEST]
    of_hub = is_routed() | is_copy()
    # Of one part of each such cell only the messages count, of the other everything else.
    part = F.explode(F.when(of_hub, F.array(F.lit("messages"), F.lit("rest"))).otherwise(F.array(F.lit("whole"))))
    counts = {
        name: F.when((F.col("part") == "whole") | ((F.col("part") == "messages") == (name == "messages")), F.col(name))
        .otherwise(0)
        .alias(name)
        for name in sums
    }
    # Posting has no duration.
    counts |= {name: F.when(F.col("part") != "messages", F.col(name)).alias(name) for name in ("bucket", LARGEST)}
    parted = cells.withColumn("part", part).select(
        *(counts.get(name, F.col(name)) for name in cells.columns), "part", F.to_date("hour").alias("day")
    )
    own = F.when(F.col("part") == "messages", is_copy()).otherwise(is_own())
    each = at_levels(
        parted.where((F.col("part") != "messages") | (F.col("messages") > 0)), levels, {OWN: levels["project"]}, own
    )
    return fates(regrouped(each, keys, sums={**fate_sums(cells), "n": F.col("n")}, largest=LARGEST), keys)


def given_up(cells: DataFrame) -> DataFrame:
    """Deliveries that did not arrive: those that ended without success, by queue and subscriber,
    and of how many.

    Args:
        cells: See :func:`fate_cells`.
    """
    ended = {name: F.sum(F.when(F.col("state") == name, F.col("owing")).otherwise(0)).alias(name) for name in GIVEN_UP}
    counted = cells.groupBy(*WHO).agg(*ended.values(), F.sum("owing").alias("deliveries"))
    together = F.col("exhausted") + F.col("expired") + F.col("cancelled")
    return counted.withColumn("given_up", together).where(F.col("given_up") > 0)


def backlog(cells: DataFrame) -> DataFrame:
    """What still waits, by queue and subscriber: how many (``waiting``), their standings,
    and the hour of the ``oldest``.

    Args:
        cells: See :func:`fate_cells`.
    """
    waits = cells.where(F.col("standing").isin(*WAITING) & (F.col("owing") > 0))
    each = {name: F.sum(F.when(F.col("standing") == name, F.col("owing")).otherwise(0)).alias(name) for name in WAITING}
    return waits.groupBy(*WHO).agg(F.sum("owing").alias("waiting"), *each.values(), F.min("hour").alias("oldest"))


def without_gaps(rows: DataFrame, key: str, since: datetime, until: datetime) -> DataFrame:
    """A time series of hours or days without gaps: silent ones count as zero, and have no percentiles.

    Args:
        rows: Sums by ``hour`` or ``day``, few.
        key: Which of the two.
        since: Begin of the first.
        until: End of the last, not included.
    """
    last = max(since, until - timedelta(microseconds=1))
    each = F.sequence(F.lit(since), F.lit(last), F.expr(f"interval 1 {key}"))
    moments = (
        rows.sparkSession.range(1).select(F.explode(each).alias(key)).select(F.col(key).cast(rows.schema[key].dataType))
    )
    measured = {name for name in rows.columns if name.endswith("_ms") and name != "busy_ms"}
    counted = [
        field.name for field in rows.schema if isinstance(field.dataType, LongType) and field.name not in measured
    ]
    return moments.coalesce(1).join(rows, key, "left").na.fill(0, counted).select(*rows.columns)


def acknowledgement_waits(deliveries: DataFrame, keys: tuple[str, ...]) -> DataFrame:
    """How long subscribers that answered 202 took to acknowledge: count and percentiles;
    0 when it came before the answer.
    """
    took = F.greatest(F.unix_millis("acknowledged_at") - F.unix_millis("held_at"), F.lit(0))
    return _waits(deliveries.where(F.col("acknowledged_at").isNotNull() & F.col("held_at").isNotNull()), took, keys)


def poll_waits(records: DataFrame, keys: tuple[str, ...]) -> DataFrame:
    """How long the hub waited before each poll of an ``update_url``: count and percentiles."""
    return _waits(records.where(F.col("kind") == "poll"), F.col("wait_before_ms"), keys)


def _waits(rows: DataFrame, took: Column, keys: tuple[str, ...]) -> DataFrame:
    cells = (
        rows.select(*keys, took.alias("took"), bucket_of(took).alias("bucket"))
        .groupBy(*keys, "bucket")
        .agg(F.count(F.lit(1)).alias("n"), F.max("took").alias("longest_ms"))
    )
    return rolled_up(
        cells,
        keys,
        sums={"waits": F.col("n")},
        count="n",
        largest="longest_ms",
        wanted={"p50_ms": 0.5, "p95_ms": 0.95, "p99_ms": 0.99},
    )
