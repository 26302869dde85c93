"""An object that was written and is not there is named by the one that was written after it, whatever was in it."""

from __future__ import annotations

import gzip
import json
import shutil
from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

from glue_jobs.delivery_report.records.links import Missing, missing_objects
from pyspark.sql import SparkSession
from tests.glue.lives import DAY, HOUR, MINUTE, NOON, Lives
from tests.glue.runs import asked, proved

from pushhub.engine.model.pulse import NAMES_MS, Pulse
from pushhub.engine.model.record import LINK, DeliveryRecord

LATE = datetime(2026, 11, 20, tzinfo=UTC)


def test_what_is_named_and_there_is_not_missing(tmp_path: Path) -> None:
    # Given objects of two hours that are named, one of which came after the days had been listed
    folder = tmp_path / "records/dt=2026-11-18/hour=09"
    folder.mkdir(parents=True)
    (folder / "m-2-2-1.json.gz").touch()
    names = {f"dt=2026-11-18/hour=09/m-{n}-{n}-1.json.gz": "hour=10/m-9-9-1.json.gz" for n in (1, 2, 3)}
    far = {"dt=2026-11-17/hour=23/m-0-0-1.json.gz": "hour=00/m-4-4-1.json.gz"}
    day = date(2026, 11, 18)

    def missing(until: datetime, kept_since: datetime | None = None) -> list[Missing]:
        return missing_objects(f"file://{tmp_path}/records", {day: names | far}, until=until, kept_since=kept_since)

    # Then nothing of a day of which no object is there, as where only some days were copied
    assert [each.hour.day for each in missing(LATE)] == [18]
    day_before = tmp_path / "records/dt=2026-11-17/hour=05"
    day_before.mkdir(parents=True)
    (day_before / "m-5-5-1.json.gz").touch()
    # And those that are not there are missing, by hour
    nine, midnight = datetime(2026, 11, 18, 9, tzinfo=UTC), datetime(2026, 11, 17, 23, tzinfo=UTC)
    of_nine = Missing(
        hour=nine,
        names=["m-1-1-1.json.gz", "m-3-3-1.json.gz"],
        named_by="dt=2026-11-18/hour=10/m-9-9-1.json.gz",
    )
    of_midnight = Missing(hour=midnight, names=["m-0-0-1.json.gz"], named_by="dt=2026-11-18/hour=00/m-4-4-1.json.gz")
    assert missing(LATE) == [of_midnight, of_nine]
    # And nothing that the bucket itself takes away, or that is named only in an hour that is hardly over
    assert missing(LATE, kept_since=nine) == [of_nine]
    assert missing(nine + timedelta(hours=1)) == [of_midnight]
    # And a name that is no object's is no object
    strange = {day: {"elsewhere": "hour=10/m-9-9-1.json.gz"}}
    assert missing_objects(f"file://{tmp_path}/records", strange, until=LATE, kept_since=None) == []


def written(folder: Path, objects: Iterable[tuple[int, list[DeliveryRecord]]]) -> list[Path]:
    """Objects of one environment, each with a time and its records."""
    files: list[Path] = []
    for number, (ms, records) in enumerate(objects):
        at = datetime.fromtimestamp(ms / 1000, UTC)
        place = folder / f"records/{at:dt=%Y-%m-%d/hour=%H}"
        place.mkdir(parents=True, exist_ok=True)
        lines = [each.as_fields() for each in records]
        if files:
            name = f"{LINK}/{files[-1].relative_to(folder / 'records')}"
            lines.append({"schema_version": 2, "record_id": name, "kind": LINK, "at": lines[0]["at"]})
        files.append(place / f"l-{number}-{number}-{len(records)}.json.gz")
        files[-1].write_bytes(gzip.compress("".join(f"{json.dumps(each)}\n" for each in lines).encode()))
    return files


