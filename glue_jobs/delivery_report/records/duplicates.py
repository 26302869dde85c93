"""Records that are in more than one object: named by their objects, and counted once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import date
from typing import Any, Final
from uuid import uuid4

from ..storage.days import named_files
from ..storage.driver import Driver
from ..storage.layout import Layout
from ..storage.schema import CURATED
from .compaction import DayIntake, replace_day
from .manifest import read_manifest

_CONTENT: Final = ", ".join(f'"{name}"' for name in CURATED.fieldNames() if name != "source")


def without_copies(layout: Layout, days: Iterable[date], intakes: Sequence[DayIntake]) -> tuple[list[DayIntake], bool]:
    """Take records that are there twice out of kept days, and note in their manifests which objects shared some: the
    intakes with that, and whether any day changed.

    Args:
        days: Later ones than the report's may be there from earlier runs; they must not hold a record twice either.
    """
    shared: dict[date, tuple[Any, ...]] = {}
    with Driver() as driver:
        for day in days:
            manifest = read_manifest(f"{layout.records}/dt={day}")
            if manifest is None:
                continue
            driver.read("day", CURATED, named_files(layout.records, day))
            if found := driver.rows(shared_records("day")):
                file = f"{layout.records}/dt={day}/part-{uuid4()}.parquet"
                driver.put(counted_once("day"), file)
                shared[day] = (*manifest.duplicates, *found)
                replace_day(layout, day, [file], replace(manifest, duplicates=shared[day]))
            driver.forget("day")
    return [replace(each, duplicates=shared.get(each.day, each.duplicates)) for each in intakes], bool(shared)


def shared_records(day: str) -> str:
    """Of all records of a day, which objects (``sources``) share how many ``records``.

    Two records of one id with other content are not copies but a contradiction, which :mod:`.conservation` names.
    """
    return f"""
        SELECT sources, count(*) AS records FROM (
            SELECT list_sort(list(source)) AS sources FROM {_again(day)} GROUP BY {_CONTENT} HAVING count(*) > 1
        ) GROUP BY sources ORDER BY sources"""


def counted_once(day: str) -> str:
    """One day's records with each copy once, as from the first of its objects."""
    again = _again(day)
    return f"""
        FROM {day} WHERE record_id NOT IN (SELECT record_id FROM {again})
        UNION ALL BY NAME SELECT {_CONTENT}, min(source) AS source FROM {again} GROUP BY {_CONTENT}"""


def _again(day: str) -> str:
    """The records whose id is there more than once: few, and only these are compared."""
    return f"(FROM {day} WHERE record_id IN (SELECT record_id FROM {day} GROUP BY record_id HAVING count(*) > 1))"
