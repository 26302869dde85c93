"""Accepted messages and their outcomes, by hour of acceptance: deliveries, eventual success, time to delivery."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import IntegerType, LongType, StringType, StructField, StructType, TimestampType

from .cells import IS_COPY, IS_OWN, IS_ROUTED, WHO, waits
from .driver import columns, total
from .percentiles import bucket_of, rolled_up
from .schema import SETTLED
from .usage import INLINE_BODY_BYTES

GIVEN_UP: Final = ("exhausted", "expired", "cancelled")

WAITING: Final = ("pending", "retrying", "reserved", "polling", "scheduled", "held")
"""Standings of what is not settled and not missing."""

LARGEST: Final = "delivery_longest_ms"
PERCENTILES: Final = {"delivery_p50_ms": 0.5, "delivery_p95_ms": 0.95, "delivery_p99_ms": 0.99}

_COUNTS: Final = (
    *("messages", "deliveries", "owing", "unexpected", "first_won", "tried", "attempts", "retries"),
    *("body_bytes", "inline_bytes", "large_bodies", "n"),
)

FATE: Final = StructType(
    [
        *(StructField(name, StringType()) for name in WHO),
        StructField("hour", TimestampType()),
        *(StructField(name, StringType()) for name in ("state", "standing")),
        StructField("bucket", IntegerType()),
        *(StructField(name, LongType()) for name in (*_COUNTS, LARGEST)),
    ]
)
"""Columns of a cell of deliveries."""

ACKNOWLEDGED: Final = StructType(
    [
        *(StructField(name, StringType()) for name in WHO),
        StructField("bucket", IntegerType()),
        *(StructField(name, LongType()) for name in ("n", "longest_ms")),
    ]
)
"""Columns of a cell of waits for acknowledgements."""

FATES: Final = {
    **{name: name for name in ("messages", "deliveries")},
    **{each: f"CASE WHEN state = '{each}' THEN owing ELSE 0 END" for each in SETTLED},
    "open": f"CASE WHEN state IN {SETTLED} THEN 0 ELSE owing END",
    **{name: name for name in _COUNTS[4:-1]},
}
"""What is added up over cells of deliveries, by name."""


def fate_cells(standings: DataFrame) -> DataFrame:
    """Deliveries counted by project, queue, subscriber, hour of acceptance, state, standing and time to delivery:
    every report on deliveries is a sum of these.

    Args:
        standings: See :func:`.conservation.with_standing`.
    """
    won = F.col("state").isin("delivered", "acknowledged")
    took = F.when(won, F.unix_millis("settled_at") - F.unix_millis("accepted_at"))
    large = F.col("body_size") > INLINE_BODY_BYTES
    # A notification's acknowledgement does not say which sending it is for; of one sent once there is no doubt.
    at_first = F.when(F.col("notification"), won & (F.col("attempts") == 1)).otherwise(F.col("first_won"))
    counted = {
        "messages": F.col("leads_message"),
        "deliveries": F.col("owed"),
        "owing": (F.col("owed") > 0).cast("long"),
        "unexpected": (F.col("acceptances") == 0).cast("long"),
        "first_won": at_first.cast("long"),
        "tried": (F.col("attempts") > 0).cast("long"),
        "attempts": F.col("attempts"),
        "retries": F.greatest(F.col("attempts") - 1, F.lit(0)),
        "body_bytes": F.col("body_size") * F.col("leads_message"),
        "inline_bytes": F.when(large, 0).otherwise(F.col("body_size")) * F.col("leads_message"),
        "large_bodies": large.cast("long") * F.col("leads_message"),
        "n": took.isNotNull().cast("long"),
    }
    return (
        standings.withColumns({"took": took, "bucket": bucket_of(took)})
        .groupBy(*WHO, "hour", "state", "standing", "bucket")
        .agg(*(F.sum(value).alias(name) for name, value in counted.items()), F.max("took").alias(LARGEST))
        .select(*FATE.fieldNames())
    )


def fates(cells: str, keys: tuple[str, ...]) -> str:
    """Deliveries of each group by outcome, with percentiles of the time from acceptance to delivery.

    ``messages`` counts a message once, at its first delivery, so it adds up over whole queues only. ``first_won``: the
    first attempt was taken for good; of notifications: acknowledged and sent only once. ``retries``: attempts after the
    first.

    Args:
        cells: See :func:`fate_cells` and :func:`counted_once`.
    """
    return rolled_up(cells, keys, sums=FATES, count="n", largest=LARGEST, wanted=PERCENTILES)


def counted_once(cells: str) -> str:
    """Cells of deliveries with their ``day``, and whether they are the hub's ``own``: a hub message counts as a message
    when it was posted, and as a delivery where a service gets it.

    Args:
        cells: See :func:`fate_cells`.
    """
    of_hub = f"({IS_ROUTED} OR {IS_COPY})"
    none = ", ".join(f"0 AS {name}" for name in _COUNTS if name != "messages")
    # Posting has no duration.
    posted = f"* REPLACE ({none}, NULL AS bucket, NULL AS {LARGEST})"
    return f"""
        SELECT *, hour::DATE AS day FROM (
            SELECT *, {IS_OWN} AS own FROM {cells} WHERE NOT {of_hub}
            UNION ALL SELECT {posted}, {IS_COPY} AS own FROM {cells} WHERE {of_hub} AND messages > 0
            UNION ALL SELECT * REPLACE (0 AS messages), {IS_OWN} AS own FROM {cells} WHERE {of_hub}
        )"""


def given_up(cells: str) -> str:
    """Deliveries that did not arrive: those that ended without success, by queue and subscriber,
    and of how many.

    Args:
        cells: See :func:`fate_cells`.
    """
    ended = ", ".join(total(FATES[name], name) for name in GIVEN_UP)
    return f"""
        SELECT *, {" + ".join(GIVEN_UP)} AS given_up FROM (
            SELECT {columns(WHO)}{ended}, {total("owing", "deliveries")} FROM {cells} GROUP BY ALL
        ) WHERE {" + ".join(GIVEN_UP)} > 0"""


def backlog(cells: str) -> str:
    """What still waits, by queue and subscriber: how many (``waiting``), their standings,
    and the hour of the ``oldest``.

    Args:
        cells: See :func:`fate_cells`.
    """
    each = ", ".join(total(f"CASE WHEN standing = '{name}' THEN owing ELSE 0 END", name) for name in WAITING)
    return f"""
        SELECT {columns(WHO)}{total("owing", "waiting")}, {each}, min(hour) AS oldest
        FROM {cells} WHERE standing IN {WAITING} AND owing > 0 GROUP BY ALL"""


def without_gaps(rows: str, key: str, counts: Mapping[str, str], since: datetime, until: datetime) -> str:
    """A time series of hours or days without gaps: silent ones count as zero, and have no percentiles.

    Args:
        rows: A table of sums by ``hour`` or ``day``.
        key: Which of the two.
        counts: Names of its sums.
        since: Begin of the first.
        until: End of the last, not included.
    """
    last = max(since, until - timedelta(microseconds=1))
    kind = "DATE" if key == "day" else "TIMESTAMP"
    zero = ", ".join(f"coalesce({name}, 0) AS {name}" for name in counts)
    return f"""
        SELECT * REPLACE ({zero}) FROM (
            SELECT unnest(generate_series(TIMESTAMP '{since:%Y-%m-%d %H:%M:%S}', TIMESTAMP '{last:%Y-%m-%d %H:%M:%S}',
                                          INTERVAL 1 {key}))::{kind} AS {key}
        ) LEFT JOIN {rows} USING ({key})"""


def acknowledged_cells(deliveries: DataFrame) -> DataFrame:
    """How long subscribers that answered 202 took to acknowledge, counted by subscriber and time;
    0 when it came before the answer.
    """
    took = F.greatest(F.unix_millis("acknowledged_at") - F.unix_millis("held_at"), F.lit(0))
    return (
        deliveries.where(F.col("acknowledged_at").isNotNull() & F.col("held_at").isNotNull())
        .select(*WHO, took.alias("took"), bucket_of(took).alias("bucket"))
        .groupBy(*WHO, "bucket")
        .agg(F.count(F.lit(1)).alias("n"), F.max("took").alias("longest_ms"))
        .select(*ACKNOWLEDGED.fieldNames())
    )


def acknowledgement_waits(cells: str) -> str:
    """How long subscribers took to acknowledge, of :func:`acknowledged_cells`: count and percentiles."""
    return waits(cells, "n", "longest_ms")
