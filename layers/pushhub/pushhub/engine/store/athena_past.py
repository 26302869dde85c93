"""Searches delivery records with Athena. The text of the query is this module's; what is looked for is bound to it."""

from __future__ import annotations

import base64
import re
from typing import TYPE_CHECKING, Any

from pushhub.base.errors import Invalid, NotFound, TryLater, Unavailable
from pushhub.base.times import iso_time
from pushhub.cloud.calls import aws_call
from pushhub.engine.model.past import COLUMNS, MOST_FOUND, PastEvent, PastPage, PastState, event

if TYPE_CHECKING:
    from pushhub.engine.model.past import PastQuery

TABLE = "raw_records"
"""Name of the Glue table that describes the objects of ``records/``."""

PAGE = 200
"""Rows that one look shows."""

MAX_CURSOR = 1_024

_BUSY_S = 10
_NUMBERS = frozenset({"attempt", "status_code", "duration_ms"})
_LITERAL = re.compile(r"'[A-Za-z0-9+/=:._-]*'")
_RUNNING = frozenset({"QUEUED", "RUNNING"})
_BASE64 = "from_utf8(from_base64(?))"
"""A parameter is a literal of SQL, quotes included. In base64 it holds no character that could end one."""


class AthenaPastRecords:
    """Implements :class:`pushhub.engine.records.ports.PastRecords`.

    Args:
        workgroup: Name of the workgroup, which limits the bytes that a query reads and says where results go.
        database: Name of the Glue database.
    """

    def __init__(self, client: Any, *, workgroup: str, database: str) -> None:
        self._client = client
        self._workgroup = workgroup
        self._database = database

    def check(self) -> None:
        pass

    def start(self, query: PastQuery, search_id: str) -> str:
        text, parameters = statement(query)
        try:
            with aws_call("athena:StartQueryExecution"):
                started = self._client.start_query_execution(
                    QueryString=text,
                    ExecutionParameters=parameters,
                    ClientRequestToken=search_id,
                    QueryExecutionContext={"Database": self._database},
                    WorkGroup=self._workgroup,
                )
        except Unavailable as unavailable:
            if unavailable.reason == "TooManyRequestsException":
                raise TryLater("Too many searches at a time: try again", retry_after_s=_BUSY_S) from unavailable
            raise
        return str(started["QueryExecutionId"])

    def look(self, query: PastQuery, run: str, after: str | None) -> PastPage:
        del query
        if after is not None and not (0 < len(after) <= MAX_CURSOR and after.isascii() and after.isprintable()):
            raise Invalid("after must be the cursor of an answer")
        try:
            with aws_call("athena:GetQueryExecution"):
                execution = self._client.get_query_execution(QueryExecutionId=run)["QueryExecution"]
        except Unavailable as unavailable:
            if unavailable.reason == "InvalidRequestException":
                raise NotFound("Search not found") from unavailable
            raise
        state = execution["Status"]["State"]
        scanned = execution.get("Statistics", {}).get("DataScannedInBytes", 0)
        if state in _RUNNING:
            return PastPage(state=PastState.RUNNING, scanned_bytes=scanned)
        if state != "SUCCEEDED":
            # What Athena says names buckets and tables.
            reason = (
                "It would have read more than the operator allows a search: choose fewer days"
                if state == "CANCELLED"
                else "The search failed: try again"
            )
            return PastPage(state=PastState.FAILED, scanned_bytes=scanned, reason=reason)
        events, following = self._rows(run, after)
        return PastPage(state=PastState.DONE, events=events, after=following, scanned_bytes=scanned, hours_left=0)

    def _rows(self, run: str, after: str | None) -> tuple[list[PastEvent], str | None]:
        start: dict[str, Any] = {"NextToken": after} if after else {}
        try:
            with aws_call("athena:GetQueryResults"):
                page = self._client.get_query_results(QueryExecutionId=run, MaxResults=PAGE, **start)
        except Unavailable as unavailable:
            if after and unavailable.reason == "InvalidRequestException":
                raise Invalid("after must be the cursor of an answer") from unavailable
            raise
        rows = page["ResultSet"]["Rows"]
        # The first row of the first page has the names of the columns.
        events = [_event([each.get("VarCharValue") for each in row["Data"]]) for row in rows[0 if after else 1 :]]
        return events, page.get("NextToken")


def statement(query: PastQuery) -> tuple[str, list[str]]:
    """The text of a query, which names no value, and the values that are bound to its question marks, in order."""
    first, last = query.days
    conditions: list[tuple[str, str]] = [
        ("dt >= ?", first),
        ("dt <= ?", last),
        ('"at" >= ?', iso_time(query.since)),
        ('"at" < ?', iso_time(query.until)),
        (f"project = {_BASE64}", _encoded(query.project)),
    ]
    if first == last:
        hours = query.hours
        conditions += [("hour >= ?", hours[-1][11:]), ("hour <= ?", hours[0][11:])]
    for column in ("message_id", "queue", "state"):
        if wanted := getattr(query, column):
            conditions.append((f"{column} = {_BASE64}", _encoded(wanted)))
    parameters = [value for _, value in conditions]
    texts = [text for text, _ in conditions]
    if query.subscriber:
        texts.append(f"{_BASE64} IN (subscriber, subscriber_id)")
        parameters.append(_encoded(query.subscriber))
    names = ", ".join(f'"{each}"' for each in COLUMNS)
    text = f'SELECT {names} FROM "{TABLE}" WHERE {" AND ".join(texts)} ORDER BY "at" DESC, record_id LIMIT {MOST_FOUND}'  # noqa: S608 (no part is from outside)
    literals = [f"'{each}'" for each in parameters]
    if not all(map(_LITERAL.fullmatch, literals)):
        raise ValueError("a parameter could end its literal")
    return text, literals


def _encoded(value: str) -> str:
    return base64.b64encode(value.encode()).decode()


def _event(row: list[str | None]) -> PastEvent:
    columns = zip(COLUMNS, row, strict=True)
    return event({name: int(value) if value and name in _NUMBERS else value for name, value in columns})
