"""Runs of the job over records on disk, whole or up to the proof."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

from glue_jobs.delivery_report.figures.balance import balance
from glue_jobs.delivery_report.figures.traffic import fate_cells
from glue_jobs.delivery_report.proof.night import prove
from glue_jobs.delivery_report.records.compaction import DayIntake
from glue_jobs.delivery_report.run.arguments import Arguments
from glue_jobs.delivery_report.run.progress import Steps
from glue_jobs.delivery_report.storage.layout import Layout
from pyspark.sql import SparkSession
from tests.glue.frames import Counted, Kept, queried, rows_of

__all__ = ["LAST_DAY", "Proved", "asked", "proved"]

LAST_DAY = date(2026, 11, 18)


@dataclass(frozen=True)
class Proved:
    """The results of a proof, as plain values."""

    findings: list[dict[str, Any]]
    balance: list[dict[str, Any]]
    intakes: list[DayIntake]
    set_aside: int

    @property
    def breaches(self) -> int:
        """Number of findings that break conservation."""
        return sum(row["severity"] == "breach" for row in self.findings)

    @property
    def named(self) -> list[tuple[str, str | None]]:
        """The findings, each with its delivery."""
        return sorted((row["finding"], row["delivery_id"] or "") for row in self.findings)

    @property
    def sums(self) -> Counter[str]:
        """Standings over all hours."""
        rows = (
            {k: v for k, v in row.items() if isinstance(v, int) and not isinstance(v, bool)} for row in self.balance
        )
        return sum((Counter(row) for row in rows), Counter())

    @property
    def balanced(self) -> bool:
        """Whether every hour balances."""
        return all(row["balanced"] for row in self.balance)


def asked(
    folder: Path, *, first: date = LAST_DAY, last: date = LAST_DAY, now: str = "2026-11-18T14:00:00"
) -> Arguments:
    """Arguments for records in ``folder/records``."""
    return Arguments(
        input=f"file://{folder}/records",
        output=f"file://{folder}/out",
        date_from=first,
        date_to=last,
        now=datetime.fromisoformat(now).replace(tzinfo=UTC),
    )


def proved(spark: SparkSession, arguments: Arguments) -> Proved:
    """The first half of the job."""
    proof = prove(spark, arguments, Layout(arguments.output, "report"), Steps())
    return Proved(
        findings=rows_of(proof.findings),
        balance=queried(balance, Counted(fate_cells, Kept(arguments))),
        intakes=list(proof.intakes),
        set_aside=proof.set_aside,
    )
