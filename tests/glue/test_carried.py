"""Deliveries that outlive the nightly window are carried from night to night until they end,
or until a person settles them.
"""

from __future__ import annotations

import json
import shutil
from collections import Counter
from datetime import date, timedelta
from pathlib import Path

import pytest
from glue_jobs.delivery_report import job
from glue_jobs.delivery_report.arguments import Arguments, BadInput
from glue_jobs.delivery_report.cells import HOURLY
from glue_jobs.delivery_report.days import read_replaced
from glue_jobs.delivery_report.deliveries import KEPT_DELIVERY
from glue_jobs.delivery_report.findings import FINDING
from glue_jobs.delivery_report.storage import Layout
from pyspark.sql import SparkSession
from tests.glue.frames import rows_of
from tests.glue.lives import DAY, HOUR, MINUTE, NOON, Lives
from tests.glue.runs import Proved, asked, proved

from pushhub.engine.model.backoff import FixedDelay

DAILY = FixedDelay(retries=10, delay_s=86_400)

FIRST = date(2026, 11, 18)
"""The day of :data:`NOON`."""


def night(spark: SparkSession, folder: Path, day: int, *, window: int = 2) -> Proved:
    """The report on the days up to the given one (0 is the first), made half past one on the day after."""
    return proved(spark, asked_at_night(folder, day, window=window))


def asked_at_night(folder: Path, day: int, *, window: int = 2) -> Arguments:
    """What is asked for in that night."""
    last = FIRST + timedelta(days=day)
    first = max(FIRST, last - timedelta(days=window - 1))
    return asked(folder, first=first, last=last, now=f"{last + timedelta(days=1)}T01:30:00")


def every_day(lives: Lives, days: int) -> None:
    """Something goes well on each day."""
    for day in range(days):
        lives.attempt(lives.post(NOON + day * DAY)[0])


def states(folder: Path) -> dict[str, str]:
    return {each.stem: each.read_text() for each in sorted((folder / "out/curated/open").glob("*.json"))}


def settle(folder: Path, **said: str) -> None:
    file = folder / "out/settled/by-anna.jsonl"
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("a") as lines:
        lines.write(json.dumps(said) + "\n")


def test_a_lost_delivery_is_named_every_night_until_a_person_settles_it(spark: SparkSession, tmp_path: Path) -> None:
    # Given a delivery of the first day that failed once and then has no further records, and days without problems
    lives = Lives()
    lost = lives.attempt(lives.post(NOON)[0], 503)
    every_day(lives, 6)
    lives.write(tmp_path / "records")
    # When reports on two days each are made
    nights = [night(spark, tmp_path, day) for day in (0, 2, 4)]
    # Then every one of them lists it, long after its day has left the report
    assert [each.named for each in nights] == [[("overdue", lost.delivery_id)]] * 3
    # When a person has settled it
    settle(tmp_path, project="p1", queue="orders", delivery_id=lost.delivery_id, why="sent again as 77")
    # Then it is no longer named, nor carried
    assert night(spark, tmp_path, 5).named == []
    assert json.loads(states(tmp_path)["2026-11-22"])["rows"] == 0


def test_what_lives_longer_than_the_window_is_no_finding_and_ends_as_it_should(
    spark: SparkSession, tmp_path: Path
) -> None:
    # Given a long delay, a pull message fetched days later, retries over days, and a message to two subscribers, one of
    # which is down
    lives = Lives()
    (delayed,) = lives.post(NOON, delay=4 * DAY, expires_in=11 * DAY)
    delayed = lives.schedule(delayed, NOON + 100)
    line = lives.put(NOON)
    (stubborn,) = lives.post(NOON)
    well, out = lives.post(NOON, ("s0", "s1"))
    lives.attempt(well)
    for day in range(4):
        stubborn = lives.attempt(stubborn, 503, at=NOON + day * DAY, policy=DAILY)
    out = lives.attempt(out, 503, policy=FixedDelay(retries=1, delay_s=4 * 86_400))
    for each in (delayed, stubborn, out):
        lives.attempt(each, at=NOON + 4 * DAY + MINUTE, policy=DAILY)
    lives.remove(lives.reserve(line, NOON + 4 * DAY), NOON + 4 * DAY + 10_000)
    every_day(lives, 6)
    lives.write(tmp_path / "records")
    # When reports on two days each are made
    nights = [night(spark, tmp_path, day) for day in (0, 2, 3, 5)]
    # Then none lists anything, and nothing is carried once everything has ended
    assert [each.findings for each in nights] == [[]] * 4
    carried = {day: json.loads(said)["rows"] for day, said in states(tmp_path).items()}
    assert carried == {"2026-11-17": 0, "2026-11-19": 8, "2026-11-20": 9, "2026-11-22": 0}


