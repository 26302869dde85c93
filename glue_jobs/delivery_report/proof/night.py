"""From raw records to the proof: compacted days, one row per delivery, and everything that is wrong by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from functools import reduce
from typing import Any
from uuid import uuid4

from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as F

from ..records.compaction import DayIntake, compact
from ..records.duplicates import without_copies
from ..records.links import missing_objects
from ..records.manifest import read_manifest
from ..run.arguments import Arguments, BadInput, midnight
from ..run.progress import Steps
from ..storage.days import (
    days_with,
    forget_days,
    listed_days,
    named_files,
    read_files,
    remove_former,
    renew_days,
    replace_days,
)
from ..storage.files import listed
from ..storage.layout import Layout, small_table
from ..storage.provenance import fingerprint
from ..storage.schema import CURATED
from .carried import Inputs, advance, carried_to, settled_by_hand
from .conservation import (
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
from .deliveries import KEPT_DELIVERY, suspicious
from .findings import FINDING
from .ledger import compared
from .lives import UNSETTLED, Lives, rebuilt
from .pulled_ends import lost_ends
from .pulses import Pulses, gaps, recorded_pulses
from .sightings import look_up


@dataclass(frozen=True, slots=True, kw_only=True)
class Proof:
    """What is known after the first half of a run.

    Attributes:
        findings: Everything that is wrong; None if nothing is.
        intakes: What became of the raw objects of the report's days.
        missed: Days before the report's that no run has kept, as nights were missed: from the last that was carried on.
        erased: Days from whose objects records of erased projects were taken.
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
    """Compact the report's days, rebuild the deliveries accepted on them and those carried over, and hold them against
    what was owed.

    Args:
        client: Makes the DynamoDB client that tables are read with.

    Raises:
        BadInput: There are no records on these days, neither raw nor compacted; or what a person has settled cannot be
            read.
    """
    start = carried_to(layout, arguments.date_from)
    by_hand, lost_settled = settled_by_hand(layout)
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
    inputs = Inputs(
        spark=spark,
        arguments=arguments,
        layout=layout,
        client=client,
        start=start,
        by_hand=by_hand,
        last=max([arguments.date_to, *kept_days]),
    )
    with steps("Rebuilding deliveries"):
        lives = rebuilt(inputs)
        if lives.those("repeated", list(lives.counted)):
            intakes, changed = without_copies(layout, kept_days, intakes)
            if changed:
                lives = rebuilt(inputs)
    sighted, of_tables, pulses = _in_tables(inputs, lives, steps)
    with steps("Keeping deliveries by day"):
        # Before they are carried over: a run that is killed in between makes these days again.
        overdue = _keep(inputs, lives, sighted, days)
        remove_former(layout.deliveries, erased)
        overdue += lives.those(UNSETTLED, [day for day in lives.judged if day == lives.before])
        late = _standing(inputs, lives.read(spark, overdue), sighted) if overdue else None
    with steps("Proving conservation"):
        known = [
            *object_findings(intakes),
            *state_findings(start.lost, start.spoiled, lost_settled),
            *_unheard(inputs, intakes, pulses),
        ]
        findings = _night(inputs, [*_found(inputs, known, lives, late), *of_tables])
        set_aside = len(listed(f"{arguments.input}/quarantine"))
    with steps("Carrying open deliveries over"):
        of_delivery = (F.col("severity") == "breach") & F.col("delivery_id").isNotNull()
        named = (
            findings.where(of_delivery).select("project", "queue", "delivery_id").distinct()
            if findings is not None
            else None
        )
        raw = {each.day: each.digest for each in intakes}
        advance(inputs, lambda until: lives.read(spark, [day for day in lives.judged if day <= until]), raw, named)
    return Proof(
        findings=findings,
        intakes=[each for each in intakes if each.day >= arguments.date_from],
        missed=[day for day in days if day < arguments.date_from],
        erased=erased,
        as_of=inputs.as_of,
        set_aside=set_aside,
    )


def _in_tables(inputs: Inputs, lives: Lives, steps: Steps) -> tuple[DataFrame | None, list[DataFrame], Pulses | None]:
    """Look open deliveries up, and compare what the tables hold; each only if there is something to compare.

    Returns:
        How the tables have deliveries that are open according to their records, if any were looked up; findings; and
        the pulses in the tables, if these could be read.
    """
    names, looked_up, unrecorded, held, pulses = inputs.arguments.tables, [], [], None, None
    with steps("Looking up open deliveries"):
        if lives.number("open") and "messages" in names:
            looked_up.append(look_up(inputs, _judged(inputs, lives, "open"), lives.number("open")))
    with steps("Comparing with the tables"):
        if names:
            findings, held, pulses = compared(inputs)
            unrecorded = [findings]
        if held is not None and "lines" in names and lives.number("pulled"):
            looked_up.append(lost_ends(inputs, _judged(inputs, lives, "pulled"), held))
    sighted = reduce(DataFrame.unionByName, (rows for rows, _ in looked_up)) if looked_up else None
    return sighted, [*(lacking for _, lacking in looked_up), *unrecorded], pulses


