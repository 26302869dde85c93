"""Findings by cause: one unreadable object is one cause, however many findings it leads to; and undelivered messages,
by queue and subscriber.
"""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import Any

from glue_jobs.delivery_report.figures.causes import by_cause
from glue_jobs.delivery_report.figures.traffic import backlog, fate_cells, given_up
from glue_jobs.delivery_report.proof.conservation import (
    link_findings,
    object_findings,
    pulse_findings,
    with_standing,
)
from glue_jobs.delivery_report.proof.deliveries import delivery_rows
from glue_jobs.delivery_report.proof.findings import FINDING
from glue_jobs.delivery_report.proof.pulses import Gap
from glue_jobs.delivery_report.records.compaction import DayIntake
from glue_jobs.delivery_report.records.links import Missing
from pyspark.sql import SparkSession
from tests.glue.frames import Counted, queried, records_frame, rows_frame
from tests.glue.lives import HOUR, MINUTE, NOON, Lives
from tests.glue.pages import results, text_of

OBJECT = "dt=2026-11-18/hour=12/messages-1-9-50.json.gz: 7 of 50 records could be used"


def finding(n: int, **changes: Any) -> dict[str, Any]:
    usual = {
        "severity": "breach",
        "finding": "record_missing",
        "project": "p1",
        "queue": "orders",
        "message_id": f"{n:03}",
    }
    hour = datetime(2026, 11, 18, 12, tzinfo=UTC)
    return {**usual, "delivery_id": f"{n:03}.s0", "hour": hour, "detail": f"no record of version {n}", **changes}


def test_one_truncated_object_is_one_cause_and_comes_first(spark: SparkSession) -> None:
    # Given an object that lost 43 records, the findings caused by that, and two others
    broken = {"severity": "breach", "finding": "unusable_records", "detail": OBJECT}
    rows = [
        *(finding(n) for n in range(43)),
        finding(50, hour=datetime(2026, 11, 18, 9, tzinfo=UTC)),
        finding(60, finding="delivered_twice", queue="invoices", detail="twice"),
        broken,
    ]
    # When
    causes = sorted(queried(by_cause, rows_frame(spark, rows, FINDING)), key=lambda row: (row["place"], row["finding"]))
    # Then the object is the first of three causes, with the findings that follow from it
    told = [(row["finding"], row["queue"], row["count"], row["explained"]) for row in causes]
    assert told == [
        ("unusable_records", None, 1, 43),
        ("delivered_twice", "invoices", 1, 0),
        ("record_missing", "orders", 1, 0),
    ]
    assert causes[0]["detail"] == OBJECT
    assert (causes[2]["delivery_id"], causes[2]["first_hour"].hour) == ("050.s0", 9)


def test_objects_that_are_gone_are_one_cause_with_all_that_follows(spark: SparkSession) -> None:
    # Given objects of three hours that a night had read and that are gone, and what follows of them and of the hour
    # before; and what was accepted earlier
    gone = frozenset(f"hour={hour}/messages-{n}-{n}-4.json.gz" for hour in ("10", "11", "15") for n in range(3))
    (lost,) = object_findings([DayIntake(day=date(2026, 11, 18), gone=gone)])
    assert lost["detail"].endswith(" and 4 more, of the hours 10, 11, 15, with 36 lines")
    rows = [finding(hour, hour=datetime(2026, 11, 18, hour, tzinfo=UTC)) for hour in (8, 9, 10, 11, 12, 14, 15)]
    # When
    causes = queried(by_cause, rows_frame(spark, [lost, *rows], FINDING))
    # Then each of them is counted once with the objects, and the others are by themselves
    told = [(row["finding"], row["count"], row["explained"]) for row in sorted(causes, key=lambda row: row["place"])]
    assert told == [("objects_gone", 9, 5), ("record_missing", 2, 0)]
    (first,) = [row for row in causes if row["finding"] == "objects_gone"]
    assert (first["first_hour"].hour, first["last_hour"].hour) == (10, 15)


def pulses_missing(stream: str, since: int, until: int) -> dict[str, Any]:
    """A stream without pulses from one hour to another."""
    start, stop = (datetime(2026, 11, 18, hour, tzinfo=UTC) for hour in (since, until))
    (row,) = pulse_findings([Gap(table=stream, start=start, stop=stop, lost=True)])
    return row


def causes_of(spark: SparkSession, *rows: dict[str, Any]) -> list[tuple[Any, ...]]:
    """Finding, how many, how many follow, first and last hour, detail of each cause."""
    causes = sorted(queried(by_cause, rows_frame(spark, rows, FINDING)), key=lambda row: (row["place"], row["detail"]))
    return [
        (
            row["finding"],
            row["count"],
            row["explained"],
            *(each and each.hour for each in (row["first_hour"], row["last_hour"])),
            row["detail"],
        )
        for row in causes
    ]


def test_pulses_that_were_in_objects_that_are_gone_follow_from_these(spark: SparkSession) -> None:
    # Given objects of two hours that are gone, the pulses that were in them, what else follows, and messages of which
    # no record is left
    (gone,) = object_findings([DayIntake(day=date(2026, 11, 18), gone=frozenset({"hour=10/m-1-1-1.json.gz"}))])
    (missing,) = link_findings(
        [Missing(hour=datetime(2026, 11, 18, 11, tzinfo=UTC), names=["m-2-2-2.json.gz"], named_by="m-3-3-3.json.gz")]
    )
    ten = datetime(2026, 11, 18, 10, tzinfo=UTC)
    unrecorded = finding(0, finding="not_recorded", message_id=None, delivery_id=None, hour=ten, detail=NONE + "1, 2")
    within = [pulses_missing("hub-Messages", 10, 11), pulses_missing("hub-Lines", 11, 12), finding(1, hour=ten)]
    # And a stream without pulses for longer than that
    longer = pulses_missing("hub-Topics", 10, 14)
    told = causes_of(spark, gone, missing, *within, unrecorded, longer)
    # Then what was in the objects has no row of its own, and the stream has
    assert [each[:5] for each in told] == [
        ("object_missing", 1, 4, 11, 11),
        ("objects_gone", 1, 3, 10, 10),
        ("pulse_missing", 1, 0, 10, 13),
    ]


