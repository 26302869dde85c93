"""The Spark session: Glue's own, or a small one on this machine."""

from __future__ import annotations

from pyspark.sql import SparkSession

__all__ = ["open_session"]

_EVERYWHERE = {
    "spark.sql.session.timeZone": "UTC",
    # A day is replaced whole and the other days are left alone, so a rerun changes nothing.
    "spark.sql.sources.partitionOverwriteMode": "dynamic",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    # What a corrupt object loses is counted against its name, see compaction.
    "spark.sql.files.ignoreCorruptFiles": "true",
    # Records come in many small objects: opening one must not weigh as much as 4 MB of reading.
    "spark.sql.files.openCostInBytes": str(256 * 1024),
}

_LOCAL = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.shuffle.partitions": "8",
}


def open_session(master: str | None = None, *, memory: str = "2g") -> SparkSession:
    """A session with the settings the job relies on.

    Args:
        master: Spark master for a run on this machine, e.g. ``local[2]``; None takes what the platform provides (Glue).
        memory: Heap of a local run.
    """
    builder = SparkSession.builder.appName("delivery_report")
    if master is not None:
        builder = builder.master(master).config("spark.driver.memory", memory)
        for key, value in _LOCAL.items():
            builder = builder.config(key, value)
    for key, value in _EVERYWHERE.items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    if master is not None:
        session.sparkContext.setLogLevel("ERROR")
    return session
