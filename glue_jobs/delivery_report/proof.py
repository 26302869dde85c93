"""From raw records to the proof: compacted days, one row per delivery, and everything that is wrong by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from functools import reduce
from typing import Any
from uuid import uuid4

from pyspark.sql import Column, DataFrame, Observation, SparkSession
from pyspark.sql import functions as F

from .arguments import Arguments, BadInput
from .carried import Carried, advance, carried_to, is_settled_by_hand, settled_by_hand, state_records
from .compaction import DayIntake, compact, newest_day, read_records, replace_without_duplicates
from .conservation import (
    delivery_findings,
    expiry_findings,
    is_expired_early,
    is_ordered,
    is_overdue,
    link_findings,
    object_findings,
    order_findings,
    overdue_findings,
    pulse_findings,
    state_findings,
    with_standing,
    without_settled,
)
from .days import empty_days, listed_days, named_files, read_files, renew_days, replace_days
from .deliveries import DELIVERY, KEPT_DELIVERY, delivery_rows, is_repeated, is_suspicious, repeated, suspicious
from .duplicates import duplicated_objects, duplicated_records, without_duplicates
from .erasures import take_out_erased
from .files import listed
from .findings import FINDING
from .ledger import Comparison, compared
from .links import missing_objects
from .made import made_of, note, noted
from .manifest import read_manifest
from .progress import Steps
from .pulled_ends import LostEnds, lost_ends
from .pulses import gaps, recorded_pulses
from .schema import CURATED, SETTLED
from .sightings import Sightings, is_open, look_up
from .storage import MADE, Layout, kept, small_table


@dataclass(frozen=True, slots=True, kw_only=True)
class Proof:
    """What is known after the first half of a run.

    Attributes:
        records: Compacted records from the first day of the report on.
        deliveries: :func:`.conservation.with_standing` of the deliveries accepted on the report's days.
        carried: The same of deliveries accepted before, and open when the report's days began.
        findings: Everything that is wrong.
        intakes: What became of the raw objects of the report's days.
        missed: Days before the report's that no run has kept, as nights were missed: from the last that was carried on.
        erased: Days from whose objects records of erased projects were taken.
        as_of: When deliveries were judged.
        since: Deliveries accepted from this day on were judged.
        settled: What people have settled.
        looked_up: Whether the standing of deliveries follows from the tables, too.
        set_aside: Stream records that the records function could not turn into delivery records.
    """

    records: DataFrame
    deliveries: DataFrame
    carried: DataFrame
    findings: DataFrame
    intakes: Sequence[DayIntake]
    missed: Sequence[date]
    erased: Sequence[date]
    as_of: datetime
    since: date
    settled: Sequence[Mapping[str, str]]
    looked_up: bool
    set_aside: int


def _dynamodb() -> Any:
    import boto3  # noqa: PLC0415 (needed only to compare with tables)

    return boto3.client("dynamodb")


def prove(
    spark: SparkSession,
    arguments: Arguments,
    layout: Layout,
    steps: Steps,
    *,
    client: Callable[[], Any] = _dynamodb,
) -> Proof:
    """Compact the report's days, rebuild the deliveries accepted on them and those carried over,
    and hold them against what was owed.

    Args:
        client: Makes the DynamoDB client that tables are read with.

    Raises:
        BadInput: There are no records on these days, neither raw nor compacted; or what a person has settled cannot be
            read.
    """
    take_out_erased(spark, arguments.input, layout)
    start = carried_to(layout, arguments.date_from)
    by_hand, lost_settled = settled_by_hand(layout)
    settled = is_settled_by_hand(by_hand)
    first = start.first(arguments.date_from)
    with steps("Compacting raw records"):
        days = [first + timedelta(days=n) for n in range((arguments.date_to - first).days + 1)]
        intakes = compact(spark, arguments.input, layout, days)
        erased = [each.day for each in intakes if each.erased]
    history = _history(spark, layout, start, first)
    last_day = newest_day(read_records(spark, layout, first))
    if last_day is None and not intakes and start.state is None:
        raise BadInput(
            f"no records under {arguments.input} from {arguments.date_from} to {arguments.date_to}: "
            f"looked for {arguments.input}/dt={arguments.date_from} and the days after it"
        )
    # Judged up to the end of what was asked for, whether records came until then or not; later records that are there
    # already may say more.
    last = max(arguments.date_to, last_day or arguments.date_to)
    as_of = min(arguments.now, _midnight(last + timedelta(days=1)))
    run = _Run(
        spark=spark,
        arguments=arguments,
        layout=layout,
        steps=steps,
        client=client,
        history=history,
        first=first,
        since=start.since,
        as_of=as_of,
    )
    with steps("Rebuilding deliveries"):
        rebuilt = run.rebuilt()
        if rebuilt.counted["repeated"] or rebuilt.counted["repeated_elsewhere"]:
            rows = delivery_rows(history) if rebuilt.counted["repeated_elsewhere"] else rebuilt.all
            intakes, changed = _without_duplicates(spark, read_records(spark, layout, first), rows, layout, intakes)
            if changed:
                run = replace(run, history=_history(spark, layout, start, first))
                rebuilt = run.rebuilt()
    tables = run.in_tables(rebuilt)
    sighted = tables.sighted
    with steps("Proving conservation"):
        judged = with_standing(rebuilt.all, as_of, arguments.grace, settled, sighted)
        records = read_records(spark, layout, arguments.date_from)
        told = [
            *object_findings(intakes),
            *state_findings(start.lost, start.spoiled, lost_settled),
            *run.unheard(intakes, tables.comparison),
        ]
        found = run.found(told, rebuilt, tables, judged)
        findings, wrong = small_table(spark, [], FINDING), False
        if found is not None:
            counted = Observation("findings")
            # Few rows of much work: gathered by a shuffle of their own, so that the work before it is not one task's.
            gathered = without_settled(found, settled).repartition(1).observe(counted, F.count(F.lit(1)).alias("rows"))
            some = kept(gathered, f"{layout.work}/findings")
            if wrong := counted.get["rows"] > 0:
                findings = some
        set_aside = len(listed(f"{arguments.input}/quarantine"))
    deliveries, carried = (
        with_standing(each, as_of, arguments.grace, settled, sighted) for each in (rebuilt.deliveries, rebuilt.carried)
    )
    with steps("Keeping deliveries by day"):
        # Before they are carried over: a run that is killed in between makes these days again.
        said = (as_of, arguments.grace, by_hand) if sighted is None else (uuid4(),)
        digests = dict.fromkeys(days, made_of(*said, files=rebuilt.all.inputFiles()))
        _keep(deliveries, carried, findings if wrong else None, digests, layout, erased)
    with steps("Carrying open deliveries over"):
        named = findings.where((F.col("severity") == "breach") & F.col("delivery_id").isNotNull())
        advance(
            run.history,
            start,
            layout,
            date_from=arguments.date_from,
            as_of=as_of,
            raw={each.day: each.digest for each in intakes},
            named=named.select("project", "queue", "delivery_id").distinct(),
            settled=settled,
        )
    return Proof(
        records=records,
        deliveries=deliveries,
        carried=carried,
        findings=findings,
        intakes=[each for each in intakes if each.day >= arguments.date_from],
        missed=[day for day in days if day < arguments.date_from],
        erased=erased,
        as_of=as_of,
        since=start.since,
        settled=by_hand,
        looked_up=sighted is not None,
        set_aside=set_aside,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _InTables:
    """What the tables say.

    Attributes:
        sighted: How they have deliveries that are open according to their records; None if nothing was looked up.
        findings: What these deliveries lack, and what the tables hold that no record tells of.
        comparison: What they hold; None if there are none to compare with.
    """

    sighted: DataFrame | None
    findings: Sequence[DataFrame]
    comparison: Comparison | None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Run:
    """What a run is about.

    Attributes:
        history: All records that it judges by.
        first: The first day whose records are read.
        since: Deliveries accepted from this day on are judged.
        as_of: When.
    """

    spark: SparkSession
    arguments: Arguments
    layout: Layout
    steps: Steps
    client: Callable[[], Any]
    history: DataFrame
    first: date
    since: date
    as_of: datetime

    @property
    def until(self) -> datetime:
        """Records of what happened on the report's days before this time should be there."""
        return min(self.as_of, _midnight(self.arguments.date_to + timedelta(days=1))) - self.arguments.grace

    def in_tables(self, rebuilt: _Rebuilt) -> _InTables:
        """Look open deliveries up, and compare what the tables hold."""
        with self.steps("Looking up open deliveries"):
            seen = self._seen(rebuilt)
        with self.steps("Comparing with the tables"):
            comparison = self._compared()
            ends = self._ends(rebuilt, comparison)
        looked_up = [each for each in (seen, ends) if each]
        sighted = reduce(DataFrame.unionByName, (each.rows for each in looked_up)) if looked_up else None
        findings = [each.findings for each in (*looked_up, *([comparison] if comparison else []))]
        return _InTables(sighted=sighted, findings=findings, comparison=comparison)

    def _seen(self, rebuilt: _Rebuilt) -> Sightings | None:
        """How the messages table has what is open; None if there is nothing to look up."""
        arguments = self.arguments
        if not rebuilt.counted["open"] or "messages" not in arguments.tables:
            return None
        return look_up(
            self.spark,
            with_standing(rebuilt.all, self.as_of, arguments.grace),
            self.client(),
            arguments.tables["messages"],
            count=rebuilt.counted["open"],
            layout=self.layout,
            as_of=self.as_of,
            now=arguments.now,
            grace=arguments.grace,
        )

    def _compared(self) -> Comparison | None:
        """What the tables hold; None if there are none to compare with."""
        if not self.arguments.tables:
            return None
        return compared(
            self.spark,
            self.history,
            self.client(),
            self.arguments.tables,
            layout=self.layout,
            date_from=self.first,
            since=min(self.since, self.first),
            until=self.until,
        )

    def _ends(self, rebuilt: _Rebuilt, comparison: Comparison | None) -> LostEnds | None:
        """Which pulled messages have left their table without a record; None if there is nothing to compare."""
        arguments = self.arguments
        if comparison is None or comparison.held is None or "lines" not in arguments.tables:
            return None
        if not rebuilt.counted["pulled"]:
            return None
        return lost_ends(
            self.spark,
            with_standing(rebuilt.all, self.as_of, arguments.grace),
            comparison.held,
            layout=self.layout,
            since=_midnight(min(self.since, arguments.date_from)),
            until=self.until,
            as_of=self.as_of,
            now=arguments.now,
            grace=arguments.grace,
        )

    def found(
        self, told: Sequence[Mapping[str, Any]], rebuilt: _Rebuilt, tables: _InTables, judged: DataFrame
    ) -> DataFrame | None:
        """Everything that is wrong; None if nothing can be.

        Each kind is looked for only if the pass over the records has seen that there may be some.

        Args:
            told: Findings that are known already.
            judged: All deliveries with their standing.
        """
        records = read_records(self.spark, self.layout, self.arguments.date_from)
        found = [small_table(self.spark, told, FINDING)] if told else []
        if rebuilt.counted["ordered"]:
            found.append(order_findings(records))
        if rebuilt.counted["expired_early"]:
            found.append(expiry_findings(records))
        if rebuilt.counted["overdue"]:
            found.append(overdue_findings(judged))
        if rebuilt.counted["suspicious"]:
            suspects = kept(suspicious(judged), f"{self.layout.work}/suspects")
            found.append(delivery_findings(self.history, suspects))
        found += tables.findings
        return reduce(DataFrame.unionByName, found) if found else None

    def unheard(self, intakes: Sequence[DayIntake], comparison: Comparison | None) -> list[dict[str, Any]]:
        """Streams without pulses, and objects that others name and that are not there."""
        arguments, until = self.arguments, self.until
        silent = gaps(
            recorded_pulses(each for intake in intakes for ids in intake.pulses.values() for each in ids),
            comparison.pulses if comparison else None,
            # Of nights that were missed, too: no other run judges these days.
            since=_midnight(self.first),
            until=until,
            now=arguments.now,
            before=lambda: _pulsed_before(self.layout, self.first),
        )
        missing = missing_objects(arguments.input, intakes, until=until, kept_since=_kept_since(arguments))
        return [*pulse_findings(silent), *link_findings(missing)]

    def rebuilt(self) -> _Rebuilt:
        """The deliveries accepted on the report's days, and those carried to them; both lie in the work folder."""
        arguments = self.arguments
        read, seen = Observation("records"), Observation("deliveries")
        looked_for = {"ordered": is_ordered(), "expired_early": is_expired_early()}
        history = self.history.observe(read, *_counts(looked_for)).where(
            F.col("accepted_at") >= F.lit(_midnight(min(self.since, arguments.date_from)))
        )
        rows = with_standing(delivery_rows(history), self.as_of, arguments.grace)
        rows = rows.withColumn("dt", F.to_date("accepted_at"))
        in_report = F.col("dt") <= F.lit(arguments.date_to)
        conditions = {
            "open": is_open(),
            "pulled": F.col("pull") & ~F.col("state").isin(*SETTLED),
            "suspicious": is_suspicious(),
            "overdue": is_overdue(),
            "repeated": is_repeated(),
        }
        in_days = {name: in_report & when for name, when in conditions.items()}
        in_days["repeated_elsewhere"] = ~in_report & is_repeated()
        watched = rows.observe(seen, *_counts(in_days)).where(in_report).select(*DELIVERY.fieldNames(), "dt")
        lives, counted = self._lives(watched, (read, seen))
        if self.since >= arguments.date_from:
            return _Rebuilt(lives, lives, small_table(self.spark, [], DELIVERY), counted)
        before = F.col("dt") < F.lit(arguments.date_from)
        return _Rebuilt(lives, lives.where(~before), lives.where(before).drop("dt"), counted)

    def _lives(self, watched: DataFrame, counting: Sequence[Observation]) -> tuple[DataFrame, Mapping[str, int]]:
        """The deliveries in the work folder, and what was counted on the way; as they are if they were made of just the
        same.
        """
        asked, folder = self.arguments, f"{self.layout.work}/deliveries"
        said = (self.since, asked.date_from, asked.date_to, self.as_of, asked.grace)
        place, digest = f"{folder}/{MADE}", made_of(*said, files=self.history.inputFiles())
        counted = noted(place, digest, listed(folder))
        if counted is None:
            kept(watched, folder)
            counted = {name: number for each in counting for name, number in each.get.items()}
            note(place, digest, listed(folder), **counted)
        return self.spark.read.schema(watched.schema).parquet(folder), counted


