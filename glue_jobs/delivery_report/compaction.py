"""Raw records to Parquet, day by day: the raw objects of a day are read once, and the day is replaced as a whole.

A day is computed again only if its objects have changed (:mod:`.manifest`), or if what was kept of it is no longer
what was written. What is there stays until what is new has been written beside it and counted; then the day's list
names the new files (:mod:`.days`), and the manifest vouches for them.
"""

from __future__ import annotations

import hashlib
import json
import logging
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from typing import Any

from pyspark.sql import Column, DataFrame, GroupedData, Observation, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StringType, StructField, StructType

from pushhub.engine.model.record import NO_RECORDS

from .days import name_files, named_files, read_files, read_replaced, remove_others, write_beside
from .files import Stored, as_json, listed, read_text, remove
from .intake import IncompleteObject, incomplete_objects, rejected_lines, rejection, usable
from .links import is_link, named_objects
from .manifest import Manifest, files_of, read_manifest, write_manifest
from .schema import CORRUPT, CURATED, RAW
from .storage import Layout

_logger = logging.getLogger(__name__)

FILE_BYTES = 256 * 1024 * 1024
"""Size aimed at for a Parquet file (128 MB to 1 GB)."""

PARQUET_PER_GZIP = 1.3
"""Bytes of Parquet that a byte of gzip JSON lines becomes; measured in ``docs/figures/records.md``."""

TASK_BYTES = 1024 * 1024
"""Gzip JSON lines worth a task of their own: a second of parsing."""

UNLISTED = "all objects (no list of them was kept)"
"""What is gone if not even a manifest says so."""

REJECTED = StructType([StructField(name, StringType()) for name in ("source", "reason", "line")])

_OURS = ".json.gz"
"""How the names of the hub's own objects end."""

# What a corrupt object loses is counted against its name. Only raw objects are read so: of what the job has written
# itself, all must be there.
_RAW_READER = {"recursiveFileLookup": "true", "ignoreCorruptFiles": "true", "pathGlobFilter": f"*{_OURS}"}


@dataclass(frozen=True, slots=True, kw_only=True)
class DayIntake:
    """The results for one day's raw objects.

    Attributes:
        day: The day.
        objects: Raw objects found.
        bytes: Their size.
        lines: Lines read.
        used: Records kept.
        rejected: Lines that could not be used.
        incomplete: Objects of which not every record could be used.
        duplicates: Objects that share records: ``sources`` and ``records``.
        gone: Objects that an earlier run read and that are no longer there.
        spoiled: Whether what was kept of the day was no longer what an earlier run had written.
        unchanged: Whether what an earlier run had kept was taken as it is.
        pulses: The pulses in the objects, by object: their ids.
        links: Objects that others name as written before them, by the hours they lie in, and that are in none of
            the days that were read: the names with that of an object that names them.
        digest: Of the names, sizes and marks of the objects.
        foreign: Files beside the objects that are none: somebody else's.
        erased: Whether records of erased projects were taken out of its objects.
    """

    day: date
    objects: int = 0
    bytes: int = 0
    lines: int = 0
    used: int = 0
    rejected: int = 0
    incomplete: tuple[IncompleteObject, ...] = ()
    duplicates: tuple[Mapping[str, Any], ...] = ()
    gone: frozenset[str] = frozenset()
    spoiled: bool = False
    unchanged: bool = False
    pulses: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    links: Mapping[str, str] = field(default_factory=dict)
    digest: str = ""
    foreign: tuple[str, ...] = ()
    erased: bool = False


