"""Days of records are replaced in one step: whoever reads them finds all records of before or all of after, and a run
that is killed at any step leaves nothing that the next one does not mend.
"""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import date, timedelta
from hashlib import sha256
from itertools import count
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import pytest
from glue_jobs.delivery_report.erasures import take_out_erased
from glue_jobs.delivery_report.records import compaction, manifest
from glue_jobs.delivery_report.records.compaction import DayIntake, compact, read_records
from glue_jobs.delivery_report.storage import days as days_module
from glue_jobs.delivery_report.storage.days import named_files
from glue_jobs.delivery_report.storage.layout import Layout
from pyspark.sql import SparkSession
from tests.glue.lives import NOON, Lives
from tests.glue.mortal import Killed, Mortal
from tests.glue.runs import asked, proved

DAY = date(2026, 11, 18)


def attempted(folder: Path, *, posted: int) -> Lives:
    """Ten messages in an object of their own, all delivered."""
    lives = Lives(posted=posted)
    for n in range(10):
        lives.attempt(lives.post(NOON + n)[0])
    lives.write(folder / "records", batch=100 + posted)
    return lives


def test_a_query_that_began_before_a_day_was_made_again_reads_it_as_it_was(spark: SparkSession, tmp_path: Path) -> None:
    # Given a reported day, and somebody who has begun to read it
    before = attempted(tmp_path, posted=0)
    layout, records = Layout(f"file://{tmp_path}/out", "x"), f"file://{tmp_path}/records"
    compact(spark, records, layout, [DAY])
    query = read_records(spark, layout, DAY, DAY)
    # When its objects become others, and the day is made again
    (file,) = (tmp_path / "records").rglob("*.json.gz")
    file.unlink()
    after = attempted(tmp_path, posted=500)
    compact(spark, records, layout, [DAY])
    # Then the query finds what was there when it began, and the next one what is there now
    for found, lives in ((query, before), (read_records(spark, layout, DAY, DAY), after)):
        assert {row["record_id"] for row in found.collect()} == {each.record_id for each in lives.records}


def test_what_was_erased_is_not_left_in_former_files(spark: SparkSession, tmp_path: Path) -> None:
    # Given a reported day with two projects in one object, both with a delivery that is open
    lives = Lives()
    for project in ("kept", "erased"):
        lives.project = project
        lives.attempt(lives.post()[0])
        lives.attempt(lives.post()[0], 503)
    (file,) = lives.write(tmp_path / "records")
    proved(spark, asked(tmp_path))
    assert holding(tmp_path, b"erased")
    # And a night of days later, which names them among its findings and carries them over
    later = asked(tmp_path, first=DAY + timedelta(3), last=DAY + timedelta(4), now="2026-11-23T01:30:00")
    assert {each["project"] for each in proved(spark, later).findings} == {"kept", "erased"}
    carried = fingerprints(tmp_path)
    assert holding(tmp_path, b"erased", "findings", "open")
    # When one of them is erased as the command does, and the day is reported again
    lives.records = [each for each in lives.records if each.project == "kept"]
    (left,) = lives.write(tmp_path / "left")
    file.write_bytes(left.read_bytes())
    (tmp_path / "records/erased").mkdir()
    (tmp_path / f"records/erased/dt={DAY}.json").write_text(json.dumps({f"hour=12/{file.name}": 3}))
    (tmp_path / "records/erased/projects").mkdir()
    note = tmp_path / f"records/erased/projects/{sha256(b'erased').hexdigest()}.json"
    note.write_text('{"erasure": "1"}')
    (tmp_path / "out/work/ledger").mkdir(exist_ok=True)
    (tmp_path / "out/work/ledger/0-0.json").write_bytes(b"erased")
    # And a night is killed before it makes the day again
    take_out_erased(spark, f"file://{tmp_path}/records", Layout(f"file://{tmp_path}/out", "report"))
    # Then what former nights have found and carried over names the other project only, and follows from the same
    assert not holding(tmp_path, b"erased", "findings", "open")
    assert holding(tmp_path, b"kept", "findings", "open")
    assert not (tmp_path / "out/work/ledger").exists()
    assert fingerprints(tmp_path) == carried
    # And the next night takes the state as it is, and finds what it found of the other project alone
    found = proved(spark, asked(tmp_path, first=DAY + timedelta(4), last=DAY + timedelta(5), now="2026-11-24T01:30:00"))
    assert [each["project"] for each in found.findings] == ["kept"]
    # And when the day is made again, no file of any table kept by day names what was erased
    found = proved(spark, asked(tmp_path))
    assert holding(tmp_path, b"kept")
    assert not holding(tmp_path, b"erased")
    assert not holding(tmp_path, b"erased", "findings", "open")
    assert json.loads((tmp_path / "out/curated/erased.json").read_text()) == {note.stem: "1"}


def fingerprints(folder: Path) -> dict[str, str]:
    """What each state that is carried over follows from."""
    return {each.name: json.loads(each.read_text())["fingerprint"] for each in folder.glob("out/curated/open/*.json")}


def holding(folder: Path, name: bytes, *tables: str) -> list[Path]:
    """Files of tables, or else those kept by day, whose statistics or values have this project."""
    curated = folder / "out/curated"
    places = [curated / each for each in tables] or [each for each in curated.iterdir() if each.name != "open"]
    return [each for place in places for each in place.rglob("*.parquet") if name in each.read_bytes()]