def test_the_same_night_again_changes_nothing_and_a_missed_night_loses_nothing(
    spark: SparkSession, tmp_path: Path
) -> None:
    # Given a lost delivery of the first day
    lives = Lives()
    lost = lives.attempt(lives.post(NOON)[0], 503)
    every_day(lives, 7)
    lives.write(tmp_path / "records")
    for day in (0, 2):
        night(spark, tmp_path, day)
    before = states(tmp_path)
    assert sorted(before) == ["2026-11-17", "2026-11-19"]
    # When the same night is run again, then no state is written again
    assert night(spark, tmp_path, 2).named == [("overdue", lost.delivery_id)]
    assert states(tmp_path) == before
    # When three nights are missed, the next one reads the days between
    whole = job.run(spark, asked_at_night(tmp_path, 6))
    assert [(row["finding"], row["delivery_id"]) for row in whole.rows["findings"]] == [("overdue", lost.delivery_id)]
    # And then the tables that Athena sees have every day, and what was lost by its standing and as a finding
    layout, week = Layout(f"file://{tmp_path}/out", "any"), (FIRST, FIRST + timedelta(days=6))
    rows = rows_of(read_replaced(spark, layout.deliveries, KEPT_DELIVERY, *week))
    assert Counter((row["dt"] - FIRST).days for row in rows) == {0: 2, 1: 1, 2: 1, 3: 1, 4: 1, 5: 1, 6: 1}
    assert [row["delivery_id"] for row in rows if row["standing"] == "missing"] == [lost.delivery_id]
    attempts = Counter((row["dt"] - FIRST).days for row in rows_of(read_replaced(spark, layout.hours, HOURLY, *week)))
    assert attempts.keys() == {2, 3, 4, 5, 6}  # the nights before ran up to the proof only
    assert [row["delivery_id"] for row in rows_of(read_replaced(spark, layout.findings, FINDING, *week))] == (
        [lost.delivery_id] * 3
    )
    # And its state is the same as that of a run over all days
    at_once = tmp_path / "at_once"
    shutil.copytree(tmp_path / "records", at_once / "records")
    night(spark, at_once, 0)
    night(spark, at_once, 6)
    for each in ("fingerprint", "rows", "since", "lost"):
        assert json.loads(states(tmp_path)["2026-11-23"])[each] == json.loads(states(at_once)["2026-11-23"])[each]


def test_a_state_that_cannot_be_used_is_said_and_made_up_for(spark: SparkSession, tmp_path: Path) -> None:
    # Given reports over a lost delivery
    lives = Lives()
    lost = lives.attempt(lives.post(NOON)[0], 503)
    every_day(lives, 5)
    lives.write(tmp_path / "records")
    for day in (0, 3):
        night(spark, tmp_path, day)

    def cut(newest: Path) -> None:
        part = max(newest.with_suffix("").glob("*.parquet"), key=lambda each: each.stat().st_size)
        part.write_bytes(part.read_bytes()[:-100])

    def without_its_records(newest: Path) -> None:
        shutil.rmtree(newest.with_suffix(""))

    def no_json(newest: Path) -> None:
        newest.write_text('{"day": ')

    for spoil in (cut, without_its_records, no_json):
        # When the newest state is damaged and the next report begins after it
        folder = tmp_path / spoil.__name__
        for part in ("records", "out"):
            shutil.copytree(tmp_path / part, folder / part)
        spoil(folder / "out/curated/open/2026-11-20.json")
        found = night(spark, folder, 4)
        # Then that is reported, and the delivery is still listed
        assert found.named == [("overdue", lost.delivery_id), ("state_made_anew", "")]
        assert [row["detail"] for row in found.findings if row["severity"] == "notice"] == [
            "what was kept of deliveries open at the end of 2026-11-20 was not as it had been written"
        ]