def compact(spark: SparkSession, records: str, layout: Layout, days: Sequence[date]) -> list[DayIntake]:
    """Compact every day whose raw objects have changed, and empty days that have none any more.

    All that have changed are parsed by one query, by as many tasks as it will make files of each day, so nothing is
    shuffled.

    Args:
        records: Folder that holds ``dt=...``.

    Returns:
        The days that have raw objects, or had some once, in order.

    Raises:
        OSError: What was written of a day is not what can be read back.
    """
    looked = [each for day in days if (each := _look_at(f"{records}/dt={day}", layout, day)) is not None]
    changed = _parsed(spark, layout, [each for each in looked if each.changed])
    done = [(changed[each.intake.day][0] if each.changed else each.intake, each.raw) for each in looked]
    there = {f"dt={intake.day}/{_below_day(intake.day, name)}" for intake, raw in done for name in raw}

    def finished(intake: DayIntake, raw: Mapping[str, Stored]) -> DayIntake:
        unmet = {name: by for name, by in intake.links.items() if name not in there}
        # Unchanged days too: a run that was cut off may not have made everything of them again.
        erased = bool(left_by_erasures(records, intake.day))
        return _digested(replace(intake, links=unmet, erased=erased), raw)

    made = {day: files for day, (_, files) in changed.items()}
    if not made:
        return [finished(intake, raw) for intake, raw in done]
    written = read_files(spark, layout.records, CURATED, [file for files in made.values() for file in files])
    used = _counted(written.groupBy("dt", "source"))
    whole_days = []
    for intake, raw in done:
        if intake.day not in made:
            whole_days.append(finished(intake, raw))
            continue
        counted = used.get(intake.day, {})
        if sum(counted.values()) != intake.used:
            raise OSError(
                f"{layout.records}/dt={intake.day}: {intake.used} records were written, {sum(counted.values())} "
                f"can be read"
            )
        rejected = _reasons(spark, f"{layout.rejected}/dt={intake.day}") if intake.rejected else {}
        names = {_below_day(intake.day, name) for name in raw}
        held = counted | {each: counted.get(each, 0) + len(ids) for each, ids in intake.pulses.items()}
        left = left_by_erasures(records, intake.day)
        whole = replace(intake, incomplete=incomplete_objects(names, held, rejected, left))
        _replace_day(
            layout,
            intake.day,
            made[intake.day],
            Manifest(
                rows=whole.used,
                raw=raw,
                gone=whole.gone,
                lines=whole.lines,
                rejected=whole.rejected,
                incomplete=whole.incomplete,
                pulses=whole.pulses,
                links=whole.links,
            ),
            erased=bool(left),
        )
        whole_days.append(finished(whole, raw))
    return whole_days


def read_records(spark: SparkSession, layout: Layout, date_from: date, date_to: date | None = None) -> DataFrame:
    """The kept records of some days; see :func:`.days.read_replaced`."""
    return read_replaced(spark, layout.records, CURATED, date_from, date_to)


def newest_day(table: DataFrame) -> date | None:
    """The last day of a table kept by day, from the names of its files; None when it has none."""
    days = (re.search(r"/dt=(\d{4}-\d\d-\d\d)/", file) for file in table.inputFiles())
    return max((date.fromisoformat(each[1]) for each in days if each), default=None)


def left_by_erasures(records: str, day: date) -> dict[str, int]:
    """How many records the erasure of projects has left in the objects of a day from which it took some out.

    Args:
        records: Folder that holds ``dt=...``.
    """
    text = read_text(f"{records}/erased/dt={day}.json")
    return {str(name): int(count) for name, count in json.loads(text).items()} if text else {}


def replace_without_duplicates(
    records: DataFrame, layout: Layout, day: date, manifest: Manifest, duplicates: Sequence[Mapping[str, Any]]
) -> tuple[Mapping[str, Any], ...]:
    """Replace a kept day by records that hold each once, and note in its manifest which objects shared some.

    Args:
        records: Of the day, without ``dt``.
        manifest: As it was before.
        duplicates: ``sources`` and ``records``.

    Returns:
        All that is noted of shared records.

    Raises:
        OSError: What was written of the day is not what can be read back.
    """
    counts = Observation(f"once {day}")
    counting = records.observe(counts, F.count(F.lit(1)).alias("rows")).withColumn("dt", F.lit(day))
    files = write_beside(counting, layout.records, [day])[day]
    rows = counts.get["rows"]
    found = read_files(records.sparkSession, layout.records, CURATED, files).count()
    if found != rows:
        raise OSError(f"{layout.records}/dt={day}: {rows} records were written, {found} can be read")
    noted = (*manifest.duplicates, *duplicates)
    _replace_day(layout, day, files, replace(manifest, rows=rows, duplicates=noted))
    return noted


