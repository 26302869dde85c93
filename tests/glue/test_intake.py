"""Each line is used or rejected with a reason; an object with fewer records than its key says is listed."""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path

import pytest
from glue_jobs.delivery_report.records.compaction import FILE_BYTES, TASK_BYTES, left_by_erasures, tasks_of
from glue_jobs.delivery_report.records.intake import (
    IncompleteObject,
    expected_records,
    incomplete_objects,
    rejected_lines,
    rejection,
    usable,
)
from glue_jobs.delivery_report.storage.schema import CURATED, PARSING, RAW
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from tests.glue.frames import rows_of, utc
from tests.glue.lives import Lives

DAY = date(2026, 11, 18)


def a_line(**changes: object) -> str:
    lives = Lives()
    lives.attempt(lives.post()[0])
    fields = {**lives.records[1].as_fields(), **changes}
    return json.dumps({name: value for name, value in fields.items() if value is not None})


LINES = {
    "good": a_line(),
    "good with a field of tomorrow": a_line(colour="green"),
    "good to the second": a_line(at="2026-11-18T05:34:16Z"),
    "good in another zone": a_line(at="2026-11-18T06:34:16.123+01:00", started_at="2026-11-18 05:34:16.1"),
    "cut off": a_line()[:-20],
    "no such day": a_line(at="2026-11-31T05:34:16.123Z"),
    "of another time": a_line(finished_at="2026-11-18T05:34:16.123Zz"),
    "of another type": a_line(attempt="first"),
    "of long ago": a_line(accepted_at="1850-11-18T05:34:16.123Z"),
    "version 1": a_line(schema_version=1),
    "version 3": a_line(schema_version=3),
    "no version": a_line(schema_version=None),
    "kind of tomorrow": a_line(kind="teleported"),
    "no time": a_line(at=None),
    "no delivery": a_line(delivery_id=None),
    "acceptance of nothing": a_line(kind="accepted"),
    "of the day before": a_line(at="2026-11-17T23:59:59.999Z"),
}
REASONS = {
    "cut off": "malformed",
    "no such day": "malformed",
    "of another time": "malformed",
    "of another type": "malformed",
    "of long ago": "malformed",
    "version 1": "unknown_version",
    "version 3": "unknown_version",
    "no version": "unknown_version",
    "kind of tomorrow": "unknown_kind",
    "no time": "missing_field",
    "no delivery": "missing_field",
    "acceptance of nothing": "missing_field",
    "of the day before": "wrong_day",
}


def test_lines_are_used_or_rejected_with_a_reason(spark: SparkSession, tmp_path: Path) -> None:
    # Given a file with a line of each kind
    file = tmp_path / "lines.json"
    file.write_text("\n".join(LINES.values()) + "\n")
    # When it is read with the explicit schema
    parsed = spark.read.schema(RAW).options(**PARSING).json(f"file://{file}")
    lines = parsed.withColumns({"source": F.lit("x"), "dt": F.lit(DAY), "rejection": rejection(F.lit(DAY))})
    # Then the good ones are used, unchanged, with any form of a time
    used = usable(lines)
    assert used.columns == [*CURATED.fieldNames(), "dt"]
    rows = rows_of(used)
    assert [row["at"] for row in rows[2:]] == [utc("2026-11-18T05:34:16"), utc("2026-11-18T05:34:16.123")]
    assert [row["started_at"] for row in rows[3:]] == [utc("2026-11-18T05:34:16.100")]
    assert len(rows) == 4
    # And each of the others is kept unchanged, with its reason
    texts = spark.read.text(f"file://{file}").withColumn("source", F.lit("x"))
    rejected = {row["line"]: row["reason"] for row in rows_of(rejected_lines(texts, DAY))}
    assert rejected == {LINES[name]: reason for name, reason in REASONS.items()}


@pytest.mark.parametrize(
    ("source", "count"),
    [
        ("hour=05/messages-100-900-37.json.gz", 37),
        ("hour=05/my-stack-Messages-1X2-100-900-37.json.gz", 37),
        ("hour=05/something.json.gz", None),
        ("hour=05/messages-1-2-x.json.gz", None),
    ],
)
def test_the_key_says_how_many_records_an_object_holds(source: str, count: int | None) -> None:
    assert expected_records(source) == count


def test_objects_that_gave_less_than_their_key_says_are_named() -> None:
    found = incomplete_objects(
        ["a-1-2-5.json.gz", "b-1-2-5.json.gz", "c-1-2-5.json.gz", "stray.txt"],
        {"a-1-2-5.json.gz": 5, "b-1-2-5.json.gz": 3},
        {"b-1-2-5.json.gz": {"malformed": 1, "unknown_version": 1}},
    )
    assert found == (
        IncompleteObject(source="b-1-2-5.json.gz", expected=5, used=3, rejected="1 malformed, 1 unknown_version"),
        IncompleteObject(source="c-1-2-5.json.gz", expected=5, used=0, rejected=""),
        IncompleteObject(source="stray.txt", expected=None, used=0, rejected=""),
    )


def test_records_that_an_erasure_took_out_are_not_missed(tmp_path: Path) -> None:
    # Given a note of the erasure of a project: two of an object's five records are left
    assert left_by_erasures(str(tmp_path), date(2026, 11, 20)) == {}
    (tmp_path / "erased").mkdir()
    (tmp_path / "erased/dt=2026-11-20.json").write_text('{"hour=05/a-1-2-5.json.gz": 2}')
    left = left_by_erasures(str(tmp_path), date(2026, 11, 20))
    # Then the object is complete with them, and another one that lacks records still is not
    sources = ["hour=05/a-1-2-5.json.gz", "hour=05/b-1-2-5.json.gz"]
    found = incomplete_objects(sources, dict.fromkeys(sources, 2), {}, left)
    assert [each.source for each in found] == sources[1:]
    # And one record less than that is missed
    [found_less, _] = incomplete_objects(sources, dict.fromkeys(sources, 1), {}, left)
    assert (found_less.expected, found_less.used) == (2, 1)


@pytest.mark.parametrize(
    ("size", "cores", "tasks"),
    [
        (0, 2, 1),
        (TASK_BYTES, 16, 1),
        # A day of 650,000 records, some 40 MB, is parsed by all cores
        (10 * TASK_BYTES, 8, 8),
        (10 * TASK_BYTES, 16, 10),
        # A day so large that its files ask for more tasks has these
        (8 * FILE_BYTES, 4, 10),
    ],
)
def test_a_day_is_parsed_by_as_many_tasks_as_there_are_cores(size: int, cores: int, tasks: int) -> None:
    assert tasks_of(size, cores) == tasks
