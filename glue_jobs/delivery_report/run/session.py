"""The Spark session: Glue's own, or a small one on this machine."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping

from pyspark.sql import SparkSession

_EVERYWHERE = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    # Else a malformed time that Spark 2 would have taken for one ends the run.
    "spark.sql.legacy.timeParserPolicy": "CORRECTED",
    # Records come in many small objects: opening one must not weigh as much as 4 MB of reading.
    "spark.sql.files.openCostInBytes": str(256 * 1024),
    # A day has a file of its own: writing to as many as a report has days is cheaper than sorting everything by day
    # first.
    "spark.sql.maxConcurrentOutputFileWriters": "32",
}

_LOCAL = {
    "spark.driver.memory": "2g",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    # Else each query's plan is told at length, for an interface that nobody looks at.
    "spark.sql.ui.explainMode": "simple",
    "spark.sql.shuffle.partitions": "8",
    # Nobody asks for these files, and each costs two processes that set its permissions.
    "spark.hadoop.mapreduce.fileoutputcommitter.marksuccessfuljobs": "false",
    # A run compiles some 450 pieces of code; the usual 100 would drop those that later queries share.
    "spark.sql.codegen.cache.maxEntries": "1000",
}

FOR_SOME = {
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.adaptive.enabled": "false",
    # Each table that is handed to all tasks is a job of its own.
    "spark.sql.autoBroadcastJoinThreshold": "-1",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:ReservedCodeCacheSize=256m "
    # The classes are Spark's own, from a wheel whose digest was checked; verifying each is four seconds of CPU.
    "-XX:+UnlockDiagnosticVMOptions -XX:-BytecodeVerificationRemote",
}
"""For a run on this machine over some hundred thousand records: Java's optimising compiler would take longer than it
saves."""

FOR_LITTLE = {
    **FOR_SOME,
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}
"""For a run over little data, most of which would go by with compiling Spark's queries, too."""


def open_session(master: str | None = None, *, settings: Mapping[str, str] | None = None) -> SparkSession:
    """A session with the settings the job relies on.

    Args:
        master: Spark master for a run on this machine, e.g. ``local[2]``; None takes what the platform provides (Glue).
        settings: Further ones of a run on this machine; they win over the usual ones.
    """
    builder = SparkSession.builder.appName("delivery_report")
    chosen = dict(_EVERYWHERE) if master is None else {**_EVERYWHERE, **_LOCAL, **(settings or {})}
    if master is not None:
        # Workers need the same Python, with numpy; the first one on the path may be another.
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        builder = builder.master(master)
    for key, value in chosen.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()
