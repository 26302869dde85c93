"""Success by try: tries, never polls, including deliveries that were given up."""

from __future__ import annotations

from dataclasses import replace

import pytest
from glue_jobs.delivery_report.figures.traffic import by_attempt, try_cells
from glue_jobs.delivery_report.proof.deliveries import delivery_rows
from pyspark.sql import SparkSession
from tests.glue.frames import Counted, queried, records_frame
from tests.glue.lives import NOON, Lives

from pushhub.engine.model.record import RecordKind


@pytest.fixture
def lives() -> Lives:
    """Forty delivered at once, thirty at the first retry, twenty given up after two, and one that is polled."""
    lives = Lives()
    for n in range(40):
        lives.attempt(lives.post(NOON + n)[0])
    for n in range(30):
        lives.attempt(lives.attempt(lives.post(NOON + n)[0], 503))
    for n in range(20):
        delivery = lives.post(NOON + n)[0]
        for _ in range(3):
            delivery = lives.attempt(delivery, 503)
    # An asynchronous answer and two polls: one try
    polled = lives.attempt(lives.post(NOON)[0], 202)
    held = lives.records[-1]
    lives.records[-1] = replace(held, verdict="poll", state="polling")
    for _ in range(2):
        polled = lives.attempt(polled, 202)
        lives.records[-1] = replace(lives.records[-1], kind=RecordKind.POLL, verdict="poll", state="polling")
    return lives


def test_polls_are_no_tries(spark: SparkSession, lives: Lives) -> None:
    cells = Counted(try_cells, delivery_rows(records_frame(spark, lives.records)))
    found = {row["attempt"]: (row["tried"], row["won"]) for row in queried(by_attempt, cells)}
    assert found == {1: (91, 40), 2: (50, 30), 3: (20, 0)}