def _replace_day(layout: Layout, day: date, files: Sequence[str], manifest: Manifest, *, erased: bool = False) -> None:
    """Make these files the day. The former ones stay for queries that are reading them, until the next run looks at
    the day, unless what they hold was erased.
    """
    folder = f"{layout.records}/dt={day}"
    name_files(layout.records, day, files)
    if erased:
        # Before the manifest, by which `pushhub projects delete` sees that nothing of a project is left here.
        remove_others(layout.records, day, files)
    write_manifest(folder, replace(manifest, files=files_of(folder, files)))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Looked:
    """A day before anything is done about it.

    Attributes:
        path: Where its objects are.
        raw: Its objects.
        intake: What is known of it.
        changed: Whether its objects have to be parsed.
    """

    path: str
    raw: dict[str, Stored]
    intake: DayIntake
    changed: bool = False


def _look_at(path: str, layout: Layout, day: date) -> _Looked | None:
    """Compare a day's objects with what is kept of it; None if there are none and were none."""
    there, folder = listed(path), f"{layout.records}/dt={day}"
    raw = {name: stored for name, stored in there.items() if name.endswith(_OURS)}
    foreign = tuple(sorted(there.keys() - raw.keys()))
    before, named = read_manifest(folder), named_files(layout.records, day)
    vouched = {f"{folder}/{name}": stored for name, stored in before.files.items()} if before else {}
    # Those that the manifest names stay as well: a run that was killed between list and manifest has spoiled nothing.
    remove_others(layout.records, day, [*named, *vouched])
    kept = files_of(folder, [*named, *vouched])
    spoiled = before is not None and any(kept.get(name) != stored for name, stored in before.files.items())
    gone = (before.gone | before.raw.keys()) - raw.keys() if before else frozenset()
    if before is not None and not spoiled and set(named) == vouched.keys() and before.raw == raw:
        return _Looked(path=path, raw=raw, intake=replace(_as_noted(day, before, gone), foreign=foreign))
    if not raw:
        if before is None and not kept:
            return None
        # Nothing vouches for these rows any more, so the day is as its objects are: empty. What is gone is named as
        # long as the day is asked for.
        remove(f"{layout.rejected}/dt={day}")
        gone = gone or frozenset({UNLISTED})
        _replace_day(layout, day, [], Manifest(gone=gone))
        return _Looked(path=path, raw=raw, intake=DayIntake(day=day, gone=gone))
    size = sum(each.size for each in raw.values())
    intake = DayIntake(day=day, objects=len(raw), bytes=size, gone=gone, spoiled=spoiled, foreign=foreign)
    return _Looked(path=path, raw=raw, intake=intake, changed=True)


def _as_noted(day: date, manifest: Manifest, gone: frozenset[str]) -> DayIntake:
    """An unchanged day."""
    return DayIntake(
        day=day,
        objects=len(manifest.raw),
        bytes=sum(each.size for each in manifest.raw.values()),
        lines=manifest.lines,
        used=manifest.lines - manifest.rejected,
        rejected=manifest.rejected,
        incomplete=manifest.incomplete,
        duplicates=manifest.duplicates,
        gone=gone,
        unchanged=True,
        pulses=manifest.pulses,
        links=manifest.links,
    )


