"""What docs/report.md says to type on one machine, typed: DuckDB, pandas and PySpark over a report's own files."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from glue_jobs.delivery_report import job
from glue_jobs.delivery_report.arguments import Arguments
from pyspark.sql import SparkSession
from tests.glue.lives import NOON, Lives
from tests.glue.runs import LAST_DAY, asked

DOC = Path(__file__).parents[2] / "docs" / "report.md"
DELIVERED = 30


def blocks() -> Sequence[str]:
    """The lines of the section, block by block."""
    section = DOC.read_text(encoding="utf-8").partition("### On one machine\n")[2].partition("\n#")[0]
    return re.findall(r"```python\n(.*?)```", section, flags=re.DOTALL)


@pytest.fixture(scope="module")
def reported(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a clone whose stack had thirty messages, some of which were tried twice, and was reported."""
    folder = tmp_path_factory.mktemp("clone")
    lives = Lives()
    for number in range(DELIVERED):
        lives.attempt(lives.post(NOON + number)[0])
    lives.write(folder / ".pushhub" / "report" / "records", batch=10)
    arguments: Arguments = replace(
        asked(folder),
        input=f"file://{folder}/.pushhub/report/records",
        output=f"file://{folder}/.pushhub/report",
        date_from=LAST_DAY,
    )
    job.run(spark, arguments)
    return folder


@pytest.mark.parametrize("place", range(len(blocks())))
def test_each_block_runs_as_typed(reported: Path, place: int) -> None:
    typed = [sys.executable, "-c", "".join((blocks()[0] if place else "", blocks()[place]))]
    done = subprocess.run(typed, cwd=reported, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    assert str(DELIVERED) in done.stdout, done.stdout


def test_records_are_read_as_typed(reported: Path) -> None:
    (typed,) = re.findall(
        r"```python\n(.*?)```", (DOC.parent / "records.md").read_text(encoding="utf-8"), flags=re.DOTALL
    )
    done = subprocess.run(
        [sys.executable, "-c", typed], cwd=reported, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert str(DELIVERED) in done.stdout, done.stdout


def test_duckdb_pandas_and_pyspark_are_all_there() -> None:
    assert [[word for word in ("duckdb", "pandas", "pyspark") if word in each] for each in blocks()] == [
        ["duckdb"],
        ["pandas"],
        ["pyspark"],
    ]