def test_a_removed_object_of_which_nothing_else_is_left_is_named(spark: SparkSession, tmp_path: Path) -> None:
    # Given messages that were each pulled and consumed within one object, across a midnight
    objects = []
    for n in range(5):
        at = NOON + 12 * HOUR + (n - 3) * 20 * MINUTE
        lives = Lives(posted=n * 10)
        lives.remove(lives.reserve(lives.put(at), at + 1_000), at + 2_000)
        objects.append((at, lives.records))
    files = written(tmp_path, objects)
    arguments = asked(tmp_path, last=date(2026, 11, 19), now="2026-11-19T03:00:00")
    # When all are there, Then nothing is found, and links are no records
    everything = proved(spark, arguments)
    assert everything.findings == []
    assert [each.used for each in everything.intakes] == [9, 6]
    # When one of them is removed before a night has read it
    for removed, nights in ((0, 1), (2, 1), (3, 2)):
        other = tmp_path / f"without-{removed}"
        shutil.copytree(tmp_path / "records", other / "records")
        gone = other / files[removed].relative_to(tmp_path)
        gone.unlink()
        # Then every night names it, also when the days have not changed
        for _ in range(nights):
            [finding] = proved(spark, replace(asked(other, last=date(2026, 11, 19)), now=arguments.now)).findings
            assert (finding["severity"], finding["finding"]) == ("breach", "object_missing")
            place = gone.parent.relative_to(other / "records")
            assert finding["detail"].startswith(f"{place}/: written once, never read")
            assert gone.name in finding["detail"]


def test_an_object_that_was_read_and_then_removed_is_named_once(spark: SparkSession, tmp_path: Path) -> None:
    # Given objects that a night has read, each of which names the one before
    objects = []
    for n in range(3):
        lives = Lives(posted=n * 10)
        lives.attempt(lives.post(NOON + n * MINUTE)[0])
        objects.append((NOON + n * MINUTE, lives.records))
    files = written(tmp_path, objects)
    assert proved(spark, asked(tmp_path)).findings == []
    # When one of them is removed
    files[1].unlink()
    # Then it is gone, and nobody says that no night has read it
    assert [each for each, _ in proved(spark, asked(tmp_path)).named] == ["objects_gone"]


def test_the_last_object_of_an_environment_is_named_by_the_next_hour(spark: SparkSession, tmp_path: Path) -> None:
    # Given an environment whose last object, with all there was of a message, is removed
    at = NOON - DAY
    objects = []
    for n in range(2):
        lives = Lives(posted=n * 10)
        lives.remove(lives.reserve(lives.put(at + n), at + n + 1_000), at + n + 2_000)
        objects.append((at, lives.records))
    files = written(tmp_path, objects)
    last = files[-1]
    last.unlink()
    # When nothing names it, Then nothing tells of it
    arguments = asked(tmp_path, first=date(2026, 11, 17))
    assert proved(spark, arguments).findings == []
    # And when another environment has named all objects of the hour, with its pulse of ten past the next one
    place = tmp_path / "records" / f"{datetime.fromtimestamp((at + HOUR) / 1000, UTC):dt=%Y-%m-%d/hour=%H}"
    place.mkdir()
    pulse = Pulse(table="lines", at=at // HOUR * HOUR + HOUR + NAMES_MS).as_fields()
    names = [f"{LINK}/{each.relative_to(tmp_path / 'records')}" for each in files]
    lines = [pulse, *({"schema_version": 2, "record_id": each, "kind": LINK, "at": pulse["at"]} for each in names)]
    (place / "l-9-9-1.json.gz").write_bytes(gzip.compress("".join(f"{json.dumps(each)}\n" for each in lines).encode()))
    # Then the night names it, and only it
    found = [each for each in proved(spark, arguments).findings if each["finding"] == "object_missing"]
    assert len(found) == 1
    assert last.name in found[0]["detail"]
    assert files[0].name not in found[0]["detail"]
