"""Raw records to Parquet, day by day: the raw objects of a day are read once, and the day is replaced as a whole.

A day is computed again only if its objects have changed (:mod:`.manifest`), or if what was kept of it is no longer
what was written. What is there stays until what is new has been written beside it and counted; then the day's list
names the new files (:mod:`.days`), and the manifest vouches for them.
"""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from datetime import date
from fnmatch import fnmatchcase

from pyspark.sql import Column, DataFrame, Observation, SparkSession
from pyspark.sql import functions as F

from pushhub.engine.model.record import NO_RECORDS

from ..storage.days import name_files, named_files, read_replaced, remove_others, write_beside
from ..storage.driver import Driver
from ..storage.files import listed, read_text, remove
from ..storage.layout import Layout
from ..storage.schema import CURATED, PARSING, RAW
from .intake import incomplete_objects, rejected_lines, rejection, usable
from .links import is_link, named_objects
from .manifest import Manifest, files_of, read_manifest, write_manifest

_logger = logging.getLogger(__name__)

FILE_BYTES = 256 * 1024 * 1024
"""Size aimed at for a Parquet file (128 MB to 1 GB)."""

PARQUET_PER_GZIP = 1.3
"""Bytes of Parquet that a byte of gzip JSON lines becomes; measured in ``docs/figures/records.md``."""

TASK_BYTES = 1024 * 1024
"""Gzip JSON lines worth a task of their own: a second of parsing."""

UNLISTED = "all objects (no list of them was kept)"
"""What is gone if not even a manifest says so."""

_OURS = "*-[0-9]*-[0-9]*-[0-9]*.json.gz"
"""The names of the hub's own objects: a table, the first and the last change in it, how many records."""

# What a corrupt object loses is counted against its name. Only raw objects are read so: of what the job has written
# itself, all must be there.
_RAW_READER = {"recursiveFileLookup": "true", "ignoreCorruptFiles": "true", "pathGlobFilter": _OURS}


@dataclass(frozen=True, slots=True, kw_only=True)
class DayIntake(Manifest):
    """A day's raw objects, and what became of them.

    Attributes:
        links: Of its manifest's those that are not there and have never been read.
        stale: Whether its objects have to be parsed.
        spoiled: Whether what was kept of the day was no longer what an earlier run had written.
        foreign: Files beside the objects that are none: somebody else's.
        erased: Whether records of erased projects were taken out of its objects.
    """

    day: date
    stale: bool = False
    spoiled: bool = False
    foreign: tuple[str, ...] = ()
    erased: bool = False

    @property
    def objects(self) -> int:
        """How many there are."""
        return len(self.raw)

    @property
    def bytes(self) -> int:
        """Their size."""
        return sum(each.size for each in self.raw.values())

    @property
    def used(self) -> int:
        """Records kept, copies among them."""
        return self.lines - self.rejected

    @property
    def digest(self) -> str:
        """Of the names, sizes and marks of the objects."""
        return hashlib.sha256(repr(sorted(self.raw.items())).encode()).hexdigest()


def compact(spark: SparkSession, records: str, layout: Layout, days: Sequence[date]) -> list[DayIntake]:
    """Compact every day whose raw objects have changed, and empty days that have none any more.

    All that have changed are parsed by one query, by as many tasks as it will make files of each day, so nothing is
    shuffled.

    Args:
        records: Folder that holds ``dt=...``.

    Returns:
        The days that have raw objects, or had some once, in order.
    """
    looked = [each for day in days if (each := _look_at(records, layout, day)) is not None]
    # Unchanged days too: a run that was cut off may not have made everything of them again.
    looked = [replace(each, erased=bool(left_by_erasures(records, each.day))) for each in looked]
    stale = [each for each in looked if each.stale]
    if stale:
        parsed = _parsed(spark, records, layout, [each.day for each in stale], size=sum(each.bytes for each in stale))
        read = {each.day: _read(spark, records, layout, each, parsed) for each in stale}
        for each in read.values():
            replace_day(layout, each.day, parsed.files[each.day], each, erased=each.erased)
        looked = [read.get(each.day, each) for each in looked]
    # What was read once and is gone is known by its day.
    known = {f"dt={each.day}/{_below_day(each.day, name)}" for each in looked for name in each.raw.keys() | each.gone}
    return [replace(each, links={name: by for name, by in each.links.items() if name not in known}) for each in looked]


