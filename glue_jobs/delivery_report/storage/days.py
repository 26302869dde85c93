"""Tables kept by day, of which each day is replaced in one step.

The files of a table lie in its folder by day, ``deliveries/dt=2026-11-18/``. Which of them are the day, its list says,
``days/deliveries/dt=2026-11-18/files.txt``, one URI a line. Athena reads the files by these lists (a table of Hive's
``SymlinkTextInputFormat`` over Parquet, as the inventories of S3 are). So a day changes when its list does: a query
sees what was there before or what came after, and a run that is killed leaves what was there before.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import date, timedelta
from typing import Any, Final
from uuid import uuid4

from pyspark.sql import Column, DataFrame, Observation, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import DateType, StructField, StructType

from .driver import Driver
from .files import Stored, from_json, listed, read_text, remove, remove_file, write_text
from .layout import small_table
from .provenance import fingerprint

_LIST: Final = "files.txt"

_MADE: Final = "_made.json"
"""Where it is noted what a day was made of."""

LOOKED_BACK: Final = 7
"""Files that no list names are removed from so many days before those that are replaced, too: a night replaces seven
days, so a day that has left them is tidied by the nights that follow.
"""


def replace_days(table: DataFrame | None, root: str, days: Iterable[date]) -> None:
    """Replace days of a table, each whole and in one step; other days are left alone.

    The files that were the day stay until it is replaced again, for queries that are reading them.

    Args:
        table: Rows of these days, with their ``dt``; None if there are none, which costs no work of Spark.
        days: Which days; one without rows is gone afterwards.
    """
    wanted = sorted(days)
    _tidy(root, wanted)
    new = write_beside(table, root, wanted) if table is not None else {}
    for day in wanted:
        name_files(root, day, new.get(day, []))


def rows_in(spark: SparkSession, files: Iterable[str]) -> int:
    """How many rows Parquet files have, as each says at its end: no work for Spark."""
    hadoop: Any = spark._jvm.org.apache  # type: ignore[union-attr]
    conf: Any = spark._jsc.hadoopConfiguration()
    rows = 0
    for each in files:
        path = hadoop.hadoop.fs.Path(each)
        reader = hadoop.parquet.hadoop.ParquetFileReader.open(
            hadoop.parquet.hadoop.util.HadoopInputFile.fromPath(path, conf)
        )
        rows += reader.getRecordCount()
        reader.close()
    return rows


def renew_days(
    make: Callable[[list[date]], DataFrame],
    root: str,
    days: Mapping[date, str],
    *,
    counting: Sequence[Observation] = (),
) -> dict[date, dict[str, int]]:
    """Replace those days of a table that follow from something else than when they were made.

    Args:
        make: Makes the rows of some days, with their ``dt``.
        days: What each day follows from (:func:`.provenance.fingerprint`).
        counting: What ``make`` observes on the way: by name, which days have some (:func:`days_with`); or by name and
            day, how many.

    Returns:
        What was counted of each day, now or when it was made; 0 or 1 where only the days are known.
    """
    counted = _counted(root, days)
    stale = [day for day in counted if counted[day] is None]
    new: dict[date, dict[str, int]] = {day: {} for day in stale}
    if stale:
        replace_days(make(stale), root, stale)
        for each in counting:
            for name, found in each.get.items():
                what, _, day = name.partition(" ")
                if day:
                    new[date.fromisoformat(day)][what] = found
                else:
                    for one in stale:
                        new[one][what] = int(f"{one}" in found)
    for one, of_day in new.items():
        _note(root, one, days[one], of_day)
    return {day: new[day] if of_day is None else of_day for day, of_day in counted.items()}


def days_with(conditions: Mapping[str, Column], day: Column) -> list[Column]:
    """On which days some row meets each condition: by name, to be counted while :func:`renew_days` writes."""
    found = {name: F.collect_set(F.when(when, day.cast("string"))) for name, when in conditions.items()}
    # As a text: an observation hands nothing else over.
    return [F.array_join(some, ",").alias(name) for name, some in found.items()]


def count_days(
    driver: Driver,
    tables: Mapping[str, Callable[[str], str]],
    schema: StructType,
    sources: Mapping[date, Sequence[str]],
) -> None:
    """Make the days of some tables anew whose sources have changed, each from those of its day alone.

    Args:
        tables: The query of each, by the table's folder; it is given the name of a table of the day's sources.
        schema: Columns of the sources.
        sources: The files of each day.
    """
    digests = {day: fingerprint(files=files) for day, files in sources.items()}
    stale = {root: [day for day, counted in _counted(root, digests).items() if counted is None] for root in tables}
    for root, days in stale.items():
        _tidy(root, days)
    for day in sorted({day for days in stale.values() for day in days}):
        driver.read("source", schema, sources[day])
        for root, query in tables.items():
            if day in stale[root]:
                file = f"{_folder(root, day)}/part-{uuid4()}.parquet"
                name_files(root, day, [file] if driver.put(query("source"), file) else [])
                _note(root, day, digests[day], {})
        driver.forget("source")


def write_beside(table: DataFrame, root: str, days: Iterable[date]) -> dict[date, list[str]]:
    """Write rows (with their ``dt``) beside those of some days, as files that do not count until :func:`name_files`
    names them, and read back how many there are: the URIs of each day's new files.

    Raises:
        OSError: Not as many as were written; all days are as they were.
    """
    written = Observation("rows written")
    before = {day: _files(root, day) for day in days}
    # Not by dynamic partition overwrite, see docs/decisions/records.md.
    observed = table.observe(written, F.count(F.lit(1)).alias("rows"))
    observed.write.mode("append").partitionBy("dt").parquet(root)
    files = {day: sorted(f"{_folder(root, day)}/{name}" for name in _files(root, day) - before[day]) for day in before}
    found = rows_in(table.sparkSession, [file for of_day in files.values() for file in of_day])
    if found != written.get["rows"]:
        raise OSError(f"{root}: {written.get['rows']} rows were written, {found} can be read")
    return files


def name_files(root: str, day: date, files: Sequence[str]) -> None:
    """Make these files the day, in one step; without any, the day is gone."""
    if files:
        write_text(_list_of(root, day), "".join(f"{each}\n" for each in files), "text/plain")
    else:
        remove_file(_list_of(root, day))


def remove_former(root: str, days: Iterable[date]) -> None:
    """Remove the files of days that their lists do not name."""
    for day in days:
        remove_others(root, day, named_files(root, day))


def remove_others(root: str, day: date, files: Iterable[str]) -> None:
    """Remove all files of a day but these."""
    stay = {file.rpartition("/")[2] for file in files}
    for name in _files(root, day) - stay:
        remove_file(f"{_folder(root, day)}/{name}")


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
    """Files of a table, with their ``dt`` besides the columns of its schema, whether they are named or not."""
    whole = StructType([*schema.fields, StructField("dt", DateType())])
    if not files:
        return small_table(spark, [], whole)
    return spark.read.schema(whole).option("basePath", root).parquet(*files)


def listed_days(root: str) -> list[date]:
    """The days that have a list, in order."""
    return days_of(listed(_lists(root)))


def days_of(names: Iterable[str]) -> list[date]:
    """The days in whose folders files lie, in order."""
    found = {name.partition("/")[0] for name in names}
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


def _tidy(root: str, days: Sequence[date]) -> None:
    """Remove files that no list names from days (in order) that are replaced, and from those before them."""
    before = [days[0] - timedelta(days=n) for n in range(LOOKED_BACK, 0, -1)] if days else []
    remove_former(root, (*before, *days))


def _counted(root: str, days: Mapping[date, str]) -> dict[date, dict[str, int] | None]:
    """What was counted of each day, in order; None for one that follows from something else than when it was made."""
    found = {}
    for day, digest in sorted(days.items()):
        found[day] = _made_of(root, day, digest)
        if found[day] is not None:
            # What it was before stayed for queries of the last night.
            remove_former(root, [day])
    return found


def _made_of(root: str, day: date, digest: str) -> dict[str, int] | None:
    """What was counted when a day was made of just this; None if it was not, or if its files have changed since."""
    try:
        content = json.loads(read_text(_note_of(root, day)) or "{}")
        same = content["made_of"] == digest and from_json(content["files"]) == _there(root, day)
        return dict(content["counted"]) if same else None
    except (AttributeError, KeyError, TypeError, ValueError):
        return None


def _note(root: str, day: date, digest: str, counted: Mapping[str, int]) -> None:
    """Note what a day was made of, once it is whole."""
    note = {"made_of": digest, "files": _there(root, day), "counted": counted}
    write_text(_note_of(root, day), json.dumps(note), "application/json")


def _there(root: str, day: date) -> dict[str, Stored]:
    """The files that are a day, as they are."""
    there = listed(_folder(root, day))
    return {name: there[name] for each in named_files(root, day) if (name := each.rpartition("/")[2]) in there}


def _note_of(root: str, day: date) -> str:
    return f"{_lists(root)}/dt={day}/{_MADE}"


def _files(root: str, day: date) -> set[str]:
    return set(listed(_folder(root, day)))


def _folder(root: str, day: date) -> str:
    return f"{root}/dt={day}"


def _list_of(root: str, day: date) -> str:
    return f"{_lists(root)}/dt={day}/{_LIST}"


def _lists(root: str) -> str:
    above, _, name = root.rpartition("/")
    return f"{above}/days/{name}"
