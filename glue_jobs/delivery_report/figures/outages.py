"""How often and how long each subscriber was down, and what was given up meanwhile: what the records know, no model.

A subscriber is *down* from its first failed attempt after a success until its next success, if at least
:data:`LEAST_FAILED` attempts failed in between, of more than one message: a single message that always fails says
nothing about its receiver. What is kept of each day is small (:data:`DAY`), so that thirty of them are read each night.
"""

from __future__ import annotations

from datetime import date, datetime, timedelta
from typing import Final

from ..storage.driver import total
from ..storage.schema import struct
from .cells import KEYS, WHO

DAYS: Final = 30
"""How far back outages are told."""

LEAST_FAILED: Final = 3
"""Failed attempts in a row that make an outage."""

IS_OUTAGE: Final = f"(attempts >= {LEAST_FAILED} AND first_message <> last_message)"
"""Whether a run of failed attempts is an outage."""

FAILING: Final = "failing"
WELL: Final = "well"
GIVEN_UP: Final = "given_up"

DAY: Final = struct(
    "string " + " ".join(WHO),
    "string subscriber kind",
    "timestamp begun ended expires_at",
    "boolean after_success",
    "bigint attempts",
    "string first_message last_message",
)
"""Columns of what is kept of a day. ``kind`` is one of

- ``failing``: a run of failed attempts: ``begun`` with the first of them, ``ended`` by the first success after it on
  that day (null: none), ``after_success`` on that day or not; the smallest and the largest id of its messages.
- ``well``: the first (``begun``) and last (``ended``) success of the day.
- ``given_up``: one delivery that used up its tries: accepted (``begun``), given up (``ended``).
"""

OUTAGES: Final = struct(
    "string " + " ".join(WHO),
    "string subscriber sentence",
    "bigint days times_down longest_ms down_ms",
    "timestamp down_since",
    "bigint retries_lasted_ms given_up reachable needed_ms",
)
"""Columns of a subscriber. ``down_since``: it is down now. ``given_up``: deliveries that were given up while it was
down; ``reachable``: those of them that retries as long as the outage would have reached, that is, within
``needed_ms`` of their acceptance.
``retries_lasted_ms``: from acceptance to giving up, the shortest of the last day on which anything was given up.
"""

SOON: Final = "1 minute"
"""A message is tried within so much of its acceptance: whoever was accepted so shortly before an outage met it."""


_BY_ITSELF: Final = "reason IS NULL AND manual IS NULL AND NOT ends_with(delivery_id, '*')"
_USED_UP: Final = f"failed AND state IN ('exhausted', 'held') AND {_BY_ITSELF}"
"""Whether an attempt was the last of a delivery that used up its tries by itself: not one that an answer or a person
ended, nor a unicast one, which goes on to another subscriber."""


