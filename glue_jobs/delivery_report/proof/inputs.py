"""What a run's proof is made from: what it was asked, what was carried to it, and the times between which it judges."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession

from ..records.compaction import read_records
from ..run.arguments import Arguments, midnight
from ..storage.layout import Layout
from .carried import Carried, is_settled_by_hand, state_records


@dataclass(frozen=True, slots=True, kw_only=True)
class Inputs:
    """See above.

    Attributes:
        client: Makes the DynamoDB client that tables are read with.
        start: What the run starts from.
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
