"""Where things lie, and the few reads and writes that are not one table at a time."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, DateType, StructField, StructType

__all__ = [
    "Layout",
    "Objects",
    "count_objects",
    "kept",
    "kept_small",
    "list_objects",
    "newest_day",
    "read_days",
    "small_table",
    "write_days",
    "write_json",
    "write_text",
]


class Layout:
    """The folders of a run.

    Args:
        output: The job's ``--output``.
        report: Name of this report's folder under ``reports/``.
    """

    def __init__(self, output: str, report: str) -> None:
        self.records = f"{output}/curated/records"
        self.work = f"{output}/work"
        self.hours = f"{output}/curated/attempts_hourly"
        self.deliveries = f"{output}/curated/deliveries"
        self.rejected = f"{output}/quarantine"
        self.reports = f"{output}/reports"
        self.report = f"{output}/reports/{report}"


@dataclass(frozen=True, slots=True)
class Objects:
    """The objects below a path.

    Attributes:
        names: Their keys below the path, the last two parts of them.
        bytes: Their size in all.
    """

    names: frozenset[str]
    bytes: int


def list_objects(spark: SparkSession, path: str) -> Objects:
    """What lies below a path, empty objects too; nothing when there is no such path. No object is opened, nor asked for its size one by one."""
    listed = _listed(spark, path)
    if listed is None:
        return Objects(frozenset(), 0)
    # The listing has told Spark all sizes already; it keeps their sum as the statistics of the table.
    size = listed._jdf.queryExecution().optimizedPlan().stats().sizeInBytes()
    return Objects(_names(listed), int(str(size)))


def count_objects(spark: SparkSession, path: str) -> int:
    """How many objects lie below a path. They are listed only, which takes no right to read any of them."""
    listed = _listed(spark, path)
    return 0 if listed is None else len(_names(listed))


def _listed(spark: SparkSession, path: str) -> DataFrame | None:
    """The objects below a path, not read yet; None when there is no such path."""
    try:
        return spark.read.format("binaryFile").option("recursiveFileLookup", "true").load(path)
    except AnalysisException as error:
        if error.getErrorClass() == "PATH_NOT_FOUND":
            return None
        raise


def _names(listed: DataFrame) -> frozenset[str]:
    return frozenset("/".join(unquote(each).rsplit("/", 2)[1:]) for each in listed.inputFiles())


def read_days(
    spark: SparkSession, root: str, schema: StructType, date_from: date, date_to: date | None = None
) -> DataFrame:
    """A table kept by day (``dt=``), those days of it; empty when none was written yet.

    Args:
        spark: Session.
        root: Folder of the table.
        schema: Its columns, without ``dt``.
        date_from: First day.
        date_to: Last day, None for all later ones.
    """
    whole = StructType([*schema.fields, StructField("dt", DateType())])
    try:
        table = spark.read.schema(whole).parquet(root)
    except AnalysisException as error:
        if error.getErrorClass() != "PATH_NOT_FOUND":
            raise
        return small_table(spark, [], whole)
    later = table.where(F.col("dt") >= F.lit(date_from))
    return later if date_to is None else later.where(F.col("dt") <= F.lit(date_to))


def newest_day(table: DataFrame) -> date | None:
    """The last day of a table kept by day, from the names of its files; None when it has none."""
    days = (re.search(r"/dt=(\d{4}-\d\d-\d\d)/", file) for file in table.inputFiles())
    return max((date.fromisoformat(each[1]) for each in days if each), default=None)


def small_table(spark: SparkSession, rows: Sequence[Mapping[str, Any]], schema: StructType) -> DataFrame:
    """A table of a few rows at hand; made within Spark, without a Python process of its own on each worker."""
    text = json.dumps([dict(row) for row in rows], default=_plain)
    listed = F.from_json(F.lit(text), ArrayType(schema))
    return spark.range(1).select(F.explode(listed).alias("row")).select("row.*")


def kept(table: DataFrame, path: str) -> DataFrame:
    """A table written and read back: what is made of it is planned from its files, not from everything before them."""
    table.write.mode("overwrite").parquet(path)
    return table.sparkSession.read.schema(table.schema).parquet(path)


def kept_small(table: DataFrame, path: str) -> DataFrame:
    """The same for a table that stays small however many records there are: read back as a whole, so that what is made of it needs no shuffle."""
    return kept(table, path).coalesce(1)


def write_days(table: DataFrame, root: str) -> None:
    """Replace the days (``dt``) that a table holds, whole; other days are left alone."""
    table.write.mode("overwrite").partitionBy("dt").parquet(root)


def write_text(path: str, text: str, content_type: str) -> None:
    """Write one small file, on S3 or on this machine."""
    scheme, _, rest = path.rpartition("://")
    if scheme in ("s3", "s3a", "s3n"):
        import boto3  # noqa: PLC0415 (Glue only: local runs write to disk)

        bucket, _, key = rest.partition("/")

        boto3.client("s3").put_object(
            Bucket=bucket,
            Key=key,
            Body=text.encode(),
            ContentType=f"{content_type}; charset=utf-8",
        )
        return
    file = Path(rest)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")


def write_json(path: str, content: dict[str, Any] | Sequence[dict[str, Any]]) -> None:
    """Write one small JSON file; times become ISO 8601."""
    write_text(path, json.dumps(content, ensure_ascii=False, indent=1, default=_plain) + "\n", "application/json")


def _plain(value: Any) -> str:
    return str(value.isoformat()) if hasattr(value, "isoformat") else str(value)
