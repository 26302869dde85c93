"""What is kept besides the days themselves is rid of erased projects: findings and ends of former nights, what is
carried over, intermediate tables.

``pushhub projects delete`` notes below ``records/erased/projects`` whose records it has taken out: an object for each
project, named by the digest of its id. The days that these records were of are made again like all days whose objects
have changed (:mod:`.compaction`); what is here follows from no day. Done once for each erasure, and kept in
``curated/erased.json``, where the command finds it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import date
from typing import Final

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from .figures.outages import DAY
from .proof.carried import without_rows
from .proof.findings import FINDING
from .proof.pulled_ends import GONE
from .storage.days import days_of, read_replaced, remove_former, replace_days
from .storage.files import listed, read_text, remove, write_text
from .storage.layout import Layout

_BITS: Final = 256


def take_out_erased(spark: SparkSession, records: str, layout: Layout) -> None:
    """Take the rows of projects that were erased since the last run out of what former runs have left.

    Args:
        records: Folder that holds ``dt=...`` and ``erased``.
    """
    erasures = _erasures(records)
    taken_out: dict[str, str] = json.loads(read_text(layout.erased) or "{}")
    new = {digest for digest, _ in erasures.items() - taken_out.items()}
    if not new:
        return
    of_erased = _is_of(new)
    for root, schema in ((layout.findings, FINDING), (layout.gone, GONE), (layout.outages, DAY)):
        _clear(spark, root, schema, of_erased)
    without_rows(spark, layout, of_erased)
    remove(layout.work)
    write_text(layout.erased, json.dumps(erasures, sort_keys=True), "application/json")


def _clear(spark: SparkSession, root: str, schema: StructType, of_erased: Column) -> None:
    """Make the days of a table again that hold such rows, and remove all files that are no day's any more."""
    rows: DataFrame = read_replaced(spark, root, schema, date.min)
    days = [each["dt"] for each in rows.where(of_erased).select("dt").distinct().collect()]
    if days:
        others = rows.where(F.col("dt").isin(*days) & ~of_erased).coalesce(1)
        replace_days(others, root, days)
    remove_former(root, days_of(listed(root)))


def _is_of(digests: Iterable[str]) -> Column:
    """Whether a row is of one of these projects."""
    return F.coalesce(F.sha2(F.col("project"), _BITS).isin(*sorted(digests)), F.lit(False))


def _erasures(records: str) -> dict[str, str]:
    """The erasures that were noted: by the digest of the project, which one it was."""
    folder = f"{records}/erased/projects"
    texts = {name: read_text(f"{folder}/{name}") for name in listed(folder)}
    return {name.removesuffix(".json"): str(json.loads(text)["erasure"]) for name, text in texts.items() if text}
