"""From raw records to the proof: compacted days, one row per delivery, and everything that is wrong by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from functools import reduce
from typing import Any
from uuid import uuid4

from pyspark.sql import Column, DataFrame, Observation, SparkSession
from pyspark.sql import functions as F

from ..records.compaction import DayIntake, compact, read_records, replace_without_duplicates
from ..records.duplicates import duplicated_objects, duplicated_records, without_duplicates
from ..records.links import missing_objects
from ..records.manifest import read_manifest
from ..run.arguments import Arguments, BadInput, midnight
from ..run.progress import Steps
from ..storage.days import (
    days_with,
    empty_days,
    forget_days,
    listed_days,
    named_files,
    read_files,
    renew_days,
    replace_days,
)
from ..storage.files import listed
from ..storage.layout import Layout, kept, small_table
from ..storage.provenance import fingerprint
from ..storage.schema import CURATED
from .carried import Carried, advance, carried_to, is_settled_by_hand, settled_by_hand, state_records
from .conservation import (
    NEVER_MS,
    changes_ms,
    delivery_findings,
    expiry_findings,
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
from .deliveries import KEPT_DELIVERY, repeated, suspicious
from .findings import FINDING
from .ledger import Comparison, compared
from .lives import UNSETTLED, Lives, rebuilt
from .pulled_ends import lost_ends
from .pulses import gaps, recorded_pulses
from .sightings import Sightings, look_up


@dataclass(frozen=True, slots=True, kw_only=True)
class Proof:
    """What is known after the first half of a run.

    Attributes:
        findings: Everything that is wrong; None if nothing is.
        intakes: What became of the raw objects of the report's days.
        missed: Days before the report's that no run has kept, as nights were missed: from the last that was carried on.
        erased: Days from whose objects records of erased projects were taken.
        as_of: When deliveries were judged.
        set_aside: Stream records that the records function could not turn into delivery records.
    """

    findings: DataFrame | None
    intakes: Sequence[DayIntake]
    missed: Sequence[date]
    erased: Sequence[date]
    as_of: datetime
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
    start = carried_to(layout, arguments.date_from)
    by_hand, lost_settled = settled_by_hand(layout)
    settled = is_settled_by_hand(by_hand)
    first = start.first(arguments.date_from)
    with steps("Compacting raw records"):
        days = [first + timedelta(days=n) for n in range((arguments.date_to - first).days + 1)]
        intakes = compact(spark, arguments.input, layout, days)
        erased = [each.day for each in intakes if each.erased]
    kept_days = [day for day in listed_days(layout.records) if day >= first]
    if not kept_days and not intakes and start.state is None:
        raise BadInput(
            f"no records under {arguments.input} from {arguments.date_from} to {arguments.date_to}: "
            f"looked for {arguments.input}/dt={arguments.date_from} and the days after it"
        )
    # Judged up to the end of what was asked for, whether records came until then or not; later records that are there
    # already may say more.
    last = max([arguments.date_to, *kept_days])
    as_of = min(arguments.now, midnight(last + timedelta(days=1)))
    run = _Run(
        spark=spark,
        arguments=arguments,
        layout=layout,
        steps=steps,
        client=client,
        start=start,
        last=last,
        as_of=as_of,
    )
    with steps("Rebuilding deliveries"):
        lives = run.lives()
        if repeated_days := lives.those("repeated", list(lives.counted)):
            rows = lives.read(spark, repeated_days)
            intakes, changed = _without_duplicates(spark, read_records(spark, layout, first), rows, layout, intakes)
            if changed:
                lives = run.lives()
    tables = run.in_tables(lives)
    sighted = tables.sighted
    with steps("Keeping deliveries by day"):
        # Before they are carried over: a run that is killed in between makes these days again.
        standing = _Standing(as_of=as_of, grace=arguments.grace, settled=settled, by_hand=by_hand, sighted=sighted)
        overdue = _keep(spark, lives, standing, layout, days=days, erased=erased)
        overdue += lives.carried_overdue(as_of, arguments.grace)
        late = standing.of(lives.read(spark, overdue)) if overdue else None
    with steps("Proving conservation"):
        known = [
            *object_findings(intakes),
            *state_findings(start.lost, start.spoiled, lost_settled),
            *run.unheard(intakes, tables.comparison),
        ]
        findings = _night(run.found(known, lives, tables, late), settled, layout, arguments.date_to, erased)
        set_aside = len(listed(f"{arguments.input}/quarantine"))
    with steps("Carrying open deliveries over"):
        of_delivery = (F.col("severity") == "breach") & F.col("delivery_id").isNotNull()
        named = (
            findings.where(of_delivery).select("project", "queue", "delivery_id").distinct()
            if findings is not None
            else None
        )
        advance(
            run.history,
            lambda until: lives.read(spark, [day for day in lives.judged if day <= until]),
            start,
            layout,
            date_from=arguments.date_from,
            as_of=as_of,
            raw={each.day: each.digest for each in intakes},
            named=named,
            settled=settled,
        )
    return Proof(
        findings=findings,
        intakes=[each for each in intakes if each.day >= arguments.date_from],
        missed=[day for day in days if day < arguments.date_from],
        erased=erased,
        as_of=as_of,
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
        start: What it starts from.
        last: The last day that has records.
        as_of: When deliveries are judged.
    """

    spark: SparkSession
    arguments: Arguments
    layout: Layout
    steps: Steps
    client: Callable[[], Any]
    start: Carried
    last: date
    as_of: datetime

    @property
    def first(self) -> date:
        """The first day whose records are read."""
        return self.start.first(self.arguments.date_from)

    @property
    def since(self) -> date:
        """Deliveries accepted from this day on are judged."""
        return min(self.start.since, self.first)

    def history(self) -> DataFrame:
        """All records that are judged by: those of open deliveries, and of every day since."""
        records, state = read_records(self.spark, self.layout, self.first), self.start.state
        return records if state is None else records.unionByName(state_records(self.spark, self.layout, state))

    def lives(self) -> Lives:
        """The deliveries accepted on the report's days, and those carried to them."""
        return rebuilt(
            self.spark,
            self.layout,
            self.start,
            date_from=self.arguments.date_from,
            date_to=self.arguments.date_to,
            last=self.last,
        )

    @property
    def until(self) -> datetime:
        """Records of what happened on the report's days before this time should be there."""
        return min(self.as_of, midnight(self.arguments.date_to + timedelta(days=1))) - self.arguments.grace

    def in_tables(self, lives: Lives) -> _InTables:
        """Look open deliveries up, and compare what the tables hold."""
        with self.steps("Looking up open deliveries"):
            seen = self._seen(lives)
        with self.steps("Comparing with the tables"):
            comparison = self._compared()
            ends = self._ends(lives, comparison)
        looked_up = [each for each in (seen, ends) if each]
        sighted = reduce(DataFrame.unionByName, (each.rows for each in looked_up)) if looked_up else None
        findings = [each.findings for each in looked_up]
        findings += [comparison.findings] if comparison else []
        return _InTables(sighted=sighted, findings=findings, comparison=comparison)

    def _seen(self, lives: Lives) -> Sightings | None:
        """How the messages table has what is open; None if there is nothing to look up."""
        arguments = self.arguments
        if not lives.number("open") or "messages" not in arguments.tables:
            return None
        return look_up(
            self.spark,
            self._judged(lives, "open"),
            self.client(),
            arguments.tables["messages"],
            count=lives.number("open"),
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
            self.history(),
            self.client(),
            self.arguments.tables,
            layout=self.layout,
            date_from=self.first,
            since=self.since,
            until=self.until,
        )

    def _ends(self, lives: Lives, comparison: Comparison | None) -> Sightings | None:
        """Which pulled messages have left their table without a record; None if there is nothing to compare."""
        arguments = self.arguments
        if comparison is None or comparison.held is None or "lines" not in arguments.tables:
            return None
        if not lives.number("pulled"):
            return None
        return lost_ends(
            self.spark,
            self._judged(lives, "pulled"),
            comparison.held,
            layout=self.layout,
            since=midnight(self.since),
            until=self.until,
            as_of=self.as_of,
            now=arguments.now,
            grace=arguments.grace,
        )

    def _judged(self, lives: Lives, what: str) -> DataFrame:
        """The lives of the days that have any of what was counted, as they stand by their records."""
        some = lives.read(self.spark, lives.those(what, lives.judged))
        return with_standing(some, self.as_of, self.arguments.grace)

    def found(
        self, known: Sequence[Mapping[str, Any]], lives: Lives, tables: _InTables, late: DataFrame | None
    ) -> DataFrame | None:
        """Everything that is wrong; None if nothing can be.

        Each kind is looked for only if there may be some.

        Args:
            known: Findings that are known already.
            late: Deliveries with their standing, of which some are overdue.
        """
        found = [small_table(self.spark, known, FINDING)] if known else []
        for what, findings in (("ordered", order_findings), ("expired_early", expiry_findings)):
            if lives.number(what):
                found += self._of_records(what, findings)
        if late is not None:
            found.append(overdue_findings(late))
        if some := lives.those("suspicious", lives.judged):
            found.append(delivery_findings(self.history(), suspicious(lives.read(self.spark, some))))
        found += tables.findings
        return reduce(DataFrame.unionByName, found) if found else None

    def _of_records(self, what: str, findings: Callable[[DataFrame], DataFrame]) -> list[DataFrame]:
        """Findings that follow from the records alone: looked for again only if some of these have changed."""
        root, night = f"{self.layout.work}/{what}", self.arguments.date_to
        days = [day for day in listed_days(self.layout.records) if day >= self.arguments.date_from]
        files = [file for day in days for file in named_files(self.layout.records, day)]

        def make(_: Sequence[date]) -> DataFrame:
            return findings(read_files(self.spark, self.layout.records, CURATED, files)).withColumn("dt", F.lit(night))

        renew_days(make, root, {night: fingerprint(files=files)})
        forget_days(root, night, files=True)
        named = named_files(root, night)
        return [read_files(self.spark, root, FINDING, named).drop("dt")] if named else []

    def unheard(self, intakes: Sequence[DayIntake], comparison: Comparison | None) -> list[dict[str, Any]]:
        """Streams without pulses, and objects that others name and that are not there."""
        arguments, until = self.arguments, self.until
        silent = gaps(
            recorded_pulses(each for intake in intakes for ids in intake.pulses.values() for each in ids),
            comparison.pulses if comparison else None,
            # Of nights that were missed, too: no other run judges these days.
            since=midnight(self.first),
            until=until,
            now=arguments.now,
            before=lambda: _pulsed_before(self.layout, self.first),
        )
        links = {each.day: each.links for each in intakes}
        missing = missing_objects(arguments.input, links, until=until, kept_since=_kept_since(arguments))
        return [*pulse_findings(silent), *link_findings(missing)]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Standing:
    """What the standing of deliveries follows from besides their records.

    Attributes:
        as_of: When they are judged.
        grace: How late a record may be.
        settled: Whether a person has settled a delivery.
        by_hand: What people have settled.
        sighted: How the tables have some; None if nothing was looked up.
    """

    as_of: datetime
    grace: timedelta
    settled: Column
    by_hand: Sequence[Mapping[str, str]]
    sighted: DataFrame | None

    def of(self, lives: DataFrame) -> DataFrame:
        """Lives with their standing."""
        return with_standing(lives, self.as_of, self.grace, self.settled, self.sighted)

    def follows_from(self) -> list[object]:
        """What is noted of it: what waits in a table may have changed with the table."""
        return [self.grace, self.by_hand, *([] if self.sighted is None else [uuid4()])]

    @property
    def as_of_us(self) -> int:
        """Epoch microseconds."""
        return round(self.as_of.timestamp() * 1_000_000)

    def holds(self, counted: Mapping[str, int]) -> bool:
        """Whether deliveries that stood so at another time stand so still, if nothing else has changed."""
        judged = counted["judged"]
        return self.as_of_us == judged or judged < self.as_of_us < counted["changes"] * 1000