def outage_days(records: str) -> str:
    """What is kept of a day, as :data:`DAY` lists the columns.

    Attempts are ordered by their answers. Where failures and successes of a minute are mixed, the subscriber was not
    down in it.
    """
    return f"""
        WITH made AS (
            SELECT *, verdict = 'failed' AS failed FROM {records}
            WHERE kind = 'attempt' AND dialect NOT IN ('pull', 'notifications')
        ), minutes AS (
            SELECT {KEYS}, date_trunc('minute', finished_at) AS minute, max(subscriber) AS subscriber,
                   count(*) FILTER (failed) AS attempts, min(started_at) FILTER (failed) AS since,
                   min(finished_at) FILTER (failed) AS first_bad, max(finished_at) FILTER (failed) AS last_bad,
                   min(finished_at) FILTER (NOT failed) AS first_good,
                   max(finished_at) FILTER (NOT failed) AS last_good,
                   min(message_id) FILTER (failed) AS first_message, max(message_id) FILTER (failed) AS last_message
            FROM made GROUP BY ALL
        ), moments AS (
            SELECT {KEYS}, subscriber, false AS well, first_bad AS first_at, last_bad AS last_at, since, attempts,
                   first_message, last_message
            FROM minutes
            WHERE first_bad IS NOT NULL AND coalesce(first_bad > last_good OR first_good > last_bad, true)
            UNION ALL
            SELECT {KEYS}, subscriber, true, first_good, last_good, NULL, NULL, NULL, NULL
            FROM minutes WHERE first_good IS NOT NULL
        ), placed AS (
            SELECT *, CASE WHEN NOT well THEN max(last_at) FILTER (well) OVER (
                               PARTITION BY {KEYS} ORDER BY first_at ROWS UNBOUNDED PRECEDING) END AS success_before,
                   CASE WHEN NOT well THEN min(first_at) FILTER (well) OVER (
                       PARTITION BY {KEYS} ORDER BY first_at
                       ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING) END AS success_after
            FROM moments
        ), runs AS (
            SELECT {KEYS}, well, success_before, success_after, max(subscriber) AS subscriber,
                   min(first_at) AS first_at, max(last_at) AS last_at, min(since) AS since,
                   {total("attempts", "attempts")}, min(first_message) AS first_message,
                   max(last_message) AS last_message
            FROM placed GROUP BY ALL
        )
        SELECT {KEYS}, subscriber, CASE WHEN well THEN '{WELL}' ELSE '{FAILING}' END AS kind,
               CASE WHEN well THEN first_at ELSE greatest(since, success_before) END AS begun,
               CASE WHEN well THEN last_at ELSE success_after END AS ended, NULL::TIMESTAMP AS expires_at,
               CASE WHEN NOT well THEN success_before IS NOT NULL END AS after_success,
               attempts, first_message, last_message
        FROM runs
        -- To a run between two successes of the day nothing can be added.
        WHERE well OR success_before IS NULL OR success_after IS NULL OR {IS_OUTAGE}
        UNION ALL
        SELECT {KEYS}, subscriber, '{GIVEN_UP}', accepted_at, finished_at, expires_at, NULL, NULL, NULL, NULL
        FROM made WHERE {_USED_UP}"""


def outages(days: str, since: date, until: datetime) -> str:
    """One row per subscriber that anything was sent to, as :data:`OUTAGES` lists the columns.

    Args:
        days: A table of what :func:`outage_days` makes.
        since: The first day of which they tell.
        until: When the report ends; an outage that has no end lasts until then.
    """
    end = f"TIMESTAMP '{until:%Y-%m-%d %H:%M:%S.%f}'"
    days_covered = (until.date() - since).days + (until.time() > until.min.time())
    meanwhile = "gone >= begun AND coalesce(gone < ended, true)"
    reached = f"{meanwhile} AND accepted >= begun - INTERVAL {SOON} AND coalesce(expires_at > ended, false)"
    return f"""
        WITH down AS (
            SELECT *, date_diff('millisecond', begun, coalesce(ended, {end})) AS lasted
            FROM ({_outages(f"(SELECT * FROM {days} WHERE kind <> '{GIVEN_UP}')")})
        ), gone AS (
            SELECT {KEYS}, begun AS accepted, ended AS gone, expires_at FROM {days} WHERE kind = '{GIVEN_UP}'
        ), of_each AS (
            SELECT {KEYS}, begun, any_value(ended) AS ended, any_value(lasted) AS lasted,
                   count(*) FILTER ({meanwhile}) AS given_up, count(*) FILTER ({reached}) AS reachable,
                   max(date_diff('millisecond', accepted, ended)) FILTER ({reached}) AS needed_ms
            FROM down LEFT JOIN gone USING ({KEYS}) GROUP BY {KEYS}, begun
        ), downs AS (
            SELECT {KEYS}, count(*) AS times_down, max(lasted) AS longest_ms, {total("lasted", "down_ms")},
                   max(begun) FILTER (ended IS NULL) AS down_since, {total("given_up", "given_up")},
                   {total("reachable", "reachable")}, max(needed_ms) AS needed_ms
            FROM of_each GROUP BY {KEYS}
        ), lasts AS (
            SELECT {KEYS}, arg_max(shortest, day) AS retries_lasted_ms FROM (
                SELECT {KEYS}, gone::DATE AS day, min(date_diff('millisecond', accepted, gone)) AS shortest
                FROM gone GROUP BY {KEYS}, day
            ) GROUP BY {KEYS}
        ), everybody AS (
            SELECT {KEYS}, arg_max(subscriber, begun) AS subscriber FROM {days} GROUP BY {KEYS}
        ), told AS (
            SELECT * REPLACE (coalesce(times_down, 0) AS times_down, coalesce(down_ms, 0) AS down_ms,
                              coalesce(given_up, 0) AS given_up, coalesce(reachable, 0) AS reachable),
                   {days_covered}::BIGINT AS days
            FROM everybody LEFT JOIN downs USING ({KEYS}) LEFT JOIN lasts USING ({KEYS})
        )
        SELECT {", ".join(OUTAGES.fieldNames())} FROM (SELECT *, {_sentence()} AS sentence FROM told)"""


