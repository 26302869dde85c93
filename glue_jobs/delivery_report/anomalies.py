"""What differs from a subscriber's own past: more failures than chance explains, silence, odd volumes, slow answers,
flapping, lasting shifts of latency.

Every subscriber is compared with itself. How much is usual depends on the hour of the week; how much chance
explains depends on how much there is to count; and what has happened on three earlier days is no news. Only first tries
are counted: the retries of one delivery are not independent evidence.
"""

from __future__ import annotations

from datetime import datetime
from typing import Final

from pyspark.sql import Column, DataFrame, Window, WindowSpec
from pyspark.sql import functions as F
from pyspark.sql.types import DoubleType, StringType, StructField, StructType, TimestampType

from .cells import WHO
from .rhythm import HOUR_S, SLOT_S, hour_number, usual_between, usual_by_hour, whole_hours

ANOMALY: Final = StructType(
    [
        *(StructField(name, StringType()) for name in ("anomaly", *WHO, "subscriber")),
        *(StructField(name, TimestampType()) for name in ("started_at", "ended_at")),
        *(StructField(name, DoubleType()) for name in ("value", "expected", "score")),
        StructField("detail", StringType()),
    ]
)
"""Columns of an anomaly; ``score`` tells by how much more than its usual spread the value is off, for ranking."""

WINDOWS_S: Final = {"slot": SLOT_S, "hour": HOUR_S, "shift": 6 * HOUR_S}
"""How far back failures are counted: short for a short outage of a busy subscriber,
long for a slow rise or a quiet one.
"""

MIN_FAILED: Final = 5
"""Minimum number of failed first tries for a judgement."""

EVIDENCE: Final = 30.0
"""Likelihood ratio (2 ln) from which failures are more than chance: 5.5 standard deviations,
so that millions of windows raise no false alarm.
"""

STILL: Final = 4.0
"""Likelihood ratio of the last hour from which failures that were found over a longer time still go on.

A single failure says so only when it is half of all.
"""

MIN_DAYS: Final = 3
"""Minimum number of days with data for a judgement."""

MIN_USUAL: Final = 50
"""Minimum number of first tries for a usual share of failures."""

APART_S: Final = 3_600
"""Rows less than this apart are one event."""

MISSED: Final = 25.0
"""How many deliveries must be missing before a pause counts as silence."""

SILENT_FACTOR: Final = 2.0
"""A silence is at least this many times the third longest of the subscriber, in deliveries that should have come."""

UNUSUAL: Final = 6.0
"""How many spreads from the usual make an hour's volume or latency unusual."""

MIN_ATTEMPTS: Final = 20
"""Minimum attempts, or difference in deliveries, for judging an hour."""

BEYOND: Final = 1.5
"""An hour is news when it is this many times as far off as the worst hour of the third worst day."""

FLIPS: Final = 4
"""How many changes between well and sick within a day count as flapping."""

DAY_S: Final = 24 * HOUR_S

FLIP_TRIES: Final = 10
"""Minimum first tries to distinguish well from sick."""

SURE: Final = 9.0
"""Square of the standard deviations by which a share must lie on one side of a half."""

SHIFT_HOURS: Final = 6
"""Hours before and after that a latency shift is judged by."""

SHIFT_FACTOR: Final = 2.0
SHIFT_LEAST_MS: Final = 50
"""A shift is at least this factor and at least this many milliseconds."""


def anomalies(slots: DataFrame, hours: DataFrame, since: datetime, until: datetime) -> DataFrame:
    """All anomalies, with the columns of :data:`ANOMALY`.

    Args:
        slots: See :func:`.rhythm.slots_of`.
        hours: See :func:`.cells.hourly`, with the days of the baseline.
        since: Begin of the report.
        until: End of the time covered.
    """
    return (
        failures(slots, hours)
        .unionByName(silences(slots, hours, since, until))
        .unionByName(odd_volumes(hours, since, until))
        .unionByName(slow_hours(hours, since, until))
        .unionByName(flapping(slots))
        .unionByName(latency_shifts(hours, since))
    )