def test_states_that_are_lost_are_a_breach_until_they_are_made_up_for_or_settled(
    spark: SparkSession, tmp_path: Path
) -> None:
    # Given nights with a lost delivery, and then all states lost
    lives = Lives()
    lost = lives.attempt(lives.post(NOON)[0], 503)
    every_day(lives, 7)
    lives.write(tmp_path / "records")
    for day in (0, 3):
        night(spark, tmp_path, day)
    shutil.rmtree(tmp_path / "out/curated/open")
    # Then open deliveries are not silently forgotten, in this night and the next
    nights = [night(spark, tmp_path, day) for day in (4, 5)]
    assert [each.named for each in nights] == [[("open_deliveries_lost", "")]] * 2
    assert nights[1].findings[0]["detail"].startswith("what was open before 2026-11-21 is not known")
    # When a person settles that, it no longer breaks conservation
    settle(tmp_path, lost="2026-11-21")
    assert night(spark, tmp_path, 5).named == []
    # When one run goes back to the first day, everything is known again, and stays so
    assert night(spark, tmp_path, 5, window=6).named == [("overdue", lost.delivery_id)]
    assert night(spark, tmp_path, 6).named == [("overdue", lost.delivery_id)]


def test_a_look_back_before_all_that_is_kept_takes_nothing_away(spark: SparkSession, tmp_path: Path) -> None:
    # Given states from the third day on, that know everything from the first
    lives = Lives()
    lost = lives.attempt(lives.post(NOON)[0], 503)
    every_day(lives, 6)
    lives.write(tmp_path / "records")
    for day in (0, 3, 4):
        night(spark, tmp_path, day)
    (tmp_path / "out/curated/open/2026-11-17.json").unlink()
    before = states(tmp_path)
    # When somebody makes a report on the second day alone
    looked = proved(
        spark, asked(tmp_path, first=date(2026, 11, 19), last=date(2026, 11, 19), now="2026-11-24T01:30:00")
    )
    # Then that changes no state, and the next night names the delivery
    assert looked.named == []
    assert states(tmp_path) == before
    assert night(spark, tmp_path, 5).named == [("overdue", lost.delivery_id)]


def test_what_goes_on_days_after_its_end_is_named(spark: SparkSession, tmp_path: Path) -> None:
    # Given a delivery that ended on the first day, and is attempted again on the fifth
    lives = Lives()
    ended = lives.attempt(lives.post(NOON)[0])
    every_day(lives, 5)
    lives.attempt(ended, at=NOON + 4 * DAY)
    # and one that was acknowledged just before midnight, whose answer came just after
    late = lives.post(NOON + 12 * HOUR - MINUTE)[0]
    acknowledged = lives.acknowledge(late, NOON + 12 * HOUR - 10, 1)
    lives.answer_late(acknowledged, late, at=NOON + 12 * HOUR + 90)
    lives.write(tmp_path / "records")
    nights = [night(spark, tmp_path, day, window=1) for day in (0, 1, 2, 4)]
    # Then only the first is listed, on the fifth day: its earlier life is no longer kept
    named = [(finding, ended.delivery_id) for finding in ("never_accepted", "record_missing")]
    assert [each.named for each in nights] == [[], [], [], named]


def test_what_a_person_wrote_must_be_readable(spark: SparkSession, tmp_path: Path) -> None:
    lives = Lives()
    every_day(lives, 1)
    lives.write(tmp_path / "records")
    settle(tmp_path, project="p1")
    with pytest.raises(BadInput, match=r"by-anna.jsonl, line 1: KeyError\('queue'\)"):
        night(spark, tmp_path, 0)


def test_of_two_stays_of_a_message_in_a_pull_queue_the_one_that_is_open_is_carried(
    spark: SparkSession, tmp_path: Path
) -> None:
    # Given a copy that was consumed, came again under the same id, and is fetched days later
    lives = Lives()
    first = lives.put(NOON, entry="aaaaaaaa")
    lives.remove(lives.reserve(first, NOON + 1_000), NOON + 2_000)
    again = lives.put_again(first, NOON + MINUTE, "bbbbbbbb")
    every_day(lives, 5)
    lives.remove(lives.reserve(again, NOON + 3 * DAY), NOON + 3 * DAY + 1_000)
    lives.write(tmp_path / "records")
    # Then no night finds anything wrong
    nights = [night(spark, tmp_path, day) for day in range(5)]
    assert [each.named for each in nights] == [[]] * 5
    assert all(each.balanced for each in nights)
