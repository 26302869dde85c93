"""Small DataFrames for tests: records from lives, and rows in and out."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from tempfile import TemporaryDirectory
from typing import Any

from glue_jobs.delivery_report.proof.deliveries import KEPT_DELIVERY
from glue_jobs.delivery_report.run.arguments import Arguments
from glue_jobs.delivery_report.storage.days import named_files
from glue_jobs.delivery_report.storage.driver import Driver
from glue_jobs.delivery_report.storage.files import listed
from glue_jobs.delivery_report.storage.layout import Layout, small_table
from glue_jobs.delivery_report.storage.schema import CURATED
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from pushhub.engine.model.record import DeliveryRecord

__all__ = ["Counted", "Kept", "jobs_of", "kept_deliveries", "queried", "records_frame", "rows_frame", "rows_of", "utc"]


def records_frame(spark: SparkSession, records: Sequence[DeliveryRecord], source: str = "a") -> DataFrame:
    """Delivery records as stored, with their day."""
    rows = [{**each.as_fields(), "source": source} for each in records]
    return rows_frame(spark, rows, CURATED).withColumn("dt", F.to_date("at"))


def rows_frame(spark: SparkSession, rows: Sequence[Mapping[str, Any]], schema: StructType) -> DataFrame:
    """Rows of a schema; missing fields are null."""
    return small_table(spark, rows, schema)


def rows_of(frame: DataFrame | None) -> list[dict[str, Any]]:
    """The rows as dictionaries."""
    return [] if frame is None else [each.asDict(recursive=True) for each in frame.collect()]


@dataclass(frozen=True)
class Counted:
    """What a query makes of one table.

    Attributes:
        query: Makes it from the table's name.
        source: The table.
    """

    query: Callable[[str], str]
    source: Source


@dataclass(frozen=True)
class Kept:
    """Deliveries as a run has kept them, by day of acceptance."""

    arguments: Arguments


Source = DataFrame | Sequence[DeliveryRecord] | Counted | Kept
"""A table: Spark's, of records at hand, or one made from another."""


def queried(query: Callable[..., str], *sources: Source) -> list[dict[str, Any]]:
    """What a query of the driver finds.

    Args:
        query: Makes it from the names of the tables.
    """
    with TemporaryDirectory() as folder, Driver() as driver:

        def table(source: Source, number: int) -> str:
            name = f"table_{number}"
            match source:
                case Counted():
                    return f"({source.query(table(source.source, number))})"
                case Kept():
                    root = Layout(source.arguments.output, "").deliveries
                    files = [file for day in source.arguments.days for file in named_files(root, day)]
                    driver.read(name, KEPT_DELIVERY, files)
                case DataFrame():
                    path = f"file://{folder}/{name}"
                    source.write.parquet(path)
                    driver.read(name, source.schema, [f"{path}/{each}" for each in listed(path)])
                case _:
                    driver.fill(name, CURATED, [{**each.as_fields(), "source": "a"} for each in source])
            return name

        return driver.rows(query(*(table(each, number) for number, each in enumerate(sources))))


def kept_deliveries(arguments: Arguments) -> list[dict[str, Any]]:
    """The deliveries of a run, with their standing."""
    return queried(lambda kept: f"FROM {kept}", Kept(arguments))


def utc(text: str) -> datetime:
    """A time as Spark returns it."""
    return datetime.fromisoformat(text)


def jobs_of(spark: SparkSession) -> int:
    """How many jobs Spark has begun: they are numbered."""
    return max(spark.sparkContext.statusTracker().getJobIdsForGroup(), default=-1) + 1
