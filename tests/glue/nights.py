"""Whole nights over hubs that chance draws: some are missed, some are killed at one of their steps.

    .venv-glue/bin/python -m tests.glue.nights --seeds 731001 731011

Each hub lives two weeks: messages that arrive, that are tried for days, that end late, that are lost; objects that come
a night or two late. Its twin has a night after each day, the whole job, as on AWS. The hub itself misses nights, up to
nine in a row, and is killed in others: at a step drawn from all reads, writes and removals of files and all tables that
Spark writes, before or after it. After a death the same night runs again, or only a later one. After each death every
table can be read as its lists say. After the last night both have the same: every record once, the same deliveries,
attempts by hour, findings and verdict.
"""

from __future__ import annotations

import random
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pytest
from bench.harness import Page
from glue_jobs.delivery_report import job
from glue_jobs.delivery_report.figures.cells import HOURLY
from glue_jobs.delivery_report.proof.deliveries import KEPT_DELIVERY
from glue_jobs.delivery_report.proof.findings import FINDING
from glue_jobs.delivery_report.records.compaction import read_records
from glue_jobs.delivery_report.storage.days import read_replaced
from glue_jobs.delivery_report.storage.layout import Layout
from pyspark.sql import DataFrameWriter, SparkSession
from tests.glue.frames import rows_of
from tests.glue.lives import DAY, HOUR, NOON, Lives
from tests.glue.mortal import Killed, Mortal
from tests.glue.runs import asked

from pushhub.engine.model.backoff import FixedDelay

FIRST = date(2026, 11, 18)
DAYS = 14
DAILY = FixedDelay(retries=10, delay_s=86_400)
FILES = ("listed", "read_text", "write_text", "put_file", "remove", "remove_file")
MISSED = (0, 0, 0, 1, 1, 2, 3, 9)
"""How many nights in a row, by chance."""


class Dying(Mortal):
    """A process that stays dead: what its other threads would do fails, too."""

    def __init__(self) -> None:
        super().__init__()
        self.taken = 0
        self._at = 0

    def dies_at(self, step: int) -> None:
        """Kill the process at this step from now; 0: never."""
        self.taken, self._at = 0, step

    def step(self) -> None:
        """The process takes a step.

        Raises:
            Killed: It was its last.
        """
        self.taken += 1
        if self._at and self.taken >= self._at:
            raise Killed


@dataclass
class World:
    """A hub's records, and from which night on each object of them is there.

    Attributes:
        folder: Where the objects lie that are to come.
        days: How many it lives.
        coming: The objects by night.
        ids: Of all records.
        lost: The deliveries that were lost.
    """

    folder: Path
    days: int
    coming: dict[int, list[Path]] = field(default_factory=dict)
    ids: set[str] = field(default_factory=set)
    lost: set[str] = field(default_factory=set)


def drawn_world(chance: random.Random, folder: Path, days: int, *, latest: int = 2) -> World:
    """So many days of a hub, with objects that come up to so many nights late."""
    lives, world = Lives(), World(folder, days)
    for day in range(days):
        for _ in range(chance.randint(2, 8)):
            at = NOON + day * DAY - 12 * HOUR + chance.randrange(DAY - HOUR)
            for delivery in lives.post(at, ("s0", "s1")[: chance.randint(1, 2)], expires_in=30 * DAY):
                fate = chance.random()
                if fate < 0.5:
                    lives.attempt(delivery)
                elif fate < 0.6:
                    world.lost.add(lives.attempt(delivery, 503).delivery_id)
                else:
                    for _ in range(chance.randint(1, 9)):
                        delivery = lives.attempt(delivery, 503, policy=DAILY)  # noqa: PLW2901 (its next state)
                    if fate < 0.9:
                        lives.attempt(delivery, policy=DAILY)
    end = f"{FIRST + timedelta(days=days)}"
    lives.records = [each for each in lives.records if each.at < end]
    world.ids = {each.record_id for each in lives.records}
    for file in lives.write(folder / "all", batch=chance.randint(3, 30)):
        (filed,) = [part for part in file.parts if part.startswith("dt=")]
        since = (date.fromisoformat(filed.removeprefix("dt=")) - FIRST).days
        night = min(days - 1, since + min(latest, chance.choice((0, 0, 0, 0, 0, 1, 2))))
        world.coming.setdefault(night, []).append(file)
    return world


def arrive(world: World, folder: Path, nights: range) -> None:
    """Put the objects where the job looks for them."""
    for night in nights:
        for file in world.coming.get(night, []):
            there = folder / "records" / file.relative_to(world.folder / "all")
            there.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(file, there)


def run_night(spark: SparkSession, folder: Path, night: int, days: int = 7) -> dict[str, Any]:
    """The whole job after a day: what it says of so many days."""
    last = FIRST + timedelta(days=night)
    first = last - timedelta(days=days - 1)
    arguments = asked(folder, first=first, last=last, now=f"{last + timedelta(days=1)}T01:30:00")
    found = job.run(spark, arguments)
    named = sorted(
        (row["severity"], row["finding"], row["delivery_id"] or "", row["detail"])
        for row in found.rows["findings"]
        if row["finding"] != "state_made_anew"
    )
    verdict = {key: value for key, value in found.verdict.items() if key != "sentence"}
    return {"findings": named, "verdict": verdict}


