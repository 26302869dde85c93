"""Findings by their cause: first the objects that could not be read, then each kind of finding once per queue,
with how many there are.
"""

from __future__ import annotations

from typing import Final

from ..storage.driver import text

FOLLOW: Final = ("record_missing", "never_accepted", "not_owed", "overdue")
"""Kinds of findings that missing records cause, wherever these were lost."""

_DAY: Final = r"dt=(\d{4}-\d\d-\d\d)"
_HOURS: Final = r"(?:^dt=[\d-]+/hour=|, of the hours )(\d\d(?:, \d\d)*)(?:/|$)"
"""Of what day and hours an object is, or objects are, as their finding says."""


def by_cause(findings: str) -> str:
    """One row per cause: an object each; and of the findings that follow from none, each kind once per queue.

    Columns: ``severity``, ``finding``, whose (``project``, ``queue``), how many (``count``), how many findings follow
    from it (``explained``), the first and last hour of acceptance, one ``delivery_id`` and ``detail`` as an example. A
    finding follows from an object when it is of the kind that missing records make, and was accepted in the object's
    hour or the one before.

    Args:
        findings: See :data:`.findings.FINDING`.
    """
    day, hours = (f"regexp_extract(detail, {text(pattern)}, 1)" for pattern in (_DAY, _HOURS))
    first = "(arg_min({'delivery_id': delivery_id, 'detail': detail}, concat(delivery_id, ' ', detail)))"
    return f"""
        WITH objects AS (
            SELECT severity, finding, project, queue, detail,
                   list_transform(list_filter(string_split({hours}, ', '), lambda each: each <> ''),
                                  lambda each: ({day} || ' ' || each || ':00:00')::TIMESTAMP) AS hours
            FROM {findings} WHERE message_id IS NULL AND delivery_id IS NULL
        ), reach AS (
            SELECT DISTINCT object, unnest([hour, hour - INTERVAL 1 hour]) AS hour
            FROM (SELECT detail AS object, unnest(hours) AS hour FROM objects WHERE severity = 'breach')
        ), others AS (
            SELECT * FROM {findings} WHERE message_id IS NOT NULL OR delivery_id IS NOT NULL
        ), follows AS (
            SELECT object, count(*) AS explained FROM others JOIN reach USING (hour)
            WHERE finding IN {FOLLOW} GROUP BY object
        )
        SELECT 0 AS place, severity, finding, project, queue, 1::BIGINT AS count, coalesce(explained, 0) AS explained,
               list_min(hours) AS first_hour, list_max(hours) AS last_hour, NULL::VARCHAR AS delivery_id, detail
        FROM objects LEFT JOIN follows ON detail = object
        UNION ALL
        SELECT 1, severity, finding, project, queue, count(*), 0, min(hour), max(hour),
               {first}.delivery_id, {first}.detail
        FROM others
        WHERE NOT (finding IN {FOLLOW} AND coalesce(hour IN (SELECT hour FROM reach), false))
        GROUP BY severity, finding, project, queue"""
