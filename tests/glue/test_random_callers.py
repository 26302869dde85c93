"""Nothing that a tenant or its customer may do turns the operator's verdict red: an hour of random calls
(``tests/simulation/random_callers.py``), and then the report. Take a record away, and it is red and names it.
"""

from __future__ import annotations

import gzip
import json
import os
import subprocess
from collections import Counter
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

import pytest
from glue_jobs.delivery_report.figures.balance import balance
from glue_jobs.delivery_report.figures.traffic import fate_cells
from glue_jobs.delivery_report.proof.findings import NAMED
from glue_jobs.delivery_report.proof.night import prove
from glue_jobs.delivery_report.run.progress import Steps
from glue_jobs.delivery_report.storage.layout import Layout
from pyspark.sql import SparkSession
from tests.glue.frames import Counted, Kept, jobs_of, queried, rows_of
from tests.glue.runs import asked
from tests.glue.table_pages import TablePages

from pushhub.engine.model.record import NO_RECORDS

ROOT = Path(__file__).parents[2]
SEED = int(os.environ.get("SIMULATED_FROM", "2026112700"))
"""Fixed unless given (docs/decisions/proving.md); a failed run is repeated with the number it prints."""


GRACE = timedelta(hours=1, minutes=5)
"""The report's grace, and what clocks and streams may be late."""


@dataclass(frozen=True)
class Hour:
    """What the hub has after the hour.

    Attributes:
        records: All delivery records, without what names other objects.
        tables: What the tables hold, by the report's name for them.
        now: When the hub stopped.
        answered: Answers by status, of each route that changes something.
        faults: Requests that were answered as nobody's request may be.
    """

    records: list[dict[str, Any]]
    tables: dict[str, list[dict[str, Any]]]
    now: str
    answered: dict[str, dict[str, int]]
    faults: list[str]