def failures(slots: DataFrame, hours: DataFrame) -> DataFrame:
    """Times in which more first tries failed than chance explains, given the subscriber's usual share.

    Args:
        slots: See :func:`.rhythm.slots_of`.
        hours: See :func:`.cells.hourly`, with the days of the baseline.
    """
    usual, by_hour = _usual_failures(hours), _usual_failures_by_hour(hours)
    in_hour = Window.partitionBy(*WHO, "hour").orderBy("slot")
    # What usually fails at this hour of the day may fail in any part of it: a maintenance of ten minutes each night is
    # no news.
    before = F.coalesce(F.sum("failed").over(in_hour.rowsBetween(Window.unboundedPreceding, -1)), F.lit(0))
    budget = F.coalesce("hour_share", F.lit(0.0)) * F.sum("tried").over(Window.partitionBy(*WHO, "hour"))
    excused = F.least(F.col("failed").cast("double"), F.greatest(budget - before, F.lit(0.0)))
    judged = (
        slots.join(usual, list(WHO))
        .withColumns({"hour": F.date_trunc("hour", "slot"), "hour_of_day": F.hour("slot")})
        .join(by_hour, [*WHO, "hour_of_day"], "left")
        .withColumns(
            {"at": F.unix_timestamp("slot"), "odds": F.greatest("share", F.coalesce("hour_share", F.lit(0.0)))}
        )
        .withColumn("due", F.greatest(F.col("tried") * F.col("share"), excused))
    )
    for name, seconds in WINDOWS_S.items():
        back = Window.partitionBy(*WHO).orderBy("at").rangeBetween(SLOT_S - seconds, 0)
        judged = judged.withColumns(
            {
                f"{name}_failed": F.sum("failed").over(back),
                f"{name}_tried": F.sum("tried").over(back),
                f"{name}_due": F.sum("due").over(back),
                f"{name}_from": F.min(F.when(F.col("failed") > 0, F.col("at"))).over(back),
            }
        )
    evidence = {name: _evidence(f"{name}_failed", f"{name}_tried", f"{name}_due") for name in WINDOWS_S}
    goes_on = (evidence["hour"] >= STILL) & (
        (F.col("hour_failed") >= 2) | (F.col("hour_failed") * 2 >= F.col("hour_tried"))
    )
    found = [
        F.when(
            (F.col(f"{name}_failed") >= MIN_FAILED) & (evidence[name] >= EVIDENCE) & goes_on,
            F.struct(F.col(f"{name}_from").alias("from"), F.sqrt(evidence[name]).alias("score")),
        )
        for name in WINDOWS_S
    ]
    # Only a failure makes a window worth looking at; a long window ends with the last failure, not six hours later.
    alarms = (
        judged.where(F.col("failed") > 0)
        .select(*WHO, F.col("at"), "odds", F.explode(F.array_compact(F.array(*found))).alias("found"))
        .select(*WHO, "odds", "found.*", (F.col("at") + SLOT_S).alias("to"))
    )
    events = (
        _merged(alarms)
        .groupBy(*WHO, "event")
        .agg(
            F.min("from").alias("from"),
            F.max("to").alias("to"),
            F.max("score").alias("score"),
            F.max("odds").alias("odds"),
        )
    )
    within = F.unix_timestamp("slot").between(F.col("from"), F.col("to") - 1)
    counted = (
        slots.join(F.broadcast(events), list(WHO))
        .where(within)
        .groupBy(*WHO, "event", "from", "to", "score", "odds")
        .agg(F.max("subscriber").alias("subscriber"), F.sum("failed").alias("failed"), F.sum("tried").alias("tried"))
    )
    share = F.col("failed") / F.col("tried")
    detail = F.format_string(
        "%d of %d first tries failed (%.0f %%), usually %.2g %%", "failed", "tried", share * 100, F.col("odds") * 100
    )
    return _anomalies(counted.withColumns({"value": share, "expected": F.col("odds")}), "failures", detail)


