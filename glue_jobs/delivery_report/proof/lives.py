"""The lives of deliveries, kept by day of acceptance: those of a day are rebuilt when records of messages accepted on
it have come or changed, and stay as they are otherwise.

A day of records tells of the messages accepted on it, and of those accepted before that were still open: its manifest
says of which days they are.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Final

from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as F

from ..records.manifest import read_manifest
from ..run.arguments import midnight
from ..storage.days import days_with, forget_days, listed_days, named_files, read_files, renew_days
from ..storage.layout import Layout
from ..storage.provenance import fingerprint
from ..storage.schema import CURATED, SETTLED
from .carried import Inputs, state_records
from .conservation import is_expired_early, is_ordered
from .deliveries import DELIVERY, delivery_rows, is_repeated, is_suspicious
from .sightings import is_open

UNSETTLED: Final = "unsettled"
"""Whether some lives of a day have no end yet: only how these stand depends on the hour and on the tables."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lives:
    """All lives that a run judges or needs besides; they lie in the work folder.

    Attributes:
        before: Stands for all days before those that are read: the lives that were carried over are kept by it.
        date_to: The report's last day; later ones may be there from other runs.
        counted: By day, how many lives are ``open`` (and pushed), and whether some are ``unsettled``, ``pulled`` (and
            open), ``suspicious``, ``repeated``, or some records ``ordered`` or ``expired_early``.
    """

    root: str
    before: date
    date_to: date
    counted: Mapping[date, Mapping[str, int]]

    @property
    def judged(self) -> list[date]:
        """The days whose lives are judged, :attr:`before` among them if anything was carried over."""
        return [day for day in self.counted if day <= self.date_to]

    def those(self, what: str, days: Sequence[date]) -> list[date]:
        """The days of some that have any of what was counted."""
        return [day for day in days if self.counted[day][what]]

    def number(self, what: str) -> int:
        """How many of what was counted are judged."""
        return sum(self.counted[day][what] for day in self.judged)

    def files(self, day: date) -> list[str]:
        """The files of a day."""
        return named_files(self.root, day)

    def read(self, spark: SparkSession, days: Sequence[date]) -> DataFrame:
        """The lives of some days, with their ``dt``."""
        return read_files(spark, self.root, DELIVERY, [file for day in days for file in self.files(day)])


def rebuilt(inputs: Inputs) -> Lives:
    """Rebuild the lives of the days of which other records are there than when they were made."""
    spark, layout, carried, first = inputs.spark, inputs.layout, inputs.start, inputs.first
    root, before = f"{layout.work}/lives", first - timedelta(days=1)
    sources = _sources(layout, first, before)
    days = [first + timedelta(days=n) for n in range((inputs.last - first).days + 1)]
    digests = {day: fingerprint(files=sources[day]) for day in days}
    # A state knows of what was accepted before the days that are read, or of nothing.
    state = carried.state if carried.since < first else None
    if state:
        kept = [f"{state.folder}/{name}" for name in state.files]
        follows_from = (carried.since, state.fingerprint)
        digests = {before: fingerprint(*follows_from, files=[*sources[before], *kept]), **digests}

    read, seen = Observation("records"), Observation("lives")

    def make(stale: list[date]) -> DataFrame:
        files = {file for day in stale for file in sources[day]}
        records = read_files(spark, layout.records, CURATED, sorted(files))
        if state and before in stale:
            records = records.unionByName(state_records(spark, layout, state))
        accepted = F.greatest(F.to_date("accepted_at"), F.lit(before))
        of_stale = (F.col("accepted_at") >= F.lit(midnight(inputs.since))) & accepted.isin(*stale)
        records = records.where(of_stale).observe(
            read, *days_with({"ordered": is_ordered(), "expired_early": is_expired_early()}, accepted)
        )
        rows = delivery_rows(records).withColumn("dt", accepted)
        unsettled = ~F.col("state").isin(*SETTLED)
        rows = rows.withColumn("is_open", is_open())
        found = {
            UNSETTLED: unsettled,
            "pulled": F.col("pull") & unsettled,
            "suspicious": is_suspicious(),
            "repeated": is_repeated(),
        }
        how_many = [
            F.count(F.when(F.col("is_open") & (F.col("dt") == F.lit(day)), 1)).alias(f"open {day}") for day in stale
        ]
        lives = rows.observe(seen, *days_with(found, F.col("dt")), *how_many)
        return lives.select(*DELIVERY.fieldNames(), "dt")

    counted = renew_days(make, root, digests, counting=[read, seen])
    forget_days(root, before, files=True)
    return Lives(root=root, before=before, date_to=inputs.arguments.date_to, counted=counted)


def _sources(layout: Layout, first: date, before: date) -> Mapping[date, list[str]]:
    """The files of records that tell of messages accepted on a day, by that day; ``before`` stands for all days before
    the first whose records are read.
    """
    found: dict[date, list[str]] = defaultdict(list)
    days = [day for day in listed_days(layout.records) if day >= first]
    for day in days:
        manifest = read_manifest(f"{layout.records}/dt={day}")
        # Nothing vouches for a later day whose run was killed: it may tell of any.
        accepted = manifest.accepted if manifest else [before, *days]
        for each in {max(each, before) for each in accepted}:
            found[each] += named_files(layout.records, day)
    return found
