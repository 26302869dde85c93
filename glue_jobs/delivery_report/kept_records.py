"""The kept records, day by day as their lists have them."""

from __future__ import annotations

import re
from datetime import date

from pyspark.sql import DataFrame, SparkSession

from .days import read_replaced
from .schema import CURATED
from .storage import Layout


def read_records(spark: SparkSession, layout: Layout, date_from: date, date_to: date | None = None) -> DataFrame:
    """The kept records of some days; see :func:`.days.read_replaced`."""
    return read_replaced(spark, layout.records, CURATED, date_from, date_to)


def newest_day(table: DataFrame) -> date | None:
    """The last day of a table kept by day, from the names of its files; None when it has none."""
    days = (re.search(r"/dt=(\d{4}-\d\d-\d\d)/", file) for file in table.inputFiles())
    return max((date.fromisoformat(each[1]) for each in days if each), default=None)