def read_records(spark: SparkSession, layout: Layout, date_from: date, date_to: date | None = None) -> DataFrame:
    """The kept records of some days; see :func:`.days.read_replaced`."""
    return read_replaced(spark, layout.records, CURATED, date_from, date_to)


def left_by_erasures(records: str, day: date) -> dict[str, int]:
    """How many records the erasure of projects has left in the objects of a day from which it took some out."""
    text = read_text(f"{records}/erased/dt={day}.json")
    return {str(name): int(count) for name, count in json.loads(text).items()} if text else {}


def replace_day(layout: Layout, day: date, files: Sequence[str], manifest: Manifest, *, erased: bool = False) -> None:
    """Make these files the day. The former ones stay for queries that are reading them, until the next run looks at
    the day, unless what they hold was erased.
    """
    folder = f"{layout.records}/dt={day}"
    name_files(layout.records, day, files)
    if erased:
        # Before the manifest, by which `pushhub projects delete` sees that nothing of a project is left here.
        remove_others(layout.records, day, files)
    write_manifest(folder, replace(manifest, files=files_of(folder, files)))


def _look_at(records: str, layout: Layout, day: date) -> DayIntake | None:
    """Compare a day's objects with what is kept of it; None if there are none and were none."""
    there, folder = listed(f"{records}/dt={day}"), f"{layout.records}/dt={day}"
    raw = {name: stored for name, stored in there.items() if fnmatchcase(name.rpartition("/")[2], _OURS)}
    foreign = tuple(sorted(there.keys() - raw.keys()))
    before, named = read_manifest(folder), named_files(layout.records, day)
    vouched = {f"{folder}/{name}": stored for name, stored in before.files.items()} if before else {}
    # Those that the manifest names stay as well: a run that was killed between list and manifest has spoiled nothing.
    remove_others(layout.records, day, [*named, *vouched])
    kept = files_of(folder, [*named, *vouched])
    spoiled = before is not None and any(kept.get(name) != stored for name, stored in before.files.items())
    gone = (before.gone | before.raw.keys()) - raw.keys() if before else frozenset()
    if before is not None and not spoiled and set(named) == vouched.keys() and before.raw == raw:
        as_before = {each.name: getattr(before, each.name) for each in fields(Manifest)}
        return DayIntake(**{**as_before, "gone": gone}, day=day, foreign=foreign)
    if not raw:
        if before is None and not kept:
            return None
        # Nothing vouches for these rows any more, so the day is as its objects are: empty. What is gone is named as
        # long as the day is asked for.
        remove(f"{layout.rejected}/dt={day}")
        intake = DayIntake(day=day, gone=gone or frozenset({UNLISTED}))
        replace_day(layout, day, [], intake)
        return intake
    return DayIntake(day=day, raw=raw, gone=gone, stale=True, spoiled=spoiled, foreign=foreign)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Parsed:
    """What the objects of some days held.

    Attributes:
        rejected: How many lines could not be used.
        others: The ids of pulses and links, by day and object.
        files: Where the records are, by day.
    """

    rejected: int
    others: Mapping[str, Mapping[str, tuple[str, ...]]]
    files: Mapping[date, list[str]]


def _parsed(spark: SparkSession, records: str, layout: Layout, days: Sequence[date], *, size: int) -> _Parsed:
    """Read the objects of some days, of so many bytes, and write them beside what is kept of these."""
    counts = Observation("intake")
    lines = (
        spark.read.schema(RAW)
        .options(**PARSING, **_RAW_READER)
        .json([f"{records}/dt={day}" for day in days])
        # What can be used is filed under the day of its time.
        .withColumns({"source": _source(), "dt": F.to_date("at"), "rejection": rejection(_filed_under())})
    )
    lines = lines.observe(counts, F.count("rejection").alias("rejected"), _no_records())
    tasks = tasks_of(size, spark.sparkContext.defaultParallelism)
    files = write_beside(usable(lines).coalesce(tasks), layout.records, days)
    seen = counts.get
    return _Parsed(rejected=seen["rejected"], others=_by_object(seen["no_records"]), files=files)


