"""What is carried over from night to night: the records of deliveries that have not ended,
so that none escapes by growing old.

A state describes the end of one day: all records, up to that day, of the deliveries that were open then, of those that
ended in its last :data:`LINGER`, and of those that a finding names. It follows from the previous state and the days
between, and from nothing else except those names. A run starts with the newest state before its first day, and reads on
from there.

``curated/open/{day}.json`` is written last: without it a state does not exist. docs/decisions/records.md.
"""

from __future__ import annotations

import hashlib
import json
import logging
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from datetime import date, datetime, timedelta
from typing import Any, Final
from uuid import uuid4

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from ..records.compaction import read_records
from ..run.arguments import Arguments, BadInput, midnight
from ..storage.days import rows_in
from ..storage.files import Stored, as_text, from_json, listed, read_text, remove, remove_file, write_text
from ..storage.layout import Layout, small_table
from ..storage.schema import CURATED, SETTLED, struct
from .deliveries import IDENTITY

_logger = logging.getLogger(__name__)

LINGER: Final = timedelta(hours=2)
"""How long a delivery that has ended stays in the state: the answer of an attempt may come after its
acknowledgement.
"""

UNFINISHED: Final = timedelta(hours=24)
"""A day is taken into a state once it is over for so long: a stream holds its changes back for 24 hours at most."""

KEPT: Final = 14
"""States kept, so that a report may begin on an earlier day."""

_VERSION: Final = 1
_WITH_DAY: Final = StructType([*CURATED.fields, *struct("date dt").fields])


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """What is known of open deliveries at the end of a day.

    Attributes:
        since: Deliveries accepted from this day on are known.
        fingerprint: Digest of all its inputs.
        lost: Days on which an earlier state was lost, and with it the deliveries that were open then.
        rows: Records in it.
        folder: Where its files are, below that of all states.
    """

    day: date
    since: date
    fingerprint: str
    lost: tuple[date, ...] = ()
    rows: int = 0
    files: Mapping[str, Stored]
    folder: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Carried:
    """What a run starts from.

    Attributes:
        state: The newest state before the report's first day, None when there is none.
        since: Deliveries accepted from this day on are judged.
        lost: Days at which a state was lost.
        spoiled: States that could not be used.
        lookback: Whether the report begins before all that is kept, so that nothing may follow from it.
    """

    state: State | None
    since: date
    lost: tuple[date, ...] = ()
    spoiled: tuple[date, ...] = ()
    lookback: bool = False

    def first(self, date_from: date) -> date:
        """The first day whose records are to be read for a report."""
        return self.state.day + timedelta(days=1) if self.state else date_from


def carried_to(layout: Layout, date_from: date) -> Carried:
    """What is carried over to a report."""
    days = _days(layout)
    spoiled: list[date] = []
    readable: list[State] = []
    for day in reversed(days):
        state = _read(layout, day)
        if state is None:
            spoiled.append(day)
            continue
        readable.append(state)
        if day < date_from:
            return Carried(state=state, since=state.since, lost=state.lost, spoiled=tuple(spoiled))
    if readable and min(each.since for each in readable) < date_from:
        return Carried(state=None, since=date_from, spoiled=tuple(spoiled), lookback=True)
    ran_before = bool(spoiled) or _was_kept_before(layout, date_from)
    lost = (date_from,) if ran_before and not readable else ()
    return Carried(state=None, since=date_from, lost=lost, spoiled=tuple(spoiled))


