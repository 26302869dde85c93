"""A model of Athena: queries of the delivery records, which SQLite runs on the objects that S3 has."""

from __future__ import annotations

import base64
import gzip
import json
import re
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any

from simulation.dynamodb import service_error
from simulation.storage import S3

TAKES_MS = 2_000
"""How long a query runs, milliseconds."""

COLUMNS = (
    *("dt", "hour", "at", "kind", "queue", "message_id", "subscriber_id", "subscriber", "state", "reason", "attempt"),
    *("status_code", "error_class", "duration_ms", "project", "record_id"),
)
"""Of the table ``raw_records`` (stacks/report.yaml)."""

_OBJECT = re.compile(r"records/dt=([\d-]+)/hour=(\d\d)/.*\.json\.gz")
_LITERAL = re.compile(r"'([^']*)'")


@dataclass
class Query:
    """A query that was started.

    Attributes:
        text: Its SQL.
        values: What is bound to its question marks.
        workgroup: Its workgroup.
        done_at: When it has run, epoch milliseconds.
        rows: What it found, with the names of the columns first; None until somebody has looked after its end.
    """

    text: str
    values: Sequence[str]
    workgroup: str
    done_at: int
    rows: list[list[str | None]] | None = None


class Athena:
    """Queries, each of which takes two seconds.

    Args:
        s3: Has the records.
        now_ms: Its clock, epoch milliseconds.
    """

    def __init__(self, s3: S3, now_ms: Callable[[], int]) -> None:
        self._s3 = s3
        self._now_ms = now_ms
        self._queries: dict[str, Query] = {}

    def start_query_execution(self, **given: Any) -> dict[str, Any]:
        """StartQueryExecution: once for each token."""
        run = f"run-{given['ClientRequestToken']}"
        literals = [_LITERAL.fullmatch(each) for each in given["ExecutionParameters"]]
        if not all(literals):
            raise service_error("InvalidRequestException", "StartQueryExecution")
        values = [each[1] for each in literals if each]
        query = Query(given["QueryString"], values, given["WorkGroup"], self._now_ms() + TAKES_MS)
        self._queries.setdefault(run, query)
        return {"QueryExecutionId": run}

    def get_query_execution(self, *, QueryExecutionId: str) -> dict[str, Any]:  # noqa: N803 (the service's)
        """GetQueryExecution."""
        query = self._query(QueryExecutionId, "GetQueryExecution")
        state = "SUCCEEDED" if query.done_at <= self._now_ms() else "RUNNING"
        execution = {"Status": {"State": state}, "WorkGroup": query.workgroup, "Statistics": {"DataScannedInBytes": 0}}
        return {"QueryExecution": execution}

    def get_query_results(self, *, QueryExecutionId: str, MaxResults: int, **more: Any) -> dict[str, Any]:  # noqa: N803
        """GetQueryResults: a page."""
        query = self._query(QueryExecutionId, "GetQueryResults")
        token = more.get("NextToken", "0")
        if query.done_at > self._now_ms() or not token.isdecimal():
            raise service_error("InvalidRequestException", "GetQueryResults")
        if query.rows is None:
            query.rows = self._run(query)
        first = int(token)
        page = query.rows[first : first + MaxResults]
        rows = [{"Data": [{} if each is None else {"VarCharValue": each} for each in row]} for row in page]
        following = {"NextToken": str(first + MaxResults)} if first + MaxResults < len(query.rows) else {}
        return {"ResultSet": {"Rows": rows}, **following}

    def _query(self, run: str, operation: str) -> Query:
        query = self._queries.get(run)
        if query is None:
            raise service_error("InvalidRequestException", operation)
        return query

    def _run(self, query: Query) -> list[list[str | None]]:
        names = ", ".join(f'"{each}"' for each in COLUMNS)
        with closing(sqlite3.connect(":memory:")) as database:
            database.create_function("from_base64", 1, base64.b64decode)
            database.create_function("from_utf8", 1, lambda value: value.decode())
            database.execute(f"CREATE TABLE raw_records ({names})")
            database.executemany(f"INSERT INTO raw_records VALUES ({', '.join('?' * len(COLUMNS))})", self._records())  # noqa: S608 (names of columns)
            found = database.execute(query.text, query.values)
            head: list[str | None] = [each[0] for each in found.description]
            return [head, *([None if each is None else str(each) for each in row] for row in found)]

    def _records(self) -> Iterator[list[Any]]:
        for (_, key), content in self._s3.objects.items():
            if place := _OBJECT.fullmatch(key):
                for line in gzip.decompress(content).splitlines():
                    record = {**json.loads(line), "dt": place[1], "hour": place[2]}
                    yield [record.get(each) for each in COLUMNS]