class Objects:
    """Records in place of Spark's: an object is a list of numbers, and so is a file. Killed at any of its writes."""

    def __init__(self, process: Mortal) -> None:
        self.read = self.write = self.sparkContext = self.sparkSession = self
        self.defaultParallelism = 1  # as Spark calls it
        self._process, self._names, self._rows = process, count(), Counter[str]()

    def schema(self, *_: Any, **__: Any) -> Objects:
        return self

    options = withColumns = observe = coalesce = mode = partitionBy = schema  # noqa: N815 (Spark's names)

    def json(self, paths: Sequence[str]) -> Objects:
        """Read the objects of a day."""
        (path,) = paths
        folder = Path(path.removeprefix("file://"))
        self._rows = Counter()
        for each in folder.rglob("*.json.gz"):
            self._rows[each.relative_to(folder).as_posix()] = len(json.loads(each.read_text()))
        self._found = sorted(row for each in folder.rglob("*.json.gz") for row in json.loads(each.read_text()))
        return self

    def seen(self) -> dict[str, Any]:
        return {"rows": len(self._found), "rejected": 0, "no_records": ""}

    def parquet(self, root: str) -> None:
        """Write what was read, a file for each row."""
        for row in self._found:
            self._process.step()
            file = Path(root.removeprefix("file://")) / f"dt={DAY}" / f"part-{next(self._names)}.parquet"
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(json.dumps(row))

    def read_back(self) -> tuple[dict[str, int], set[date]]:
        return dict(self._rows), {DAY}


def test_a_run_that_is_killed_at_any_step_leaves_a_day_as_it_was_or_as_it_is_to_be(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    process = Mortal()
    objects = Objects(process)

    class Observed:
        def __init__(self, *_: str) -> None: ...

        @property
        def get(self) -> dict[str, Any]:
            return objects.seen()

    monkeypatch.setattr(compaction, "usable", lambda lines: lines)
    for module in (compaction, days_module):
        monkeypatch.setattr(module, "Observation", Observed)
        # Columns, of which only Spark would make something.
        monkeypatch.setattr(module, "F", MagicMock())
    monkeypatch.setattr(days_module, "rows_in", lambda _, files: len(files))
    monkeypatch.setattr(compaction, "rejection", MagicMock())
    monkeypatch.setattr(compaction, "_read_back", lambda _: objects.read_back())
    process.at_each_call(monkeypatch, compaction, ("listed", "read_text", "remove"))
    process.at_each_call(monkeypatch, manifest, ("listed", "read_text", "write_text"))
    process.at_each_call(monkeypatch, days_module, ("listed", "read_text", "write_text", "remove_file"))

    def night(root: Path, *, dies_at: int = 0) -> list[DayIntake]:
        process.dies_at(dies_at)
        return compact(objects, f"file://{root}/records", Layout(f"file://{root}/out", "x"), [DAY])  # type: ignore[arg-type]

    def now(root: Path) -> list[int]:
        process.dies_at(0)
        files = named_files(f"file://{root}/out/curated/records", DAY)
        return sorted(json.loads(Path(each.removeprefix("file://")).read_text()) for each in files)

    steps = {}
    for change in (more_came, all_is_gone, one_is_gone, kept_file_is_cut, manifest_is_gone):
        # Given a day that was made twice, so that there are files that it no longer needs; and then a change
        given = tmp_path / change.__name__ / "0"
        write(given, "messages-1-1-1", [1])
        night(given)
        write(given, "messages-2-3-2", [2, 3])
        night(given)
        before = now(given)
        change(given)
        for dies_at in count(1):
            root = given.with_name(str(dies_at))
            shutil.copytree(given, root)
            # When the next run is killed at this step
            try:
                whole = night(root, dies_at=dies_at)
            except Killed:
                pass
            else:
                break
            # Then the day is as it was or as it is to be, whoever reads it
            after = in_objects(root)
            if change is not kept_file_is_cut:
                assert now(root) in (before, after), (change, dies_at)
            # And the run after it makes of it what it should, and has forgotten nothing that is gone
            process.dies_at(0)
            again = night(root)
            assert now(root) == after, (change, dies_at)
            if change is not manifest_is_gone:
                assert [each.gone for each in again] == [lost_by(change)], (change, dies_at)
            # And a run later nothing is kept that nobody needs, and nothing is made again
            night(root)
            (settled,) = night(root)
            assert not settled.stale
            assert len([*(root / "out/curated/records").rglob("*.parquet")]) == len(after)
        steps[change] = dies_at
        assert now(root) == in_objects(root)
        assert [each.spoiled for each in whole] == [change is kept_file_is_cut]
    assert min(steps.values()) > 20


def write(root: Path, name: str, rows: Sequence[int]) -> None:
    file = root / f"records/dt={DAY}/hour=05/{name}.json.gz"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(rows))


def in_objects(root: Path) -> list[int]:
    return sorted(row for each in (root / "records").rglob("*.json.gz") for row in json.loads(each.read_text()))


def more_came(root: Path) -> None:
    write(root, "messages-4-4-1", [4])


def all_is_gone(root: Path) -> None:
    for each in (root / "records").rglob("*.json.gz"):
        each.unlink()


def one_is_gone(root: Path) -> None:
    (root / f"records/dt={DAY}/hour=05/messages-1-1-1.json.gz").unlink()


def kept_file_is_cut(root: Path) -> None:
    (file, *_) = named_files(f"{root}/out/curated/records", DAY)
    Path(file).write_text("")


def manifest_is_gone(root: Path) -> None:
    (root / f"out/curated/records/dt={DAY}/_manifest.json").unlink()


def lost_by(change: Callable[[Path], None]) -> frozenset[str]:
    """The objects that are gone since."""
    names = {"all_is_gone": ["messages-1-1-1", "messages-2-3-2"], "one_is_gone": ["messages-1-1-1"]}
    gone = names.get(change.__name__, [])
    return frozenset(f"hour=05/{each}.json.gz" for each in gone)