def test_streams_without_pulses_at_the_same_time_are_one_cause_with_what_follows(spark: SparkSession) -> None:
    # Given two streams without pulses for two hours, a third one for one, and deliveries of these hours and of others
    silent = [pulses_missing(each, 10, 12) for each in ("hub-Messages", "hub-Lines")]
    rows = [finding(hour, hour=datetime(2026, 11, 18, hour, tzinfo=UTC)) for hour in (8, 9, 10, 11, 12)]
    told = causes_of(spark, *silent, pulses_missing("hub-Topics", 20, 21), *rows)
    # Then each time is one cause, with the deliveries of its hours and of the hour before
    of_one = silent[0]["detail"].partition(": ")[2]
    both = f"streams of hub-Lines, hub-Messages: {of_one}"
    assert told == [
        ("pulse_missing", 1, 0, 20, 20, pulses_missing("hub-Topics", 20, 21)["detail"]),
        ("pulse_missing", 2, 3, 10, 11, both),
        ("record_missing", 2, 0, 8, 12, "no record of version 8"),
    ]


def test_messages_without_any_record_are_counted_by_queue_and_objects_by_day(spark: SparkSession) -> None:
    # Given messages of two hours without any record, and missing objects of two hours of a day
    hours = [datetime(2026, 11, 18, hour, tzinfo=UTC) for hour in (3, 5)]
    whose = {"finding": "not_recorded", "message_id": None, "delivery_id": None}
    unrecorded = [
        finding(0, **whose, hour=hours[0], detail=NONE + "1, 2, 3, 4, 5 and 7 more"),
        finding(0, **whose, hour=hours[1], detail=NONE + "8, 9"),
        finding(0, **whose, queue="invoices", hour=hours[1], detail=NONE + "7"),
    ]
    names = [f"m-{n}-{n}-2.json.gz" for n in range(7)]
    missing = link_findings(
        [Missing(hour=hour + 10 * HOURS, names=names, named_by="m-9-9-1.json.gz") for hour in hours]
    )
    # Then there is one row for each queue, and one for the day
    assert [each[:5] for each in causes_of(spark, *unrecorded, *missing)] == [
        ("object_missing", 14, 0, 13, 15),
        ("not_recorded", 14, 0, 3, 5),
        ("not_recorded", 1, 0, 5, 5),
    ]


NONE = "the table holds what no record tells of: "
HOURS = timedelta(hours=1)


def test_the_page_names_what_has_a_cause_once_and_objects_first() -> None:
    cause = {
        **{"place": 0, "severity": "breach", "finding": "unusable_records", "project": None, "queue": None, "count": 1},
        **{"explained": 43, "first_hour": None, "last_hour": None, "delivery_id": None, "detail": OBJECT},
    }
    other = {**cause, "place": 1, "finding": "overdue", "project": "p1", "queue": "orders", "count": 4, "explained": 0}
    text = text_of(results(causes=[cause, other], findings=[finding(n) for n in range(30)]), "conservation")
    assert text.index("unusable records") < text.index("overdue")
    assert "43 findings may follow from it" in text
    one = text_of(results(causes=[{**cause, "explained": 1}]), "conservation")
    assert "1 finding may follow from it" in one


def test_no_object_can_be_read(spark: SparkSession) -> None:
    broken = {"severity": "breach", "finding": "unusable_records", "detail": OBJECT}
    (row,) = queried(by_cause, rows_frame(spark, [broken], FINDING))
    assert (row["count"], row["explained"], row["first_hour"].hour) == (1, 0, 12)


def test_what_was_given_up_and_what_waits_by_queue_and_subscriber(spark: SparkSession) -> None:
    # Given two given up, one expired, one delivered, one waiting for its next try, and one never tried
    lives = Lives()
    for n in range(2):
        delivery = lives.post(NOON + n)[0]
        for _ in range(3):
            delivery = lives.attempt(delivery, 503)
    lives.close(lives.post(NOON)[0], "expired", NOON + HOUR)
    lives.attempt(lives.post(NOON)[0])
    lives.attempt(lives.post(NOON + 2 * HOUR)[0], 503)
    lives.post(NOON + 2 * HOUR, ("s1",))
    now = datetime.fromtimestamp((NOON + 2 * HOUR + MINUTE) / 1000, UTC)
    deliveries = with_standing(delivery_rows(records_frame(spark, lives.records)), now, timedelta(hours=1))
    cells = Counted(fate_cells, deliveries)
    # Then
    (gone,) = queried(given_up, cells)
    assert (gone["queue"], gone["subscriber_id"]) == ("orders", "s0")
    assert (gone["exhausted"], gone["expired"], gone["cancelled"], gone["deliveries"]) == (2, 1, 0, 5)
    waits = {row["subscriber_id"]: row for row in queried(backlog, cells)}
    assert {name: (row["waiting"], row["retrying"], row["pending"]) for name, row in waits.items()} == {
        "s0": (1, 1, 0),
        "s1": (1, 0, 1),
    }
    assert waits["s0"]["oldest"].hour == 14
