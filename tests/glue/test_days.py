"""Days of tables are replaced in one step: no query and no later night finds one missing, half there, or twice."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import date
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from glue_jobs.delivery_report.storage import days as days_module
from glue_jobs.delivery_report.storage.days import forget_days, named_files, read_replaced, remove_former, replace_days
from glue_jobs.delivery_report.storage.files import listed
from glue_jobs.delivery_report.storage.layout import small_table
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import DateType, IntegerType, StructField, StructType
from tests.glue.mortal import Killed, Mortal

ROW = StructType([StructField("number", IntegerType())])
FIRST, SECOND, THIRD = (date(2026, 11, day) for day in (17, 18, 19))


def table(spark: SparkSession, **days: list[int]) -> DataFrame:
    """Rows of days of November."""
    rows = [
        {"number": number, "dt": date(2026, 11, int(day[1:]))} for day, numbers in days.items() for number in numbers
    ]
    return small_table(spark, rows, StructType([*ROW.fields, StructField("dt", DateType())]))


def kept(spark: SparkSession, root: str) -> dict[date, list[int]]:
    """What a reader finds."""
    found: dict[date, list[int]] = {}
    for row in read_replaced(spark, root, ROW, FIRST, THIRD).orderBy("dt", "number").collect():
        found.setdefault(row["dt"], []).append(row["number"])
    return found


def test_days_are_replaced_whole_and_others_left_alone(spark: SparkSession, tmp_path: Path) -> None:
    # Given a table of three days in a folder with a space in its name
    root = f"file://{tmp_path}/a table/deliveries"
    replace_days(table(spark, d17=[1], d18=[2], d19=[3, 4]), root, [FIRST, SECOND, THIRD])
    assert kept(spark, root) == {FIRST: [1], SECOND: [2], THIRD: [3, 4]}
    # When two are written again, one of them with other rows and one with none
    replace_days(table(spark, d18=[5, 6]), root, [SECOND, THIRD])
    # Then the rows are these and no others
    assert kept(spark, root) == {FIRST: [1], SECOND: [5, 6]}
    assert named_files(root, THIRD) == []


def test_rows_of_a_table_that_is_read_while_it_is_replaced_are_those_before(
    spark: SparkSession, tmp_path: Path
) -> None:
    # Given a query that has found its files
    root = f"file://{tmp_path}/deliveries"
    replace_days(table(spark, d18=[1, 2]), root, [SECOND])
    query = read_replaced(spark, root, ROW, SECOND, SECOND)
    # When the day is replaced before it reads them
    replace_days(table(spark, d18=[3]), root, [SECOND])
    # Then it reads what was there when it began
    assert sorted(row["number"] for row in query.collect()) == [1, 2]


def test_a_table_that_was_moved_is_read_where_it_is(spark: SparkSession, tmp_path: Path) -> None:
    # Given a table whose folder got another name
    replace_days(table(spark, d18=[1, 2]), f"file://{tmp_path}/before/deliveries", [SECOND])
    (tmp_path / "before").rename(tmp_path / "after")
    # Then its rows are found although its lists name the former folder
    assert kept(spark, f"file://{tmp_path}/after/deliveries") == {SECOND: [1, 2]}


def test_former_files_of_a_day_go_at_once_if_what_they_hold_was_erased(spark: SparkSession, tmp_path: Path) -> None:
    root = f"file://{tmp_path}/deliveries"
    replace_days(table(spark, d18=[1, 2], d19=[3]), root, [SECOND, THIRD])
    replace_days(table(spark, d18=[1], d19=[3]), root, [SECOND, THIRD])
    remove_former(root, [SECOND])
    assert {day: len([*tmp_path.glob(f"deliveries/dt={day}/*.parquet")]) for day in (SECOND, THIRD)} == {
        SECOND: 1,
        THIRD: 2,
    }
    assert kept(spark, root) == {SECOND: [1], THIRD: [3]}


def test_lists_of_days_that_expire_are_taken_away_before_their_files(spark: SparkSession, tmp_path: Path) -> None:
    root = f"file://{tmp_path}/deliveries"
    replace_days(table(spark, d17=[1], d18=[2], d19=[3]), root, [FIRST, SECOND, THIRD])
    forget_days(root, SECOND)
    assert kept(spark, root) == {SECOND: [2], THIRD: [3]}


def test_rows_that_were_lost_in_writing_are_found_out_before_they_count(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Given a day, and a store whose listings lack the newest files
    root = f"file://{tmp_path}/deliveries"
    replace_days(table(spark, d18=[1]), root, [SECOND])
    stale = {each: listed(each) for each in (root, f"{root}/dt={SECOND}")}
    # When it is replaced, that fails
    with monkeypatch.context() as patched:
        patched.setattr(days_module, "listed", lambda path: stale.get(path, {}))
        with pytest.raises(OSError, match="2 rows were written, 0 can be read"):
            replace_days(table(spark, d18=[2, 3]), root, [SECOND])
    # And the day is as it was
    assert kept(spark, root) == {SECOND: [1]}


class Files:
    """A table of text files in place of Spark's, whose writing can be cut off between any two files."""

    def __init__(self, rows: dict[date, list[int]], alive: Callable[[], None], names: Iterator[int]) -> None:
        self._rows, self._alive, self._names = rows, alive, names
        self.write = self.sparkSession = self

    def observe(self, *_: Any) -> Files:
        return self

    mode = partitionBy = observe  # noqa: N815 (Spark's name)

    def parquet(self, *paths: str) -> Files:
        for path in paths[:1] if not paths[0].endswith(".parquet") else ():
            for day, numbers in self._rows.items():
                for each in numbers:
                    file = Path(path.removeprefix("file://")) / f"dt={day}" / f"part-{next(self._names)}.parquet"
                    file.parent.mkdir(parents=True, exist_ok=True)
                    self._alive()
                    file.write_text(json.dumps([each]))
        return self

    def count(self) -> int:
        return sum(map(len, self._rows.values()))