def _counts(conditions: Mapping[str, Column]) -> list[Column]:
    return [F.count(F.when(when, 1)).alias(name) for name, when in conditions.items()]


def _midnight(day: date) -> datetime:
    return datetime.combine(day, datetime.min.time(), UTC)


def _pulsed_before(layout: Layout, first: date) -> Set[str]:
    """The tables that sent pulses on the last day with any before the first that is read."""
    days = sorted(listed_days(layout.records), reverse=True)
    manifests = (read_manifest(f"{layout.records}/dt={day}") for day in days if day < first)
    found = (recorded_pulses(id_ for ids in each.pulses.values() for id_ in ids) for each in manifests if each)
    return next((each.keys() for each in found if each), frozenset[str]())


def _kept_since(arguments: Arguments) -> datetime | None:
    """Hours from which the bucket has not taken objects away; None if it never does."""
    if not arguments.keep_days:
        return None
    return arguments.now - timedelta(days=arguments.keep_days - 1)


@dataclass(frozen=True, slots=True)
class _Rebuilt:
    """Deliveries rebuilt from records, without their standing.

    Attributes:
        all: Those that are judged.
        deliveries: Those of them that were accepted on the report's days.
        carried: Those that were accepted before.
        counted: How many of both are ``open``, ``pulled`` (and open), ``suspicious``, ``overdue`` and ``repeated``, and
            ``repeated_elsewhere``: accepted after the report's days. Besides, records that are ``ordered`` or
            ``expired_early``.
    """

    all: DataFrame
    deliveries: DataFrame
    carried: DataFrame
    counted: Mapping[str, int]


