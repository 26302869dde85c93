"""What is kept of a day is exactly what its objects contain: unchanged days are left alone, and no row is dropped
silently.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from pathlib import Path

import pytest
from glue_jobs.delivery_report.records.intake import expected_records
from glue_jobs.delivery_report.storage.days import named_files, read_replaced
from glue_jobs.delivery_report.storage.schema import CURATED
from pyspark.sql import SparkSession
from tests.glue.frames import rows_of
from tests.glue.lives import DAY, NOON, Lives
from tests.glue.runs import Proved, asked, proved

FIRST, LAST = date(2026, 11, 17), date(2026, 11, 18)


def two_days(folder: Path) -> tuple[Lives, list[Path]]:
    """Thirty messages on each of two days, all delivered; their objects."""
    lives = Lives()
    for n in range(60):
        lives.attempt(lives.post(NOON + (n // 30 - 1) * DAY + n)[0])
    return lives, lives.write(folder / "records", batch=20)


@dataclass(frozen=True)
class Reported:
    """Two days that were reported.

    Attributes:
        lives: Their records.
        files: Their objects.
    """

    folder: Path
    lives: Lives
    files: list[Path]

    def copy(self, folder: Path) -> list[Path]:
        """All of it in another folder: the objects there."""
        shutil.copytree(self.folder, folder, dirs_exist_ok=True)
        return [folder / each.relative_to(self.folder) for each in self.files]


@pytest.fixture(scope="module")
def reported(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Reported:
    folder = tmp_path_factory.mktemp("reported")
    lives, files = two_days(folder)
    report(spark, folder)
    return Reported(folder, lives, files)


def report(spark: SparkSession, folder: Path) -> Proved:
    return proved(spark, asked(folder, first=FIRST, last=LAST))


def kept_files(folder: Path) -> list[Path]:
    """The files that count."""
    named = (named_files(f"file://{folder}/out/curated/records", day) for day in (FIRST, LAST))
    return sorted(Path(each.removeprefix("file://")) for files in named for each in files)


def kept_ids(spark: SparkSession, folder: Path) -> list[str]:
    rows = rows_of(read_replaced(spark, f"file://{folder}/out/curated/records", CURATED, FIRST))
    return sorted(row["record_id"] for row in rows)


def test_an_unchanged_day_is_taken_as_it_is(spark: SparkSession, tmp_path: Path) -> None:
    # Given two days that were reported, with an object that has an unusable line and one that exists twice
    lives, files = two_days(tmp_path)
    files[0].write_bytes(files[0].read_bytes()[:-30])
    copy = files[-1].with_name(files[-1].name.replace("messages-", "messages-0"))
    copy.write_bytes(files[-1].read_bytes())
    before = report(spark, tmp_path)
    assert {row["finding"] for row in before.findings} >= {"unusable_records", "duplicate_records"}
    written = {file: file.stat().st_mtime_ns for file in kept_files(tmp_path)}
    # When they are reported again
    again = report(spark, tmp_path)
    # Then nothing was written again, and everything is reported again
    assert {file: file.stat().st_mtime_ns for file in kept_files(tmp_path)} == written
    assert [each.stale for each in again.intakes] == [False, False]
    assert again.named == before.named
    assert [(each.day, each.lines, each.used, each.objects) for each in again.intakes] == [
        (each.day, each.lines, each.used, each.objects) for each in before.intakes
    ]
    # When an object is added to one of them, only that day is rewritten
    lives.posted += 1
    more = Lives(posted=900)
    more.attempt(more.post(NOON + 5_000)[0])
    more.write(tmp_path / "records")
    assert [each.stale for each in report(spark, tmp_path).intakes] == [False, True]


def truncated(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-200])


def overwritten(file: Path) -> None:
    content = bytearray(file.read_bytes())
    content[100:140] = bytes(40)
    file.write_bytes(content)
    os.utime(file, ns=(0, 0))


def removed(file: Path) -> None:
    file.unlink()


def emptied(file: Path) -> None:
    (file.parent / "_manifest.json").write_text("{")
    file.unlink()


@pytest.mark.parametrize("hows", [(truncated, overwritten), (removed, emptied)])
def test_a_spoiled_day_is_made_anew_from_its_objects(
    spark: SparkSession, reported: Reported, tmp_path: Path, hows: tuple[Callable[[Path], None], ...]
) -> None:
    # Given two days that were reported, each of which has since been damaged in a way of its own
    reported.copy(tmp_path)
    for how, file in zip(hows, kept_files(tmp_path), strict=True):
        how(file)
    # When they are reported again
    again = report(spark, tmp_path)
    # Then every record is there, and the damage is reported, unless it hit the manifest as well
    assert kept_ids(spark, tmp_path) == sorted(each.record_id for each in reported.lives.records)
    assert (again.sums["owed"], again.sums["delivered"], again.breaches) == (60, 60, 0)
    assert sorted(row["detail"] for row in again.findings) == [
        f"dt={day}: what was kept of it was not as it had been written"
        for how, day in zip(hows, (FIRST, LAST), strict=True)
        if how is not emptied
    ]


def test_rows_of_a_day_whose_objects_are_gone_go_and_are_missed_every_night(
    spark: SparkSession, reported: Reported, tmp_path: Path
) -> None:
    # Given two reported days, and all objects of the first lost since
    files = reported.copy(tmp_path)
    lost = [each for each in files if "dt=2026-11-17" in str(each)]
    for each in lost:
        each.unlink()
    # When they are reported again, twice
    nights = [report(spark, tmp_path), report(spark, tmp_path)]
    # Then nothing of it is left without an object, and the objects are listed both times
    for night in nights:
        (row,) = night.findings
        assert (row["severity"], row["finding"]) == ("breach", "objects_gone")
        assert row["detail"].startswith("dt=2026-11-17: read once, no longer there: hour=12/")
        assert all(each.name in row["detail"] for each in lost)
        assert night.sums["owed"] == 30
    left = Path(tmp_path / "out/curated")
    assert not [file for file in left.rglob("*.parquet") if "dt=2026-11-17" in str(file)]


def test_one_object_that_is_gone_is_named_until_it_is_back(
    spark: SparkSession, reported: Reported, tmp_path: Path
) -> None:
    files = reported.copy(tmp_path)
    content = files[1].read_bytes()
    files[1].unlink()
    for _ in range(2):
        gone = [row["detail"] for row in report(spark, tmp_path).findings if row["finding"] == "objects_gone"]
        name, lines = files[1].name, expected_records(files[1].name)
        assert gone == [
            f"dt=2026-11-17: read once, no longer there: hour=12/{name}, of the hours 12, with {lines} lines"
        ]
    files[1].write_bytes(content)
    assert report(spark, tmp_path).findings == []


def test_rows_that_nothing_vouches_for_go(spark: SparkSession, reported: Reported, tmp_path: Path) -> None:
    # Given a kept day whose manifest and objects are gone
    files = reported.copy(tmp_path)
    for each in [*files[:3], tmp_path / "out/curated/records/dt=2026-11-17/_manifest.json"]:
        each.unlink()
    for _ in range(2):
        night = report(spark, tmp_path)
        assert [row["detail"] for row in night.findings] == [
            "dt=2026-11-17: read once, no longer there: all objects (no list of them was kept)"
        ]
        assert night.sums["owed"] == 30


def test_what_the_job_wrote_itself_is_read_whole_or_not_at_all(
    spark: SparkSession, reported: Reported, tmp_path: Path
) -> None:
    # Given a kept table with one truncated file
    reported.copy(tmp_path)
    (file, *_) = sorted((tmp_path / "out/curated/deliveries").rglob("*.parquet"))
    truncated(file)
    file.with_name(f".{file.name}.crc").unlink()
    # When it is read, that fails
    with pytest.raises(Exception, match=r"is not a Parquet file|Could not read"):
        spark.read.parquet(f"file://{tmp_path}/out/curated/deliveries").count()
