"""Small DataFrames for tests: records from lives, and rows in and out."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from tempfile import TemporaryDirectory
from typing import Any

from glue_jobs.delivery_report.driver import Driver
from glue_jobs.delivery_report.schema import CURATED
from glue_jobs.delivery_report.storage import small_table, written
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from pushhub.engine.model.record import DeliveryRecord

__all__ = ["queried", "records_frame", "rows_frame", "rows_of", "utc"]


def records_frame(spark: SparkSession, records: Sequence[DeliveryRecord], source: str = "a") -> DataFrame:
    """Delivery records as stored, with their day."""
    rows = [{**each.as_fields(), "source": source} for each in records]
    return rows_frame(spark, rows, CURATED).withColumn("dt", F.to_date("at"))


def rows_frame(spark: SparkSession, rows: Sequence[Mapping[str, Any]], schema: StructType) -> DataFrame:
    """Rows of a schema; missing fields are null."""
    return small_table(spark, rows, schema)


def rows_of(frame: DataFrame) -> list[dict[str, Any]]:
    """The rows as dictionaries."""
    return [each.asDict(recursive=True) for each in frame.collect()]


def queried(query: Callable[..., str], *frames: DataFrame) -> list[dict[str, Any]]:
    """What a query of the driver finds in tables that Spark has made.

    Args:
        query: Makes it from the names of the tables.
    """
    with TemporaryDirectory() as folder, Driver() as driver:
        names = [f"frame_{number}" for number in range(len(frames))]
        for name, frame in zip(names, frames, strict=True):
            driver.read(name, frame.schema, written(frame, f"file://{folder}/{name}"))
        return driver.rows(query(*names))


def utc(text: str) -> datetime:
    """A time as Spark returns it."""
    return datetime.fromisoformat(text)