def _history(spark: SparkSession, layout: Layout, start: Carried, first: date) -> DataFrame:
    """All records that a run judges by: those of open deliveries, and of every day since."""
    records = read_records(spark, layout, first)
    return records if start.state is None else records.unionByName(state_records(spark, layout, start.state))


def _keep(  # noqa: PLR0917 (the tables, and where they go)
    deliveries: DataFrame,
    carried: DataFrame,
    findings: DataFrame | None,
    days: Mapping[date, str],
    layout: Layout,
    erased: Sequence[date],
) -> None:
    """Replace the days of the tables that Athena sees, those of missed nights too; findings are those of the night."""
    missed = carried.where(F.to_date("accepted_at") >= F.lit(min(days)))
    columns = KEPT_DELIVERY.fieldNames()
    rows = deliveries.select(*columns).unionByName(missed.select(*columns))
    rows = rows.withColumn("dt", F.to_date("accepted_at"))
    renew_days(lambda some: rows.where(F.col("dt").isin(*some)), layout.deliveries, days, erased=erased)
    night = max(days)
    if findings is None:
        empty_days(layout.findings, [night], erased=erased)
    else:
        replace_days(findings.withColumn("dt", F.lit(night)), layout.findings, [night], erased=erased)


def _without_duplicates(
    spark: SparkSession, records: DataFrame, rows: DataFrame, layout: Layout, intakes: Sequence[DayIntake]
) -> tuple[list[DayIntake], bool]:
    """Take records that are there twice out of the compacted days.

    The intakes with the objects they were in, and whether any day changed.
    """
    duplicates = kept(duplicated_records(records, repeated(rows)), f"{layout.work}/duplicates")
    objects: dict[date, list[dict[str, Any]]] = {}
    for each in duplicated_objects(duplicates).collect():
        objects.setdefault(each["dt"], []).append({"sources": list(each["sources"]), "records": each["records"]})
    noted = {}
    # Later days may be there from earlier runs; they are judged by, so they must not hold a record twice either.
    for day, found in objects.items():
        manifest = read_manifest(f"{layout.records}/dt={day}")
        if manifest is not None:
            once = _once(spark, layout, day, duplicates.where(F.col("dt") == F.lit(day)))
            noted[day] = replace_without_duplicates(once, layout, day, manifest, found)
    return [replace(each, duplicates=noted.get(each.day, each.duplicates)) for each in intakes], bool(noted)


def _once(spark: SparkSession, layout: Layout, day: date, duplicates: DataFrame) -> DataFrame:
    """A kept day with each record once, in as many files as it has."""
    files = named_files(layout.records, day)
    stored = read_files(spark, layout.records, CURATED, files)
    return without_duplicates(stored, duplicates).coalesce(max(1, len(files)))
