"""What a hub costs a month: at rest, by how full its batches are, and by how many messages it gets.

    .venv/bin/python -m bench.months [--rounds 1] [--save docs/figures/months.md]

Messages are counted as in bench/cost.py, in batches of other sizes: so many messages of the stream in a run of
dispatch, and so many messages of the queue in a run of push. Batches fill by themselves where messages come faster than
runs begin; a hub that gets one now and then pays for a run of each function for it.

At rest means without any message. Counted from the template with its defaults: alarms beyond the ten that are free,
keys, receives of the queues that start functions (Lambda reads each with five long polls of 20 seconds),
the delivery report (two workers, four minutes) on one night of 28, sweep's look at the records on the others, and what
the runs by the clock call and take, metered on empty tables over an hour; wake's pulses among them, each of which is a
run of records. With messages, the report is made each night, and the schedule's shards are read one by one (0146): both
are in the last table. Not counted: free tiers other than that of alarms, the storage of what is left, data out.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from glue_jobs.delivery_report.list_prices import PRICES
from tests.cloud.aws_services import MESSAGES_TABLE
from tests.notifications.store import aws_notifications
from tests.template.cloudformation import deployed

from bench.cost import Account, Bench, bench, least, queued, run, scan, shown
from bench.harness import Page, table
from bench.metering import MONTH_S, records_event
from pushhub.base.times import iso_time
from pushhub.cloud.clock import SystemClock
from pushhub.engine.model.pulse import Pulse, pulse_time
from pushhub.engine.model.record import PULSE, PULSE_EVERY_S
from pushhub.engine.records.nights import GRACE_MS, LONGEST_MS
from pushhub.engine.store.aws_nights import DECIDED
from pushhub.engine.store.dynamodb_pulses import DynamoDBPulses
from pushhub.engine.store.dynamodb_schedule import SHARDS
from pushhub.engine.store.s3_records import S3RecordStore

FREE_ALARMS = 10
POLLERS = 5
"""Long polls that Lambda keeps open for a queue at rest
(https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-scaling.html)."""
LONG_POLL_S = 20
REPORT_S = 240
"""How long the delivery report takes, of which two minutes are starting."""
REPORT = "the report"
RECORDS, NIGHT_S = "records", 86_400
BATCHES = ((100, 10), (31, 3), (10, 1), (1, 1))
"""Messages of the stream in a run of dispatch, messages of the queue in a run of push."""
MONTHS = ((10_000, (1, 1)), (1_000_000, (1, 1)), (100_000_000, (10, 1)), (10_000_000_000, (100, 10)))
"""Messages a month, spread evenly, and how full batches are then: one in four minutes; one in 2.6 s; 38 a second, of
which each of 16 lanes gets a few in the time of a run; 3,800 a second."""
MEASURED_S = 3_600
"""How long runs by the clock are measured."""
CLOCK = {"wake": 60, "notify": 60, "sweep": 3_600}
"""Seconds between runs by the clock."""


def standing() -> Iterator[tuple[str, str, float]]:
    """What is paid whether or not anything runs: name, how it is counted, dollars a month."""
    resources = deployed()
    kinds = [each["Type"] for each in resources.values()]
    alarms = kinds.count("AWS::CloudWatch::Alarm")
    yield "alarms", f"{alarms}, {FREE_ALARMS} of them free", max(0, alarms - FREE_ALARMS) * PRICES["alarm_month"]
    keys = kinds.count("AWS::KMS::Key")
    yield "keys", f"{keys}", keys * PRICES["kms_key_month"]
    mappings = [each for each in resources.values() if each["Type"] == "AWS::Lambda::EventSourceMapping"]
    read = [each for each in mappings if "ScalingConfig" in each["Properties"]]
    receives = len(read) * POLLERS * MONTH_S / LONG_POLL_S
    yield "empty receives", f"{len(read)} queues", receives * PRICES["sqs_standard_request"]
    runs = MONTH_S / NIGHT_S / (LONGEST_MS / 1000 / NIGHT_S + 1)
    yield REPORT, f"{runs:.1f} runs of {REPORT_S} s", runs * report()


def report() -> float:
    """What a run of the delivery report costs."""
    (job,) = (each["Properties"] for each in deployed().values() if each["Type"] == "AWS::Glue::Job")
    price = PRICES["glue_flex_dpu_hour" if job.get("ExecutionClass") == "FLEX" else "glue_dpu_hour"]
    return 2 * REPORT_S / 3_600 * price


def clocked(made: Bench) -> Iterator[tuple[str, str, float]]:
    """What the runs by the clock cost on empty tables, on average of an hour's: some do what others leave out."""
    real = SystemClock.now
    for name, seconds in CLOCK.items():
        # The first one imports, and finds out where it is.
        made.hub.invoke(Account(messages=1), name, {})
        measured = max(1, MEASURED_S // seconds)
        account = Account(messages=measured)
        for number in range(1, measured + 1):
            ahead = number * seconds * 1000
            SystemClock.now = lambda self, ahead=ahead: real(self) + ahead  # type: ignore[method-assign, misc]
            made.hub.invoke(account, name, {})
        SystemClock.now = real  # type: ignore[method-assign]
        runs = MONTH_S / seconds
        dollars = sum(account.bill().values()) / 1e6 + PRICES["scheduler_invocation"]
        yield name, f"{runs:,.0f} runs", runs * dollars


def pulses(made: Bench) -> Iterator[tuple[str, str, float]]:
    """What becomes of the pulses that the runs of wake have sent: each comes out of its stream by itself."""
    items = [each for each in scan(made.hub.dynamodb) if each["sk"]["S"] == PULSE]
    account = Account(messages=len(items))
    for each in items:
        made.hub.invoke(account, "records", records_event([each], MESSAGES_TABLE, float(each["ttl"]["N"])))
        made.hub.dynamodb.delete_item(TableName=MESSAGES_TABLE, Key={"pk": each["pk"], "sk": each["sk"]})
    count = MONTH_S / PULSE_EVERY_S * len(os.environ["PULSED_TABLES"].split(","))
    dollars = account.dollars("records") / 1e6
    yield "records", f"{count:,.0f} pulses", count * dollars


def quiet_nights(made: Bench) -> Iterator[tuple[str, str, float]]:
    """What a night costs on which sweep finds nothing but pulses: a day and an hour of them, through each table."""
    s3, tables = made.hub.s3, os.environ["PULSED_TABLES"].split(",")
    for each in s3.list_objects_v2(Bucket=RECORDS, Prefix="records/").get("Contents", []):
        s3.delete_object(Bucket=RECORDS, Key=each["Key"])
    night = int(time.time()) // NIGHT_S * NIGHT_S * 1000 + GRACE_MS + 1_800_000
    reported = night - NIGHT_S * 1000
    ahead, store = SystemClock(), S3RecordStore(s3, RECORDS)
    for at in range(reported - GRACE_MS, night, PULSE_EVERY_S * 1000):
        DynamoDBPulses(made.hub.dynamodb, tables, ahead).send(pulse_time(at))
        for table_name in tables:
            store.write([Pulse(table=table_name, at=pulse_time(at))], table=table_name, first=f"{at}", last=f"{at}")
    name = f"{iso_time(reported - 6 * NIGHT_S * 1000)[:10]}_{iso_time(reported)[:10]}"
    as_of = iso_time(reported).replace("Z", "+00:00")
    verdict = {"conserved": True, "owed": 0, "stream_records_quarantined": 0, "as_of": as_of}
    for key, content in {
        "reports/latest.json": {"report": name, "verdict": verdict},
        "curated/open/2026-11-26.json": {"rows": 0},
        DECIDED: {"day": "", "until": 0, "why": "the first"},
    }.items():
        s3.put_object(Bucket=RECORDS, Key=key, Body=json.dumps(content).encode())
    account, real = Account(messages=1), SystemClock.now
    SystemClock.now = lambda self: night  # type: ignore[method-assign]  # noqa: ARG005
    made.hub.invoke(account, "sweep", {})
    SystemClock.now = real  # type: ignore[method-assign]
    decided = json.loads(s3.get_object(Bucket=RECORDS, Key=DECIDED)["Body"].read())
    assert decided == {"day": iso_time(night)[:10], "until": night - GRACE_MS, "why": ""}, decided
    nights = MONTH_S / NIGHT_S
    dollars = account.dollars("sweep") / 1e6
    yield "quiet nights", f"{nights:.0f} looks", nights * dollars


def by_batch(made: Bench, rounds: int) -> dict[tuple[int, int], float]:
    """Dollars for a million messages posted one at a time, with all that is kept, by how full batches are."""
    found = {}
    for dispatched, pushed in BATCHES:
        accounts: list[Any] = [
            run(made.hub, queued(made, 1), made.urls, dispatched=dispatched, pushed=pushed) for _ in range(rounds)
        ]
        found[dispatched, pushed] = shown(least(accounts)).whole
        print(f"{dispatched}/{pushed}: {found[dispatched, pushed]:.2f}", flush=True)
    return found


def main() -> None:
    """Count, print, save."""
    page = Page("What a hub costs a month", __doc__, rounds=1)
    os.environ.update({"AWS_LAMBDA_FUNCTION_NAME": "wake", "REPORT_JOB": "report"})
    with bench() as made, aws_notifications.dynamodb():
        os.environ["BACKLOGS_TABLE"] = aws_notifications.BACKLOGS_TABLE
        # Whatever night it is, it has been decided.
        tomorrow = {"day": iso_time(int(time.time() + 3_600) * 1000)[:10], "until": 0, "why": ""}
        made.hub.s3.put_object(Bucket=RECORDS, Key=DECIDED, Body=json.dumps(tomorrow).encode())
        idle = [*standing(), *clocked(made), *pulses(made), *quiet_nights(made)]
        prices = by_batch(made, page.options.rounds)
    page.tell(*counted(idle, prices))
    page.save()


def counted(idle: Sequence[tuple[str, str, float]], prices: Mapping[tuple[int, int], float]) -> list[str]:
    """The tables."""
    rest = sum(dollars for _, _, dollars in idle)
    rows = [[name, count, f"{dollars:.2f}"] for name, count, dollars in idle]
    at_rest = table(["at rest", "counted", "$ a month"], [*rows, ["all", "", f"{rest:.2f}"]])
    full = table(
        ["messages in a run of dispatch", "of push", "$ a million"],
        [[str(one), str(other), f"{price:.2f}"] for (one, other), price in prices.items()],
    )
    # Where there are messages each day, each night has its report.
    nightly = MONTH_S / NIGHT_S * report() - sum(dollars for name, _, dollars in idle if name == REPORT)
    shards = (SHARDS - 1) * MONTH_S / CLOCK["wake"] * PRICES["dynamodb_read_unit"]
    months = []
    for count, batch in MONTHS:
        moved = count / 1e6 * prices[batch]
        whole = rest + nightly + shards + moved
        shares = f"{prices[batch]:.2f}", f"{whole:,.2f}", f"{whole / count * 1e6:,.2f}"
        months.append([f"{count:,}", f"{batch[0]}/{batch[1]}", *shares])
    head = ["messages a month", "batches", "$ a million", "$ a month, with rest", "$ a million, with rest"]
    monthly = table(head, months)
    return ["## At rest", at_rest, "## By how full batches are", full, "## By messages a month", monthly]


if __name__ == "__main__":
    main()