def state_records(spark: SparkSession, layout: Layout, state: State) -> DataFrame:
    """The records of a state, with the day (``dt``) of each."""
    if not state.files:
        return small_table(spark, [], _WITH_DAY)
    return spark.read.schema(_WITH_DAY).parquet(f"{layout.open}/{state.folder}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Inputs:
    """What a run's proof is made from.

    Attributes:
        client: Makes the DynamoDB client that tables are read with.
        by_hand: The deliveries that people have settled.
        last: The last day that has records, if it is later than what was asked for.
    """

    spark: SparkSession
    arguments: Arguments
    layout: Layout
    client: Callable[[], Any]
    start: Carried
    by_hand: Sequence[Mapping[str, str]]
    last: date

    @property
    def first(self) -> date:
        """The first day whose records are read."""
        return self.start.first(self.arguments.date_from)

    @property
    def since(self) -> date:
        """Deliveries accepted from this day on are judged."""
        return min(self.start.since, self.first)

    @property
    def as_of(self) -> datetime:
        """When deliveries are judged: at the end of what was asked for, whether records came until then or not; later
        records that are there already may say more.
        """
        return min(self.arguments.now, midnight(self.last + timedelta(days=1)))

    @property
    def until(self) -> datetime:
        """Records of what happened on the report's days before this time should be there."""
        return min(self.as_of, self.arguments.until) - self.arguments.grace

    @property
    def settled(self) -> Column:
        """Whether a person has settled a delivery."""
        return is_settled_by_hand(self.by_hand)

    def history(self) -> DataFrame:
        """All records that are judged by: those of open deliveries, and of every day since."""
        records, state = read_records(self.spark, self.layout, self.first), self.start.state
        return records if state is None else records.unionByName(state_records(self.spark, self.layout, state))


def advance(
    inputs: Inputs, lives: Callable[[date], DataFrame], raw: Mapping[date, str], named: DataFrame | None
) -> None:
    """Write the next state, if it is not there already and this run may make one: up to the report's first day, or as
    far as days are surely whole.

    Args:
        lives: Gives the deliveries accepted up to a day (:mod:`.lives`).
        raw: A digest of the objects of each day since the state before.
        named: ``project``, ``queue``, ``delivery_id`` of what a finding names; None if none does.
    """
    layout, carried, first = inputs.layout, inputs.start, inputs.first
    if carried.lookback:
        return
    whole = (inputs.as_of - UNFINISHED).date() - timedelta(days=1)
    day = max(min(inputs.arguments.date_from, whole), first - timedelta(days=1))
    before = carried.state.fingerprint if carried.state else f"{carried.since}"
    fingerprint = _chained(before, [raw.get(first + timedelta(days=n), "") for n in range((day - first).days + 1)])
    known = _read(layout, day)
    if known is not None and (known.fingerprint, known.lost) == (fingerprint, carried.lost):
        return
    if carried.state is None and day < first:
        # It covers no day, so there is nothing that Spark could find.
        _remove(layout, [day])
        _keep(layout, day, fingerprint, carried, rows=0, files={})
        return
    until = inputs.history().where(
        (F.col("dt") <= F.lit(day)) & (F.col("accepted_at") >= F.lit(midnight(carried.since)))
    )
    accepted, end = lives(day), midnight(day + timedelta(days=1))
    # What has ended since was open then, so it does not matter that lives go on after the day.
    open_still = ((F.col("owed") > 0) | (F.col("acceptances") == 0)) & ~F.col("state").isin(*SETTLED)
    ended_later = F.col("settled_at") >= F.lit(end - LINGER)
    carried_on = accepted.where(open_still | ended_later)
    if named is not None:
        carried_on = carried_on.unionByName(accepted.join(named, ["project", "queue", "delivery_id"], "left_semi"))
    keep = carried_on.where(~inputs.settled).select(*IDENTITY).distinct()
    folder = f"{layout.open}/{day}"
    _remove(layout, [day])
    _records_of(until, keep).select(*CURATED.fieldNames(), "dt").write.mode("overwrite").parquet(folder)
    files = listed(folder, digests=True)
    rows = rows_in(inputs.spark, [f"{folder}/{name}" for name in files])
    _keep(layout, day, fingerprint, carried, rows=rows, files=files)


def _keep(
    layout: Layout, day: date, fingerprint: str, carried: Carried, *, rows: int, files: Mapping[str, Stored]
) -> None:
    """Note a state, whose files are there, and take away those that it leaves behind."""
    state = State(
        day=day,
        since=carried.since,
        fingerprint=fingerprint,
        lost=carried.lost,
        rows=rows,
        files=files,
        folder=f"{day}",
    )
    _write(layout, state)
    # Later states followed from other records than these.
    later = [each for each in _days(layout) if each > day]
    _remove(layout, [*later, *_days(layout)[: -KEPT - len(later)]])
    _logger.info("      %d records of open deliveries carried over from %s", state.rows, day)


def without_rows(spark: SparkSession, layout: Layout, unwanted: Column) -> None:
    """Take unwanted rows out of all states. What follows from a state does not change by it.

    A run that is killed leaves each state as it was or as it is to be.
    """
    for day in _days(layout):
        state = _read(layout, day)
        if state is None or not state.files:
            continue
        rows = spark.read.schema(_WITH_DAY).parquet(f"{layout.open}/{state.folder}")
        left = rows.where(~unwanted)
        count = left.count()
        if count < state.rows:
            name = f"{day}.{uuid4().hex}"
            folder = f"{layout.open}/{name}"
            left.write.mode("overwrite").parquet(folder)
            files = listed(folder, digests=True)
            _write(layout, replace(state, rows=count, files=files, folder=name))
    used = {state.folder for day in _days(layout) if (state := _read(layout, day))}
    for folder in {name.partition("/")[0] for name in listed(layout.open) if "/" in name} - used:
        remove(f"{layout.open}/{folder}")


def settled_by_hand(layout: Layout) -> tuple[list[dict[str, str]], list[date]]:
    """What people have settled, from the JSON lines below ``settled/``: deliveries (``project``, ``queue``,
    ``delivery_id``) and lost states (``lost``).

    Raises:
        BadInput: A line is neither.
    """
    deliveries: list[dict[str, str]] = []
    lost: list[date] = []
    for name in sorted(listed(layout.settled)):
        for number, line in enumerate((read_text(f"{layout.settled}/{name}") or "").split("\n"), start=1):
            if not line.strip():
                continue
            try:
                entry: dict[str, Any] = json.loads(line)
                if "lost" in entry:
                    lost.append(date.fromisoformat(entry["lost"]))
                else:
                    deliveries.append({each: str(entry[each]) for each in ("project", "queue", "delivery_id")})
            except (KeyError, TypeError, ValueError) as error:
                raise BadInput(f"{layout.settled}/{name}, line {number}: {error!r}") from error
    return deliveries, lost


def is_settled_by_hand(deliveries: Sequence[Mapping[str, str]]) -> Column:
    """Whether a row's delivery is one of these."""
    if not deliveries:
        return F.lit(False)
    parts = ("project", "queue", "delivery_id")
    keys = ["\0".join(each[part] for part in parts) for each in deliveries]
    return F.coalesce(F.concat_ws("\0", *parts).isin(*keys), F.lit(False))


def _records_of(records: DataFrame, keep: DataFrame) -> DataFrame:
    """The records of some deliveries; an acceptance with those of them that it owes, and no others."""
    message = ("project", "queue_uid", "message_id")
    accepted = F.col("kind") == "accepted"
    events = records.where(~accepted).join(keep, list(IDENTITY), "left_semi")
    whose = keep.groupBy(*message).agg(F.collect_set("delivery_id").alias("kept"))
    acceptances = records.where(accepted).join(whose, list(message))
    # A message may have several: of what was owed later, and of its stays in a pull queue.
    trimmed = acceptances.withColumn("owed", F.array_intersect("owed", "kept")).drop("kept")
    return events.unionByName(trimmed.where(F.size("owed") > 0))


def _chained(fingerprint: str, raw: Sequence[str]) -> str:
    for each in raw:
        fingerprint = hashlib.sha256(f"{fingerprint}/{each}".encode()).hexdigest()
    return fingerprint


def _days(layout: Layout) -> list[date]:
    """The days that have a state, in order."""
    found = (re.fullmatch(r"(\d{4}-\d\d-\d\d)\.json", name) for name in listed(layout.open))
    return sorted(date.fromisoformat(each[1]) for each in found if each)


def _remove(layout: Layout, days: Sequence[date]) -> None:
    """Remove states, and then what they held."""
    for each in days:
        remove_file(f"{layout.open}/{each}.json")
    names = {f"{each}" for each in days}
    for folder in {name.partition("/")[0] for name in listed(layout.open) if "/" in name}:
        if folder.partition(".")[0] in names:
            remove(f"{layout.open}/{folder}")


def _was_kept_before(layout: Layout, day: date) -> bool:
    """Whether an earlier run has kept days before this one, with their manifests."""
    days = {each.split("/", 1)[0].removeprefix("dt=") for each in listed(layout.records)}
    return any(each < day.isoformat() and read_text(f"{layout.records}/dt={each}/_manifest.json") for each in days)


def _read(layout: Layout, day: date) -> State | None:
    """A state; None if there is none or if it has changed since it was written."""
    text = read_text(f"{layout.open}/{day}.json")
    if text is None:
        return None
    try:
        entry = json.loads(text)
        state = State(
            day=date.fromisoformat(entry["day"]),
            since=date.fromisoformat(entry["since"]),
            fingerprint=str(entry["fingerprint"]),
            lost=tuple(date.fromisoformat(each) for each in entry["lost"]),
            rows=int(entry["rows"]),
            files=from_json(entry["files"]),
            folder=str(entry["folder"]),
        )
    except (AttributeError, KeyError, TypeError, ValueError):
        return None
    good = entry["version"] == _VERSION and state.day == day
    return state if good and listed(f"{layout.open}/{state.folder}", digests=True) == state.files else None


def _write(layout: Layout, state: State) -> None:
    entry = {each.name: getattr(state, each.name) for each in fields(State)}
    text = json.dumps({"version": _VERSION, **entry}, default=as_text)
    write_text(f"{layout.open}/{state.day}.json", text, "application/json")
