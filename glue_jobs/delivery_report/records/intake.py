"""From raw lines to records: which can be used, and why the others cannot. Pure transforms."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import date
from typing import Final, NamedTuple

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import TimestampType

from pushhub.engine.model.record import NO_RECORDS, REQUIRED, SCHEMA_VERSION

from ..storage.schema import CORRUPT, CURATED, KINDS, PARSING, RAW

_OF_MESSAGES: Final = frozenset(REQUIRED) - {"schema_version", "record_id", "kind", "at"}
"""Fields that every record has, but no pulse or link."""

_TIMES: Final = tuple(each.name for each in RAW.fields if isinstance(each.dataType, TimestampType))

_LONG_AGO: Final = "1970-01-01T00:00:00Z"
"""No record tells of times before; Parquet's writer would end the whole run at one before 1900."""


class IncompleteObject(NamedTuple):
    """An object (its key below the day) of which not every record could be used.

    Attributes:
        expected: Records it holds according to its key, None when the key does not say.
        rejected: Lines rejected, in words, by reason.
    """

    source: str
    expected: int | None
    used: int
    rejected: str


def rejection(day: Column) -> Column:
    """Why a parsed line cannot be used, null when it can.

    ``malformed`` (no JSON, a field of another type, or a time before 1970), ``unknown_version``, ``unknown_kind``,
    ``missing_field``, ``wrong_day`` (the time of the event is not on the day that it is filed under).

    Args:
        day: The day (date) the line is filed under. A column rather than a constant, so that the same compiled code
            serves every day.
    """
    none = F.col("kind").isin(*NO_RECORDS)
    lacks = {name: F.col(name).isNull() & (~none if name in _OF_MESSAGES else F.lit(True)) for name in REQUIRED}
    incomplete = F.greatest(*(each.cast("int") for each in lacks.values())) == 1
    lacks_delivery = ~F.col("kind").isin("accepted", *NO_RECORDS) & F.col("delivery_id").isNull()
    lacks_owed = (F.col("kind") == "accepted") & F.col("owed").isNull()
    other_day = F.to_date("at") != day
    return (
        F.when(F.col(CORRUPT).isNotNull() | (F.least(*_TIMES) < F.lit(_LONG_AGO).cast("timestamp")), "malformed")
        .when(~F.col("schema_version").eqNullSafe(SCHEMA_VERSION), "unknown_version")
        .when(~F.col("kind").isin(*KINDS, *NO_RECORDS), "unknown_kind")
        .when(incomplete | lacks_delivery | lacks_owed, "missing_field")
        .when(other_day, "wrong_day")
    )


def usable(lines: DataFrame) -> DataFrame:
    """The usable records, in the form in which they are kept; pulses and links are kept elsewhere (:mod:`.pulses`,
    :mod:`.links`).

    Args:
        lines: With their ``source``, the day (``dt``) that they are filed under, and their ``rejection``.
    """
    used = lines.where(F.col("rejection").isNull() & ~F.col("kind").isin(*NO_RECORDS))
    return used.select(*CURATED.fieldNames(), "dt")


def rejected_lines(texts: DataFrame, day: date) -> DataFrame:
    """The unusable lines of a day, unchanged, each with its reason and object.

    Args:
        texts: ``value`` (the line) and ``source``.
    """
    parsed = texts.select("source", "value", F.from_json("value", RAW, PARSING).alias("record"))
    return (
        parsed.select("source", "value", "record.*")
        .withColumn("reason", rejection(F.lit(day)))
        .where(F.col("reason").isNotNull())
        .select("source", "reason", F.col("value").alias("line"))
    )


def expected_records(source: str) -> int | None:
    """How many records an object holds according to its key, None when the key does not say."""
    counted = re.search(r"-(\d+)\.json\.gz$", source)
    return int(counted[1]) if counted else None


def incomplete_objects(
    sources: Iterable[str],
    used: Mapping[str, int],
    rejected: Mapping[str, Mapping[str, int]],
    left: Mapping[str, int] | None = None,
) -> tuple[IncompleteObject, ...]:
    """The objects of a day of which not every record could be used, by name.

    An object that cannot be decompressed is read up to where it breaks, and nothing but its key tells how much of it is
    missing.

    Args:
        used: Records used, by object.
        rejected: Lines rejected, by object and reason.
        left: How many records the erasure of a project has left in an object, where it took some out.
    """
    found = []
    for source in sorted(sources):
        expected = (left or {}).get(source, expected_records(source))
        kept, reasons = used.get(source, 0), rejected.get(source, {})
        if expected != kept or reasons:
            why = ", ".join(f"{lines} {reason}" for reason, lines in sorted(reasons.items()))
            found.append(IncompleteObject(source=source, expected=expected, used=kept, rejected=why))
    return tuple(found)
