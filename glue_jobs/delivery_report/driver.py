"""Small tables on the driver, without Spark: what is counted once into cells is summed, ranked and ordered here by
DuckDB, within a fixed memory, and written as it comes.

A query is a text; a table is its name or a query in brackets. All times are UTC.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Final

import duckdb
from pyspark.sql.types import StructType

from .files import fetched, put_file

__all__ = ["Driver", "columns", "grouped", "text", "total"]

MEMORY: Final = "1GB"
"""Of larger tables a part is on disk meanwhile."""

_TYPES: Final = {
    **{"string": "VARCHAR", "bigint": "BIGINT", "int": "INTEGER", "boolean": "BOOLEAN", "double": "DOUBLE"},
    **{"timestamp": "TIMESTAMP", "date": "DATE"},
}
"""By Spark's names."""


class Driver:
    """Tables by name, for as long as it is open."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="report-")
        self._duckdb = duckdb.connect(config={"temp_directory": f"{self._folder.name}/spilled", "memory_limit": MEMORY})

    def __enter__(self) -> Driver:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._duckdb.close()
        self._folder.cleanup()

    def read(self, name: str, schema: StructType, files: Sequence[str], where: str = "true") -> None:
        """Make Parquet files a table; without any it is empty.

        Args:
            schema: Its columns.
            files: Their URIs.
            where: Which rows.
        """
        typed = {each.name: _TYPES[each.dataType.simpleString()] for each in schema}
        if files:
            local = [str(each) for each in fetched(files, Path(self._folder.name) / name)]
            names = ", ".join(f'"{each}"::{kind} AS "{each}"' for each, kind in typed.items())
            read = self._duckdb.read_parquet(local, union_by_name=True)
            self._duckdb.register(f"{name}_files", read)
            self._duckdb.execute(f"CREATE VIEW {name} AS SELECT {names} FROM {name}_files WHERE {where}")
        else:
            names = ", ".join(f'"{each}" {kind}' for each, kind in typed.items())
            self._duckdb.execute(f"CREATE TABLE {name} ({names})")

    def keep(self, name: str, query: str) -> None:
        """Make what a query finds a table."""
        self._duckdb.execute(f"CREATE TABLE {name} AS {query}")

    def rows(self, query: str) -> list[dict[str, Any]]:
        """What a query finds."""
        found = self._duckdb.execute(query)
        names = [each[0] for each in found.description or ()]
        return [dict(zip(names, row, strict=True)) for row in found.fetchall()]

    def forget(self, name: str) -> None:
        """Drop a table."""
        self._duckdb.execute(f"DROP TABLE {name}")

    def put(self, query: str, path: str) -> int:
        """Write what a query finds as a Parquet file, completely or not at all: the number of its rows.

        Args:
            path: Its URI.
        """
        described = self.rows(f"DESCRIBE {query}")
        times = [row["column_name"] for row in described if row["column_type"] == "TIMESTAMP"]
        # Spark and Athena take a time without its zone for something else.
        instants = ", ".join(f'"{each}"::TIMESTAMPTZ AS "{each}"' for each in times)
        chosen = f"* REPLACE ({instants})" if times else "*"
        file = Path(self._folder.name) / "written.parquet"
        self._duckdb.execute(f"COPY (SELECT {chosen} FROM ({query})) TO {text(str(file))} (FORMAT parquet)")
        (found,) = self.rows(f"SELECT count(*) AS n FROM read_parquet({text(str(file))})")
        put_file(file, path)
        return int(found["n"])


def text(value: str) -> str:
    """A text as it stands in a query."""
    quoted = value.replace("'", "''")
    return f"'{quoted}'"


def total(value: str, name: str) -> str:
    """A sum of whole numbers as a column."""
    return f"sum({value})::BIGINT AS {name}"


def columns(keys: Sequence[str]) -> str:
    """Keys at the head of a list of columns."""
    return "".join(f"{each}, " for each in keys)


def grouped(keys: Sequence[str]) -> str:
    """The end of a query by these keys."""
    return f"GROUP BY {', '.join(keys)}" if keys else ""
