"""The delivery report over very many subscribers and three weeks: whether it finishes within its memory, and what a
second run over the same days costs.

    .venv-glue/bin/python -m bench.records_wide [--records 4000000] [--subscribers 1000000]

Two threads and the 2 GB of heap that the job has on one machine. Records are generated (bench/records_generate.py), one
queue and one subscriber after the other, all equally busy: the widest tables that this many records can produce. The
counts must be the generator's, and everything must be conserved. The second run is given a later ``--now`` and finds
all its days unchanged.
"""

from __future__ import annotations

import shutil
import tempfile
from datetime import timedelta
from pathlib import Path

from bench.harness import Page
from bench.records_generate import Plan, generate
from bench.records_report import LAST_DAY, NOW, THREADS, checked, report_of, spark_session

DAYS = 21


def main() -> None:
    """Generate, run twice, print, save."""
    title = "The delivery report over a million subscribers"
    page = Page(title, __doc__, saved="records-wide.md", records=4_000_000, subscribers=1_000_000, work=Path)
    options = page.options
    work = options.work or Path(tempfile.mkdtemp(prefix="records-wide-"))
    records, out = work / "records", work / "out"
    plan = Plan(records=options.records, days=DAYS, last_day=LAST_DAY, subscribers=options.subscribers)
    truth = generate(plan, records, processes=THREADS)
    print(f"{truth['records']:,} records in {truth['objects']:,} objects", flush=True)
    spark = spark_session(records)
    runs = [report_of(spark, records, out, days=DAYS, now=NOW + timedelta(days=later)) for later in (0, 1)]
    for each in runs:
        checked(each, truth)
    first, second = runs
    rows = [
        [stage, *(f"{each['stages'].get(stage, 0):.1f}" for each in runs)]
        for stage in dict.fromkeys([*first["stages"], *second["stages"]])
    ]
    rows.append(["all, seconds", *(f"**{each['seconds']:.0f}**" for each in runs)])
    rows.append(["CPU of the JVM so far, seconds", *(f"{each['cpu']:.0f}" for each in runs)])
    rows.append(["peak memory of the JVM so far", *(f"{each['peak_mb']:,.0f} MB" for each in runs)])
    rows.append(["page", *(f"{each['page_bytes'] / 1024:,.0f} KB" for each in runs)])
    page.tell(
        f"{truth['records']:,} records of {options.subscribers:,} subscribers over {DAYS} days, in "
        f"{truth['objects']:,} objects. Every count is the generator's; everything is conserved."
    )
    page.table(["stage", "first run", "second run, nothing changed"], rows)
    page.save()
    shutil.rmtree(work)


if __name__ == "__main__":
    main()
