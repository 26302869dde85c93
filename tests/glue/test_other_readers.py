"""What docs/report.md and records.md say to type on one machine, typed: DuckDB and pandas over a report's files.

PySpark's lines are not typed here, as a second Spark beside the session's takes too much.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import duckdb
import pandas as pd
import pytest
from glue_jobs.delivery_report.proof.deliveries import KEPT_DELIVERY
from glue_jobs.delivery_report.storage.schema import CURATED
from tests.glue.lives import NOON, Lives

DOC = Path(__file__).parents[2] / "docs" / "report.md"
DELIVERED = 30


def blocks() -> Sequence[str]:
    """The lines of the section, block by block."""
    section = DOC.read_text(encoding="utf-8").partition("### On one machine\n")[2].partition("\n#")[0]
    return re.findall(r"```python\n(.*?)```", section, flags=re.DOTALL)


@pytest.fixture(scope="module")
def reported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a clone whose stack had thirty messages, and was reported: the records as the hub writes them, and
    curated tables with the report's columns, each day's files named by a list, beside one that is of no day.
    """
    clone = tmp_path_factory.mktemp("clone")
    folder = clone / ".pushhub" / "report"
    lives = Lives()
    for number in range(DELIVERED):
        lives.attempt(lives.post(NOON + number)[0])
    lives.write(folder / "records", batch=10)
    attempts = [asdict(each) for each in lives.records if each.kind == "attempt"]
    ends = [{**each, "standing": "delivered"} for each in attempts]
    for table, schema, rows in (("records", CURATED, attempts), ("deliveries", KEPT_DELIVERY, ends)):
        day, lists = folder / "curated" / table / "dt=2026-11-18", folder / "curated" / "days" / table / "dt=2026-11-18"
        day.mkdir(parents=True)
        lists.mkdir(parents=True)
        frame = pd.DataFrame([{name: row.get(name) for name in schema.fieldNames()} for row in rows])
        for name in ("counts", "former"):
            duckdb.from_df(frame).write_parquet(f"{day}/{name}.parquet")
        (lists / "files.txt").write_text(f"file://{day}/counts.parquet\n")
    return clone


@pytest.mark.parametrize("place", [0, 1])
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
        ["duckdb", "pandas"],
        ["pyspark"],
    ]