def _keep(
    spark: SparkSession,
    lives: Lives,
    standing: _Standing,
    layout: Layout,
    *,
    days: Sequence[date],
    erased: Sequence[date],
) -> list[date]:
    """Replace the days of the deliveries that Athena sees, those of missed nights too: the days with overdue ones.

    A day whose deliveries have all ended changes with its lives only; another one also when one is due, or expires.
    """
    besides = standing.follows_from()
    digests = {
        day: fingerprint(*(besides if lives.counted[day][UNSETTLED] else []), files=lives.files(day)) for day in days
    }
    late = Observation("deliveries")

    def make(stale: list[date]) -> DataFrame:
        rows = standing.of(lives.read(spark, stale))
        next_change = changes_ms(standing.as_of, standing.grace)
        changes = [
            F.coalesce(F.min(F.when(F.col("dt") == F.lit(day), next_change)), F.lit(NEVER_MS)).alias(f"changes {day}")
            for day in stale
        ]
        watched = rows.observe(late, *days_with({"overdue": is_overdue()}, F.col("dt")), *changes)
        return watched.select(*KEPT_DELIVERY.fieldNames(), "dt")

    counted = renew_days(
        make,
        layout.deliveries,
        digests,
        erased=erased,
        counting=[late],
        noting={"judged": standing.as_of_us},
        holds=standing.holds,
    )
    return [day for day in days if counted[day]["overdue"]]


