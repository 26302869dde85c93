"""Deliveries that outlive the nightly window are carried from night to night until they end,
or until a person settles them.
"""

from __future__ import annotations

import json
import shutil
from collections import Counter
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path

import pytest
from glue_jobs.delivery_report import job
from glue_jobs.delivery_report.figures.cells import HOURLY
from glue_jobs.delivery_report.proof.carried import carried_to
from glue_jobs.delivery_report.proof.deliveries import KEPT_DELIVERY
from glue_jobs.delivery_report.proof.findings import FINDING
from glue_jobs.delivery_report.run.arguments import Arguments, BadInput
from glue_jobs.delivery_report.storage.days import read_replaced
from glue_jobs.delivery_report.storage.layout import Layout
from pyspark.sql import SparkSession
from tests.glue.frames import rows_of
from tests.glue.lives import DAY, HOUR, MINUTE, NOON, Lives
from tests.glue.runs import Proved, asked, proved

from pushhub.engine.model.backoff import FixedDelay
from pushhub.engine.model.delivery import Delivery

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


@dataclass(frozen=True)
class History:
    """What happened in a week, and what the nights said of it, which were made of two days each.

    Attributes:
        folder: The records, and what the nights have left.
        lost: Failed once on the first day, and has no further records.
        ended: Ended on the first day, and is attempted again on the fifth.
        nights: What was found, by the day before the night.
    """

    folder: Path
    lost: Delivery
    ended: Delivery
    nights: dict[int, Proved]


