"""The delivery report measured: its stages, how its time grows, its memory, against Spark's floor and against DuckDB.

    .venv-glue-bench/bin/python -m bench.records_report --sizes 1000000 10000000 --save docs/figures/records.md

Each run is a process of its own over the same generated files (bench/records_generate.py): two threads, 2 GB of heap
for Spark, 2 GB for DuckDB. *Floor*: Spark reads the same columns of the same files and does nothing with them.
*DuckDB*: compaction to Parquet by day, one row per delivery with its standing, hourly and per-subscriber attempts with
percentiles, fates, success by attempt, outcomes and the balance, in SQL; the job besides proves that no record is
missing or doubled, finds anomalies, prices, and draws. The runs take turns, and the fastest of each counts. Both must
arrive at the generator's own counts. CPU is counted beside the clock because the machine is shared. Memory is the peak
of the resident set of the JVM, or of the DuckDB process.
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

ENGINES = (("floor", "Spark floor"), ("job", "the job"), ("duckdb", "DuckDB"))

FLOORS = 4
"""How many times as long as the floor the job may take."""

LINEAR = 0.15
"""How much more than its proportional share of time a larger input may take."""


def run_spark_floor(records: Path, _: Path) -> dict[str, Any]:
    """Read every column of every record; do nothing."""
    spark = spark_session()
    from glue_jobs.delivery_report.schema import RAW  # noqa: PLC0415 (Java first)

    started = time.monotonic()
    read = spark.read.schema(RAW).option("recursiveFileLookup", "true").option("pathGlobFilter", "*.json.gz")
    read.json(f"file://{records}").write.format("noop").mode("overwrite").save()
    return {"seconds": time.monotonic() - started, **spent(spark)}


def report_of(spark: Any, records: Path, out: Path, *, days: int, now: datetime) -> tuple[Any, float, dict[str, float]]:
    """The whole job over this many days, as ``make report`` runs it: its results, its seconds, and the seconds of each
    stage.
    """
    from glue_jobs.delivery_report import job  # noqa: PLC0415 (Java first)
    from glue_jobs.delivery_report.arguments import Arguments  # noqa: PLC0415
    from glue_jobs.delivery_report.progress import Steps  # noqa: PLC0415

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
    return results, time.monotonic() - started, steps.seconds


def run_job(records: Path, out: Path) -> dict[str, Any]:
    """The job over a week."""
    spark = spark_session()
    results, seconds, stages = report_of(spark, records, out, days=DAYS, now=NOW)
    counted = {each: results.verdict[each] for each in STANDINGS}
    attempts = results.rows["overall"][0]["attempts_made"]
    files = sorted(each.stat().st_size for each in (out / "curated" / "records").rglob("*.parquet"))
    return {
        "seconds": seconds,
        "stages": stages,
        "counted": {**counted, "messages": results.verdict["messages"], "attempts": attempts},
        "conserved": results.verdict["conserved"],
        "files": len(files),
        "parquet_bytes": sum(files),
        "page_bytes": Path(results.page.removeprefix("file://")).stat().st_size,
        **spent(spark),
    }


def run_duckdb(records: Path, out: Path) -> dict[str, Any]:
    """The same report in SQL."""
    import duckdb  # type: ignore[import-not-found, unused-ignore]  # noqa: PLC0415 (only in the environment of the bench)

    out.mkdir(parents=True, exist_ok=True)
    database = duckdb.connect(str(out / "report.duckdb"))
    database.execute(
        f"SET threads={THREADS}; SET memory_limit='2GB'; SET temp_directory='{out}/spill'; SET TimeZone='UTC'"
    )
    stages: dict[str, float] = {}
    started = time.monotonic()
    for stage, statement in _statements(records, out).items():
        before = time.monotonic()
        database.execute(statement)
        stages[stage] = time.monotonic() - before
    seconds = time.monotonic() - started
    standings = dict(database.execute("SELECT standing, count(*) FROM deliveries GROUP BY 1").fetchall())
    (messages,) = database.execute("SELECT sum(messages) FROM balance").fetchone() or (0,)
    (attempts,) = database.execute("SELECT sum(attempts) FROM subscribers").fetchone() or (0,)
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return {
        "seconds": seconds,
        "stages": stages,
        "counted": {
            **{each: standings.get(each, 0) for each in STANDINGS},
            "messages": int(messages),
            "attempts": int(attempts),
        },
        "cpu": usage.ru_utime + usage.ru_stime,
        "peak_mb": usage.ru_maxrss / 1024,
    }


def _statements(records: Path, out: Path) -> dict[str, str]:
    """The report in DuckDB's SQL, by stage."""
    texts = (
        "record_id kind project queue queue_uid message_id dialect delivery_id subscriber_id subscriber state verdict "
        "error_class order_key"
    )
    times = "at accepted_at expires_at due_at started_at finished_at"
    longs = (
        "schema_version body_size version reservations attempt tries tries_max status_code duration_ms bytes_out "
        "bytes_in wait_before_ms wait_after_ms sequence"
    )
    columns = {
        **dict.fromkeys(texts.split(), "VARCHAR"),
        **dict.fromkeys(times.split(), "TIMESTAMP"),
        **dict.fromkeys(longs.split(), "BIGINT"),
        "owed": "VARCHAR[]",
        "scheduled": "BOOLEAN",
    }
    typed = ", ".join(f"'{name}': '{kind}'" for name, kind in columns.items())
    end = f"TIMESTAMP '{date.fromordinal(LAST_DAY.toordinal() + 1)}'"
    attempts = "FROM curated WHERE kind IN ('attempt', 'poll')"
    sums = (
        "count(*) attempts, count(*) FILTER (verdict = 'delivered') delivered, count(*) FILTER (verdict = 'failed') "
        "failed, "
        "count(*) FILTER (attempt = 1) first_attempts, sum(bytes_out) bytes_out, sum(bytes_in) bytes_in, "
        "quantile_disc(duration_ms, [0.5, 0.95, 0.99]) times"
    )
    fates = (
        "sum(leads) messages, count(*) deliveries, count(*) FILTER (state = 'delivered') delivered, "
        "count(*) FILTER (state = 'acknowledged') acknowledged, count(*) FILTER (state = 'exhausted') exhausted, "
        "sum(attempts) attempts, quantile_disc(CASE WHEN state IN ('delivered', 'acknowledged') "
        "THEN date_diff('millisecond', accepted_at, settled_at) END, [0.5, 0.95, 0.99]) times"
    )
    return {
        "Compacting raw records": f"""
            COPY (SELECT *, "at"::DATE AS dt FROM read_json('{records}/dt=*/hour=*/*.json.gz',
                  format='newline_delimited', hive_partitioning=false, columns={{{typed}}}))
            TO '{out}/curated' (FORMAT parquet, PARTITION_BY (dt), OVERWRITE_OR_IGNORE);
            CREATE VIEW curated AS SELECT * FROM read_parquet('{out}/curated/*/*.parquet', hive_partitioning=true);
        """,
        "Rebuilding deliveries": f"""
            CREATE TABLE deliveries AS
            WITH events AS (
                SELECT *, unnest(CASE WHEN kind = 'accepted' THEN owed ELSE [delivery_id] END) AS about,
                    CASE WHEN dialect = 'pull' THEN coalesce(reservations, 0) * 4 +
                        CASE kind WHEN 'accepted' THEN 0 WHEN 'reserved' THEN 1 WHEN 'released' THEN 2 ELSE 3 END
                    ELSE coalesce(version, 0) END AS rank
                FROM curated
            ), lives AS (
                SELECT project, queue, queue_uid, message_id, about AS delivery_id,
                    max(accepted_at) accepted_at,
                    coalesce(arg_max(state, rank) FILTER (state IS NOT NULL), 'pending') state,
                    arg_max(coalesce(due_at, TIMESTAMP '1970-01-01'), rank) due_at,
                    coalesce(arg_max(coalesce(scheduled, false), rank), false) scheduled,
                    bool_or(dialect = 'pull') pull, max("at") FILTER (kind <> 'accepted') settled_at,
                    count(*) FILTER (kind IN ('attempt', 'poll')) attempts,
                    max(attempt) FILTER (verdict = 'delivered' OR kind = 'acknowledged') won_attempt,
                    max(CASE WHEN kind = 'accepted' AND owed[1] = about THEN 1 ELSE 0 END) leads
                FROM events GROUP BY ALL
            )
            SELECT *, CASE WHEN state IN ('delivered', 'acknowledged', 'exhausted', 'expired', 'cancelled') THEN state
                WHEN pull THEN CASE WHEN state = 'reserved' AND due_at > {end} THEN 'reserved' ELSE 'pending' END
                WHEN scheduled AND due_at > {end} THEN 'scheduled' ELSE state END AS standing
            FROM lives;
        """,
        "Counting attempts": f"""
            CREATE TABLE hours AS SELECT project, queue, subscriber_id, date_trunc('hour', "at") AS hour, {sums}
                {attempts} GROUP BY ALL;
            CREATE TABLE subscribers AS SELECT project, queue, subscriber_id, {sums} {attempts} GROUP BY ALL;
            CREATE TABLE by_hour AS SELECT date_trunc('hour', "at") AS hour, {sums} {attempts} GROUP BY ALL;
            CREATE TABLE outcomes AS SELECT project, queue, subscriber_id, verdict, status_code, error_class,
                count(*) AS attempts {attempts} GROUP BY ALL;
        """,
        "Reporting": f"""
            CREATE TABLE balance AS SELECT project, date_trunc('hour', accepted_at) AS hour,
                sum(leads) AS messages, count(*) AS owed,
                count(*) FILTER (standing = 'delivered') AS delivered,
                count(*) FILTER (standing = 'scheduled') AS scheduled
                FROM deliveries GROUP BY ALL;
            CREATE TABLE queues AS SELECT project, queue, {fates} FROM deliveries GROUP BY ALL;
            CREATE TABLE fates_hourly AS SELECT date_trunc('hour', accepted_at) AS hour, {fates}
                FROM deliveries GROUP BY ALL;
            CREATE TABLE projects AS SELECT project, {fates} FROM deliveries GROUP BY ALL;
            CREATE TABLE fates_detailed AS SELECT project, queue, split_part(delivery_id, '.', 2) AS subscriber_id,
                date_trunc('hour', accepted_at) AS hour, {fates} FROM deliveries GROUP BY ALL;
            CREATE TABLE attempts_needed AS SELECT n AS attempt, count(*) AS tried,
                count(*) FILTER (won_attempt = n) AS won
                FROM deliveries, unnest(range(1, attempts + 1)) AS each(n) WHERE NOT pull GROUP BY ALL;
        """,
    }


