"""The delivery report measured: its stages, how its time grows, its memory, against Spark's floor.

    .venv-glue/bin/python -m bench.records_report --sizes 100000 1000000 10000000
    .venv-glue/bin/python -m bench.records_report --sizes 650000 --days 1

Each run is a process of its own over the same generated files (bench/records_generate.py): two threads and 2 GB of
heap. *Floor*: Spark reads the same columns of the same files and does nothing with them. *Again*: the job a second
time, over what the first has left, a day later. *DuckDB* reads the same columns, writes them as Parquet, and counts
lives and attempts by subscriber and hour, which is a part of what the job does. The runs take turns, and the fastest of
each counts. The job must arrive at the generator's own counts. CPU is counted beside the clock: that of Java, of what
it starts, and of the Python process that counts and draws. Memory is the peak of the resident set of the JVM. *Jobs*
are Spark's.
"""

from __future__ import annotations

import json
import logging
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

from bench.harness import Page, table
from bench.records_generate import Plan, generate

LAST_DAY = date(2026, 11, 20)
NOW = datetime(2026, 11, 30, tzinfo=UTC)
DAYS = 7
STANDINGS = ("pending", "retrying", "reserved", "scheduled", "delivered", "acknowledged", "exhausted")
THREADS = 2

ENGINES = (("floor", "Spark floor"), ("job", "the job"), ("again", "the job again"), ("duckdb", "DuckDB"))

AIMS = ((300_000, 2.5), (3_000_000, 3.0), (10**9, 2.0))
"""How many times the floor's CPU the job may take, over so many records at most."""

LINEAR = 0.15
"""How much more than its proportional share of time a larger input may take."""


def run_spark_floor(records: Path, _: Path, __: int) -> dict[str, Any]:
    """Read every column of every record; do nothing."""
    spark = spark_session(records)
    from glue_jobs.delivery_report.storage.schema import RAW  # noqa: PLC0415 (Java first)

    started = time.monotonic()
    read = spark.read.schema(RAW).option("recursiveFileLookup", "true").option("pathGlobFilter", "*.json.gz")
    read.json(f"file://{records}").write.format("noop").mode("overwrite").save()
    return {"seconds": time.monotonic() - started, **spent(spark)}


def report_of(spark: Any, records: Path, out: Path, *, days: int, now: datetime) -> dict[str, Any]:
    """The whole job over this many days, as ``make report`` runs it: its seconds, those of each stage, what it
    counted, and the size of its page.
    """
    from glue_jobs.delivery_report import job  # noqa: PLC0415 (Java first)
    from glue_jobs.delivery_report.run.arguments import Arguments  # noqa: PLC0415
    from glue_jobs.delivery_report.run.progress import Steps  # noqa: PLC0415

    steps = Steps()
    started = time.monotonic()
    results = job.run(
        spark,
        Arguments(
            input=f"file://{records}",
            output=f"file://{out}",
            date_from=LAST_DAY - timedelta(days=days - 1),
            date_to=LAST_DAY,
            now=now,
        ),
        steps,
    )
    seconds = time.monotonic() - started
    counted = {each: results.verdict[each] for each in (*STANDINGS, "messages")}
    return {
        "seconds": seconds,
        "stages": steps.seconds,
        "counted": {**counted, "attempts": results.rows["overall"][0]["attempts_made"]},
        "conserved": results.verdict["conserved"],
        "page_bytes": Path(results.page.removeprefix("file://")).stat().st_size,
        **spent(spark),
    }


def checked(made: dict[str, Any], truth: dict[str, int]) -> None:
    """Ends the program unless a report arrived at the generator's counts, with everything conserved."""
    expected = {each: truth.get(each, 0) for each in made["counted"]}
    if made["counted"] != expected or not made["conserved"]:
        raise SystemExit(f"counted {made['counted']}, conserved: {made['conserved']}; but it is {expected}")


def run_job(records: Path, out: Path, days: int) -> dict[str, Any]:
    """The job over these days."""
    made = report_of(spark_session(records), records, out, days=days, now=NOW)
    files = [each.stat().st_size for each in (out / "curated" / "records").rglob("*.parquet")]
    return {**made, "files": len(files), "parquet_bytes": sum(files)}


def run_again(records: Path, out: Path, days: int) -> dict[str, Any]:
    """The job over the same days on the next day."""
    return report_of(spark_session(records), records, out, days=days, now=NOW + timedelta(days=1))