def _judged(inputs: Inputs, lives: Lives, what: str) -> DataFrame:
    """The lives of the days that have any of what was counted, as they stand by their records."""
    some = lives.read(inputs.spark, lives.those(what, lives.judged))
    return with_standing(some, inputs.as_of, inputs.arguments.grace)


def _found(inputs: Inputs, known: Sequence[Mapping[str, Any]], lives: Lives, late: DataFrame | None) -> list[DataFrame]:
    """What is wrong with the records, besides what is known already; each kind is looked for only if there may be some.

    Args:
        late: Deliveries with their standing, of which some are overdue.
    """
    found = [small_table(inputs.spark, known, FINDING)] if known else []
    for what, findings in (("ordered", order_findings), ("expired_early", expiry_findings)):
        if lives.number(what):
            found += _of_records(inputs, what, findings)
    if late is not None:
        found.append(overdue_findings(late))
    if some := lives.those("suspicious", lives.judged):
        found.append(delivery_findings(inputs.history(), suspicious(lives.read(inputs.spark, some))))
    return found


def _of_records(inputs: Inputs, what: str, findings: Callable[[DataFrame], DataFrame]) -> list[DataFrame]:
    """Findings that follow from the records alone: looked for again only if some of these have changed."""
    spark, layout, night = inputs.spark, inputs.layout, inputs.arguments.date_to
    root = f"{layout.work}/{what}"
    days = [day for day in listed_days(layout.records) if day >= inputs.arguments.date_from]
    files = [file for day in days for file in named_files(layout.records, day)]

    def make(_: Sequence[date]) -> DataFrame:
        return findings(read_files(spark, layout.records, CURATED, files)).withColumn("dt", F.lit(night))

    renew_days(make, root, {night: fingerprint(files=files)})
    forget_days(root, night, files=True)
    named = named_files(root, night)
    return [read_files(spark, root, FINDING, named).drop("dt")] if named else []


def _unheard(inputs: Inputs, intakes: Sequence[DayIntake], pulses: Pulses | None) -> list[dict[str, Any]]:
    """Streams without pulses, and objects that others name and that are not there."""
    arguments, until = inputs.arguments, inputs.until
    silent = gaps(
        recorded_pulses(each for intake in intakes for ids in intake.pulses.values() for each in ids),
        pulses,
        # Of nights that were missed, too: no other run judges these days.
        since=midnight(inputs.first),
        until=until,
        now=arguments.now,
        before=lambda: _pulsed_before(inputs.layout, inputs.first),
    )
    links = {each.day: each.links for each in intakes}
    # Older ones the bucket may have taken away.
    kept_since = arguments.now - timedelta(days=arguments.keep_days - 1) if arguments.keep_days else None
    missing = missing_objects(arguments.input, links, until=until, kept_since=kept_since)
    return [*pulse_findings(silent), *link_findings(missing)]


def _standing(inputs: Inputs, lives: DataFrame, sighted: DataFrame | None) -> DataFrame:
    """Lives with their standing."""
    return with_standing(lives, inputs.as_of, inputs.arguments.grace, inputs.settled, sighted)


def _keep(inputs: Inputs, lives: Lives, sighted: DataFrame | None, days: Sequence[date]) -> list[date]:
    """Replace the days of the deliveries that Athena sees, those of missed nights too: the days with overdue ones.

    A day whose deliveries have all ended changes with its lives only; how others stand depends on the time, on what
    people have settled, and on what waits in a table, which may have changed with the table.
    """
    besides = [inputs.as_of, inputs.arguments.grace, inputs.by_hand, *([] if sighted is None else [uuid4()])]
    digests = {
        day: fingerprint(*(besides if lives.counted[day][UNSETTLED] else []), files=lives.files(day)) for day in days
    }
    late = Observation("deliveries")

    def make(stale: list[date]) -> DataFrame:
        rows = _standing(inputs, lives.read(inputs.spark, stale), sighted)
        watched = rows.observe(late, *days_with({"overdue": is_overdue()}, F.col("dt")))
        return watched.select(*KEPT_DELIVERY.fieldNames(), "dt")

    counted = renew_days(make, inputs.layout.deliveries, digests, counting=[late])
    return [day for day in days if counted[day]["overdue"]]


def _night(inputs: Inputs, found: Sequence[DataFrame]) -> DataFrame | None:
    """Keep the findings of a night, under its last day; None if there are none."""
    root, night = inputs.layout.findings, inputs.arguments.date_to
    gathered = None
    if found:
        # Few rows of much work: gathered by a shuffle of their own, so that the work before it is not one task's.
        gathered = (
            without_settled(reduce(DataFrame.unionByName, found), inputs.settled)
            .repartition(1)
            .withColumn("dt", F.lit(night))
        )
    replace_days(gathered, root, [night])
    files = named_files(root, night)
    return read_files(inputs.spark, root, FINDING, files).drop("dt") if files else None


def _pulsed_before(layout: Layout, first: date) -> Set[str]:
    """The tables that sent pulses on the last day with any before the first that is read."""
    days = sorted(listed_days(layout.records), reverse=True)
    manifests = (read_manifest(f"{layout.records}/dt={day}") for day in days if day < first)
    found = (recorded_pulses(id_ for ids in each.pulses.values() for id_ in ids) for each in manifests if each)
    return next((each.keys() for each in found if each), frozenset[str]())