def silences(slots: DataFrame, hours: DataFrame, since: datetime, until: datetime) -> DataFrame:
    """Times without any first try in which, at this hour of the week, many should have come,
    and longer than any usual pause of the subscriber.

    Args:
        slots: See :func:`.rhythm.slots_of`; of three days at least, or pauses within an hour say nothing.
        hours: See :func:`.cells.hourly`, with the days of the baseline.
        since: Begin of the report.
        until: End of the time covered.
    """
    rhythm = usual_by_hour(hours, until).where(F.col("weekly") >= MISSED)
    long_enough = (until - since).days >= MIN_DAYS
    begin, end = int(since.timestamp()), int(until.timestamp())
    hourly = hours.where(F.col("first_attempts") > 0).select(
        *WHO, "subscriber", F.unix_timestamp("hour").alias("at"), F.lit(HOUR_S).alias("lasts")
    )
    heard = hourly
    if long_enough:
        finer = slots.where(F.col("tried") > 0).select(
            *WHO, "subscriber", F.unix_timestamp("slot").alias("at"), F.lit(SLOT_S).alias("lasts")
        )
        heard = hourly.where(F.col("at") < begin).unionByName(finer)
    in_time = Window.partitionBy(*WHO).orderBy("at")
    pauses = (
        heard.join(rhythm, list(WHO))
        .withColumns(
            {
                "from": F.col("at") + F.col("lasts"),
                "to": F.coalesce(F.lead("at").over(in_time), F.lit(end)),
                "name": F.max("subscriber").over(Window.partitionBy(*WHO)),
            }
        )
        .where(F.col("to") > F.col("from"))
        .withColumn("missed", usual_between(F.col("from"), F.col("to")))
    )
    longest = Window.partitionBy(*WHO).orderBy(F.desc("missed"), "from")
    ranked = pauses.withColumns(
        {"place": F.row_number().over(longest), "usual": F.coalesce(_third("missed", longest), F.lit(0.0))}
    )
    silent = ranked.where(
        (F.col("place") <= 2)
        & (F.col("to") > begin)
        & (F.col("missed") >= F.greatest(F.lit(MISSED), F.col("usual") * SILENT_FACTOR))
    )
    told = silent.select(
        *WHO,
        F.col("name").alias("subscriber"),
        "from",
        "to",
        F.lit(0.0).alias("value"),
        F.col("missed").alias("expected"),
        F.sqrt("missed").alias("score"),
        F.when(F.col("to") == end, "nothing since then").otherwise("nothing").alias("how"),
    )
    detail = F.format_string("%s, where some %.0f deliveries would be usual", "how", "expected")
    return _anomalies(told, "silence", detail)


def odd_volumes(hours: DataFrame, since: datetime, until: datetime) -> DataFrame:
    """Hours with far more or far fewer first tries than is usual at that hour of the week.

    Args:
        hours: See :func:`.cells.hourly`, with the days of the baseline.
        since: Begin of the report.
        until: End of the time covered.
    """
    rhythm = usual_by_hour(hours, until)
    place = (hour_number(F.unix_timestamp("hour")) % 168).cast("int")
    seen = (
        whole_hours(hours, until)
        .join(rhythm, list(WHO))
        .withColumns({"value": F.col("first_attempts").cast("double"), "expected": F.get("usual", place)})
        .withColumn("off", (F.col("value") - F.col("expected")) / F.sqrt(F.col("expected") + 1))
        # A subscriber's first hour began before it did.
        .withColumn("first", F.min("hour").over(Window.partitionBy(*WHO)))
        .where(F.col("hour") > F.col("first"))
    )
    more = (F.col("value") >= 2 * F.col("expected")) & (F.col("value") - F.col("expected") >= MIN_ATTEMPTS)
    fewer = (F.col("value") <= F.col("expected") / 2) & (F.col("expected") - F.col("value") >= MIN_ATTEMPTS)
    news = _news(seen, F.lit(1.0)).where((F.col("hour") >= F.lit(since)) & (more | fewer))
    return _told_by_hour(news, "volume", "%.0f deliveries in the worst hour, usually %.0f")


def slow_hours(hours: DataFrame, since: datetime, until: datetime) -> DataFrame:
    """Hours whose p95 is far above what is usual at that hour of the day.

    Args:
        hours: See :func:`.cells.hourly`, with the days of the baseline.
        since: Begin of the report.
        until: End of the time covered.
    """
    same_hour = Window.partitionBy(*WHO, "hour_of_day")
    seen = (
        whole_hours(hours, until)
        .where((F.col("attempts") >= MIN_ATTEMPTS) & F.col("p95_ms").isNotNull())
        .withColumns({"value": F.greatest(F.col("p95_ms").cast("double"), F.lit(1.0)), "hour_of_day": F.hour("hour")})
        .withColumns(
            {
                "expected": F.expr("percentile(value, 0.5)").over(same_hour),
                "days": F.count(F.lit(1)).over(same_hour),
            }
        )
        .where(F.col("days") > MIN_DAYS)
        .withColumn("off", F.log(F.col("value") / F.col("expected")))
    )
    slow = (F.col("value") >= SHIFT_FACTOR * F.col("expected")) & (F.col("value") - F.col("expected") >= SHIFT_LEAST_MS)
    news = _news(seen, F.lit(0.1)).where((F.col("hour") >= F.lit(since)) & slow)
    return _told_by_hour(news, "latency", "p95 %.0f ms in the worst hour, usually %.0f ms")


