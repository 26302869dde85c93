"""``make record-schema``: writes what is derived from the delivery record's fields into the files that have to list
them out.

The table of fields in ``docs/records.md`` and the columns of Athena's table in ``stacks/report.yaml``. A test holds
both to their source.
"""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path
from typing import Final

from pushhub.engine.model.record import COLUMNS, DeliveryRecord

ROOT: Final = Path(__file__).parents[1]

_IN_JSON: Final = {
    "int": "int",
    "bigint": "int",
    "boolean": "bool",
    "string": "string",
    "timestamp": "string",
    "array<string>": "array of strings",
}
"""What a column of a SQL type is in a line of JSON."""

_KEPT_BESIDES: Final = {"source": "string"}
"""The additional column of curated records: the object that each came from."""


def table_of_fields() -> str:
    """The table of fields of ``docs/records.md``."""
    rows = [
        f"| {each.name} | {_IN_JSON[each.metadata['column']]} | {each.metadata['kinds']} | {each.metadata['meaning']} |"
        for each in fields(DeliveryRecord)
    ]
    return "\n".join(["| field | type | kinds | meaning |", "|---|---|---|---|", *rows]) + "\n"


def columns_of_athena() -> str:
    """The columns of curated records as ``stacks/report.yaml`` lists them, one to a line."""
    columns = {**COLUMNS, **_KEPT_BESIDES}.items()
    return "".join(f"            - {{Name: {name}, Type: {kind}}}\n" for name, kind in columns)


def with_fields(page: str) -> str:
    """``docs/records.md`` with its table of fields as it should be."""
    return _replaced(page, r"\| field \| type \| kinds \| meaning \|\n(?:\|.*\n)+", table_of_fields())


def with_columns(template: str) -> str:
    """``stacks/report.yaml`` with the columns of curated records as they should be."""
    head, found, rest = template.partition("\n  CuratedRecords:\n")
    columns, end, tail = rest.partition("\n  CuratedDeliveries:\n")
    pattern = r"(?<=Columns:\n)(?: +- \{Name: [^\n]*\n)+"
    return head + found + _replaced(columns, pattern, columns_of_athena()) + end + tail


def _replaced(text: str, pattern: str, by: str) -> str:
    changed, places = re.subn(pattern, lambda _: by, text)
    if places != 1:
        raise ValueError(f"{pattern!r} is there {places} times")
    return changed


def main() -> None:
    """Write both files."""
    for name, derived in {"docs/records.md": with_fields, "stacks/report.yaml": with_columns}.items():
        file = ROOT / name
        file.write_text(derived(file.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
