"""Accepted messages and their outcomes, by hour of acceptance: deliveries, eventual success, time to delivery; and by
try, whether another one helps.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Final

from ..storage.driver import total
from ..storage.schema import SETTLED, struct
from .cells import IS_COPY, IS_OWN, IS_ROUTED, KEYS, WHO
from .percentiles import bucket_of, rolled_up

GIVEN_UP: Final = ("exhausted", "expired", "cancelled")

WAITING: Final = ("pending", "retrying", "reserved", "polling", "scheduled", "held")
"""Standings of what is not settled and not missing."""

LARGEST: Final = "delivery_longest_ms"
PERCENTILES: Final = {"delivery_p50_ms": 0.5, "delivery_p95_ms": 0.95, "delivery_p99_ms": 0.99}

_COUNTS: Final = (
    *("messages", "deliveries", "owing", "unexpected", "first_won", "tried", "attempts", "retries"),
    *("body_bytes", "n"),
)

FATE: Final = struct(
    "string " + " ".join(WHO),
    "timestamp hour",
    "string state standing",
    "int bucket",
    "bigint " + " ".join((*_COUNTS, LARGEST)),
)
"""Columns of a cell of deliveries."""

TRIED: Final = struct("string " + " ".join(WHO), "bigint attempts won_attempt n")
"""Columns of a cell of tried deliveries."""

FATES: Final = {
    **{name: name for name in ("messages", "deliveries")},
    **{each: f"CASE WHEN state = '{each}' THEN owing ELSE 0 END" for each in SETTLED},
    "open": f"CASE WHEN state IN {SETTLED} THEN 0 ELSE owing END",
    **{name: name for name in _COUNTS[4:-1]},
}
"""What is added up over cells of deliveries, by name."""


def fate_cells(deliveries: str) -> str:
    """Deliveries with their standing (:data:`.deliveries.KEPT_DELIVERY`) counted by project, queue, subscriber, hour of
    acceptance, state, standing and time to delivery: every report on deliveries is a sum of these.
    """
    won = "state IN ('delivered', 'acknowledged')"
    counted = {
        "messages": "leads_message",
        "deliveries": "owed",
        "owing": "(owed > 0)::BIGINT",
        "unexpected": "(acceptances = 0)::BIGINT",
        # A notification's acknowledgement does not say which sending it is for; of one sent once there is no doubt.
        "first_won": f"(CASE WHEN notification THEN {won} AND attempts = 1 ELSE first_won END)::BIGINT",
        "tried": "(attempts > 0)::BIGINT",
        "attempts": "attempts",
        "retries": "greatest(attempts - 1, 0)",
        "body_bytes": "body_size * leads_message",
        "n": "(took IS NOT NULL)::BIGINT",
    }
    sums = ", ".join(total(value, name) for name, value in counted.items())
    took = f"CASE WHEN {won} THEN date_diff('millisecond', accepted_at, settled_at) END"
    return f"""
        SELECT {KEYS}, date_trunc('hour', accepted_at) AS hour, state, standing, {bucket_of("took")} AS bucket,
               {sums}, max(took) AS {LARGEST}
        FROM (SELECT *, {took} AS took FROM {deliveries}) GROUP BY ALL"""


def fates(cells: str, keys: tuple[str, ...]) -> str:
    """Deliveries of each group by outcome, with percentiles of the time from acceptance to delivery.

    ``messages`` counts a message once, at its first delivery, so it adds up over whole queues only. ``first_won``: the
    first attempt was taken for good; of notifications: acknowledged and sent only once. ``retries``: attempts after the
    first.
    """
    return rolled_up(cells, keys, sums=FATES, count="n", largest=LARGEST, wanted=PERCENTILES)


def counted_once(cells: str) -> str:
    """Cells of deliveries with their ``day``, without the hub's own: a hub message counts as a message when it was
    posted, and as a delivery where a service gets it.
    """
    none = ", ".join(f"0 AS {name}" for name in _COUNTS if name != "messages")
    # Posting has no duration.
    posted = f"* REPLACE ({none}, NULL AS bucket, NULL AS {LARGEST})"
    return f"""
        SELECT *, hour::DATE AS day FROM (
            FROM {cells} WHERE NOT {IS_OWN} AND NOT {IS_COPY}
            UNION ALL SELECT {posted} FROM {cells} WHERE {IS_ROUTED} AND messages > 0
            UNION ALL SELECT * REPLACE (0 AS messages) FROM {cells} WHERE {IS_COPY}
        )"""


def given_up(cells: str) -> str:
    """Deliveries that ended without success, by queue and subscriber, and of how many."""
    ended = ", ".join(total(FATES[name], name) for name in GIVEN_UP)
    return f"""
        SELECT *, {" + ".join(GIVEN_UP)} AS given_up FROM (
            SELECT {KEYS}, {ended}, {total("owing", "deliveries")} FROM {cells} GROUP BY ALL
        ) WHERE {" + ".join(GIVEN_UP)} > 0"""


def backlog(cells: str) -> str:
    """What still waits, by queue and subscriber: how many (``waiting``), their standings, and the hour of the
    ``oldest``.
    """
    each = ", ".join(total(f"CASE WHEN standing = '{name}' THEN owing ELSE 0 END", name) for name in WAITING)
    return f"""
        SELECT {KEYS}, {total("owing", "waiting")}, {each}, min(hour) AS oldest
        FROM {cells} WHERE standing IN {WAITING} AND owing > 0 GROUP BY ALL"""


def without_gaps(rows: str, key: str, counts: Mapping[str, str], since: datetime, until: datetime) -> str:
    """A time series of hours or days (``key``) without gaps, up to ``until``: silent ones count as zero, and have no
    percentiles.
    """
    last = max(since, until - timedelta(microseconds=1))
    kind = "DATE" if key == "day" else "TIMESTAMP"
    zero = ", ".join(f"coalesce({name}, 0) AS {name}" for name in counts)
    return f"""
        SELECT * REPLACE ({zero}) FROM (
            SELECT unnest(generate_series(TIMESTAMP '{since:%Y-%m-%d %H:%M:%S}', TIMESTAMP '{last:%Y-%m-%d %H:%M:%S}',
                                          INTERVAL 1 {key}))::{kind} AS {key}
        ) LEFT JOIN {rows} USING ({key})"""


def try_cells(deliveries: str) -> str:
    """Pushed deliveries that were tried, counted by subscriber, attempts made, and the attempt that won."""
    return f"""
        WITH tried AS (
            -- A poll has the number of an attempt, but asks for what was taken before.
            SELECT {KEYS}, attempts - polls AS attempts, won_attempt
            FROM {deliveries} WHERE NOT pull AND NOT notification
        )
        SELECT {KEYS}, attempts,
               CASE WHEN won_attempt IS NOT NULL THEN least(won_attempt, attempts) END AS won_attempt, count(*) AS n
        FROM tried WHERE attempts > 0 GROUP BY ALL"""


def by_attempt(cells: str) -> str:
    """Per attempt number: deliveries that made it (``tried``), that it won (``won``), its ``share``, and the
    ``won_so_far`` share of all.
    """
    return f"""
        SELECT *, won / tried AS share,
               sum(won) OVER (ORDER BY attempt) / first(tried) OVER (ORDER BY attempt) AS won_so_far
        FROM (
            SELECT attempt, {total("n", "tried")},
                   {total("CASE WHEN won_attempt = attempt THEN n ELSE 0 END", "won")}
            FROM (SELECT *, unnest(generate_series(1, attempts)) AS attempt FROM {cells}) GROUP BY attempt
        )"""