def flapping(slots: DataFrame) -> DataFrame:
    """Subscribers that went from well to sick or back at least :data:`FLIPS` times within a day,
    by five minutes where there is enough to count, else by the hour.

    Well and sick are those of which the share of failures is clearly below or above a half; what lies between tells
    nothing.

    Args:
        slots: See :func:`.rhythm.slots_of`.
    """
    finest = slots.select(
        *WHO, "subscriber", F.unix_timestamp("slot").alias("at"), "tried", "failed", F.lit(SLOT_S).alias("lasts")
    )
    hourly = (
        slots.groupBy(*WHO, F.unix_timestamp(F.date_trunc("hour", "slot")).alias("at"))
        .agg(F.max("subscriber").alias("subscriber"), F.sum("tried").alias("tried"), F.sum("failed").alias("failed"))
        .withColumn("lasts", F.lit(HOUR_S))
    )
    each = finest.unionByName(hourly).where(F.col("tried") >= FLIP_TRIES)
    lead = F.col("failed") * 2 - F.col("tried")
    sure = lead * lead > SURE * F.col("tried")
    in_time = Window.partitionBy(*WHO, "lasts").orderBy("at")
    flips = (
        each.where(sure)
        .withColumn("sick", lead > 0)
        .withColumn("flip", F.coalesce((F.lag("sick").over(in_time) != F.col("sick")).cast("int"), F.lit(0)))
    )
    within_a_day = in_time.rangeBetween(1 - DAY_S, 0)
    counted = (
        flips.withColumns({"flips": F.sum("flip").over(within_a_day)})
        .groupBy(*WHO, "lasts")
        .agg(
            F.max("subscriber").alias("subscriber"),
            F.max("flips").alias("flips"),
            F.sum(F.col("sick").cast("int")).alias("sick"),
            F.count(F.lit(1)).alias("all"),
            F.min(F.when(F.col("flip") == 1, F.col("at"))).alias("from"),
            F.max(F.when(F.col("flip") == 1, F.col("at") + F.col("lasts"))).alias("to"),
        )
    )
    most = Window.partitionBy(*WHO).orderBy(F.desc("flips"), F.desc("lasts"))
    worst = (
        counted.where(F.col("flips") >= FLIPS).withColumn("place", F.row_number().over(most)).where(F.col("place") == 1)
    )
    told = worst.withColumns(
        {
            "value": F.col("flips").cast("double"),
            "expected": F.lit(0.0),
            "score": F.col("flips").cast("double"),
            "unit": F.when(F.col("lasts") == HOUR_S, "hours").otherwise("times of five minutes"),
        }
    )
    detail = F.format_string(
        "changed %d times within a day between well and sick; sick in %d of %d %s", "flips", "sick", "all", "unit"
    )
    return _anomalies(told, "flapping", detail)