def _night(
    found: DataFrame | None,
    settled: Column,
    layout: Layout,
    night: date,
    erased: Sequence[date],
) -> DataFrame | None:
    """Keep the findings of a night; None if there are none.

    Args:
        found: None if nothing can be wrong.
        night: The day they are kept under.
    """
    if found is None:
        empty_days(layout.findings, [night], erased=erased)
        return None
    # Few rows of much work: gathered by a shuffle of their own, so that the work before it is not one task's.
    gathered = without_settled(found, settled).repartition(1).withColumn("dt", F.lit(night))
    replace_days(gathered, layout.findings, [night], erased=erased)
    files = named_files(layout.findings, night)
    return read_files(found.sparkSession, layout.findings, FINDING, files).drop("dt") if files else None


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
    shared = {}
    # Later days may be there from earlier runs; they are judged by, so they must not hold a record twice either.
    for day, found in objects.items():
        manifest = read_manifest(f"{layout.records}/dt={day}")
        if manifest is not None:
            once = _once(spark, layout, day, duplicates.where(F.col("dt") == F.lit(day)))
            shared[day] = replace_without_duplicates(once, layout, day, manifest, found)
    return [replace(each, duplicates=shared.get(each.day, each.duplicates)) for each in intakes], bool(shared)


def _once(spark: SparkSession, layout: Layout, day: date, duplicates: DataFrame) -> DataFrame:
    """A kept day with each record once, in as many files as it has."""
    files = named_files(layout.records, day)
    stored = read_files(spark, layout.records, CURATED, files)
    return without_duplicates(stored, duplicates).coalesce(max(1, len(files)))
