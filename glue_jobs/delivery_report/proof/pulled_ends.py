"""Ends of pulled messages: a message that has left its table has ended, and a record says so.

Nothing in the table tells when it left, so a record that is on its way looks like one that was lost. But what was gone
when one night looked, and has no record by the next, is lost. So each night keeps what it found gone.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from ..run.arguments import midnight
from ..storage.days import forget_days, listed_days, named_files, read_files, replace_days
from ..storage.schema import SETTLED, struct
from .carried import Inputs
from .deliveries import IDENTITY
from .findings import found
from .sightings import Sight

GONE: Final = struct("string " + " ".join(IDENTITY), "timestamp hour gone_since")
"""A pulled message that is open by its records and in no table; ``gone_since``: when a night first saw that."""


KEPT: Final = timedelta(days=7)
"""For how long it is kept what a night found gone; only the newest is used."""


def lost_ends(inputs: Inputs, judged: DataFrame, held: DataFrame) -> tuple[DataFrame, DataFrame]:
    """Compare the ends of pulled messages with the table.

    Args:
        judged: :func:`.conservation.with_standing` of deliveries.
        held: What the tables hold, see :func:`.ledger.compared`.

    Returns:
        Those whose end is lost (``sighted``), and a finding of each.
    """
    spark, layout, now = inputs.spark, inputs.layout, inputs.arguments.now
    accepted = F.col("accepted_at")
    within = (accepted >= F.lit(midnight(inputs.since))) & (accepted < F.lit(inputs.until))
    owed = F.col("pull") & (F.col("acceptances") > 0) & (F.col("owed") > 0)
    opened = judged.where(owed & ~F.col("state").isin(*SETTLED) & within)
    there = held.select("queue_uid", F.col("id").alias("there"))
    own = F.substring_index("delivery_id", ".", 1) == F.col("there")
    absent = opened.join(there, (opened["queue_uid"] == there["queue_uid"]) & own, "left_anti").select(
        *IDENTITY, "hour"
    )
    # That of the newest night. Its days are those on which nights looked.
    nights = listed_days(layout.gone)[-1:]
    before = read_files(spark, layout.gone, GONE, [file for day in nights for file in named_files(layout.gone, day)])
    first = before.select(*IDENTITY, "gone_since")
    gone = absent.join(first, list(IDENTITY), "left").withColumn(
        "gone_since", F.coalesce("gone_since", F.lit(now).cast("timestamp"))
    )
    gone = gone.select(*GONE.fieldNames())
    if inputs.as_of >= now:
        # A report on the past knows less than the last night did.
        night = now.date()
        replace_days(gone.withColumn("dt", F.lit(night)).coalesce(1), layout.gone, [night])
        forget_days(layout.gone, night - KEPT)
        gone = read_files(spark, layout.gone, GONE, named_files(layout.gone, night)).drop("dt")
    lost = gone.where(F.col("gone_since") <= F.lit(inputs.as_of - inputs.arguments.grace))
    rows = lost.select(*IDENTITY, F.lit(Sight.AHEAD.value).alias("sighted"))
    since_when = F.date_format("gone_since", "yyyy-MM-dd HH:mm:ss")
    detail = F.format_string(
        "the table has not had it since %s at the latest, and no record tells of its end", since_when
    )
    return rows, found(lost, "breach", "record_missing", detail)