def latency_shifts(hours: DataFrame, since: datetime) -> DataFrame:
    """The strongest lasting shift of each subscriber's median attempt time:
    the hours after it against the hours before, each against what is usual at its hour.

    Args:
        hours: See :func:`.cells.hourly`, with the days of the baseline.
        since: Begin of the report.
    """
    in_time = Window.partitionBy(*WHO).orderBy("hour")
    p50 = F.greatest(F.col("p50_ms").cast("double"), F.lit(1.0))
    same_hour = Window.partitionBy(*WHO, F.hour("hour"))
    solid = (
        hours.where((F.col("attempts") >= MIN_ATTEMPTS) & F.col("p50_ms").isNotNull())
        .withColumns({"took": p50, "days": F.count(F.lit(1)).over(same_hour)})
        .withColumn("usual", F.expr("percentile(took, 0.5)").over(same_hour))
        # Nights are quick and noons are slow: with enough days, that is taken out.
        .withColumn(
            "relative", F.when(F.col("days") > MIN_DAYS, F.col("took") / F.col("usual")).otherwise(F.col("took"))
        )
        .where(F.col("hour") >= F.lit(since))
    )
    before, after = in_time.rowsBetween(-SHIFT_HOURS, -1), in_time.rowsBetween(0, SHIFT_HOURS - 1)
    around = solid.withColumns(
        {
            **{f"{name}_before": F.collect_list(name).over(before) for name in ("took", "relative")},
            **{f"{name}_after": F.collect_list(name).over(after) for name in ("took", "relative")},
        }
    ).where((F.size("took_before") == SHIFT_HOURS) & (F.size("took_after") == SHIFT_HOURS))
    low, high = _median(F.col("relative_before")), _median(F.col("relative_after"))
    shifted = around.withColumns(
        {
            "expected": _median(F.col("took_before")),
            "value": _median(F.col("took_after")),
            "score": F.greatest(low, high) / F.greatest(F.least(low, high), F.lit(0.001)),
        }
    )
    lasting = (F.col("score") >= SHIFT_FACTOR) & (F.abs(F.col("value") - F.col("expected")) >= SHIFT_LEAST_MS)
    # The sides must lie wholly apart, or a spike, or the scatter of few attempts, would count as a shift.
    apart = (F.array_min("relative_after") > F.array_max("relative_before")) | (
        F.array_max("relative_after") < F.array_min("relative_before")
    )
    strongest = Window.partitionBy(*WHO).orderBy(F.desc("score"), "hour")
    kept = shifted.where(lasting & apart).withColumn("place", F.row_number().over(strongest)).where("place = 1")
    told = kept.withColumns({"from": F.unix_timestamp("hour"), "to": F.unix_timestamp("hour") + SHIFT_HOURS * HOUR_S})
    detail = F.format_string(
        "median attempt time from %.0f ms to %.0f ms for at least %d hours", "expected", "value", F.lit(SHIFT_HOURS)
    )
    return _anomalies(told, "latency_shift", detail)


def _usual_failures(hours: DataFrame) -> DataFrame:
    """Per subscriber the usual ``share`` of failed first tries, on how many it rests (``known``), and ``spread``:
    how much more than chance it varies by.

    A third of the days, those with the most failures, are left out, so that an outage of days does not become usual.
    """
    bad = F.col("first_attempts") - F.col("first_won")
    daily = (
        hours.where(F.col("first_attempts") > 0)
        .groupBy(*WHO, F.to_date("hour").alias("day"))
        .agg(F.sum("first_attempts").alias("tried"), F.sum(bad).alias("bad"))
    )
    whole = Window.partitionBy(*WHO)
    best = whole.orderBy(F.col("bad") / F.col("tried"), "day")
    good = (
        daily.withColumns({"place": F.row_number().over(best), "days": F.count(F.lit(1)).over(whole)})
        .where((F.col("days") >= MIN_DAYS) & (F.col("place") <= F.ceil(F.col("days") * 2 / 3)))
        .withColumns({"known": F.sum("tried").over(whole), "all_bad": F.sum("bad").over(whole)})
        .where(F.col("known") >= MIN_USUAL)
        # One failure more than was seen: none so far does not mean never.
        .withColumn("share", (F.col("all_bad") + 1) / (F.col("known") + 2))
        .select(*WHO, "day", "known", "share")
    )
    due = F.col("first_attempts") * F.col("share")
    of_good_days = (
        hours.withColumn("day", F.to_date("hour"))
        .join(good, [*WHO, "day"])
        .withColumn("residual", (bad - due) * (bad - due) / (due + 0.5))
    )
    return of_good_days.groupBy(*WHO, "known", "share").agg(
        # Nine tenths of what chance alone makes lie below 2.706.
        F.greatest(F.expr("percentile(residual, 0.9)") / 2.706, F.lit(1.0)).alias("spread")
    )


def _usual_failures_by_hour(hours: DataFrame) -> DataFrame:
    """What usually fails at an hour of the day, if anything: maintenance each night is no news."""
    share = (F.col("first_attempts") - F.col("first_won")) / F.col("first_attempts")
    counted = (
        hours.where(F.col("first_attempts") >= MIN_FAILED)
        .groupBy(*WHO, F.hour("hour").alias("hour_of_day"))
        .agg(F.median(share).alias("hour_share"), F.count(F.lit(1)).alias("days"))
    )
    return counted.where((F.col("days") > MIN_DAYS) & (F.col("hour_share") > 0)).drop("days")


