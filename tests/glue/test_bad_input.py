"""Bad input leads to one clear message, or is counted and kept; never to silence."""

from __future__ import annotations

import gzip
import json
from datetime import UTC, date, datetime
from pathlib import Path

import pytest
from glue_jobs.delivery_report.run.arguments import BadInput, parse
from pyspark.sql import SparkSession
from tests.glue.lives import NOON, Lives
from tests.glue.runs import asked, proved

TODAY = date(2026, 11, 20)
NOW = datetime(2026, 11, 20, 15, tzinfo=UTC)


def some_lives() -> Lives:
    lives = Lives()
    for n in range(3):
        lives.attempt(lives.post(NOON + n)[0])
    return lives


def test_a_missing_prefix_is_said_with_where_it_was_looked_for(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(
        BadInput, match=r"no records under file:.*records from 2026-11-18 to 2026-11-18: looked for .*dt=2026-11-18"
    ):
        proved(spark, asked(tmp_path))


def test_mixed_versions_and_broken_lines_are_quarantined_counted_and_break_the_proof(
    spark: SparkSession, tmp_path: Path
) -> None:
    # Given an object with a line of a later version and a line that is not JSON
    (file,) = some_lives().write(tmp_path / "records")
    lines = gzip.decompress(file.read_bytes()).decode().splitlines()
    later = {**json.loads(lines[3]), "schema_version": 3}
    spoiled = [*lines[:3], json.dumps(later), lines[4], "no json at all"]
    file.write_bytes(gzip.compress("\n".join(spoiled).encode()))
    # When
    found = proved(spark, asked(tmp_path))
    # Then they are counted, listed with their object, and kept unchanged
    (intake,) = found.intakes
    assert (intake.lines, intake.used, intake.rejected) == (6, 4, 2)
    (row,) = [row for row in found.findings if row["finding"] == "unusable_records"]
    assert row["detail"].endswith("4 of 6 records could be used; rejected: 1 malformed, 1 unknown_version")
    kept = [
        json.loads(line)
        for part in (tmp_path / "out/quarantine/dt=2026-11-18").glob("*.json")
        for line in part.read_text().splitlines()
    ]
    assert {each["reason"]: each["line"] for each in kept} == {
        "unknown_version": json.dumps(later),
        "malformed": "no json at all",
    }
    # When the object is repaired, no trace of that remains
    file.write_bytes(gzip.compress("\n".join(lines).encode()))
    mended = proved(spark, asked(tmp_path))
    assert mended.findings == []
    assert not [each for each in (tmp_path / "out/quarantine/dt=2026-11-18").glob("*.json") if each.read_text()]


def test_a_day_of_which_nothing_can_be_used(spark: SparkSession, tmp_path: Path) -> None:
    # Given a good day, and a bad one that an earlier run had partly compacted
    folder = tmp_path / "records" / "dt=2026-11-17" / "hour=01"
    folder.mkdir(parents=True)
    (folder / "messages-1-2-2.json.gz").write_bytes(gzip.compress(b"x\ny\n"))
    some_lives().write(tmp_path / "records")
    found = proved(spark, asked(tmp_path, first=date(2026, 11, 17)))
    assert [(each.day.day, each.used, each.rejected) for each in found.intakes] == [(17, 0, 2), (18, 6, 0)]
    assert found.breaches == 1


def test_files_that_are_not_ours_are_a_notice_and_so_is_nothing_when_they_go(
    spark: SparkSession, tmp_path: Path
) -> None:
    # Given files that somebody has put among the records, one of them packed as these are
    some_lives().write(tmp_path / "records")
    notes = tmp_path / "records/dt=2026-11-18/hour=12/notes.txt"
    notes.write_text("hello\n")
    packed = notes.with_name("orders.json.gz")
    packed.write_bytes(gzip.compress(b"{}\n"))
    # And a day without anything, and stream records that the records function has set aside
    (tmp_path / "records/dt=2026-11-17").mkdir()
    aside = tmp_path / "records/quarantine"
    aside.mkdir()
    for n in range(3):
        (aside / f"messages-{n}.json").write_text("{}")
    # Then they are named, and break nothing; the empty day is no error, and what was set aside is counted
    found = proved(spark, asked(tmp_path, first=date(2026, 11, 16)))
    (row,) = found.findings
    assert [(each.day, each.used) for each in found.intakes] == [(date(2026, 11, 18), 6)]
    assert found.set_aside == 3
    assert (row["severity"], row["finding"]) == ("notice", "foreign_files")
    assert "hour=12/notes.txt, hour=12/orders.json.gz" in row["detail"]
    # And when they are taken away, nothing is missed
    notes.unlink()
    packed.unlink()
    assert proved(spark, asked(tmp_path)).findings == []


@pytest.mark.parametrize(
    ("argv", "says"),
    [
        ([], "the following arguments are required: --input, --output"),
        (["--input", "x"], "the following arguments are required: --output"),
        (["--input", "x", "--output", "y", "--date-from", "yesterday"], "argument --date-from: invalid"),
        (
            ["--input", "x", "--output", "y", "--date-from", "2026-11-21"],
            "--date-from 2026-11-21 is after --date-to 2026-11-20",
        ),
        (["--input", "x", "--output", "y", "--date-form", "2026-11-01"], "unknown arguments: --date-form 2026-11-01"),
        (["--input", "x", "--output", "y", "--grace-minutes", "-1"], "must not be negative"),
    ],
)
def test_arguments_that_cannot_be_meant(argv: list[str], says: str) -> None:
    with pytest.raises(BadInput) as refused:
        parse(argv, today=TODAY, now=NOW)
    assert says in str(refused.value)


def test_the_arguments_of_a_usual_run() -> None:
    arguments = parse(
        ["--input", "s3://b/records/", "--output", "s3://b", "--projects", "b, a,b"], today=TODAY, now=NOW
    )
    assert (arguments.input, arguments.output, arguments.projects) == ("s3://b/records", "s3://b", ("a", "b"))
    assert (arguments.date_from, arguments.date_to, arguments.now) == (date(2026, 11, 14), TODAY, NOW)
    assert len(arguments.days) == 7


def test_what_glue_adds_is_left_to_glue() -> None:
    argv = ["--JOB_NAME", "report", "--TempDir", "s3://t", "--input", "i", "--output", "o", "--enable-metrics", "true"]
    assert parse(argv, today=TODAY, now=NOW).input == "i"


def test_times_are_utc() -> None:
    argv = ["--input", "i", "--output", "o", "--now"]
    assert parse([*argv, "2026-11-20T10:00:00"], today=TODAY, now=NOW).now == datetime(2026, 11, 20, 10, tzinfo=UTC)
    assert parse([*argv, "2026-11-20T10:00:00+02:00"], today=TODAY, now=NOW).now == datetime(
        2026, 11, 20, 8, tzinfo=UTC
    )
