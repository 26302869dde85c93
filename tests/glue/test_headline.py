"""The numbers at the top of the page and its sums: whole days, none of them skipped, and never the sum of a truncated
table.
"""

from __future__ import annotations

from datetime import UTC, date, datetime

from glue_jobs.delivery_report.figures.causes import KNOWN
from glue_jobs.delivery_report.figures.cells import CELL, failures_by_cause
from glue_jobs.delivery_report.figures.traffic import without_gaps
from glue_jobs.delivery_report.proof.findings import FINDING
from pyspark.sql import SparkSession
from pyspark.sql.types import DateType, LongType, StructField, StructType, TimestampType
from tests.glue.frames import queried, rows_frame
from tests.glue.pages import fate, results, text_of

BUSY, BEFORE = fate(day=date(2026, 11, 20), messages=1_000), fate(day=date(2026, 11, 19), messages=800)
BEGUN = fate(day=date(2026, 11, 21), messages=34)


def test_at_half_past_one_the_headline_is_about_yesterday() -> None:
    text = text_of(results(deliveries_by_day=[BEFORE, BUSY, BEGUN]), "today")
    assert "Friday, 20 November 2026, messages by acceptance" in text
    assert "messages accepted 1,000 +25.0% on the day before" in text
    # An unfinished day stands beside it, is marked as such, and not compared
    assert "Saturday, 21 November 2026, until 01:30 only" in text
    assert "messages accepted 34 " in text
    assert "-96" not in text


def test_who_began_today_reads_of_today_first() -> None:
    silent = fate(day=date(2026, 11, 20))
    text = text_of(results(deliveries_by_day=[silent, BEGUN]), "today")
    assert text.index("messages accepted 34") < text.index("messages accepted 0")


def test_at_midnight_the_day_is_whole() -> None:
    text = text_of(results(now="2026-11-22T00:00:00", deliveries_by_day=[BUSY, BEGUN]), "today")
    assert "Saturday, 21 November 2026, messages by acceptance" in text
    assert "-96.6% on the day before" in text


def test_a_first_day_that_is_not_over_is_told_as_such() -> None:
    text = text_of(results(deliveries_by_day=[BEGUN]), "today")
    assert "Saturday, 21 November 2026, until 01:30 only" in text
    assert "on the day before" not in text


def test_a_silent_day_is_a_day() -> None:
    silent = fate(day=date(2026, 11, 20))
    text = text_of(results(deliveries_by_day=[BEFORE, silent]), "today")
    assert "Friday, 20 November 2026" in text
    assert "messages accepted 0 -100.0% on the day before" in text
    after = fate(day=date(2026, 11, 20), messages=5)
    text = text_of(results(deliveries_by_day=[{**silent, "day": date(2026, 11, 19)}, after]), "today")
    assert "messages accepted 5 none on the day before" in text


COURSE = StructType(
    [
        StructField("hour", TimestampType()),
        *(StructField(name, LongType()) for name in ("messages", "busy_ms", "p50_ms")),
    ]
)


def test_hours_without_a_message_are_zero_to_the_end_of_the_report(spark: SparkSession) -> None:
    # Given two hours with messages, and none before, between and after
    rows = [
        {"hour": datetime(2026, 11, 20, hour, tzinfo=UTC), "messages": 7, "busy_ms": 9, "p50_ms": 5} for hour in (2, 4)
    ]
    until = datetime(2026, 11, 20, 6, 30, tzinfo=UTC)
    # When
    since = datetime(2026, 11, 20, tzinfo=UTC)
    counts = {"messages": "messages", "busy_ms": "busy_ms"}
    filled = queried(lambda each: without_gaps(each, "hour", counts, since, until), rows_frame(spark, rows, COURSE))
    # Then all hours are there, the last one is unfinished, and what was not measured is not zero
    found = sorted((row["hour"].hour, row["messages"], row["busy_ms"], row["p50_ms"]) for row in filled)
    nothing = (0, 0, None)
    assert found == [
        (0, *nothing),
        (1, *nothing),
        (2, 7, 9, 5),
        (3, *nothing),
        (4, 7, 9, 5),
        (5, *nothing),
        (6, *nothing),
    ]


def test_days_without_a_message_are_zero(spark: SparkSession) -> None:
    schema = StructType([StructField("day", DateType()), StructField("messages", LongType())])
    begin, until = datetime(2026, 11, 18, tzinfo=UTC), datetime(2026, 11, 21, tzinfo=UTC)
    counted = rows_frame(spark, [{"day": date(2026, 11, 18), "messages": 3}], schema)
    filled = queried(lambda each: without_gaps(each, "day", {"messages": "messages"}, begin, until), counted)
    assert sorted((row["day"].day, row["messages"]) for row in filled) == [(18, 3), (19, 0), (20, 0)]