@pytest.fixture(scope="module")
def hour(tmp_path_factory: pytest.TempPathFactory) -> Hour:
    """The hour of the day's seed, simulated in the hub's own environment."""
    folder = tmp_path_factory.mktemp("hour")
    run = subprocess.run(
        [ROOT / ".venv/bin/python", "-m", "tests.simulation.random_callers", str(SEED), folder],
        cwd=ROOT,
        env={"PYTHONPATH": f"{ROOT / 'layers/pushhub'}:{ROOT}", "PATH": "/usr/bin:/bin"},
        check=False,
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, f"SIMULATED_FROM={SEED}: {run.stderr[-4000:]}"
    told = json.loads((folder / "tables.json").read_text())
    assert not list(folder.glob("records/quarantine/**/*.json*")), f"SIMULATED_FROM={SEED}"
    records = {
        each["record_id"]: each
        for file in sorted(folder.glob("records/dt=*/**/*.gz"))
        for each in map(json.loads, gzip.decompress(file.read_bytes()).splitlines())
        if each["kind"] not in NO_RECORDS
    }
    return Hour([*records.values()], told["tables"], told["now"], told["answered"], told["faults"])


@dataclass(frozen=True)
class Judged:
    """The verdict on the hour, and on a copy of it with records taken away. One run of the report judges both.

    Attributes:
        breaches: Findings that break conservation.
        unbalanced: The projects with hours that do not balance.
        gone: The records that were taken away.
        jobs: How many jobs of Spark's that took.
    """

    breaches: list[dict[str, Any]]
    unbalanced: set[str]
    gone: list[dict[str, Any]]
    jobs: int


COPY = "x"
"""Ends the ids of projects and queues of the copy."""


@pytest.fixture(scope="module")
def judged(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory, hour: Hour) -> Judged:
    """The report's verdict."""
    folder = tmp_path_factory.mktemp("judged")
    gone = missed(hour, Random(SEED))
    ids = {each["record_id"] for each in gone}
    kept = [copied_record(each) for each in hour.records if each["record_id"] not in ids]
    by_hour: dict[str, list[dict[str, Any]]] = {}
    for each in [*hour.records, *kept]:
        by_hour.setdefault(f"dt={each['at'][:10]}/hour={each['at'][11:13]}", []).append(each)
    for place, records in by_hour.items():
        file = folder / "records" / place / f"messages-1-{len(records)}-{len(records)}.json.gz"
        file.parent.mkdir(parents=True)
        file.write_bytes(gzip.compress("".join(f"{json.dumps(each)}\n" for each in records).encode(), mtime=0))
    names = {name: name for name in hour.tables}
    arguments = replace(asked(folder, now=hour.now.removesuffix("Z")), tables=names)
    tables = TablePages({name: [*items, *map(copied_item, items)] for name, items in hour.tables.items()})
    before = jobs_of(spark)
    proof = prove(spark, arguments, Layout(arguments.output, "report"), Steps(), client=lambda: tables)
    assert not proof.set_aside
    return Judged(
        [each for each in rows_of(proof.findings) if each["severity"] == "breach"],
        {each["project"] for each in queried(balance, Counted(fate_cells, Kept(arguments))) if not each["balanced"]},
        gone,
        jobs_of(spark) - before,
    )


def copied_record(record: dict[str, Any]) -> dict[str, Any]:
    """A record as the copy has it."""
    uid, rest = record["record_id"].split("/", 1)
    changed = {"project": record["project"] + COPY, "queue_uid": uid + COPY, "record_id": f"{uid}{COPY}/{rest}"}
    return {**record, **changed}


def copied_item(item: dict[str, Any]) -> dict[str, Any]:
    """An item of a table as the copy has it."""
    project, uid, rest = item["pk"]["S"].split("#", 2)
    if "topic_uid" in item:
        return {**item, "pk": {"S": f"{project}{COPY}#{uid}#{rest}"}, "topic_uid": {"S": item["topic_uid"]["S"] + COPY}}
    return {**item, "pk": {"S": f"{project}{COPY}#{uid}{COPY}#{rest}"}}


def test_every_route_that_changes_something_was_called_and_nothing_failed(hour: Hour) -> None:
    statuses: Counter[str] = Counter()
    for answers in hour.answered.values():
        statuses.update(answers)
    assert all(hour.answered.values()), f"SIMULATED_FROM={SEED}"
    # In good weather there is no request, however bad, that the hub may fail at
    assert not hour.faults, f"SIMULATED_FROM={SEED}: {hour.faults[:3]}"
    # Most of them carried out something, so that there is something to judge
    carried_out = [name for name, answers in hour.answered.items() if any(each.startswith("2") for each in answers)]
    assert len(carried_out) > len(hour.answered) * 0.85, f"SIMULATED_FROM={SEED}: {hour.answered}"
    kinds = Counter(f"{each['dialect']} {each['kind']}" for each in hour.records)
    assert {f"{each} accepted" for each in ("raw", "pull", "hub", "webhooks", "notifications")} <= {*kinds}, kinds


def test_nothing_that_anybody_did_turns_the_verdict_red(judged: Judged) -> None:
    assert not [each for each in judged.breaches if not (each["project"] or "").endswith(COPY)], (
        f"SIMULATED_FROM={SEED}"
    )
    assert not [each for each in judged.unbalanced if not each.endswith(COPY)], f"SIMULATED_FROM={SEED}"


def missed(hour: Hour, random: Random) -> list[dict[str, Any]]:
    """A record of each message, by chance, among those that the report must miss at once.

    docs/report.md says which records it misses later, or never ("What is promised").
    """
    by_delivery: dict[tuple[str, str, str], list[dict[str, Any]]] = {}
    for each in hour.records:
        if each["dialect"] != "notifications":
            of = each["queue_uid"], stay_of(each), each.get("delivery_id", "")
            by_delivery.setdefault(of, []).append(each)
    before = datetime.fromisoformat(hour.now) - GRACE
    by_message: dict[tuple[str, str], list[dict[str, Any]]] = {}
    sizes = Counter((each["queue_uid"], stay_of(each)) for each in hour.records)
    for (uid, stay, delivery), events in by_delivery.items():
        for number, each in enumerate(events):
            last = number == len(events) - 1
            # Consumers may take their time, and come back for what they left; what they give back has no number.
            late = each["kind"] == "released" or (each["dialect"] == "pull" and bool(delivery) and last)
            recent = datetime.fromisoformat(each["at"]) > before
            if not (late or recent):
                by_message.setdefault((uid, stay), []).append(each)
    # Of what is not recorded at all, the report names the first few of each queue and hour, and counts the rest.
    unrecorded: Counter[tuple[str, ...]] = Counter()
    chosen = []
    for message, events in by_message.items():
        each = random.choice(events)
        place = each["project"], each["queue"], each["accepted_at"][:13]
        unrecorded[place] += sizes[message] == 1
        if sizes[message] > 1 or unrecorded[place] <= NAMED:
            chosen.append(each)
    return chosen


def stay_of(record: dict[str, Any]) -> str:
    """The message, in a pull queue with the number of its stay."""
    return str(record["record_id"].split("/")[1])


def test_records_that_are_taken_away_are_named(judged: Judged) -> None:
    # Given a record of each of many messages, which are lost
    assert len(judged.gone) > 50
    # (a night is a few dozen jobs of Spark at most, however much is wrong and whatever the tables hold)
    assert 0 < judged.jobs <= 40
    # Then each is named
    named = " ".join(
        json.dumps(each, default=str) for each in judged.breaches if (each["project"] or "").endswith(COPY)
    )
    unnamed = [each["record_id"] for each in judged.gone if each["message_id"] not in named]
    assert not unnamed, f"SIMULATED_FROM={SEED}"
