"""Whatever is taken from the records of a hub, however quiet it is, a night names it; and nothing else.

A sample: all of it at 10, 60 and 10,000 records an hour is ``bench/records_sabotage.py``.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from glue_jobs.delivery_report.proof.pulses import gaps
from pyspark.sql import SparkSession
from tests.glue.sabotaged import FIRST, SABOTAGES, TABLES, Hub, made_hub, named_by


@pytest.fixture(scope="module")
def quiet() -> Hub:
    """Ten records an hour."""
    return made_hub(10)


def test_what_is_taken_is_named_and_nothing_else(spark: SparkSession, tmp_path: Path, quiet: Hub) -> None:
    named = named_by(spark, tmp_path, quiet, SABOTAGES["the same hour of one stream, both days"](quiet))
    assert (named.false, named.nights) == ([], named.expected)


def moment(ms: int) -> datetime:
    return datetime.fromtimestamp(ms / 1000, UTC)


@pytest.mark.parametrize("name", SABOTAGES)
def test_each_gap_in_a_stream_shows_in_its_pulses_alone(quiet: Hub, name: str) -> None:
    # Given what came out of the streams of a hub of ten records an hour, less what is taken
    parts = SABOTAGES[name](quiet)
    taken = frozenset().union(*(each.lines for each in parts))
    pulses = [each for each in quiet.lines if not each.kind]
    sent = {table: {moment(each.at) for each in pulses if each.stream == key} for key, table in TABLES.items()}
    came = {
        table: {moment(each.at) for each in pulses if each.stream == key and each not in taken}
        for key, table in TABLES.items()
    }
    # When they are compared the night after the second day
    end = moment(FIRST) + timedelta(days=2)
    found = gaps(came, sent, since=moment(FIRST), until=end, now=end + timedelta(hours=1))
    # Then exactly the pulses that were taken before are missing
    missing = {(each.table, each.start + n * timedelta(minutes=5)) for each in found for n in range(each.count)}
    assert all(each.lost for each in found)
    assert missing == {
        (TABLES[each.stream], moment(each.at)) for each in taken if not each.kind and moment(each.at) < end
    }