def _parsed(spark: SparkSession, layout: Layout, days: Sequence[_Looked]) -> dict[date, tuple[DayIntake, list[str]]]:
    """Read the objects of some days, and write them beside what is kept of these: what was read, and the files."""
    if not days:
        return {}
    counts = Observation("intake")
    file = F.col("_metadata.file_path")
    lines = (
        spark.read.schema(RAW)
        .options(columnNameOfCorruptRecord=CORRUPT, **_RAW_READER)
        .json([each.path for each in days])
        .withColumns({"source": _source(file), "dt": _filed_under(file), "rejection": rejection(_filed_under(file))})
    )
    of_days = [F.col("dt") == F.lit(each.intake.day) for each in days]
    lines = lines.observe(
        counts,
        *(F.count(F.when(here, 1)).alias(f"lines_{number}") for number, here in enumerate(of_days)),
        *(F.count(F.when(here, F.col("rejection"))).alias(f"rejected_{number}") for number, here in enumerate(of_days)),
        _no_records(),
    )
    tasks = tasks_of(sum(each.intake.bytes for each in days), spark.sparkContext.defaultParallelism)
    written = write_beside(usable(lines).coalesce(tasks), layout.records, [each.intake.day for each in days])
    seen, found = counts.get, _by_object(counts.get["no_records"])
    parsed = {}
    for number, each in enumerate(days):
        day, rejected = each.intake.day, seen[f"rejected_{number}"]
        _keep_rejected(spark, each.path, f"{layout.rejected}/dt={day}", day, any_now=rejected > 0)
        own = found.get(f"{day}", {})
        of_streams = {source: tuple(one for one in ids if not is_link(one)) for source, ids in own.items()}
        read = seen[f"lines_{number}"] - sum(map(len, own.values()))
        here = {f"dt={day}/{_below_day(day, name)}" for name in each.raw}
        used = read - rejected
        _logger.info("      %s: %d records of %d objects, %d rejected", day, used, len(each.raw), rejected)
        intake = replace(
            each.intake,
            lines=read,
            used=used,
            rejected=rejected,
            pulses={source: ids for source, ids in of_streams.items() if ids},
            # Those that name an object of the same day say nothing that its listing does not.
            links={name: by for name, by in named_objects(own).items() if name not in here},
        )
        parsed[day] = intake, written[day]
    return parsed


def tasks_of(size: int, cores: int) -> int:
    """How many tasks parse what has changed, and so how many files a day has at most: as few as make files of
    :data:`FILE_BYTES`, but as many as there are cores if there is enough to do.

    Args:
        size: Bytes of the objects.
    """
    return max(1, round(size * PARQUET_PER_GZIP / FILE_BYTES), min(cores, size // TASK_BYTES))


def _no_records() -> Column:
    """The pulses and links, gathered while lines pass by: one an object or less, so a text holds them."""
    usable_line = F.col("kind").isin(*NO_RECORDS) & F.col("rejection").isNull()
    named = F.when(usable_line, F.concat_ws("\t", "dt", "source", "record_id"))
    return F.array_join(F.collect_list(named), "\n").alias("no_records")


def _by_object(lines: str) -> dict[str, dict[str, tuple[str, ...]]]:
    """By day and object."""
    found: dict[str, dict[str, list[str]]] = {}
    for line in filter(None, lines.split("\n")):
        day, source, record_id = line.split("\t", 2)
        found.setdefault(day, {}).setdefault(source, []).append(record_id)
    return {
        day: {source: tuple(sorted(ids)) for source, ids in sorted(objects.items())} for day, objects in found.items()
    }


def _filed_under(path: Column) -> Column:
    """The day an object is filed under."""
    return F.to_date(F.substring_index(F.substring_index(path, "/dt=", -1), "/", 1))


def _source(path: Column) -> Column:
    """An object's key below its day: ``hour=05/messages-...json.gz``."""
    return F.substring_index(path, "/", -2)


def _digested(intake: DayIntake, raw: Mapping[str, Stored]) -> DayIntake:
    return replace(intake, digest=hashlib.sha256(repr(as_json(raw)).encode()).hexdigest())


def _below_day(day: date, name: str) -> str:
    """An object's name as :func:`_source` makes it from its path."""
    return "/".join(f"dt={day}/{name}".rsplit("/", 2)[-2:])


def _keep_rejected(spark: SparkSession, path: str, kept: str, day: date, *, any_now: bool) -> None:
    """Keep the lines that could not be used with their reasons, and take away what only an earlier run rejected.

    Reads the day again, which only a day with such lines costs.
    """
    remove(kept)
    if any_now:
        texts = spark.read.options(**_RAW_READER).text(path)
        found = texts.withColumn("source", _source(F.col("_metadata.file_path")))
        rejected_lines(found, day).coalesce(1).write.mode("overwrite").json(kept)


def _reasons(spark: SparkSession, kept: str) -> dict[str, dict[str, int]]:
    """Rejected lines by object and reason."""
    return _counted(spark.read.schema(REJECTED).json(kept).groupBy("source", "reason"))


def _counted(grouped: GroupedData) -> dict[Any, dict[str, int]]:
    """Rows of two-part groups, by the first part and the second."""
    counts: dict[Any, dict[str, int]] = {}
    for first, second, count in grouped.count().collect():
        counts.setdefault(first, {})[second] = count
    return counts