def _outages(days: str) -> str:
    """The outages of all days, ``begun`` and ``ended``: one that goes over midnight is one."""
    failing = f"kind = '{FAILING}'"
    by_time = f"(PARTITION BY {KEYS} ORDER BY begun, kind DESC)"
    return f"""
        SELECT {KEYS}, begun, ended FROM (
            SELECT {KEYS}, number, min(begun) FILTER ({failing}) AS begun,
                   -- The first success of a later day ends what its own day could not.
                   min(CASE WHEN {failing} THEN ended ELSE begun END) AS ended,
                   sum(attempts) FILTER ({failing}) AS attempts,
                   min(first_message) AS first_message, max(last_message) AS last_message
            FROM (
                SELECT *, sum(begins) OVER (PARTITION BY {KEYS} ORDER BY begun, kind DESC
                                            ROWS UNBOUNDED PRECEDING) AS number
                FROM (
                    SELECT *, ({failing} AND NOT (
                        NOT after_success AND coalesce(lag({failing} AND ended IS NULL) OVER {by_time}, false)
                    ))::INTEGER AS begins
                    FROM {days}
                )
            ) GROUP BY {KEYS}, number
        ) WHERE number > 0 AND {IS_OUTAGE}"""


def _sentence() -> str:
    """What a person can check by hand. Times are rounded down, but what retries need is rounded up."""
    in_days = "concat(' in ', days, CASE WHEN days = 1 THEN ' day' ELSE ' days' END)"
    times = "CASE WHEN times_down = 1 THEN 'once' ELSE times_down || ' times' END"
    since = "coalesce(', and now since ' || strftime(down_since, '%-d %b %H:%M') || ' UTC', '')"
    down = f"concat('Down ', {times}, {in_days}, ', longest ', {_words('longest_ms', 'floor')}, {since})"
    first = f"CASE WHEN times_down = 0 THEN concat('Not down', {in_days}) ELSE {down} END"
    lasted = f"coalesce('its retries last ' || {_words('retries_lasted_ms', 'floor')}, 'nothing was given up')"
    were = "CASE WHEN given_up = 1 THEN ' message was' ELSE ' messages were' END"
    gone = f"CASE WHEN given_up > 0 THEN concat(given_up, {were}, ' given up meanwhile') END"
    of_them = (
        "CASE WHEN given_up = 1 THEN 'it' WHEN reachable = given_up THEN 'all of them' "
        "ELSE concat(reachable, ' of them') END"
    )
    would = (
        f"CASE WHEN reachable > 0 THEN concat('retries of ', {_words('needed_ms', 'ceil')}, "
        f"' would have reached ', {of_them}) END"
    )
    return f"concat(concat_ws('; ', {first}, {lasted}, {gone}, {would}), '.')"


def _words(milliseconds: str, whole: str) -> str:
    """A span as people say it: ``4 h 10 min``, rounded by ``floor`` or ``ceil``; null where there is none."""

    def two(unit: int, name: str, smaller: str, in_one: int) -> str:
        count = f"{whole}({milliseconds} / {unit})::BIGINT"
        rest = f"CASE WHEN {count} % {in_one} > 0 THEN concat(' ', {count} % {in_one}, ' {smaller}') ELSE '' END"
        return f"concat({count} // {in_one}, ' {name}', {rest})"

    return f"""CASE WHEN {milliseconds} IS NULL THEN NULL
        WHEN {milliseconds} < 60000 THEN concat({whole}({milliseconds} / 1000)::BIGINT, ' s')
        WHEN {whole}({milliseconds} / 60000) < 60 THEN concat({whole}({milliseconds} / 60000)::BIGINT, ' min')
        WHEN {whole}({milliseconds} / 60000) < 1440 THEN {two(60_000, "h", "min", 60)}
        ELSE {two(3_600_000, "d", "h", 24)} END"""


def first_day(until: date) -> date:
    """The first of the :data:`DAYS` that end with a day."""
    return until - timedelta(days=DAYS - 1)
