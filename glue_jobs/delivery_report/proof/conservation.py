"""The proof: what was accepted equals what was delivered, given up, or still waits;
and the names of everything that contradicts this.

*Balance*: per project and hour of acceptance, deliveries owed = sum over :data:`STANDINGS`. Each owed delivery has one
standing; ``missing`` is the one that breaks the balance, as does a delivery that was never owed (``unexpected``).

*Findings*: each breach by the ids it concerns. Kinds and severities are listed in ``docs/report.md``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import date, datetime, timedelta
from typing import Any, Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from ..records.compaction import DayIntake
from ..records.intake import expected_records
from ..records.links import Missing
from ..storage.schema import SETTLED
from .deliveries import IDENTITY, delivery_events, is_attempt, is_by_itself, is_end, is_late_answer, is_win
from .findings import finding_of, found, some
from .pulses import Gap
from .sightings import Sight

STANDINGS: Final = ("pending", "retrying", "reserved", "polling", "scheduled", "held", *SETTLED, "missing")
"""A delivery's standing: its state, but ``scheduled`` while it waits in the schedule, ``held`` while it waits for a
person, and ``missing`` if it was due and has no further record.
"""

CLOCKS: Final = timedelta(minutes=1)
"""How far the clocks of functions may disagree."""

SWEEP: Final = timedelta(days=4)
"""Expired messages of a pull queue, and notifications, are removed by DynamoDB's TTL:
one day after expiry at the earliest, about three at the latest.
"""


def with_standing(
    deliveries: DataFrame,
    now: datetime,
    grace: timedelta,
    settled_by_hand: Column | None = None,
    sighted: DataFrame | None = None,
) -> DataFrame:
    """Deliveries with their ``standing`` and the ``hour`` of their acceptance.

    Args:
        now: As of when.
        grace: How late a record may be before its delivery counts as missing.
        settled_by_hand: Whether a person has settled a delivery; what is missing then counts as held.
        sighted: What was found by :func:`.sightings.look_up` and :func:`.pulled_ends.lost_ends`, if anything was looked
            up.
    """
    if sighted is None:
        deliveries = deliveries.withColumn("sighted", F.lit(None).cast("string"))
    else:
        deliveries = deliveries.join(sighted, list(IDENTITY), "left")
    in_sight = F.coalesce(F.col("sighted").isin(Sight.WAITS, Sight.LATELY), F.lit(False))
    moment = F.lit(now)
    settled = F.col("state").isin(*SETTLED)
    # A reservation is waited for to its end, everything else is looked at no later than at its expiry.
    looked_at = F.when(F.col("state") == "reserved", F.col("due_at")).otherwise(F.least("due_at", "expires_at"))
    heard_of = F.col("state") == "held"
    silent = looked_at.isNull() | (looked_at < F.lit(now - grace))
    # Nothing pushes these: they wait for their consumer until they expire.
    waiting_standing = (
        F.when(F.coalesce(F.col("sighted") == Sight.AHEAD, F.lit(False)), "missing")
        .when(F.col("expires_at") < F.lit(now - SWEEP - grace), "missing")
        .when(F.col("expires_at") <= moment, "expired")
        .when((F.col("state") == "reserved") & (F.col("due_at") > moment), "reserved")
        .otherwise("pending")
    )
    push_standing = (
        F.when(heard_of, "held")
        .when(silent & ~in_sight, "missing")
        .when(F.col("scheduled") & (looked_at > moment), "scheduled")
        .otherwise(F.col("state"))
    )
    standing = (
        F.when(settled, F.col("state"))
        .when(F.col("acceptances") == 0, "missing")
        .when(F.col("pull") | F.col("notification"), waiting_standing)
        .otherwise(push_standing)
    )
    if settled_by_hand is not None:
        standing = F.when(settled_by_hand & (standing == "missing"), "held").otherwise(standing)
    return deliveries.withColumns(
        {
            "standing": standing,
            "hour": F.date_trunc("hour", "accepted_at"),
        }
    )


def overdue_findings(standings: DataFrame) -> DataFrame:
    """Accepted deliveries that were due and have no further record."""
    since = F.date_format(F.coalesce("due_at", "expires_at", "last_record_at"), "yyyy-MM-dd HH:mm:ss")
    detail = F.format_string(
        "was %s, due %s, no record since %s",
        "state",
        since,
        F.date_format("last_record_at", "yyyy-MM-dd HH:mm:ss"),
    )
    return found(standings.where(is_overdue()), "breach", "overdue", detail)


def is_overdue() -> Column:
    """Whether a delivery was accepted and due, and has no further record; see :func:`with_standing`.

    A message owed to nobody has nothing due. What has gone on without a record is another finding.
    """
    went_on = F.coalesce(F.col("sighted") == Sight.AHEAD, F.lit(False))
    return (F.col("standing") == "missing") & (F.col("acceptances") > 0) & (F.col("owed") > 0) & ~went_on


def delivery_findings(records: DataFrame, suspects: DataFrame) -> DataFrame:
    """What exactly is wrong with suspicious deliveries, from their records one by one.

    ``never_accepted``, ``not_owed``, ``record_missing`` (with the numbers), ``conflicting_records``,
    ``delivered_twice``, ``settled_twice``, ``went_on_after_end``.

    Args:
        records: All records of the period.
        suspects: See :func:`.deliveries.suspicious`; few.
    """
    named = suspects.select(*IDENTITY, F.date_trunc("hour", "accepted_at").alias("hour"), "acceptances")
    whom = suspects.select("project", "queue_uid", "message_id").distinct()
    # Few as a rule, and then Spark hands them to every task; on the night on which a stream was lost, they are many.
    theirs = records.join(whom, ["project", "queue_uid", "message_id"], "left_semi")
    events = delivery_events(theirs)
    wins, ends, by_itself = is_win(), is_end(), is_by_itself()
    numbered = F.when(is_attempt() & ~F.col("notification"), F.col("attempt"))
    goes_on = by_itself & ~F.col("accepted") & ~ends & ~is_late_answer()
    label = F.concat_ws(" ", "kind", "attempt", F.concat(F.lit("at "), F.date_format("at", "yyyy-MM-dd HH:mm:ss.SSS")))
    lives = events.groupBy(*IDENTITY).agg(
        F.sort_array(F.collect_set("step")).alias("steps"),
        F.max(F.greatest("step", F.when(F.col("pull"), F.col("reservations")))).alias("top"),
        F.sort_array(F.collect_set(numbered)).alias("attempt_numbers"),
        F.count(numbered).alias("attempts"),
        F.max(F.when(F.col("accepted") & F.col("pull"), F.col("reservations"))).alias("base"),
        F.max(F.col("pull").cast("int")).alias("pull"),
        F.count(F.lit(1)).alias("records"),
        F.array_sort(F.collect_set("record_id")).alias("record_ids"),
        F.array_sort(F.collect_list(F.when(wins & by_itself, label))).alias("wins"),
        F.array_sort(F.collect_list(F.when(ends & by_itself, label))).alias("ends"),
        F.max(F.when(ends, F.col("rank"))).alias("end"),
        F.array_sort(F.collect_list(F.when(goes_on, F.struct("rank", label.alias("label"))))).alias("others"),
    )
    accepted = (
        theirs.where(F.col("kind") == "accepted")
        .select("project", "queue_uid", "message_id", F.lit(True).alias("message_accepted"))
        .distinct()
    )
    lives = named.join(lives, list(IDENTITY)).join(accepted, ["project", "queue_uid", "message_id"], "left")
    known = F.coalesce(F.col("message_accepted"), F.lit(False))
    top = F.col("top")
    base = F.coalesce("base", F.lit(0))
    lost = F.when(top > base, F.array_except(F.sequence(base + 1, top), "steps"))
    whole = F.coalesce(F.size(lost), F.lit(-1)) <= 0
    last_attempt = F.array_max("attempt_numbers")
    lost_attempts = F.when(last_attempt > 0, F.array_except(F.sequence(F.lit(1), last_attempt), "attempt_numbers"))
    late = F.filter("others", lambda each: each["rank"] > F.col("end"))
    number = F.when(F.col("pull") == 1, "reservation").otherwise("version")
    listed = F.array_join(F.transform(late, lambda each: each["label"]), ", ")
    checks: list[tuple[str, Column, Column]] = [
        ("never_accepted", (F.col("acceptances") == 0) & ~known, _count_of("records", "records but no acceptance")),
        (
            "not_owed",
            (F.col("acceptances") == 0) & known,
            _count_of("records", "records, but the acceptance owes it not"),
        ),
        (
            "record_missing",
            F.size(lost) > 0,
            F.format_string("no record of %s %s of %s", number, F.array_join(lost, ", "), top),
        ),
        (
            "record_missing",
            whole & (F.size(lost_attempts) > 0),
            F.format_string("no record of attempt %s of %s", F.array_join(lost_attempts, ", "), last_attempt),
        ),
        (
            "attempts_differ",
            whole
            & (F.size(lost_attempts) == 0)
            & (F.col("attempts") > F.size("attempt_numbers"))
            & (F.col("records") == F.size("record_ids")),
            F.format_string("%s attempts, numbered %s", "attempts", F.array_join("attempt_numbers", ", ")),
        ),
        ("conflicting_records", F.col("records") > F.size("record_ids"), F.lit("two records of one id differ")),
        ("delivered_twice", F.size("wins") > 1, F.array_join("wins", "; ")),
        ("settled_twice", (F.size("ends") > 1) & (F.size("wins") <= 1), F.array_join("ends", "; ")),
        ("went_on_after_end", F.size(late) > 0, F.concat(F.lit("after its end: "), listed)),
    ]
    kinds = [
        F.when(when, F.struct(F.lit(finding).alias("finding"), detail.alias("detail")))
        for finding, when, detail in checks
    ]
    wrong = lives.withColumn("wrong", F.explode(F.array_compact(F.array(*kinds))))
    return found(wrong, "breach", F.col("wrong.finding"), F.col("wrong.detail"))


def object_findings(intakes: Iterable[DayIntake]) -> list[dict[str, Any]]:
    """What is wrong with objects and with the kept days."""
    findings: list[dict[str, Any]] = []
    for intake in intakes:
        day = f"dt={intake.day}"
        for each in intake.incomplete:
            held = "an unknown number of" if each.expected is None else each.expected
            why = f"; rejected: {each.rejected}" if each.rejected else ""
            detail = f"{day}/{each.source}: {each.used} of {held} records could be used{why}"
            findings.append(finding_of("breach", "unusable_records", detail))
        if intake.gone:
            hours = sorted({each.removeprefix("hour=")[:2] for each in intake.gone if each.startswith("hour=")})
            of_hours = f", of the hours {', '.join(hours)}" if hours else ""
            detail = f"{day}: read once, no longer there: {some(intake.gone)}{of_hours}{_with_lines(intake.gone)}"
            findings.append(finding_of("breach", "objects_gone", detail))
        if intake.foreign:
            detail = f"{day}: not read, as the hub writes none: {some(intake.foreign)}"
            findings.append(finding_of("notice", "foreign_files", detail))
        if intake.spoiled and intake.objects:
            detail = f"{day}: what was kept of it was not as it had been written"
            findings.append(finding_of("notice", "day_made_anew", detail))
        for copied in intake.duplicates:
            names = ", ".join(sorted(set(copied["sources"])))
            detail = f"{day}: {copied['records']} records lie in each of {names}; counted once"
            findings.append(finding_of("notice", "duplicate_records", detail))
    return findings


def state_findings(lost: Iterable[date], spoiled: Iterable[date], settled: Sequence[date]) -> list[dict[str, Any]]:
    """What is wrong with the states that are carried from night to night.

    Args:
        lost: Days at which the state of open deliveries was lost.
        spoiled: Days whose state could not be used.
        settled: Losses that a person has settled.
    """
    unknown = "what was open before {} is not known: its state was lost; run once from the day it is to be judged from"
    anew = "what was kept of deliveries open at the end of {} was not as it had been written"
    return [
        *(finding_of("breach", "open_deliveries_lost", unknown.format(day)) for day in lost if day not in settled),
        *(finding_of("notice", "state_made_anew", anew.format(day)) for day in spoiled),
    ]


def pulse_findings(gaps: Iterable[Gap]) -> list[dict[str, Any]]:
    """Streams of which no record tells for a time; see :func:`.pulses.gaps`."""
    findings: list[dict[str, Any]] = []
    for gap in gaps:
        many = f"{gap.count} pulse{'s' if gap.count != 1 else ''}"
        when = f"between {gap.start:%Y-%m-%d %H:%M} and {gap.stop:%Y-%m-%d %H:%M}"
        severity, finding, means = (
            ("breach", "pulse_missing", "left no record, so other records of it may be lost")
            if gap.lost
            else ("notice", "pulse_not_sent", "not sent, so nothing tells whether records are lost")
        )
        detail = f"stream of {gap.table}: {many} {when} {means}"
        findings.append(finding_of(severity, finding, detail, gap.start.replace(minute=0)))
    return findings


def link_findings(missing: Iterable[Missing]) -> list[dict[str, Any]]:
    """Objects that others name as written before them and that are not there; see :func:`.links.missing_objects`."""
    return [
        finding_of(
            "breach",
            "object_missing",
            f"{each.hour:dt=%Y-%m-%d/hour=%H}/: written once, never read, not there: {some(each.names)}"
            f"{_with_lines(each.names)}; {each.named_by} names {each.names[0]}",
            each.hour,
        )
        for each in missing
    ]


def _with_lines(objects: Iterable[str]) -> str:
    """How many lines some objects held, as far as their names say it."""
    lines = sum(filter(None, map(expected_records, objects)))
    return f", with {lines} line{'s' if lines > 1 else ''}" if lines else ""


def without_settled(findings: DataFrame, settled_by_hand: Column) -> DataFrame:
    """Findings, those about a delivery that a person has settled as notices."""
    severity = F.when(settled_by_hand, "notice").otherwise(F.col("severity"))
    detail = F.when(settled_by_hand, F.concat("detail", F.lit("; settled by hand"))).otherwise(F.col("detail"))
    return findings.withColumns({"severity": severity, "detail": detail})


def order_findings(records: DataFrame) -> DataFrame:
    """Deliveries that arrived before an earlier one with the same order key at the same subscriber,
    and notifications that were sent out of order.
    """
    to_whom = Window.partitionBy("project", "queue_uid", "subscriber_id", "order_key").orderBy(
        "finished_at", "sequence"
    )
    before = to_whom.rowsBetween(Window.unboundedPreceding, -1)
    passed = (
        records.where(is_ordered())
        .withColumn("highest", F.max("sequence").over(before))
        .where(F.col("sequence") < F.col("highest"))
    )
    detail = F.format_string("sequence %s of key %s came after %s", "sequence", "order_key", "highest")
    return found(passed.withColumn("hour", F.date_trunc("hour", "accepted_at")), "breach", "out_of_order", detail)


def is_ordered() -> Column:
    """Whether a record tells of an arrival of which an order was promised."""
    came = (F.col("verdict") == "delivered") | (F.col("dialect") == "notifications")
    # A person's resend is out of order on purpose.
    return F.col("order_key").isNotNull() & is_attempt() & came & is_by_itself()


def expiry_findings(records: DataFrame) -> DataFrame:
    """Deliveries that ended as expired before the time of their message was over:
    something else removed them or their message from the table.
    """
    detail = F.format_string(
        "expired at %s, due to at %s",
        F.date_format("at", "yyyy-MM-dd HH:mm:ss"),
        F.date_format("expires_at", "yyyy-MM-dd HH:mm:ss"),
    )
    gone = records.where(is_expired_early())
    return found(gone.withColumn("hour", F.date_trunc("hour", "accepted_at")), "breach", "expired_early", detail)


def is_expired_early() -> Column:
    """Whether a record says that a delivery expired before its time."""
    early = F.col("expires_at") > F.col("at") + F.expr(f"INTERVAL {round(CLOCKS.total_seconds())} SECONDS")
    return (F.col("kind") == "expired") & early & is_by_itself()


def _count_of(column: str, text: str) -> Column:
    return F.concat_ws(" ", column, F.lit(text))
