"""Tables on the driver, without Spark: what is kept of a day is counted into cells, and cells are summed, ranked and
ordered, by DuckDB, within a fixed memory, and written as it comes.

A query is a text; a table is its name or a query in brackets. All times are UTC.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Final

import duckdb
from pyspark.sql.types import StructType

from .files import as_text, fetched, put_file

MEMORY: Final = "1GB"
"""Of larger tables a part is on disk meanwhile."""

AT_ONCE: Final = 10_000
"""Rows in Python's memory at a time."""

_TYPES: Final = {
    **{"string": "VARCHAR", "bigint": "BIGINT", "int": "INTEGER", "boolean": "BOOLEAN", "double": "DOUBLE"},
    **{"timestamp": "TIMESTAMP", "date": "DATE", "array<string>": "VARCHAR[]"},
}
"""By Spark's names."""


class Driver:
    """Tables by name, for as long as it is open."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="report-")
        self._duckdb = duckdb.connect(config={"temp_directory": f"{self._folder.name}/spilled", "memory_limit": MEMORY})
        # Else a machine's own zone would shift the hours that records are counted by.
        self._duckdb.execute("SET TimeZone = 'UTC'")

    def __enter__(self) -> Driver:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._duckdb.close()
        self._folder.cleanup()

    def read(self, name: str, schema: StructType, files: Sequence[str], where: str = "true") -> None:
        """Make those rows of Parquet files (URIs) a table that meet a condition; without files it is empty."""
        if not files:
            self.fill(name, schema, [])
            return
        local = [str(each) for each in fetched(files, self._folder_of(name))]
        names = ", ".join(f'"{each}"::{kind} AS "{each}"' for each, kind in _typed(schema).items())
        self._duckdb.register(f"{name}_files", self._duckdb.read_parquet(local, union_by_name=True))
        self._duckdb.execute(f"CREATE VIEW {name} AS SELECT {names} FROM {name}_files WHERE {where}")

    def fill(self, name: str, schema: StructType, rows: Iterable[Mapping[str, Any]], where: str = "true") -> None:
        """Make rows at hand a table; what they lack is null."""
        file = Path(self._folder.name) / f"{name}.json"
        with file.open("w", encoding="utf-8") as lines:
            lines.writelines(json.dumps(dict(row), default=as_text) + "\n" for row in rows)
        typed = ", ".join(f"{text(each)}: {text(kind)}" for each, kind in _typed(schema).items())
        read = f"read_json({text(str(file))}, format = 'newline_delimited', columns = {{{typed}}})"
        self.keep(name, f"SELECT * FROM {read} WHERE {where}")
        file.unlink()

    def keep(self, name: str, query: str) -> None:
        """Make what a query finds a table."""
        self._duckdb.execute(f"CREATE TABLE {name} AS {query}")

    def rows(self, query: str) -> list[dict[str, Any]]:
        """What a query finds."""
        found = self._duckdb.execute(query)
        names = [each[0] for each in found.description or ()]
        return [dict(zip(names, row, strict=True)) for row in found.fetchall()]

    def each(self, query: str) -> Iterator[tuple[Any, ...]]:
        """What a query finds, some rows at a time; to be read to the end before the next one."""
        found = self._duckdb.execute(query)
        while some := found.fetchmany(AT_ONCE):
            yield from some

    def forget(self, name: str) -> None:
        """Drop a table, and what was fetched for it."""
        kind, *_ = self.rows(f"SELECT table_type FROM information_schema.tables WHERE table_name = {text(name)}")
        self._duckdb.execute(f"DROP {'VIEW' if kind['table_type'] == 'VIEW' else 'TABLE'} {name}")
        shutil.rmtree(self._folder_of(name), ignore_errors=True)

    def put(self, query: str, path: str) -> int:
        """Write what a query finds as a Parquet file, completely or not at all, and not if it finds nothing: the number
        of its rows.
        """
        described = self.rows(f"DESCRIBE {query}")
        times = [row["column_name"] for row in described if row["column_type"] == "TIMESTAMP"]
        # Spark and Athena take a time without its zone for something else.
        instants = ", ".join(f'"{each}"::TIMESTAMPTZ AS "{each}"' for each in times)
        chosen = f"* REPLACE ({instants})" if times else "*"
        file = Path(self._folder.name) / "written.parquet"
        (found,) = self.rows(f"COPY (SELECT {chosen} FROM ({query})) TO {text(str(file))} (FORMAT parquet)")
        if found["Count"]:
            put_file(file, path)
        return int(found["Count"])

    def _folder_of(self, name: str) -> Path:
        return Path(self._folder.name) / name


def _typed(schema: StructType) -> dict[str, str]:
    """The columns of a table with their types."""
    return {each.name: _TYPES[each.dataType.simpleString()] for each in schema}


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
