"""A night starts from what the nights before have left: it says what a run says that starts from nothing."""

from __future__ import annotations

import random
import shutil
from datetime import timedelta
from pathlib import Path

from pyspark.sql import SparkSession
from tests.glue.nights import FIRST, World, arrive, drawn_world, kept, run_night

NIGHTS, ASKED = 3, 2
"""A night is asked for two days, so that what is open from the first one is carried over to the last."""


def tables(folder: Path, days: int) -> dict[str, str]:
    """The tables of a report of the last days."""
    last = FIRST + timedelta(days=NIGHTS - 1)
    report = folder / f"out/reports/{last - timedelta(days=days - 1)}_{last}"
    return {file.name: file.read_text() for file in report.glob("*.json")}


def disturb(world: World, hub: Path) -> list[Path]:
    """Before the last night: the largest object of the day before is there a second time, and of another one only its
    beginning. Where these two are.
    """
    day = hub / f"records/dt={FIRST + timedelta(days=NIGHTS - 2)}"
    second, first = sorted(day.rglob("*.gz"), key=lambda each: (each.stat().st_size, each.name))[-2:]
    copy = first.with_name(f"messages-7001-7999-{first.name.rpartition('-')[2]}")
    shutil.copy2(first, copy)
    second.write_bytes(second.read_bytes()[:60])
    return [copy, second]


def test_nights_one_by_one_say_what_one_says_that_starts_from_nothing(spark: SparkSession, tmp_path: Path) -> None:
    # Given a hub that chance draws, with objects that come a night late, and deliveries that are tried for days
    world, hub, anew = drawn_world(random.Random(68), tmp_path, NIGHTS, latest=1), tmp_path / "hub", tmp_path / "anew"
    for night in range(NIGHTS - 1):
        arrive(world, hub, range(night, night + 1))
        if night == NIGHTS - 2:
            _, cut = disturb(world, hub)
        run_night(spark, hub, night, ASKED)
    # And an object that one night found twice, and another one cut off, whose whole came the night after
    arrive(world, hub, range(NIGHTS))
    assert cut.stat().st_size > 60
    found = run_night(spark, hub, NIGHTS - 1, ASKED)
    # When everything is there at once, for a run that has nothing to start from
    shutil.copytree(hub / "records", anew / "records")
    expected = run_night(spark, anew, NIGHTS - 1, NIGHTS)
    # Then the last night has named the same deliveries, those of the day among them that it was not asked for
    assert [told for *_, told in found["findings"] if f"due {FIRST}" in told]
    assert found["findings"] == expected["findings"]
    # And from all that the nights have kept follow the same verdict, tables, records, deliveries and hours
    assert run_night(spark, hub, NIGHTS - 1, NIGHTS) == expected
    assert tables(hub, NIGHTS) == tables(anew, NIGHTS)
    assert kept(spark, hub, NIGHTS) == kept(spark, anew, NIGHTS)