def run_duckdb(records: Path, out: Path, _: int) -> dict[str, Any]:
    """What DuckDB takes to read every column, to keep the records, and to count lives and attempts."""
    import duckdb  # noqa: PLC0415 (as the others import theirs)
    from glue_jobs.delivery_report.storage.schema import RAW  # noqa: PLC0415

    started = time.monotonic()
    known = {"string": "VARCHAR", "int": "INTEGER", "array<string>": "VARCHAR[]"}
    kinds = ", ".join(
        f"'{each.name}': '{known.get(each.dataType.simpleString(), each.dataType.simpleString())}'"
        for each in RAW.fields[:-1]
    )
    place = out.with_suffix(".parquet")
    with duckdb.connect(config={"threads": THREADS, "memory_limit": "2GB"}) as engine:
        read = f"read_json('{records}/**/*.json.gz', format = 'newline_delimited', columns = {{{kinds}}})"
        engine.execute(f"COPY (SELECT * FROM {read}) TO '{place}'")
        engine.execute(
            f"CREATE TABLE lives AS SELECT project, queue_uid, message_id, delivery_id, count(*), max(version), "
            f"max(\"at\"), arg_max(state, version) FROM '{place}' GROUP BY ALL"
        )
        engine.execute(
            f"CREATE TABLE attempts AS SELECT project, queue, subscriber_id, date_trunc('hour', \"at\") AS hour, "
            f"verdict, count(*), quantile_cont(duration_ms, [0.5, 0.95, 0.99]) FROM '{place}' "
            f"WHERE kind = 'attempt' GROUP BY ALL"
        )
    used = resource.getrusage(resource.RUSAGE_SELF)
    seconds = time.monotonic() - started
    return {"seconds": seconds, "cpu": used.ru_utime + used.ru_stime, "peak_mb": used.ru_maxrss / 1024}


def spark_session(records: Path) -> Any:
    """Spark as ``make report`` uses it over these records, with a fixed number of threads."""
    from glue_jobs.delivery_report.run.session import open_session  # noqa: PLC0415
    from glue_jobs.local_spark import settings_for, use_bundled_java  # noqa: PLC0415

    use_bundled_java()
    return open_session(f"local[{THREADS}]", settings=settings_for(records))


def spent(spark: Any) -> dict[str, float]:
    """CPU seconds of the JVM, of what it started, and of this process, which counts and draws; peak memory of the JVM;
    Spark's jobs.
    """
    pid = spark._jvm.java.lang.ProcessHandle.current().pid()
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    (peak,) = [line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith("VmHWM")]
    own = resource.getrusage(resource.RUSAGE_SELF)
    return {
        "cpu": sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK") + own.ru_utime + own.ru_stime,
        "peak_mb": int(peak.split()[1]) / 1024,
        "jobs": len(spark.sparkContext.statusTracker().getJobIdsForGroup()),
    }


RUNS = {"floor": run_spark_floor, "job": run_job, "again": run_again, "duckdb": run_duckdb}


def measure(name: str, records: Path, work: Path, days: int) -> dict[str, Any]:
    """One run in a process of its own."""
    out = work / ("out-job" if name == "again" else f"out-{name}")
    if name != "again":
        shutil.rmtree(out, ignore_errors=True)
    words = ["--run", name, "--records", str(records), "--out", str(out), "--days", str(days)]
    command = [sys.executable, "-m", "bench.records_report", *words]
    made = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    measured: dict[str, Any] = json.loads(made.stdout.splitlines()[-1])
    print(
        f"  {name}: {measured['seconds']:.1f} s, {measured['cpu']:.0f} s of CPU, {measured['peak_mb']:,.0f} MB",
        flush=True,
    )
    return measured


def measure_size(size: int, work: Path, rounds: int, days: int) -> dict[str, Any]:
    """All runs over this many records, in turns, the fastest of each."""
    records = work / f"records-{size}"
    shutil.rmtree(records, ignore_errors=True)
    print(f"{size:,} records: generating them", flush=True)
    started = time.monotonic()
    truth = generate(Plan(records=size, days=days, last_day=LAST_DAY), records, processes=THREADS)
    print(f"  generated in {time.monotonic() - started:.0f} s", flush=True)
    stored = sum(each.stat().st_size for each in records.rglob("*.json.gz"))
    turns = [{name: measure(name, records, work, days) for name in RUNS} for _ in range(rounds)]
    measured = {name: min((turn[name] for turn in turns), key=lambda run: float(run["seconds"])) for name in RUNS}
    shutil.rmtree(records)
    for each in ("job", "again"):
        checked(measured[each], truth)
    return {"records": truth["records"], "objects": truth["objects"], "gzip_bytes": stored, **measured}