def _evidence(failed: str, tried: str, due: str) -> Column:
    """How far from chance so many failures are: the likelihood ratio of the share seen and the usual one,
    0 unless it has doubled.

    Discounted for how little the usual share rests on, and for what it varies by besides chance.
    """
    k, n, usual = F.col(failed), F.col(tried), F.col(due)
    rest = F.when(n > k, (n - k) * F.log((n - k) / (n - usual))).otherwise(0.0)
    ratio = 2 * (k * F.log(k / usual) + rest)
    solid = F.col("known") / (F.col("known") + n)
    return F.when(k > 2 * usual, ratio * solid / F.col("spread")).otherwise(0.0)


def _news(hours: DataFrame, least_spread: Column) -> DataFrame:
    """The hours that are far off the usual, farther than on the third worst day, with their ``score``.

    Args:
        hours: With how far they are ``off``.
        least_spread: The spread of ``off`` that chance alone makes.
    """
    sized = hours.withColumns({"size": F.abs("off"), "up": F.col("off") > 0, "day": F.to_date("hour")})
    worst = Window.partitionBy(*WHO, "up").orderBy(F.desc("worst"), "day")
    third = (
        sized.groupBy(*WHO, "up", "day")
        .agg(F.max("size").alias("worst"))
        .withColumn("place", F.row_number().over(worst))
        .where(F.col("place") == 3)
        .select(*WHO, "up", F.col("worst").alias("third"))
    )
    spread = F.greatest(F.expr("percentile(size, 0.9)").over(Window.partitionBy(*WHO)) / 1.645, least_spread)
    scored = sized.withColumn("score", F.col("size") / spread).join(third, [*WHO, "up"], "left")
    far = F.col("size") >= F.coalesce(F.col("third"), F.lit(0.0)) * BEYOND
    return scored.where((F.col("score") >= UNUSUAL) & far)


def _told_by_hour(hours: DataFrame, anomaly: str, text: str) -> DataFrame:
    """Consecutive hours as one row, described by the worst of them."""
    timed = hours.withColumn("from", F.unix_timestamp("hour")).withColumn("to", F.col("from") + HOUR_S)
    worst = F.max(F.struct("score", "from", "value", "expected"))
    told = (
        _merged(timed, "up")
        .groupBy(*WHO, "up", "event")
        .agg(
            F.max("subscriber").alias("subscriber"),
            F.min("from").alias("from"),
            F.max("to").alias("to"),
            worst.alias("worst"),
        )
        .select(*WHO, "subscriber", "from", "to", "worst.score", "worst.value", "worst.expected")
    )
    return _anomalies(told, anomaly, F.format_string(text, "value", "expected"))


def _merged(rows: DataFrame, *apart: str) -> DataFrame:
    """Rows with the number of their ``event``: those of a subscriber that overlap or lie less than :data:`APART_S`
    apart have the same.
    """
    in_time = Window.partitionBy(*WHO, *apart).orderBy("from", "to")
    so_far = F.max("to").over(in_time.rowsBetween(Window.unboundedPreceding, -1))
    begins = F.coalesce(F.col("from") > so_far + APART_S, F.lit(True))
    return rows.withColumn("begins", begins.cast("int")).withColumn("event", F.sum("begins").over(in_time))


def _third(column: str, ranked: WindowSpec) -> Column:
    whole = ranked.rowsBetween(Window.unboundedPreceding, Window.unboundedFollowing)
    return F.nth_value(column, 3).over(whole)


def _median(values: Column) -> Column:
    """The median of an array, the mean of the middle two when it is even."""
    ordered = F.array_sort(values)
    size = F.size(values)
    low = F.get(ordered, F.floor((size - 1) / 2).cast("int"))
    high = F.get(ordered, F.floor(size / 2).cast("int"))
    return (low + high) / 2


def _anomalies(rows: DataFrame, anomaly: str, detail: Column) -> DataFrame:
    times = (F.timestamp_seconds(name).alias(known) for name, known in (("from", "started_at"), ("to", "ended_at")))
    return rows.select(
        F.lit(anomaly).alias("anomaly"),
        *WHO,
        "subscriber",
        *times,
        "value",
        "expected",
        "score",
        detail.alias("detail"),
    )