def test_why_attempts_failed_is_about_all_of_them(spark: SparkSession) -> None:
    # Given failures with and without an answer, of more than one subscriber
    status = {"kind": "attempt", "verdict": "failed", "error_class": "", "status_code": 503, "attempts": 2}
    timeout = {**status, "error_class": "Timeout", "status_code": 0, "attempts": 5}
    won = {**status, "verdict": "delivered", "status_code": 200, "attempts": 90}
    cells = rows_frame(spark, [status, {**status, "subscriber_id": "b"}, timeout, won], CELL)
    # Then causes are summed over all subscribers
    found = {row["cause"]: row["attempts"] for row in queried(failures_by_cause, cells)}
    assert found == {"status 503": 4, "Timeout": 5}


def verdict_of(*found: tuple[str, str], conserved: bool, **sums: int) -> str:
    causes = [{**CAUSE, "severity": severity, "finding": finding} for severity, finding in found]
    made = results(causes=causes)
    made.verdict.update(conserved=conserved, **sums)
    return text_of(made).partition("Today and the last day")[0]


def test_the_verdict_says_when_nobody_knows_how_many_are_lost() -> None:
    # Given all that is known accounted for, Then it says so, and how many are lost
    assert "Every delivery is accounted for. 0 lost" in verdict_of(("notice", "waiting"), conserved=True)
    # When a stream or an object is missing, Then more may be lost than are counted
    for finding in ("pulse_missing", "object_missing", "objects_gone", "not_recorded"):
        told = verdict_of(("breach", finding), conserved=False, missing=11)
        assert "nothing proves the rest: nobody can count what is missing. at least 11 lost 0 given up" in told
    assert "Not everything is accounted for. 0 lost" in verdict_of(("breach", "overdue"), conserved=False)
    # And when nothing was sent that could show it, Then it does not say that all is well
    told = verdict_of(("notice", "pulse_not_sent"), conserved=True)
    assert "Every delivery is accounted for." not in told
    assert "For a time, nothing proves that these are all. 0 lost" in told


def test_where_nobody_can_count_what_is_lost_the_verdict_names_no_number_but_what_follows_from_what_is_known() -> None:
    # Given a stream of which pulses are missing, and no delivery that is known to be lost
    told = verdict_of(("breach", "pulse_missing"), conserved=False)
    # Then it does not say that none is
    assert "an unknown number lost 0 given up" in told
    assert "at least" not in told
    # And what is known of deliveries and messages is said: whose acceptance, or whose every record is missing
    told = verdict_of(("breach", "objects_gone"), conserved=False, unexpected=26, unrecorded=1_199, lines_gone=7_560)
    assert "and with at least 7,560 lines of the records gone nothing proves the rest. an unknown" in told
    assert "an unknown number lost 26 without an acceptance 1,199 messages without any record 0 given up" in told
    # And with nothing else missing, only this is
    told = verdict_of(("breach", "never_accepted"), conserved=False, unexpected=2)
    assert "Not everything is accounted for. 0 lost 2 without an acceptance 0 given up" in told


def test_what_is_known_of_what_is_missing_is_counted(spark: SparkSession) -> None:
    # Given messages without any record, objects that are gone or missing, and one of which little could be used
    day = "dt=2026-11-18"
    told = [
        ("not_recorded", NOT_RECORDED + "1, 2, 3, 4, 5 and 7 more"),
        ("not_recorded", NOT_RECORDED + "8, 9"),
        ("objects_gone", f"{day}: read once, no longer there: hour=10/m-1-1-3.json.gz, of the hours 10, with 3 lines"),
        ("object_missing", f"{day}/hour=11/: written once, never read, not there: m-2-2-40.json.gz, with 40 lines; x"),
        ("unusable_records", f"{day}/hour=12/m-3-3-50.json.gz: 7 of 50 records could be used; rejected: 43 no_json"),
        ("unusable_records", f"{day}/hour=12/m.json.gz: 7 of an unknown number of records could be used"),
        ("overdue", "was pending, due 2026-11-18, with 9 lines"),
    ]
    rows = [{"severity": "breach", "finding": kind, "detail": each} for kind, each in told]
    # Then messages and lines are counted
    sums = ", ".join(f"sum({each})::BIGINT AS {name}" for name, each in KNOWN.items())
    (counted,) = queried(lambda each: f"SELECT {sums} FROM {each}", rows_frame(spark, rows, FINDING))
    assert counted == {"unrecorded": 14, "lines_gone": 3 + 40 + 43}


NOT_RECORDED = "the table holds what no record tells of: "

CAUSE = {
    **dict.fromkeys(("project", "queue", "delivery_id", "first_hour", "last_hour")),
    **{"count": 1, "explained": 0, "detail": "what"},
}