def report(sizes: list[dict[str, Any]]) -> list[str]:
    """Markdown tables."""
    head = ["records", "objects", "raw gzip", "Parquet", "files", "page"]
    inputs = [
        [
            f"{each['records']:,}",
            f"{each['objects']:,}",
            f"{each['gzip_bytes'] / 2**20:,.0f} MB",
            f"{each['job']['parquet_bytes'] / 2**20:,.0f} MB",
            str(each["job"]["files"]),
            f"{each['job']['page_bytes'] / 2**10:,.0f} KB",
        ]
        for each in sizes
    ]
    whole_head = ["records", "run", "seconds", "records/s", "x floor", "CPU s", "x floor (CPU)", "peak memory", "jobs"]
    whole = [
        [
            f"{each['records']:,}",
            title,
            f"{each[name]['seconds']:.1f}",
            f"{each['records'] / each[name]['seconds']:,.0f}",
            f"{each[name]['seconds'] / each['floor']['seconds']:.2f}",
            f"{each[name]['cpu']:.0f}",
            f"{each[name]['cpu'] / each['floor']['cpu']:.2f}",
            f"{each[name]['peak_mb']:,.0f} MB",
            str(each[name].get("jobs", "")),
        ]
        for each in sizes
        for name, title in ENGINES
    ]
    stages = [
        [stage, *(f"{(took := each['job']['stages'][stage]):.1f} s, {each['records'] / took:,.0f}/s" for each in sizes)]
        for stage in sizes[0]["job"]["stages"]
    ]
    parts = [
        "## What was read",
        table(head, inputs),
        "## Whole runs",
        table(whole_head, whole),
        "## Stages (seconds, records per second)",
        table(["stage", *(f"{each['records']:,} records" for each in sizes)], stages),
    ]
    parts += ["## Against the aims", aims(sizes)]
    if len(sizes) > 1:
        parts += ["## Growth", growth(sizes[0], sizes[-1])]
    return parts


def aims(sizes: list[dict[str, Any]]) -> str:
    """The aims of the report's speed, and whether each was met."""
    lines = []
    for each in sizes:
        job, floor = each["job"], each["floor"]
        clock, cpu = job["seconds"] / floor["seconds"], job["cpu"] / floor["cpu"]
        aim = next(aim for most, aim in AIMS if each["records"] <= most)
        met = "met" if cpu <= aim else "missed"
        lines.append(
            f"- Within {aim} x of the floor's CPU, {each['records']:,} records: {met}, {cpu:.2f} x "
            f"({clock:.2f} x by the clock)."
        )
    if len(sizes) > 1:
        small, large = sizes[0], sizes[-1]
        more = large["records"] / small["records"]
        growth_of = large["job"]["seconds"] / small["job"]["seconds"] / more
        memory = large["job"]["peak_mb"] / small["job"]["peak_mb"]
        met = "met" if growth_of <= 1 + LINEAR else "missed"
        lines += [
            (
                f"- Time grows linearly within {LINEAR:.0%}: {met}; {more:.1f} times the records take "
                f"{growth_of * more:.1f} times as long."
            ),
            f"- Peak memory flat: {memory:.2f} times as much at {more:.1f} times the records, bounded by the heap.",
        ]
    return "\n".join(lines)


def growth(small: dict[str, Any], large: dict[str, Any]) -> str:
    """The cost of a run regardless of size, and of each further million records: the line through both sizes.

    Then growth per record; 1.00 is linear.
    """
    more = large["records"] / small["records"]
    millions = (large["records"] - small["records"]) / 1e6
    rows = []
    for name, title in ENGINES:
        cells = [title]
        for measure in ("seconds", "cpu"):
            slope = (large[name][measure] - small[name][measure]) / millions
            fixed = small[name][measure] - slope * small["records"] / 1e6
            cells += [f"{fixed:.1f}", f"{slope:.2f}"]
        cells += [f"{large[name][measure] / small[name][measure] / more:.2f}" for measure in ("seconds", "cpu")]
        rows.append([*cells, f"{large[name]['peak_mb'] / small[name]['peak_mb']:.2f}"])
    head = ["run", "fixed s", "s per million", "fixed CPU s", "CPU s per million"]
    ratios = ["time per record, large / small", "CPU per record, large / small", "memory, large / small"]
    return table([*head, *ratios], rows)


def main() -> None:
    """Command line. With ``--run`` one run over ``--records``, for the process that measures it."""
    aside = {"run": "", "records": Path, "out": Path}
    one_day = "--days" in sys.argv and sys.argv[sys.argv.index("--days") + 1] == "1"
    title, saved = (
        ("The delivery report over one day, measured", "records-one-day.md")
        if one_day
        else ("The delivery report, measured", "records.md")
    )
    page = Page(title, __doc__, saved=saved, sizes=[1_000_000], days=DAYS, rounds=1, work=Path, **aside)
    options = page.options
    if options.run:
        logging.basicConfig(level=logging.INFO, format="    %(message)s", stream=sys.stderr)
        logging.getLogger("py4j").setLevel(logging.WARNING)
        print(json.dumps(RUNS[options.run](options.records, options.out, options.days)))
        return
    with tempfile.TemporaryDirectory(dir=options.work) as work:
        page.tell(*report([measure_size(size, Path(work), options.rounds, options.days) for size in options.sizes]))
    page.save()


if __name__ == "__main__":
    main()