def _read(spark: SparkSession, records: str, layout: Layout, intake: DayIntake, parsed: _Parsed) -> DayIntake:
    """What a day's objects held, and what can be read back of it."""
    day = intake.day
    kept, accepted = _read_back(parsed.files[day])
    reasons = _keep_rejected(spark, f"{records}/dt={day}", f"{layout.rejected}/dt={day}", day, some=parsed.rejected > 0)
    rejected = sum(lines for of_object in reasons.values() for lines in of_object.values())
    own = parsed.others.get(f"{day}", {})
    pulses = {source: tuple(each for each in ids if not is_link(each)) for source, ids in own.items()}
    here = {f"dt={day}/{_below_day(day, name)}" for name in intake.raw}
    held = kept | {source: kept.get(source, 0) + len(ids) for source, ids in pulses.items()}
    names = {_below_day(day, name) for name in intake.raw}
    found = sum(kept.values())
    _logger.info("      %s: %d records of %d objects, %d rejected", day, found, intake.objects, rejected)
    return replace(
        intake,
        lines=found + rejected,
        rejected=rejected,
        accepted=tuple(sorted(accepted)),
        incomplete=incomplete_objects(names, held, reasons, left_by_erasures(records, day)),
        pulses={source: ids for source, ids in pulses.items() if ids},
        # Those that name an object of the same day say nothing that its listing does not.
        links={name: by for name, by in named_objects(own).items() if name not in here},
    )


def tasks_of(size: int, cores: int) -> int:
    """How many tasks parse so many bytes, and so how many files a day has at most: as few as make files of
    :data:`FILE_BYTES`, but as many as there are cores if there is enough to do.
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


def _filed_under() -> Column:
    """The day that the object of a line is filed under."""
    # Not `_metadata.file_path`, for which Spark copies each row once more.
    return F.to_date(F.substring_index(F.substring_index(F.input_file_name(), "/dt=", -1), "/", 1))


def _source() -> Column:
    """The key of a line's object below its day: ``hour=05/messages-...json.gz``."""
    return F.substring_index(F.input_file_name(), "/", -2)


def _below_day(day: date, name: str) -> str:
    """An object's name as :func:`_source` makes it from its path."""
    return "/".join(f"dt={day}/{name}".rsplit("/", 2)[-2:])


def _keep_rejected(spark: SparkSession, path: str, kept: str, day: date, *, some: bool) -> dict[str, dict[str, int]]:
    """Keep the lines of a day that could not be used with their reasons, and take away what only an earlier run
    rejected: how many there are, by object and reason.

    Reads the day again, which only days with such lines cost, and those that were read with them.
    """
    remove(kept)
    counts: dict[str, dict[str, int]] = {}
    if some:
        texts = spark.read.options(**_RAW_READER).text(path)
        rejected = rejected_lines(texts.withColumn("source", _source()), day)
        for source, reason, count in rejected.groupBy("source", "reason").count().collect():
            counts.setdefault(source, {})[reason] = count
        if counts:
            rejected.coalesce(1).write.mode("overwrite").json(kept)
    return counts


def _read_back(files: Sequence[str]) -> tuple[dict[str, int], set[date]]:
    """What files of a day hold: how many records of each object, and on which days the messages that these tell of were
    accepted.
    """
    with Driver() as driver:
        driver.read("kept", CURATED, files)
        accepted = "list(DISTINCT accepted_at::DATE)"
        rows = driver.rows(f"SELECT source, count(*) AS records, {accepted} AS accepted FROM kept GROUP BY source")
    return {row["source"]: row["records"] for row in rows}, {day for row in rows for day in row["accepted"]}
