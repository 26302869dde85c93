"""Where things are stored, and the few reads and writes that are not one table at a time."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, StructType

from .files import as_text, write_text


class Layout:
    """The folders of a run, and that of a report by its name."""

    def __init__(self, output: str, report: str) -> None:
        self.records = f"{output}/curated/records"
        self.work = f"{output}/work"
        self.attempts = f"{output}/work/attempt_cells"
        self.fates = f"{output}/work/fate_cells"
        self.tries = f"{output}/work/try_cells"
        self.hours = f"{output}/curated/attempts_hourly"
        self.deliveries = f"{output}/curated/deliveries"
        self.outages = f"{output}/curated/outages"
        self.findings = f"{output}/curated/findings"
        self.open = f"{output}/curated/open"
        self.gone = f"{output}/curated/gone"
        self.erased = f"{output}/curated/erased.json"
        self.settled = f"{output}/settled"
        self.rejected = f"{output}/quarantine"
        self.report = f"{output}/reports/{report}"


def small_table(spark: SparkSession, rows: Sequence[Mapping[str, Any]], schema: StructType) -> DataFrame:
    """A table of a few rows at hand; made within Spark, without a Python process of its own on each worker. Spark knows
    one without rows for empty, and leaves out what is made of it.
    """
    if not rows:
        nothing = [F.lit(None).cast(each.dataType).alias(each.name) for each in schema]
        return spark.range(1).where(F.lit(False)).select(*nothing)
    text = json.dumps([dict(row) for row in rows], default=as_text)
    listed = F.from_json(F.lit(text), ArrayType(schema))
    return spark.range(1).select(F.explode(listed).alias("row")).select("row.*")


def write_json(path: str, content: dict[str, Any] | Sequence[dict[str, Any]]) -> None:
    """Write one small JSON file; times become ISO 8601."""
    write_text(path, json.dumps(content, ensure_ascii=False, indent=1, default=as_text) + "\n", "application/json")
