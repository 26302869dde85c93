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
from .driver import total

DAYS: Final = 30
"""How far back outages are told."""

LEAST_FAILED: Final = 3
"""Failed attempts in a row that make an outage."""

IS_OUTAGE: Final = f"(attempts >= {LEAST_FAILED} AND first_message <> last_message)"
"""Whether a run of failed attempts is an outage; in Spark and on the driver."""

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
    minutes = _minutes(made)
    return _runs(_moments(minutes)).unionByName(_given_up(minutes))


def _failed() -> Column:
    return F.col("verdict") == "failed"


def _minutes(made: DataFrame) -> DataFrame:
    """The attempts of each minute, and the deliveries that used up their tries in it by themselves: not those that an
    answer or a person ended. A unicast message goes on to another subscriber.
    """
    ended = (
        F.col("state").isin("exhausted", "held")
        & _failed()
        & F.col("reason").isNull()
        & F.col("manual").isNull()
        & ~F.col("delivery_id").endswith("*")
    )
    gone = F.struct(
        F.col("accepted_at").alias("begun"), F.col("finished_at").alias("ended"), "expires_at", "subscriber"
    )
    good, bad = F.when(~_failed(), F.col("finished_at")), F.when(_failed(), F.col("finished_at"))
    return made.groupBy("dt", *WHO, F.date_trunc("minute", "finished_at").alias("minute")).agg(
        F.max("subscriber").alias("subscriber"),
        F.sum(_failed().cast("long")).alias("failed"),
        F.min(bad).alias("first_bad"),
        F.min(F.when(_failed(), F.col("started_at"))).alias("since"),
        F.max(bad).alias("last_bad"),
        F.min(good).alias("first_good"),
        F.max(good).alias("last_good"),
        F.min(F.when(_failed(), F.col("message_id"))).alias("first_message"),
        F.max(F.when(_failed(), F.col("message_id"))).alias("last_message"),
        F.collect_list(F.when(ended, gone)).alias("given_up"),
    )


def _moments(minutes: DataFrame) -> DataFrame:
    """Failures (``failed`` of them) and successes (0) of each minute in their order, one row each."""
    failures = F.struct(F.col("first_bad").alias("at"), F.col("last_bad").alias("until"), "failed")
    none = F.lit(0).cast("long").alias("failed")
    successes = F.struct(F.col("first_good").alias("at"), F.col("last_good").alias("until"), none)
    mixed = (F.col("first_bad") <= F.col("last_good")) & (F.col("first_good") <= F.col("last_bad"))
    in_order = (
        F.when(F.col("first_good").isNull(), F.array(failures))
        .when(F.col("first_bad").isNull() | mixed, F.array(successes))
        .otherwise(F.array(failures, successes))
    )
    return minutes.select("dt", *WHO, "subscriber", "since", F.inline(in_order), "first_message", "last_message")


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
        runs.where(~failing | ~whole | F.expr(IS_OUTAGE))
        .withColumn("begun", F.when(failing, F.greatest("since", "success_before")).otherwise(F.col("at")))
        .withColumn("ended", F.when(failing, F.col("success_after")).otherwise(F.col("until")))
        .withColumn("after_success", F.when(failing, F.col("success_before").isNotNull()))
        .withColumn("expires_at", F.lit(None).cast("timestamp"))
        .select(*DAY.fieldNames(), "dt")
    )


def _given_up(minutes: DataFrame) -> DataFrame:
    """The deliveries that used up their tries, of :func:`_minutes`."""
    nothing = {name: F.lit(None).cast(DAY[name].dataType) for name in ("after_success", "attempts")}
    nothing |= {name: F.lit(None).cast("string") for name in ("first_message", "last_message")}
    each = minutes.select("dt", *WHO, F.explode("given_up").alias("gone")).select("dt", *WHO, "gone.*")
    return each.withColumns({"kind": F.lit(GIVEN_UP), **nothing}).select(*DAY.fieldNames(), "dt")


def outages(days: str, since: date, until: datetime) -> str:
    """One row per subscriber that anything was sent to, as :data:`OUTAGES` lists the columns.

    Args:
        days: A table of what :func:`outage_days` makes.
        since: The first day of which they tell.
        until: When the report ends; an outage that has no end lasts until then.
    """
    who = ", ".join(WHO)
    end = f"TIMESTAMP '{until:%Y-%m-%d %H:%M:%S.%f}'"
    told = (until.date() - since).days + (until.time() > until.min.time())
    reached = f"meanwhile AND accepted >= begun - INTERVAL {SOON} AND coalesce(expires_at > ended, false)"
    return f"""
        WITH down AS (
            SELECT *, date_diff('millisecond', begun, coalesce(ended, {end})) AS lasted
            FROM ({_outages(f"(SELECT * FROM {days} WHERE kind <> '{GIVEN_UP}')")})
        ), gone AS (
            SELECT {who}, begun AS accepted, ended AS gone, expires_at FROM {days} WHERE kind = '{GIVEN_UP}'
        ), met AS (
            SELECT *, coalesce(gone >= begun AND (ended IS NULL OR gone < ended), false) AS meanwhile
            FROM down LEFT JOIN gone USING ({who})
        ), of_each AS (
            SELECT {who}, begun, any_value(ended) AS ended, any_value(lasted) AS lasted,
                   count(*) FILTER (meanwhile) AS given_up, count(*) FILTER ({reached}) AS reachable,
                   max(date_diff('millisecond', accepted, ended)) FILTER ({reached}) AS needed_ms
            FROM met GROUP BY {who}, begun
        ), downs AS (
            SELECT {who}, count(*) AS times_down, max(lasted) AS longest_ms, {total("lasted", "down_ms")},
                   max(begun) FILTER (ended IS NULL) AS down_since, {total("given_up", "given_up")},
                   {total("reachable", "reachable")}, max(needed_ms) AS needed_ms
            FROM of_each GROUP BY {who}
        ), lasts AS (
            SELECT {who}, arg_max(shortest, day) AS retries_lasted_ms FROM (
                SELECT {who}, gone::DATE AS day, min(date_diff('millisecond', accepted, gone)) AS shortest
                FROM gone GROUP BY {who}, day
            ) GROUP BY {who}
        ), everybody AS (
            SELECT {who}, arg_max(subscriber, begun) AS subscriber FROM {days} GROUP BY {who}
        ), told AS (
            SELECT * REPLACE (coalesce(times_down, 0) AS times_down, coalesce(down_ms, 0) AS down_ms,
                              coalesce(given_up, 0) AS given_up, coalesce(reachable, 0) AS reachable),
                   {told}::BIGINT AS days
            FROM everybody LEFT JOIN downs USING ({who}) LEFT JOIN lasts USING ({who})
        )
        SELECT {", ".join(OUTAGES.fieldNames())} FROM (SELECT *, {_sentence()} AS sentence FROM told)"""