@pytest.fixture(scope="module")
def history(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> History:
    lives = Lives()
    lost = lives.attempt(lives.post(NOON)[0], 503)
    ended = lives.attempt(lives.post(NOON)[0])
    lives.attempt(ended, at=NOON + 4 * DAY)
    # A long delay, a pull message fetched days later, retries over days, and a message to two subscribers, one of which
    # is down
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
    # A copy that was consumed, came again under the same id, and is fetched days later
    first = lives.put(NOON, entry="aaaaaaaa")
    lives.remove(lives.reserve(first, NOON + 1_000), NOON + 2_000)
    again = lives.put_again(first, NOON + MINUTE, "bbbbbbbb")
    lives.remove(lives.reserve(again, NOON + 3 * DAY), NOON + 3 * DAY + 1_000)
    # One that was acknowledged just before midnight, whose answer came just after
    late = lives.post(NOON + 12 * HOUR - MINUTE)[0]
    acknowledged = lives.acknowledge(late, NOON + 12 * HOUR - 10, 1)
    lives.answer_late(acknowledged, late, at=NOON + 12 * HOUR + 90)
    every_day(lives, 6)
    folder = tmp_path_factory.mktemp("history")
    lives.write(folder / "records")
    return History(folder, lost, ended, {day: night(spark, folder, day) for day in (0, 3, 4, 5)})


def test_a_lost_delivery_is_named_every_night_and_what_lives_longer_than_the_window_is_no_finding(
    history: History,
) -> None:
    # Given deliveries that live longer than the window, in several ways, and one that was lost on the first day, then
    # every night names this one, long after its day has left the report, and none of the others
    lost = ("overdue", history.lost.delivery_id)
    assert [history.nights[day].named for day in (0, 3)] == [[lost]] * 2
    # And nothing but the three records of the lost one is carried once everything has ended
    carried = {day: json.loads(said)["rows"] for day, said in states(history.folder).items()}
    assert carried == {"2026-11-17": 0, "2026-11-20": 12, "2026-11-21": 12, "2026-11-22": 3}


def test_what_goes_on_days_after_its_end_is_named(history: History) -> None:
    # Given a delivery that ended on the first day, and is attempted again on the fifth, then it is named from the fifth
    # on, as its earlier life is no longer kept
    named = [
        ("never_accepted", history.ended.delivery_id),
        ("overdue", history.lost.delivery_id),
        ("record_missing", history.ended.delivery_id),
    ]
    assert [history.nights[day].named for day in (4, 5)] == [named, named]


def test_what_a_person_has_settled_is_neither_named_nor_carried(
    spark: SparkSession, history: History, tmp_path: Path
) -> None:
    # Given that a person has settled the lost delivery
    shutil.copytree(history.folder, tmp_path, dirs_exist_ok=True)
    settle(tmp_path, project="p1", queue="orders", delivery_id=history.lost.delivery_id, why="sent again as 77")
    # Then the next night neither names nor carries it, only the other one
    assert {delivery_id for _, delivery_id in night(spark, tmp_path, 6).named} == {history.ended.delivery_id}
    assert json.loads(states(tmp_path)["2026-11-23"])["rows"] == 1


@dataclass(frozen=True)
class Kept:
    """Records of seven days, of which four have had their nights, with a delivery that was lost on the first."""

    folder: Path
    lost: Delivery

    def copy(self, folder: Path) -> Path:
        """All of it, in another folder."""
        shutil.copytree(self.folder, folder, dirs_exist_ok=True)
        return folder


@pytest.fixture(scope="module")
def kept(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Kept:
    lives = Lives()
    lost = lives.attempt(lives.post(NOON)[0], 503)
    every_day(lives, 7)
    folder = tmp_path_factory.mktemp("kept")
    lives.write(folder / "records")
    night(spark, folder, 0)
    shutil.copytree(folder / "out", folder / "after_the_first")
    night(spark, folder, 3)
    return Kept(folder, lost)


def test_the_same_night_again_changes_nothing_and_a_missed_night_loses_nothing(
    spark: SparkSession, kept: Kept, tmp_path: Path
) -> None:
    # Given a delivery that was lost on the first day, and the nights after it and the fourth
    lost, at_once = kept.lost, tmp_path / "at_once"
    kept.copy(tmp_path)
    shutil.copytree(kept.folder / "records", at_once / "records")
    shutil.copytree(kept.folder / "after_the_first", at_once / "out")
    before = states(tmp_path)
    assert sorted(before) == ["2026-11-17", "2026-11-20"]
    # When the same night is run again, then no state is written again
    assert night(spark, tmp_path, 3).named == [("overdue", lost.delivery_id)]
    assert states(tmp_path) == before
    # When two nights are missed, the next one reads the days between
    whole = job.run(spark, asked_at_night(tmp_path, 6))
    assert [(row["finding"], row["delivery_id"]) for row in whole.rows["findings"]] == [("overdue", lost.delivery_id)]
    # And then the tables that Athena sees have every day, and what was lost by its standing and as a finding
    layout, week = Layout(f"file://{tmp_path}/out", "any"), (FIRST, FIRST + timedelta(days=6))
    rows = rows_of(read_replaced(spark, layout.deliveries, KEPT_DELIVERY, *week))
    assert Counter((row["dt"] - FIRST).days for row in rows) == {0: 2, 1: 1, 2: 1, 3: 1, 4: 1, 5: 1, 6: 1}
    assert [row["delivery_id"] for row in rows if row["standing"] == "missing"] == [lost.delivery_id]
    attempts = Counter((row["dt"] - FIRST).days for row in rows_of(read_replaced(spark, layout.hours, HOURLY, *week)))
    assert attempts.keys() == {3, 4, 5, 6}  # the nights before ran up to the proof only
    assert [row["delivery_id"] for row in rows_of(read_replaced(spark, layout.findings, FINDING, *week))] == (
        [lost.delivery_id] * 3
    )
    # And its state is the same as that of a run over all days
    night(spark, at_once, 6)
    for each in ("fingerprint", "rows", "since", "lost"):
        assert json.loads(states(tmp_path)["2026-11-23"])[each] == json.loads(states(at_once)["2026-11-23"])[each]


def test_a_state_that_cannot_be_used_is_said_and_made_up_for(spark: SparkSession, kept: Kept, tmp_path: Path) -> None:
    def cut(newest: Path) -> None:
        part = max(newest.with_suffix("").glob("*.parquet"), key=lambda each: each.stat().st_size)
        part.write_bytes(part.read_bytes()[:-100])

    def without_its_records(newest: Path) -> None:
        shutil.rmtree(newest.with_suffix(""))

    def no_json(newest: Path) -> None:
        newest.write_text('{"day": ')

    for spoil in (without_its_records, no_json, cut):
        # When the newest state is damaged and the next report begins after it
        folder = kept.copy(tmp_path / spoil.__name__)
        spoil(folder / "out/curated/open/2026-11-20.json")
        # Then it starts from the one before
        start = carried_to(Layout(f"file://{folder}/out", "any"), FIRST + timedelta(days=3))
        assert start.spoiled == (date(2026, 11, 20),)
        assert start.state is not None
        assert start.state.day == date(2026, 11, 17)
    # And that is reported, and the delivery is still listed
    found = night(spark, folder, 4)
    assert found.named == [("overdue", kept.lost.delivery_id), ("state_made_anew", "")]
    assert [row["detail"] for row in found.findings if row["severity"] == "notice"] == [
        "what was kept of deliveries open at the end of 2026-11-20 was not as it had been written"
    ]


def test_states_that_are_lost_are_a_breach_until_they_are_made_up_for_or_settled(
    spark: SparkSession, kept: Kept, tmp_path: Path
) -> None:
    # Given nights with a lost delivery, and then all states lost
    kept.copy(tmp_path)
    shutil.rmtree(tmp_path / "out/curated/open")
    # Then open deliveries are not silently forgotten, in this night and the next
    nights = [night(spark, tmp_path, day) for day in (4, 5)]
    assert [each.named for each in nights] == [[("open_deliveries_lost", "")]] * 2
    assert nights[1].findings[0]["detail"].startswith("what was open before 2026-11-21 is not known")
    # When a person settles that, it no longer breaks conservation
    settle(tmp_path, lost="2026-11-21")
    assert night(spark, tmp_path, 5).named == []
    # When one run goes back to the first day, everything is known again, and stays so
    assert night(spark, tmp_path, 5, window=6).named == [("overdue", kept.lost.delivery_id)]
    assert night(spark, tmp_path, 6).named == [("overdue", kept.lost.delivery_id)]


def test_a_look_back_before_all_that_is_kept_takes_nothing_away(
    spark: SparkSession, kept: Kept, tmp_path: Path
) -> None:
    # Given states from the third day on, that know everything from the first
    kept.copy(tmp_path)
    (tmp_path / "out/curated/open/2026-11-17.json").unlink()
    before = states(tmp_path)
    # When somebody makes a report on the second day alone
    looked = proved(
        spark, asked(tmp_path, first=date(2026, 11, 19), last=date(2026, 11, 19), now="2026-11-24T01:30:00")
    )
    # Then that changes no state, and the next night names the delivery
    assert looked.named == []
    assert states(tmp_path) == before
    assert night(spark, tmp_path, 5).named == [("overdue", kept.lost.delivery_id)]


def test_what_a_person_wrote_must_be_readable(spark: SparkSession, tmp_path: Path) -> None:
    lives = Lives()
    every_day(lives, 1)
    lives.write(tmp_path / "records")
    settle(tmp_path, project="p1")
    with pytest.raises(BadInput, match=r"by-anna.jsonl, line 1: KeyError\('queue'\)"):
        night(spark, tmp_path, 0)
