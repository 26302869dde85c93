"""Findings by their cause: first the objects that could not be read or are gone, and the streams without pulses, each
with what follows from it; then each kind of finding once per queue.
"""

from __future__ import annotations

from typing import Final

from ..storage.driver import text

FOLLOW: Final = ("record_missing", "never_accepted", "not_owed", "overdue", "not_recorded")
"""Kinds of findings that missing records cause, wherever these were lost."""

_OBJECTS: Final = ("objects_gone", "object_missing", "unusable_records")

_DAY: Final = r"^dt=(\d{4}-\d\d-\d\d)"
_HOURS: Final = r"(?:^dt=[\d-]+/hour=|, of the hours )(\d\d(?:, \d\d)*)"
"""Of what day and hours an object is, or objects are, as their finding says."""

_SPAN: Final = r" (between (\S+ \S+) and (\S+ \S+)) "
"""From when to when there were no pulses, as their finding says."""

_STREAM: Final = "^stream of (.*): "
_LISTED: Final = r"(?:there|tells of): (.*?)(?:, of the hours .*|, with \d+ line.*|; .*)?$"
_MORE: Final = r" and (\d+) more$"


def _part(pattern: str, group: int = 1, of: str = "detail") -> str:
    return f"regexp_extract({of}, {text(pattern)}, {group})"


def _number(pattern: str, group: int = 1, of: str = "detail") -> str:
    return f"coalesce(try_cast({_part(pattern, group, of)} AS BIGINT), 0)"


_LIST: Final = _part(_LISTED)
_HOW_MANY: Final = f"(len(string_split({_LIST}, ', ')) + {_number(_MORE, of=_LIST)})::BIGINT"
"""How many objects or messages a finding lists, of which it may name only the first."""

_GONE: Final = _number(r", with (\d+) line")
_LESS: Final = r": (\d+) of (\d+) records could be used"

KNOWN: Final = {
    "unrecorded": f"CASE WHEN finding = 'not_recorded' THEN {_HOW_MANY} ELSE 0 END",
    "lines_gone": f"""CASE WHEN finding IN ('objects_gone', 'object_missing') THEN {_GONE}
                           WHEN finding = 'unusable_records' THEN greatest({_number(_LESS, 2)} - {_number(_LESS)}, 0)
                           ELSE 0 END""",
}
"""What is known of what is missing, though in no sum of deliveries: messages that tables hold and no record tells of,
and lines of objects that are gone.
"""


def by_cause(findings: str) -> str:
    """One row per cause: an unreadable object each, what is gone of a day, and a time of which streams have no pulses;
    and of the findings that follow from none, each kind once per queue.

    Columns: ``severity``, ``finding``, whose (``project``, ``queue``), how many (``count``: objects, streams, messages,
    else findings), how many findings follow from it (``explained``), the first and last hour, one ``delivery_id`` and
    ``detail`` as an example. A finding follows from an object, or from missing pulses, when it is of the kind that
    missing records make, and was accepted in the object's hour or the one before; missing pulses follow from objects of
    their hours.
    """
    day = _part(_DAY)
    hours = f"""list_transform(list_filter(string_split({_part(_HOURS)}, ', '), lambda each: each <> ''),
                               lambda each: ({day} || ' ' || each || ':00:00')::TIMESTAMP)"""
    since, until = (f"try_cast({_part(_SPAN, group)} AS TIMESTAMP)" for group in (2, 3))
    of_span = f"""generate_series(date_trunc('hour', {since}), {until} - INTERVAL 1 microsecond, INTERVAL 1 hour)"""
    streams = f"concat('streams of ', string_agg({_part(_STREAM)}, ', ' ORDER BY detail))"
    first = "(arg_min({'delivery_id': delivery_id, 'detail': detail}, concat(delivery_id, ' ', detail)))"
    return f"""
        WITH objects AS (
            -- What is gone of a day is one cause, and each unreadable object is.
            SELECT severity, finding, CASE WHEN finding = 'unusable_records' THEN detail ELSE {day} END AS cause,
                   sum(CASE WHEN finding = 'unusable_records' THEN 1 ELSE {_HOW_MANY} END)::BIGINT AS count,
                   list_distinct(flatten(list({hours}))) AS hours, min(detail) AS detail
            FROM {findings} WHERE finding IN {_OBJECTS} GROUP BY ALL
        ), reached AS (
            SELECT DISTINCT finding, cause, unnest([hour, hour - INTERVAL 1 hour]) AS hour
            FROM (SELECT finding, cause, unnest(hours) AS hour FROM objects)
        ), pulses AS (
            SELECT severity, finding, detail, {_part(_SPAN)} AS cause, {of_span} AS hours
            FROM {findings} WHERE finding = 'pulse_missing'
        ), of_objects AS (
            SELECT detail FROM (SELECT detail, unnest(hours) AS hour FROM pulses)
            GROUP BY detail HAVING bool_and(hour IN (SELECT hour FROM reached))
        ), silences AS (
            SELECT severity, finding, cause, count(*) AS count, any_value(hours) AS hours,
                   CASE WHEN count(*) = 1 THEN min(detail)
                        ELSE {streams} || ': ' || min(split_part(detail, ': ', 2)) END AS detail
            FROM pulses WHERE detail NOT IN (SELECT detail FROM of_objects) GROUP BY severity, finding, cause
        ), reach AS (
            SELECT * FROM reached
            UNION ALL
            SELECT * FROM (
                SELECT DISTINCT finding, cause, unnest([hour, hour - INTERVAL 1 hour]) AS hour
                FROM (SELECT finding, cause, unnest(hours) AS hour FROM silences)
            ) WHERE hour NOT IN (SELECT hour FROM reached)
        ), others AS (
            SELECT *, finding IN {FOLLOW} AND coalesce(hour IN (SELECT hour FROM reach), false) AS follows
            FROM {findings} WHERE finding NOT IN ('pulse_missing', {str(_OBJECTS)[1:-1]})
        ), following AS (
            SELECT hour, count(*) AS n FROM others WHERE follows GROUP BY hour
            UNION ALL SELECT hours[1], count(*) FROM pulses SEMI JOIN of_objects USING (detail) GROUP BY ALL
        ), explained AS (
            SELECT reach.finding, cause, sum(n)::BIGINT AS explained FROM reach JOIN following USING (hour) GROUP BY ALL
        )
        SELECT 0 AS place, severity, finding, NULL::VARCHAR AS project, NULL::VARCHAR AS queue, count,
               coalesce(explained, 0) AS explained, list_min(hours) AS first_hour, list_max(hours) AS last_hour,
               NULL::VARCHAR AS delivery_id, detail
        FROM (FROM objects UNION ALL BY NAME FROM silences) LEFT JOIN explained USING (finding, cause)
        UNION ALL
        SELECT CASE WHEN project IS NULL THEN 0 ELSE 1 END, severity, finding, project, queue,
               sum(CASE WHEN finding = 'not_recorded' THEN {_HOW_MANY} ELSE 1 END)::BIGINT, 0, min(hour), max(hour),
               {first}.delivery_id, {first}.detail
        FROM others WHERE NOT follows
        GROUP BY severity, finding, project, queue, CASE WHEN project IS NULL THEN detail END"""
