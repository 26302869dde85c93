"""Tables kept by day, of which each day is replaced in one step.

The files of a table lie in its folder by day, ``deliveries/dt=2026-11-18/``. Which of them are the day, its list says,
``days/deliveries/dt=2026-11-18/files.txt``, one URI a line. Athena reads the files by these lists (a table of Hive's
``SymlinkTextInputFormat`` over Parquet, as the inventories of S3 are). So a day changes when its list does: a query
sees what was there before or what came after, and a run that is killed leaves what was there before.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import date, timedelta
from typing import Final
from uuid import uuid4

from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import DateType, StructField, StructType

from .driver import Driver
from .files import Stored, listed, read_text, remove, remove_file, write_text
from .made import note, noted
from .storage import MADE, small_table

_LIST: Final = "files.txt"

LOOKED_BACK: Final = 7
"""Files that no list names are removed from so many days before those that are replaced, too: a night replaces seven
days, so a day that has left them is tidied by the nights that follow.
"""


def replace_days(table: DataFrame, root: str, days: Iterable[date], *, erased: Collection[date] = ()) -> None:
    """Replace days of a table, each whole and in one step; other days are left alone.

    The files that were the day stay until it is replaced again, for queries that are reading them.

    Args:
        table: Rows of these days, with their ``dt``.
        days: Which days; one without rows is gone afterwards.
        erased: Those whose former files hold what was erased since: these go at once.

    Raises:
        OSError: What is read back differs from what was written; the days are as they were.
    """
    wanted = sorted(days)
    for day in _with_those_before(wanted):
        remove_others(root, day, named_files(root, day))
    written = Observation("days written")
    new = write_beside(table.observe(written, F.count(F.lit(1)).alias("rows")), root, wanted)
    files = [file for of_day in new.values() for file in of_day]
    found = table.sparkSession.read.parquet(*files).count() if files else 0
    if found != written.get["rows"]:
        raise OSError(f"{root}: {written.get['rows']} rows were written, {found} can be read")
    for day in wanted:
        name_files(root, day, new[day])
        if day in erased:
            remove_others(root, day, new[day])


def renew_days(
    make: Callable[[list[date]], DataFrame], root: str, days: Mapping[date, str], *, erased: Collection[date] = ()
) -> None:
    """Replace those days of a table that follow from something else than when they were made.

    Args:
        make: Makes the rows of some days, with their ``dt``.
        days: What each day follows from (:func:`.made.made_of`).
        erased: See :func:`replace_days`.
    """
    stale = _stale(root, days, erased)
    if stale:
        replace_days(make(stale), root, stale, erased=[day for day in stale if day in erased])
    _note(root, stale, days)


def put_days(driver: Driver, query: str, root: str, days: Mapping[date, str], *, erased: Collection[date] = ()) -> None:
    """:func:`renew_days` of what the driver holds.

    Args:
        query: Rows of these days, with their ``dt``.
    """
    stale = _stale(root, days, erased)
    for day in _with_those_before(stale):
        remove_others(root, day, named_files(root, day))
    filled = {row["dt"] for row in driver.rows(f"SELECT DISTINCT dt FROM ({query})")} if stale else set()
    for day in stale:
        new = [f"{_folder(root, day)}/part-{uuid4()}.parquet"] if day in filled else []
        for file in new:
            driver.put(f"SELECT * EXCLUDE dt FROM ({query}) WHERE dt = DATE '{day}'", file)
        name_files(root, day, new)
        if day in erased:
            remove_others(root, day, new)
    _note(root, stale, days)


def empty_days(root: str, days: Iterable[date], *, erased: Collection[date] = ()) -> None:
    """What :func:`replace_days` does when there are no rows, without Spark."""
    wanted = sorted(days)
    for day in _with_those_before(wanted):
        remove_others(root, day, named_files(root, day))
    for day in wanted:
        name_files(root, day, [])
        if day in erased:
            remove_others(root, day, [])


def write_beside(table: DataFrame, root: str, days: Iterable[date]) -> dict[date, list[str]]:
    """Write rows beside those of some days, as files that do not count until :func:`name_files` names them.

    Args:
        table: The rows, with their ``dt``.

    Returns:
        The URIs of each day's new files.
    """
    before = {day: _files(root, day) for day in days}
    # Not by dynamic partition overwrite, see docs/decisions/records.md.
    table.write.mode("append").partitionBy("dt").parquet(root)
    return {day: sorted(f"{_folder(root, day)}/{name}" for name in _files(root, day) - before[day]) for day in before}


def name_files(root: str, day: date, files: Sequence[str]) -> None:
    """Make these files the day, in one step.

    Args:
        files: Their URIs; without any, the day is gone.
    """
    if files:
        write_text(_list_of(root, day), "".join(f"{each}\n" for each in files), "text/plain")
    else:
        remove_file(_list_of(root, day))


def remove_others(root: str, day: date, files: Iterable[str]) -> set[str]:
    """Remove all other files of a day.

    Args:
        files: The URIs of those that stay.

    Returns:
        The names of those that stay.
    """
    stay = {file.rpartition("/")[2] for file in files}
    for name in _files(root, day) - stay:
        remove_file(f"{_folder(root, day)}/{name}")
    return stay


def read_replaced(
    spark: SparkSession, root: str, schema: StructType, date_from: date, date_to: date | None = None
) -> DataFrame:
    """Days of a table, as their lists have them; empty when none was written yet.

    Args:
        schema: Its columns, without ``dt``.
        date_to: Last day, None for all later ones.
    """
    days = [day for day in listed_days(root) if date_from <= day and (date_to is None or day <= date_to)]
    return read_files(spark, root, schema, [file for day in days for file in named_files(root, day)])


def read_files(spark: SparkSession, root: str, schema: StructType, files: Sequence[str]) -> DataFrame:
    """Files of a table, with their ``dt``, whether they are named or not.

    Args:
        schema: Its columns, without ``dt``.
    """
    whole = StructType([*schema.fields, StructField("dt", DateType())])
    if not files:
        return small_table(spark, [], whole)
    return spark.read.schema(whole).option("basePath", root).parquet(*files)


def listed_days(root: str) -> list[date]:
    """The days that have a list, in order."""
    found = (name.split("/", 1)[0] for name in listed(_lists(root)))
    return sorted(date.fromisoformat(each.removeprefix("dt=")) for each in found if each.startswith("dt="))


def named_files(root: str, day: date) -> list[str]:
    """The files that are a day of a table, by their URIs.

    They are looked for below ``root`` even if the list was written elsewhere, so a copy of a table can be read.
    """
    listed_then = filter(None, (read_text(_list_of(root, day)) or "").split("\n"))
    return [f"{_folder(root, day)}/{each.rpartition('/')[2]}" for each in listed_then]


def forget_days(root: str, before: date, *, files: bool = False) -> None:
    """Take away the lists of days that are about to expire, so that no query looks for files that are gone.

    Args:
        before: The first day that is kept.
        files: Whether to take away the files as well, of a table that only the job reads.
    """
    for day in listed_days(root):
        if day < before:
            remove_file(_list_of(root, day))
            remove_file(_note_of(root, day))
            if files:
                remove(_folder(root, day))


def _with_those_before(days: list[date]) -> list[date]:
    return [] if not days else [*(days[0] - timedelta(days=n) for n in range(LOOKED_BACK, 0, -1)), *days]


def _stale(root: str, days: Mapping[date, str], erased: Collection[date]) -> list[date]:
    """The days that follow from something else than when they were made, in order."""
    stale = []
    for day, digest in sorted(days.items()):
        if day in erased or noted(_note_of(root, day), digest, _there(root, day)) is None:
            stale.append(day)
        else:
            # What it was before stayed for queries of the last night.
            remove_others(root, day, named_files(root, day))
    return stale


def _note(root: str, made: Iterable[date], days: Mapping[date, str]) -> None:
    for day in made:
        note(_note_of(root, day), days[day], _there(root, day))


def _there(root: str, day: date) -> dict[str, Stored]:
    """The files that are a day, as they are."""
    there = listed(_folder(root, day))
    return {name: there[name] for each in named_files(root, day) if (name := each.rpartition("/")[2]) in there}


def _note_of(root: str, day: date) -> str:
    return f"{_lists(root)}/dt={day}/{MADE}"


def _files(root: str, day: date) -> set[str]:
    return set(listed(_folder(root, day)))


def _folder(root: str, day: date) -> str:
    return f"{root}/dt={day}"


def _list_of(root: str, day: date) -> str:
    return f"{_lists(root)}/dt={day}/{_LIST}"


def _lists(root: str) -> str:
    above, _, name = root.rpartition("/")
    return f"{above}/days/{name}"