def kept(spark: SparkSession, folder: Path, days: int) -> dict[str, Any]:
    """What the tables hold after so many days, as their lists say."""
    layout, until = Layout(f"file://{folder}/out", "any"), FIRST + timedelta(days=days)
    early = FIRST - timedelta(days=7)
    deliveries = rows_of(read_replaced(spark, layout.deliveries, KEPT_DELIVERY, early, until))
    # What left the report's days is as the last night has seen it that looked at them.
    recent = until - timedelta(days=7)
    hours = rows_of(read_replaced(spark, layout.hours, HOURLY, early, until))
    rows_of(read_replaced(spark, layout.findings, FINDING, early, until))
    return {
        "records": sorted(row["record_id"] for row in rows_of(read_records(spark, layout, early, until))),
        "deliveries": sorted(row["delivery_id"] for row in deliveries),
        "states": sorted(map(str, (sorted(row.items()) for row in deliveries if row["dt"] >= recent))),
        "hours": sorted(map(str, (sorted(row.items()) for row in hours))),
    }


def mortal(patched: pytest.MonkeyPatch) -> Dying:
    """Make the job's dealings with files steps of a process that can be killed."""
    process = Dying()
    for name in [each for each in sys.modules if each.startswith("glue_jobs.delivery_report.")]:
        module = sys.modules[name]
        if not name.endswith(".files"):
            process.at_each_call(patched, module, [each for each in FILES if hasattr(module, each)])
    write: Callable[..., None] = DataFrameWriter.parquet

    def parquet(self: DataFrameWriter, *args: Any, **named: Any) -> None:
        process.step()
        write(self, *args, **named)
        process.step()

    patched.setattr(DataFrameWriter, "parquet", parquet)
    return process


def disturbed(spark: SparkSession, world: World, folder: Path, chance: random.Random) -> Iterator[str]:
    """The nights of a hub of which some are missed and some killed; what happened in each."""
    with pytest.MonkeyPatch.context() as patched:
        process, night, arrived, steps = mortal(patched), chance.choice(MISSED), 0, 0
        while True:
            night = min(night, world.days - 1)
            arrive(world, folder, range(arrived, night + 1))
            arrived = night + 1
            died = steps > 0 and chance.random() < 0.6
            process.dies_at(chance.randint(1, steps) if died else 0)
            try:
                run_night(spark, folder, night)
                yield f"night {night}: done"
                steps = process.taken
            except Killed:
                yield f"night {night}: killed at step {process.taken} of some {steps}"
                process.dies_at(0)
                kept(spark, folder, world.days)
                if night == world.days - 1 or chance.random() < 0.5:
                    continue
            if night == world.days - 1:
                return
            night += 1 + chance.choice(MISSED)


def compared(spark: SparkSession, seed: int, folder: Path, days: int, told: list[str]) -> list[str]:
    """What differs between a hub and its twin after the last night.

    Args:
        days: How many it lives.
        told: Gets what happened in each night.
    """
    chance = random.Random(seed)
    world = drawn_world(chance, folder, days)
    twin, hub = folder / "twin", folder / "hub"
    for night in range(days):
        arrive(world, twin, range(night, night + 1))
        expected = run_night(spark, twin, night)
    for what in disturbed(spark, world, hub, chance):
        told.append(what)
        _say(f"  {seed}: {what}")
    # Once more, as the night after would.
    found = run_night(spark, hub, days - 1)
    wrong = [f"{each}: {found[each]} instead of {expected[each]}" for each in expected if found[each] != expected[each]]
    if unnamed := world.lost - {name for _, _, name, _ in found["findings"]}:
        wrong.append(f"not named: {sorted(unnamed)}")
    has, had = kept(spark, hub, days), kept(spark, twin, days)
    if set(has["records"]) != world.ids or len(has["records"]) != len(world.ids):
        wrong.append(f"records: {len(has['records'])} instead of {len(world.ids)}")
    for each in had:
        if has[each] != had[each]:
            differ = (
                [one for one in has[each] if one not in had[each]],
                [one for one in had[each] if one not in has[each]],
            )
            wrong.append(f"{each}: {len(differ[0])} only here, {len(differ[1])} only in the twin: {str(differ)[:600]}")
    return wrong


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def main() -> None:
    """Command line: from which seed and up to which, and how many days each hub lives."""
    page = Page(
        "Nights that were missed and nights that were killed",
        __doc__,
        saved="records-nights.md",
        seeds=[1, 2],
        days=DAYS,
    )
    from glue_jobs.delivery_report.run.session import FOR_LITTLE, open_session  # noqa: PLC0415 (Java first)
    from glue_jobs.local_spark import use_bundled_java  # noqa: PLC0415

    use_bundled_java()
    spark = open_session("local[2]", settings=FOR_LITTLE)
    rows, failed = [], 0
    for seed in range(*page.options.seeds):
        told: list[str] = []
        with tempfile.TemporaryDirectory() as folder:
            wrong = compared(spark, seed, Path(folder), page.options.days, told)
        failed += bool(wrong)
        _say(f"{seed}: {'; '.join(wrong) or 'the same as its twin'}")
        killed = sum("killed" in each for each in told)
        rows.append([f"{seed}", f"{len(told) - killed}", f"{killed}", "; ".join(wrong) or "the same as its twin"])
    page.table(["seed", "nights that ended", "nights that were killed", "after the last night"], rows)
    page.save()
    if failed:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