def spark_session() -> Any:
    """Spark as the job uses it, with a fixed number of threads."""
    from glue_jobs.delivery_report.session import open_session  # noqa: PLC0415
    from glue_jobs.local_spark import use_bundled_java  # noqa: PLC0415

    use_bundled_java()
    return open_session(f"local[{THREADS}]")


def spent(spark: Any) -> dict[str, float]:
    """CPU seconds and peak memory of the JVM."""
    pid = spark._jvm.java.lang.ProcessHandle.current().pid()
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    (peak,) = [line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith("VmHWM")]
    return {
        "cpu": (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK"),
        "peak_mb": int(peak.split()[1]) / 1024,
    }


RUNS = {"floor": run_spark_floor, "job": run_job, "duckdb": run_duckdb}


def measure(name: str, records: Path, work: Path) -> dict[str, Any]:
    """One run in a process of its own."""
    out = work / f"out-{name}"
    shutil.rmtree(out, ignore_errors=True)
    words = ["--run", name, "--records", str(records), "--out", str(out)]
    command = [sys.executable, "-m", "bench.records_report", *words]
    made = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    shutil.rmtree(out, ignore_errors=True)
    measured: dict[str, Any] = json.loads(made.stdout.splitlines()[-1])
    print(
        f"  {name}: {measured['seconds']:.1f} s, {measured['cpu']:.0f} s of CPU, {measured['peak_mb']:,.0f} MB",
        flush=True,
    )
    return measured


def measure_size(size: int, work: Path, rounds: int) -> dict[str, Any]:
    """All runs over this many records, in turns, the fastest of each; its counts are compared with the generator's."""
    records = work / f"records-{size}"
    shutil.rmtree(records, ignore_errors=True)
    print(f"{size:,} records", flush=True)
    truth = generate(Plan(records=size, days=DAYS, last_day=LAST_DAY), records, processes=THREADS)
    (records / "truth.json").unlink()
    stored = sum(each.stat().st_size for each in records.rglob("*.json.gz"))
    turns = [{name: measure(name, records, work) for name in RUNS} for _ in range(rounds)]
    measured = {name: min((turn[name] for turn in turns), key=lambda run: float(run["seconds"])) for name in RUNS}
    shutil.rmtree(records)
    expected = {each: truth.get(each, 0) for each in (*STANDINGS, "messages", "attempts")}
    for name in ("job", "duckdb"):
        if measured[name]["counted"] != expected:
            raise SystemExit(f"{name} counted {measured[name]['counted']}, but it is {expected}")
    if not measured["job"]["conserved"]:
        raise SystemExit("the job says that records of the generator are not conserved")
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
    whole_head = ["records", "run", "seconds", "records/s", "x floor", "CPU s", "x floor (CPU)", "peak memory"]
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
        ]
        for each in sizes
        for name, title in ENGINES
    ]
    stage_head = [
        "stage",
        *(f"job, {each['records']:,}" for each in sizes),
        *(f"DuckDB, {each['records']:,}" for each in sizes),
    ]
    stages = []
    for stage in sizes[0]["job"]["stages"]:
        cells = [stage]
        for name in ("job", "duckdb"):
            for each in sizes:
                seconds = each[name]["stages"].get(stage)
                cells.append("" if seconds is None else f"{seconds:.1f} s, {each['records'] / seconds:,.0f}/s")
        stages.append(cells)
    parts = [
        "## What was read",
        table(head, inputs),
        "## Whole runs",
        table(whole_head, whole),
        "## Stages (seconds, records per second)",
        table(stage_head, stages),
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
        met = "met" if clock <= FLOORS else "missed"
        lines.append(
            f"- Within {FLOORS} x of the floor, {each['records']:,} records: {met}, {clock:.2f} x by the clock "
            f"({cpu:.2f} x of the CPU)."
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
    page = Page("The delivery report, measured", __doc__, sizes=[1_000_000], rounds=1, work=Path, **aside)
    options = page.options
    if options.run:
        logging.basicConfig(level=logging.WARNING)
        print(json.dumps(RUNS[options.run](options.records, options.out)))
        return
    with tempfile.TemporaryDirectory(dir=options.work) as work:
        page.tell(*report([measure_size(size, Path(work), options.rounds) for size in options.sizes]))
    page.save()


if __name__ == "__main__":
    main()
