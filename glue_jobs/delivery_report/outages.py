"""How often and how long each subscriber was down, and what was given up meanwhile: what the records know, no model.

A subscriber is *down* from its first failed attempt after a success until its next success, if at least
:data:`LEAST_FAILED` attempts failed in between, of more than one message: a single message that always fails says
nothing about its receiver. What is kept of each day is small (:data:`DAY`), so that thirty of them are read each night.
"""

from __future__ import annotations

from datetime import date, datetime, timedelta
from typing import Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F
from pyspark.sql.types import (
    BooleanType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from .cells import WHO

DAYS: Final = 30
"""How far back outages are told."""

LEAST_FAILED: Final = 3
"""Failed attempts in a row that make an outage."""

FAILING: Final = "failing"
WELL: Final = "well"
GIVEN_UP: Final = "given_up"

DAY: Final = StructType(
    [
        *(StructField(name, StringType()) for name in (*WHO, "subscriber", "kind")),
        *(StructField(name, TimestampType()) for name in ("begun", "ended", "expires_at")),
        StructField("after_success", BooleanType()),
        StructField("attempts", LongType()),
        *(StructField(name, StringType()) for name in ("first_message", "last_message")),
    ]
)
"""Columns of what is kept of a day. ``kind`` is one of

- ``failing``: a run of failed attempts: ``begun`` with the first of them, ``ended`` by the first success after it on
  that day (null: none), ``after_success`` on that day or not; the smallest and the largest id of its messages.
- ``well``: the first (``begun``) and last (``ended``) success of the day.
- ``given_up``: one delivery that used up its tries: accepted (``begun``), given up (``ended``).
"""

OUTAGES: Final = StructType(
    [
        *(StructField(name, StringType()) for name in (*WHO, "subscriber", "sentence")),
        *(StructField(name, LongType()) for name in ("days", "times_down", "longest_ms", "down_ms")),
        StructField("down_since", TimestampType()),
        *(StructField(name, LongType()) for name in ("retries_lasted_ms", "given_up", "reachable", "needed_ms")),
    ]
)
"""Columns of a subscriber. ``down_since``: it is down now. ``given_up``: deliveries that were given up while it was
down; ``reachable``: those of them that retries as long as the outage would have reached, that is, within
``needed_ms`` of their acceptance.
``retries_lasted_ms``: from acceptance to giving up, the shortest of the last day on which anything was given up.
"""

SOON: Final = "1 minute"
"""A message is tried within so much of its acceptance: whoever was accepted so shortly before an outage met it."""


def outage_days(records: DataFrame) -> DataFrame:
    """What is kept of days, as :data:`DAY` lists the columns, with ``dt``.

    Attempts are ordered by their answers. Where failures and successes of a minute are mixed, the subscriber was not
    down in it.

    Args:
        records: All records of these days, with ``dt``.
    """
    made = records.where((F.col("kind") == "attempt") & ~F.col("dialect").isin("pull", "notifications"))
    return _runs(_moments(made)).unionByName(_given_up(made))


def _failed() -> Column:
    return F.col("verdict") == "failed"


def _moments(made: DataFrame) -> DataFrame:
    """Failures (``failed`` of them) and successes (0) of each minute in their order, one row each."""
    day = ("dt", *WHO)
    good, bad = F.when(~_failed(), F.col("finished_at")), F.when(_failed(), F.col("finished_at"))
    minutes = made.groupBy(*day, F.date_trunc("minute", "finished_at").alias("minute")).agg(
        F.max("subscriber").alias("subscriber"),
        F.sum(_failed().cast("long")).alias("failed"),
        F.min(bad).alias("first_bad"),
        F.min(F.when(_failed(), F.col("started_at"))).alias("since"),
        F.max(bad).alias("last_bad"),
        F.min(good).alias("first_good"),
        F.max(good).alias("last_good"),
        F.min(F.when(_failed(), F.col("message_id"))).alias("first_message"),
        F.max(F.when(_failed(), F.col("message_id"))).alias("last_message"),
    )
    failures = F.struct(F.col("first_bad").alias("at"), F.col("last_bad").alias("until"), "failed")
    none = F.lit(0).cast("long").alias("failed")
    successes = F.struct(F.col("first_good").alias("at"), F.col("last_good").alias("until"), none)
    mixed = (F.col("first_bad") <= F.col("last_good")) & (F.col("first_good") <= F.col("last_bad"))
    in_order = (
        F.when(F.col("first_good").isNull(), F.array(failures))
        .when(F.col("first_bad").isNull() | mixed, F.array(successes))
        .otherwise(F.array(failures, successes))
    )
    return minutes.select(*day, "subscriber", "since", F.inline(in_order), "first_message", "last_message")


def _runs(moments: DataFrame) -> DataFrame:
    """Runs of failures, and each day's successes, of :func:`_moments`."""
    day = ("dt", *WHO)
    well = F.col("failed") == 0
    by_time = Window.partitionBy(*day).orderBy("at")
    before = by_time.rowsBetween(Window.unboundedPreceding, Window.currentRow)
    after = by_time.rowsBetween(Window.currentRow, Window.unboundedFollowing)
    placed = moments.withColumns(
        {
            "kind": F.when(well, WELL).otherwise(FAILING),
            "success_before": F.when(~well, F.max(F.when(well, F.col("until"))).over(before)),
            "success_after": F.when(~well, F.min(F.when(well, F.col("at"))).over(after)),
        }
    )
    failing = F.col("kind") == FAILING
    runs = placed.groupBy(*day, "kind", "success_before", "success_after").agg(
        F.max("subscriber").alias("subscriber"),
        F.min("at").alias("at"),
        F.min("since").alias("since"),
        F.max("until").alias("until"),
        F.sum("failed").alias("attempts"),
        F.min(F.when(failing, F.col("first_message"))).alias("first_message"),
        F.max(F.when(failing, F.col("last_message"))).alias("last_message"),
    )
    whole = F.col("success_before").isNotNull() & F.col("success_after").isNotNull()
    # Within the day nothing can be added to such a run.
    return (
        runs.where(~failing | ~whole | _is_outage())
        .withColumn("begun", F.when(failing, F.greatest("since", "success_before")).otherwise(F.col("at")))
        .withColumn("ended", F.when(failing, F.col("success_after")).otherwise(F.col("until")))
        .withColumn("after_success", F.when(failing, F.col("success_before").isNotNull()))
        .withColumn("expires_at", F.lit(None).cast("timestamp"))
        .select(*DAY.fieldNames(), "dt")
    )


def _is_outage() -> Column:
    return (F.col("attempts") >= LEAST_FAILED) & (F.col("first_message") != F.col("last_message"))


def _given_up(made: DataFrame) -> DataFrame:
    """Deliveries that used up their tries by themselves: not those that an answer or a person ended.

    A unicast message goes on to another subscriber.
    """
    ended = made.where(
        F.col("state").isin("exhausted", "held")
        & _failed()
        & F.col("reason").isNull()
        & F.col("manual").isNull()
        & ~F.col("delivery_id").endswith("*")
    )
    nothing = dict.fromkeys(("first_message", "last_message"), F.lit(None).cast("string"))
    return ended.select(
        *WHO,
        "subscriber",
        F.lit(GIVEN_UP).alias("kind"),
        F.col("accepted_at").alias("begun"),
        F.col("finished_at").alias("ended"),
        "expires_at",
        F.lit(None).cast("boolean").alias("after_success"),
        F.lit(None).cast("long").alias("attempts"),
        *(value.alias(name) for name, value in nothing.items()),
        "dt",
    )


def outages(days: DataFrame, since: date, until: datetime) -> DataFrame:
    """One row per subscriber that anything was sent to, as :data:`OUTAGES` lists the columns.

    Args:
        days: See :func:`outage_days`.
        since: The first day of which they tell.
        until: When the report ends; an outage that has no end lasts until then.
    """
    down = _outages(days.where(F.col("kind") != GIVEN_UP)).withColumn(
        "lasted", F.unix_millis(F.coalesce("ended", F.lit(until))) - F.unix_millis("begun")
    )
    gone = days.where(F.col("kind") == GIVEN_UP).select(
        *WHO, F.col("begun").alias("accepted"), F.col("ended").alias("gone"), "expires_at"
    )
    meanwhile = (F.col("gone") >= F.col("begun")) & (F.col("ended").isNull() | (F.col("gone") < F.col("ended")))
    met_it = F.col("accepted") >= F.col("begun") - F.expr(f"interval {SOON}")
    reached = F.coalesce(meanwhile & met_it & (F.col("expires_at") > F.col("ended")), F.lit(False))
    needed = F.when(reached, F.unix_millis("ended") - F.unix_millis("accepted"))
    of_each = (
        down.join(gone, list(WHO), "left")
        .groupBy(*WHO, "begun", "ended", "lasted")
        .agg(
            F.sum(F.coalesce(meanwhile, F.lit(False)).cast("long")).alias("given_up"),
            F.sum(reached.cast("long")).alias("reachable"),
            F.max(needed).alias("needed_ms"),
        )
        .groupBy(*WHO)
        .agg(
            F.count(F.lit(1)).alias("times_down"),
            F.max("lasted").alias("longest_ms"),
            F.sum("lasted").alias("down_ms"),
            F.max(F.when(F.col("ended").isNull(), F.col("begun"))).alias("down_since"),
            F.sum("given_up").alias("given_up"),
            F.sum("reachable").alias("reachable"),
            F.max("needed_ms").alias("needed_ms"),
        )
    )
    lasted = (
        gone.groupBy(*WHO, F.to_date("gone").alias("day"))
        .agg(F.min(F.unix_millis("gone") - F.unix_millis("accepted")).alias("shortest"))
        .groupBy(*WHO)
        .agg(F.max_by("shortest", "day").alias("retries_lasted_ms"))
    )
    everybody = days.groupBy(*WHO).agg(F.max_by("subscriber", "begun").alias("subscriber"))
    told = (
        everybody.join(of_each, list(WHO), "left")
        .join(lasted, list(WHO), "left")
        .na.fill(0, ["times_down", "down_ms", "given_up", "reachable"])
        .withColumn("days", F.lit((until.date() - since).days + (until.time() > until.min.time())).cast("long"))
    )
    return told.withColumn("sentence", _sentence()).select(*OUTAGES.fieldNames())


def _outages(days: DataFrame) -> DataFrame:
    """The outages of all days, ``begun`` and ``ended``: one that goes over midnight is one."""
    by_time = Window.partitionBy(*WHO).orderBy("begun", F.desc("kind"))
    until_then = by_time.rowsBetween(Window.unboundedPreceding, Window.currentRow)
    failing = F.col("kind") == FAILING
    goes_on = failing & ~F.col("after_success") & F.lag(failing & F.col("ended").isNull(), 1, False).over(by_time)
    numbered = days.withColumn("begins", (failing & ~goes_on).cast("int")).withColumn(
        "number", F.sum("begins").over(until_then)
    )
    return (
        numbered.groupBy(*WHO, "number")
        .agg(
            F.min(F.when(failing, F.col("begun"))).alias("begun"),
            # The first success of a later day ends what its own day could not.
            F.min(F.when(failing, F.col("ended")).otherwise(F.col("begun"))).alias("ended"),
            F.sum(F.when(failing, F.col("attempts"))).alias("attempts"),
            F.min("first_message").alias("first_message"),
            F.max("last_message").alias("last_message"),
        )
        .where((F.col("number") > 0) & _is_outage())
        .select(*WHO, "begun", "ended")
    )


def _sentence() -> Column:
    """What a person can check by hand. Times are rounded down, but what retries need is rounded up."""
    in_days = F.concat(F.lit(" in "), F.col("days"), F.when(F.col("days") == 1, " day").otherwise(" days"))
    times = F.when(F.col("times_down") == 1, "once").otherwise(F.concat("times_down", F.lit(" times")))
    since = F.concat(F.lit(", and now since "), F.date_format("down_since", "d MMM HH:mm"), F.lit(" UTC"))
    down = F.concat(F.lit("Down "), times, in_days, F.lit(", longest "), _words(F.col("longest_ms"), up=False))
    first = F.when(F.col("times_down") == 0, F.concat(F.lit("Not down"), in_days)).otherwise(
        F.concat(down, F.coalesce(since, F.lit("")))
    )
    lasted = F.concat(F.lit("its retries last "), _words(F.col("retries_lasted_ms"), up=False))
    were = F.when(F.col("given_up") == 1, " message was").otherwise(" messages were")
    gone = F.concat(F.col("given_up"), were, F.lit(" given up meanwhile"))
    of_them = F.when(F.col("given_up") == 1, "it").when(F.col("reachable") == F.col("given_up"), "all of them")
    would = F.concat(
        F.lit("retries of "),
        _words(F.col("needed_ms"), up=True),
        F.lit(" would have reached "),
        of_them.otherwise(F.concat("reachable", F.lit(" of them"))),
    )
    parts = (
        first,
        F.when(F.col("retries_lasted_ms").isNull(), "nothing was given up").otherwise(lasted),
        F.when(F.col("given_up") > 0, gone),
        F.when(F.col("reachable") > 0, would),
    )
    return F.concat(F.concat_ws("; ", *parts), F.lit("."))


_UNITS: Final = (("d", 86_400_000, "h", 3_600_000), ("h", 3_600_000, "min", 60_000))
"""Units with the smaller ones beside them, in milliseconds."""


def _words(milliseconds: Column, *, up: bool) -> Column:
    """A span as people say it: ``4 h 10 min``."""
    whole = F.ceil if up else F.floor
    seconds = F.concat(whole(milliseconds / 1000), F.lit(" s"))
    minutes = F.concat(whole(milliseconds / 60_000), F.lit(" min"))
    said = F.when(milliseconds < 60_000, seconds).when(whole(milliseconds / 60_000) < 60, minutes)
    for unit, of_unit, smaller, of_smaller in reversed(_UNITS):
        count = whole(milliseconds / of_smaller)
        in_one = of_unit // of_smaller
        rest = F.when(count % in_one > 0, F.concat(F.lit(" "), count % in_one, F.lit(f" {smaller}")))
        text = F.concat(F.floor(count / in_one), F.lit(f" {unit}"), F.coalesce(rest, F.lit("")))
        said = said.otherwise(text) if unit == _UNITS[0][0] else said.when(count < in_one * 24, text)
    return said


def first_day(until: date) -> date:
    """The first of the :data:`DAYS` that end with a day."""
    return until - timedelta(days=DAYS - 1)