def _outages(days: str) -> str:
    """The outages of all days, ``begun`` and ``ended``: one that goes over midnight is one."""
    who = ", ".join(WHO)
    failing = f"kind = '{FAILING}'"
    by_time = f"(PARTITION BY {who} ORDER BY begun, kind DESC)"
    return f"""
        SELECT {who}, begun, ended FROM (
            SELECT {who}, number, min(begun) FILTER ({failing}) AS begun,
                   -- The first success of a later day ends what its own day could not.
                   min(CASE WHEN {failing} THEN ended ELSE begun END) AS ended,
                   sum(attempts) FILTER ({failing}) AS attempts,
                   min(first_message) AS first_message, max(last_message) AS last_message
            FROM (
                SELECT *, sum(begins) OVER (PARTITION BY {who} ORDER BY begun, kind DESC
                                            ROWS UNBOUNDED PRECEDING) AS number
                FROM (
                    SELECT *, ({failing} AND NOT (
                        NOT after_success AND coalesce(lag({failing} AND ended IS NULL) OVER {by_time}, false)
                    ))::INTEGER AS begins
                    FROM {days}
                )
            ) GROUP BY {who}, number
        ) WHERE number > 0 AND {IS_OUTAGE}"""


def _sentence() -> str:
    """What a person can check by hand. Times are rounded down, but what retries need is rounded up."""
    in_days = "concat(' in ', days, CASE WHEN days = 1 THEN ' day' ELSE ' days' END)"
    times = "CASE WHEN times_down = 1 THEN 'once' ELSE times_down || ' times' END"
    since = "coalesce(', and now since ' || strftime(down_since, '%-d %b %H:%M') || ' UTC', '')"
    down = f"concat('Down ', {times}, {in_days}, ', longest ', {_words('longest_ms', 'floor')}, {since})"
    first = f"CASE WHEN times_down = 0 THEN concat('Not down', {in_days}) ELSE {down} END"
    lasted = f"coalesce('its retries last ' || {_words('retries_lasted_ms', 'floor')}, 'nothing was given up')"
    were = "CASE WHEN given_up = 1 THEN ' message was' ELSE ' messages were' END"
    gone = f"CASE WHEN given_up > 0 THEN concat(given_up, {were}, ' given up meanwhile') END"
    of_them = (
        "CASE WHEN given_up = 1 THEN 'it' WHEN reachable = given_up THEN 'all of them' "
        "ELSE concat(reachable, ' of them') END"
    )
    would = (
        f"CASE WHEN reachable > 0 THEN concat('retries of ', {_words('needed_ms', 'ceil')}, "
        f"' would have reached ', {of_them}) END"
    )
    return f"concat(concat_ws('; ', {first}, {lasted}, {gone}, {would}), '.')"


def _words(milliseconds: str, whole: str) -> str:
    """A span as people say it: ``4 h 10 min``; null where there is none.

    Args:
        whole: How it is rounded: ``floor`` or ``ceil``.
    """

    def two(unit: int, name: str, smaller: str, in_one: int) -> str:
        count = f"{whole}({milliseconds} / {unit})::BIGINT"
        rest = f"CASE WHEN {count} % {in_one} > 0 THEN concat(' ', {count} % {in_one}, ' {smaller}') ELSE '' END"
        return f"concat({count} // {in_one}, ' {name}', {rest})"

    return f"""CASE WHEN {milliseconds} IS NULL THEN NULL
        WHEN {milliseconds} < 60000 THEN concat({whole}({milliseconds} / 1000)::BIGINT, ' s')
        WHEN {whole}({milliseconds} / 60000) < 60 THEN concat({whole}({milliseconds} / 60000)::BIGINT, ' min')
        WHEN {whole}({milliseconds} / 60000) < 1440 THEN {two(60_000, "h", "min", 60)}
        ELSE {two(3_600_000, "d", "h", 24)} END"""


def first_day(until: date) -> date:
    """The first of the :data:`DAYS` that end with a day."""
    return until - timedelta(days=DAYS - 1)
