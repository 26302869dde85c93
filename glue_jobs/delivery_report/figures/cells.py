"""Attempts counted once, in cells fine enough that every report on attempts is a sum of them.

A cell is one project, queue, subscriber, hour, kind of outcome and latency bucket.
"""

from __future__ import annotations

from typing import Final

from ..storage.driver import columns, total
from ..storage.schema import struct
from .percentiles import bucket_of, rolled_up

WHO: Final = ("project", "queue", "subscriber_id")
KEYS: Final = ", ".join(WHO)
"""What names a subscriber, and the same as queries list it."""

NAMES: Final = ("subscriber", "dialect")
"""A subscriber's name and protocol; a group keeps one of each."""

OWN_QUEUES: Final = "ironmq/"
"""How the names of their queues begin."""

ROUTED_QUEUE: Final = "hub/incoming"
"""Where a hub message waits until the hub's router has made a copy of it for each service that wants it."""

COPY_QUEUES: Final = "hub/"
"""How the names of the queues of such copies begin."""

IS_ROUTED: Final = f"(coalesce(queue, '') = '{ROUTED_QUEUE}')"
"""Whether something is about a hub message as it was posted; in Spark and on the driver, as those that follow."""

IS_COPY: Final = f"(coalesce(queue, '') LIKE '{COPY_QUEUES}%' AND NOT {IS_ROUTED})"
"""Whether something is about a hub message as a service gets it; it was posted once, for all of them."""

IS_OWN: Final = f"(coalesce(queue, '') LIKE '{OWN_QUEUES}%' OR {IS_ROUTED})"
"""Whether something is about a message of the hub's own, for a project: a notification of an alert, spans, or a hub
message on its way to the hub's router, which is nobody's subscriber.

The proof counts those; what tells owners of their traffic does not (docs/decisions/interfaces.md).
"""

LARGEST: Final = "longest_ms"
PERCENTILES: Final = {"p50_ms": 0.5, "p95_ms": 0.95, "p99_ms": 0.99}

_TEXTS: Final = ("project", "queue", "subscriber_id", "subscriber", "dialect", "kind", "verdict", "error_class")
_SUMS: Final = ("attempts", "first_attempts", "parks", "bytes_out", "bytes_in")

CELL: Final = struct(
    "string " + " ".join(_TEXTS),
    "int status_code",
    "timestamp hour",
    "int bucket",
    "bigint " + " ".join(_SUMS),
    "bigint duration_ms longest_ms",
)
"""Columns of a cell; ``duration_ms`` is the sum of its attempts, ``longest_ms`` their maximum."""

_TOOK: Final = "verdict IN ('delivered', 'reserved', 'poll')"

OUTCOMES: Final = {
    "attempts": "attempts",
    "delivered": "CASE WHEN verdict = 'delivered' THEN attempts ELSE 0 END",
    "reserved": "CASE WHEN verdict = 'reserved' THEN attempts ELSE 0 END",
    "failed": "CASE WHEN verdict = 'failed' THEN attempts ELSE 0 END",
    "polls": "CASE WHEN kind = 'poll' THEN attempts ELSE 0 END",
    "first_attempts": "first_attempts",
    "first_won": f"CASE WHEN {_TOOK} THEN first_attempts ELSE 0 END",
    "parks": "parks",
    "bytes_out": "bytes_out",
    "bytes_in": "bytes_in",
    "busy_ms": "duration_ms",
}
"""What is added up over cells, by name."""

HOURLY: Final = struct(
    "string " + " ".join(WHO),
    "timestamp hour",
    "string subscriber dialect",
    "bigint attempts delivered reserved failed polls first_attempts first_won parks",
    "bigint bytes_out bytes_in busy_ms longest_ms p50_ms p95_ms p99_ms",
)
"""Columns of an hour of a subscriber. Kept by day, so that later runs compare with days long past without reading their
records again.
"""


def attempt_cells(records: str) -> str:
    """The cells of attempts and polls."""
    texts = ", ".join(f"coalesce({name}, '') AS {name}" for name in _TEXTS)
    return f"""
        SELECT {texts}, coalesce(status_code, 0) AS status_code, date_trunc('hour', "at") AS hour,
               {bucket_of("duration_ms")} AS bucket,
               count(*) AS attempts, count(*) FILTER (attempt = 1) AS first_attempts,
               count(*) FILTER (scheduled) AS parks, {total("bytes_out", "bytes_out")},
               {total("bytes_in", "bytes_in")}, {total("duration_ms", "duration_ms")},
               max(duration_ms) AS longest_ms
        FROM {records} WHERE kind IN ('attempt', 'poll') GROUP BY ALL"""


def summed(cells: str, keys: tuple[str, ...]) -> str:
    """Attempts of each group: how many, how they ended, percentiles of their time, bytes.

    ``attempts`` counts polls too; ``first_won`` are first attempts that the subscriber took for good or reserved (202).
    ``busy_ms`` is the time spent in them.
    """
    named = [name for name in NAMES if name not in keys]
    return rolled_up(cells, keys, sums=OUTCOMES, count="attempts", largest=LARGEST, wanted=PERCENTILES, kept=named)


def hourly(cells: str) -> str:
    """Attempts per project, queue, subscriber and hour, as :data:`HOURLY` lists the columns."""
    return f"SELECT {', '.join(HOURLY.fieldNames())} FROM ({summed(cells, (*WHO, 'hour'))})"


def failures_by_cause(cells: str, keys: tuple[str, ...] = ()) -> str:
    """Why attempts failed, for everybody together or by some columns: the error class if there was no answer, otherwise
    the status.
    """
    cause = "CASE WHEN error_class <> '' THEN error_class ELSE 'status ' || status_code END"
    return f"""
        SELECT {columns(keys)}{cause} AS cause, {total("attempts", "attempts")} FROM {cells}
        WHERE verdict = 'failed' GROUP BY ALL"""


def usual_cause(cells: str) -> str:
    """The most frequent cause of each subscriber's failures."""
    causes = failures_by_cause(cells, WHO)
    return f"SELECT {KEYS}, arg_max(cause, (attempts, cause)) AS cause FROM ({causes}) GROUP BY ALL"