def on_disk(root: str) -> dict[date, list[int]]:
    """The rows of :class:`Files` that the lists name."""
    found = {}
    for day in (FIRST, SECOND, THIRD):
        files = [Path(each.removeprefix("file://")) for each in named_files(root, day)]
        if rows := sorted(row for each in files for row in json.loads(each.read_text())):
            found[day] = rows
    return found


@pytest.mark.usefixtures("spark")
def test_a_run_that_is_killed_anywhere_leaves_each_day_as_it_was_or_as_it_is_to_be(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = count()
    process = Mortal()

    class Observed:
        get: dict[str, int]

        def __init__(self, *_: str) -> None: ...

    def replace(rows: dict[date, list[int]], root: str, *, dies_at: int = 0) -> None:
        process.dies_at(dies_at)
        files = Files(rows, process.step, names)
        Observed.get = {"rows": files.count()}
        replace_days(files, root, [SECOND, THIRD])  # type: ignore[arg-type]

    process.at_each_call(monkeypatch, days_module, ("listed", "read_text", "write_text", "remove_file"))
    monkeypatch.setattr(days_module, "Observation", Observed)
    monkeypatch.setattr(days_module, "rows_in", lambda files, _: files.count())
    monkeypatch.setattr(days_module, "LOOKED_BACK", 1)
    first, second, third = {SECOND: [1], THIRD: [2, 3]}, {SECOND: [4, 5]}, {SECOND: [6], THIRD: [7]}
    for dies_at in count(1):
        # Given a table that was replaced twice, so that there are files that it no longer needs
        root = f"file://{tmp_path}/{dies_at}/deliveries"
        replace({SECOND: [0]}, root)
        replace(first, root)
        # When the next run is killed at this place
        try:
            replace(second, root, dies_at=dies_at)
        except Killed:
            process.dies_at(0)
        else:
            break
        # Then each day is as it was or as it is to be
        now = on_disk(root)
        for day in (SECOND, THIRD):
            assert now.get(day) in (first.get(day), second.get(day)), dies_at
        # And the next run makes of it what it should, whatever was left over
        replace(third, root)
        assert on_disk(root) == third
        # And two runs later nothing is kept that nobody needs
        replace(third, root)
        replace(third, root)
        assert len([*Path(root.removeprefix("file://")).rglob("*.parquet")]) == 4
    assert dies_at > 20
