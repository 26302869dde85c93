"""What a hub costs a month: at rest, and by messages a month, their size, and how full batches are.

    .venv/bin/python -m bench.months [--rounds 1] [--write] [--save docs/figures/months.md]

Messages are counted as in bench/cost.py, in batches of other sizes: so many messages of the stream in a run of
dispatch, and so many messages of the queue in a run of push. Batches fill by themselves where messages come faster than
runs begin; a hub that gets one now and then pays for a run of each function for it. The units go into
``cli/cost/counted_units.py`` (``--write``), and all dollars come from ``cli/cost/reckoning.py``, which ``pushhub cost``
asks, too: that says how records, metrics, the nightly report and searches grow with messages.

Bodies of 2 KB and 6 KB are those of bench/webhook_bodies.py with a dictionary that does not know their sender
(docs/figures/bodies.md); those of 0.4 KB are too small to be compressed.

Events of a stream are posted one at a time, kept for their 90 days, and read by a sink in full batches: a sink that
waits for more (``maxWaitSecs``) puts the orders off by which it reads, which costs as much as a failed attempt does.

At rest means without any message. Counted from the template with its defaults: alarms beyond the ten that are free,
keys, receives of the queues that start functions (Lambda reads each with five long polls of 20 seconds),
the delivery report (two workers, four minutes) on one night of 28, sweep's look at the records on the others, and what
the runs by the clock call and take, metered on empty tables over an hour; wake's pulses among them, each of which is a
run of records. With messages, the report is made each night, and the schedule's shards are read one by one
(docs/decisions/retries.md).

Of what every account has free each month, without an end, ten alarms, ten metrics and 100 GB of data out are left out,
and nothing else: the first million requests of SQS and of Lambda, 400,000 GB-seconds and 5 GB of logs would make a hub
that is alone in its account cheaper by up to $7. Not counted: the storage of what is left at rest, cold starts, taxes.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from tests.cloud.aws_services import MESSAGES_TABLE
from tests.notifications.store import aws_notifications
from tests.template.cloudformation import deployed

from bench.cost import (
    BODY,
    ENDPOINT_MS,
    MANY,
    MANY_SUBSCRIBERS,
    SIZES,
    Account,
    Bench,
    bench,
    gateway_event,
    keep,
    least,
    of_size,
    push,
    queued,
    run,
    scan,
    shown,
)
from bench.harness import ROOT, Page, cells, table
from bench.list_prices import PRICES
from bench.metering import MONTH_S, records_event
from pushhub.base.times import iso_time
from pushhub.cloud.clock import SystemClock
from pushhub.engine.model.pulse import Pulse, pulse_time
from pushhub.engine.model.record import PULSE, PULSE_EVERY_S
from pushhub.engine.records.nights import GRACE_MS, LONGEST_MS
from pushhub.engine.store.aws_nights import DECIDED
from pushhub.engine.store.dynamodb_pulses import DynamoDBPulses
from pushhub.engine.store.s3_records import S3RecordStore
from pushhub.webhooks.streams.events import DUE_MS

FREE_ALARMS = 10
POLLERS = 5
"""Long polls that Lambda keeps open for a queue at rest
(https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-scaling.html)."""
LONG_POLL_S = 20
REPORT_S = 240
"""How long the delivery report takes, of which two minutes are starting."""
REPORT = "report"
RECORDS, NIGHT_S = "records", 86_400
RATES = {1_000_000: (1, 1), 100_000_000: (10, 1), 1_000_000_000: (31, 3), 10_000_000_000: (100, 10)}
"""By messages a month, spread evenly, how full batches are then: messages of the stream in a run of dispatch, and
messages of the queue in a run of push. One message in 2.6 s; 38 a second, of which each of 16 lanes gets a few in the
time of a run; 380; 3,800."""
SMALL = 385
"""Bytes of the body of bench/cost.py."""
FURTHER_OF = 2_048
"""Bytes of the bodies with which further subscribers are counted."""
MONTHS = (10_000, 100_000, 1_000_000, 10_000_000, 100_000_000, 1_000_000_000, 10_000_000_000)
SHOWN = (SMALL, *SIZES)
MODULE = ROOT / "cli/cost/counted_units.py"
MEASURED_S = 3_600
"""How long runs by the clock are measured."""
STREAM_BATCHES, EVENTS, TENS = (1, 10, 100), 400, 10
"""Events in a batch of a sink; how many are posted; and orders in a run of dispatch and of push."""
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
    receives = POLLERS * MONTH_S / LONG_POLL_S
    fifo = sum(_is_fifo(each, resources) for each in read)
    standard = len(read) - fifo
    yield "empty receives", f"{standard} queues", standard * receives * PRICES["sqs_standard_request"]
    yield "empty receives, FIFO", f"{fifo} queue", fifo * receives * PRICES["sqs_fifo_request"]
    runs = MONTH_S / NIGHT_S / (LONGEST_MS / 1000 / NIGHT_S + 1)
    yield REPORT, f"{runs:.1f} runs of {REPORT_S} s", runs * report()


def _is_fifo(mapping: Mapping[str, Any], resources: Mapping[str, Any]) -> bool:
    queue, _ = mapping["Properties"]["EventSourceArn"]["Fn::GetAtt"]
    return bool(resources[queue]["Properties"].get("FifoQueue"))


def report() -> float:
    """What a run of the delivery report costs."""
    (job,) = (each["Properties"] for each in deployed().values() if each["Type"] == "AWS::Glue::Job")
    price = PRICES["glue_flex_dpu_hour" if job.get("ExecutionClass") == "FLEX" else "glue_dpu_hour"]
    return 2 * REPORT_S / 3_600 * price


def clocked(setup: Bench) -> Iterator[tuple[str, str, float]]:
    """What the runs by the clock cost on empty tables, on average of an hour's: some do what others leave out."""
    real = SystemClock.now
    for name, seconds in CLOCK.items():
        # The first one imports, and finds out where it is.
        setup.hub.invoke(Account(messages=1), name, {})
        measured = max(1, MEASURED_S // seconds)
        account = Account(messages=measured)
        for number in range(1, measured + 1):
            ahead = number * seconds * 1000
            SystemClock.now = lambda self, ahead=ahead: real(self) + ahead  # type: ignore[method-assign, misc]
            setup.hub.invoke(account, name, {})
        SystemClock.now = real  # type: ignore[method-assign]
        runs = MONTH_S / seconds
        dollars = sum(account.bill().values()) / 1e6 + PRICES["scheduler_invocation"]
        yield name, f"{runs:,.0f} runs", runs * dollars


def pulses(setup: Bench) -> Iterator[tuple[str, str, float]]:
    """What becomes of the pulses that the runs of wake have sent: each comes out of its stream by itself."""
    items = [each for each in scan(setup.hub.dynamodb) if each["sk"]["S"] == PULSE]
    account = Account(messages=len(items))
    for each in items:
        setup.hub.invoke(account, "records", records_event([each], MESSAGES_TABLE, float(each["ttl"]["N"])))
        setup.hub.dynamodb.delete_item(TableName=MESSAGES_TABLE, Key={"pk": each["pk"], "sk": each["sk"]})
    count = MONTH_S / PULSE_EVERY_S * len(os.environ["PULSED_TABLES"].split(","))
    dollars = account.dollars("records") / 1e6
    yield "records", f"{count:,.0f} pulses", count * dollars


def quiet_nights(setup: Bench) -> Iterator[tuple[str, str, float]]:
    """What a night costs on which sweep finds nothing but pulses: a day and an hour of them, through each table."""
    s3, tables = setup.hub.s3, os.environ["PULSED_TABLES"].split(",")
    for each in s3.list_objects_v2(Bucket=RECORDS, Prefix="records/").get("Contents", []):
        s3.delete_object(Bucket=RECORDS, Key=each["Key"])
    night = int(time.time()) // NIGHT_S * NIGHT_S * 1000 + GRACE_MS + 1_800_000
    reported = night - NIGHT_S * 1000
    ahead, store = SystemClock(), S3RecordStore(s3, RECORDS)
    for at in range(reported - GRACE_MS, night, PULSE_EVERY_S * 1000):
        DynamoDBPulses(setup.hub.dynamodb, tables, ahead).send(pulse_time(at))
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
    setup.hub.invoke(account, "sweep", {})
    SystemClock.now = real  # type: ignore[method-assign]
    decided = json.loads(s3.get_object(Bucket=RECORDS, Key=DECIDED)["Body"].read())
    assert decided == {"day": iso_time(night)[:10], "until": night - GRACE_MS, "why": ""}, decided
    nights = MONTH_S / NIGHT_S
    dollars = account.dollars("sweep") / 1e6
    yield "quiet nights", f"{nights:.0f} looks", nights * dollars


def of_messages(account: Account) -> dict[str, float]:
    """Units for a message, but for those of records, which come in batches of their own."""
    found: Counter[str] = Counter()
    for function, units in account.units.items():
        if function != RECORDS:
            found.update(units)
    return {name: count / account.messages for name, count in sorted(found.items()) if count}


def by_size(setup: Bench, rounds: int) -> tuple[dict[int, dict[int, dict[str, float]]], list[Account]]:
    """Units for a message by its bytes and by messages a month, and the accounts of the largest number."""
    found: dict[int, dict[int, dict[str, float]]] = {}
    full = []
    for size in SHOWN:
        found[size] = {}
        for rate, (dispatched, pushed) in RATES.items():
            account = least(
                [
                    run(setup.hub, _posts(setup, size), setup.urls, dispatched=dispatched, pushed=pushed)
                    for _ in range(rounds)
                ]
            )
            found[size][rate] = of_messages(account)
            print(f"{size} bytes, {dispatched}/{pushed}: {shown(account).whole:.2f}", flush=True)
        full.append(account)
    return found, full


def steadied(found: Mapping[int, Mapping[int, Mapping[str, float]]]) -> dict[int, dict[int, dict[str, float]]]:
    """The same, where no body takes more of anything than a larger one does.

    That was the machine: busy with other work, it makes compute dearer, and what is kept for a time is read more often.
    """
    return {
        size: {
            rate: {name: min(found[each][rate].get(name, 0.0) for each in found if each >= size) for name in units}
            for rate, units in by_rate.items()
        }
        for size, by_rate in found.items()
    }


def _posts(setup: Bench, size: int) -> Iterable[dict[str, Any]]:
    return queued(setup, 1) if size == SMALL else of_size(setup, size)


def further(setup: Bench, counted: Mapping[int, Mapping[str, float]]) -> dict[int, dict[str, float]]:
    """Units for a delivery to a second subscriber, by messages a month."""
    found = {}
    for rate, (dispatched, pushed) in RATES.items():
        account = run(
            setup.hub,
            of_size(setup, FURTHER_OF, queue=MANY),
            setup.urls,
            dispatched=dispatched,
            pushed=pushed,
            subscribers=MANY_SUBSCRIBERS,
        )
        units = of_messages(account)
        more = {name: (count - counted[rate].get(name, 0)) / (MANY_SUBSCRIBERS - 1) for name, count in units.items()}
        found[rate] = {name: count for name, count in more.items() if count > 0}
    return found


def of_records(setup: Bench, full: Account) -> tuple[dict[str, float], dict[str, float], int]:
    """Units of a run for the changes of one message, units of a change in a full batch, and changes in such a batch."""
    post = next(iter(of_size(setup, FURTHER_OF)))
    assert setup.hub.invoke(Account(messages=1), "ingest", post)["statusCode"] == 201
    items = scan(setup.hub.dynamodb)
    account = Account(messages=1)
    setup.hub.invoke(account, RECORDS, records_event(items, MESSAGES_TABLE, time.time()))
    for each in items:
        setup.hub.dynamodb.delete_item(TableName=MESSAGES_TABLE, Key={"pk": each["pk"], "sk": each["sk"]})
    alone = {name: float(count) for name, count in sorted(account.units[RECORDS].items()) if count}
    units, changes = full.units[RECORDS], 2 * full.messages
    largest = round(changes / units["lambda_request"])
    # A full batch is a run, too.
    each_change = {name: max(0.0, count / changes - alone.get(name, 0) / largest) for name, count in units.items()}
    return alone, {name: count for name, count in sorted(each_change.items()) if count}, largest


def streams(setup: Bench) -> tuple[dict[int, dict[str, float]], dict[int, dict[str, float]]]:
    """Units of an event of a stream with one sink, and what of them is push's, as for each further sink: by events in a
    batch.
    """
    events, sinks = {}, {}
    for size in STREAM_BATCHES:
        account = read_by(setup, size)
        events[size] = of_messages(account)
        sinks[size] = {name: count / EVENTS for name, count in sorted(account.units["push"].items()) if count}
        print(f"streams, {size} in a batch", flush=True)
    return events, sinks


def read_by(setup: Bench, size: int) -> Account:
    """Post events to a new stream, one at a time, and have a sink read them in full batches."""
    hub, account, spare = setup.hub, Account(messages=EVENTS), Account(messages=1)

    def asked(path: str, body: object, account: Account = spare) -> Any:
        answer = hub.invoke(account, "control", gateway_event(f"/api/v1/stream{path}", body, f"Bearer {setup.token}"))
        assert answer["statusCode"] in (201, 202), answer
        return json.loads(answer["body"])

    stream = asked("", {"name": "Orders"})["id"]
    config = {"url": f"http://127.0.0.1:{setup.port}/in"}
    asked(f"/{stream}/sink", {"type": "http", "config": config, "batchSize": size, "maxWaitSecs": 0})
    for _ in range(EVENTS):
        asked(f"/{stream}/events", {"events": [{"eventType": "order.paid", "payload": BODY}]}, account)
        account.add("ingest", http_api_request=1)
    items = [each for each in scan(hub.dynamodb) if each["kind"]["S"] == "message"]
    for start in range(0, EVENTS, TENS):
        records = [{"dynamodb": {"NewImage": item}} for item in items[start : start + TENS]]
        hub.invoke(account, "dispatch", {"Records": records})
    # Its orders are given to runs when all events are there. Those that wait for others that read are put off.
    time.sleep(DUE_MS / 1000)
    states: Counter[str] = Counter()
    for _ in range(20):
        for queue in ("PUSH_QUEUE_URL", "SLOW_QUEUE_URL", "RETRY_QUEUE_URL"):
            push(hub, account, {"PUSH_QUEUE_URL": setup.urls[queue]}, push_ms=ENDPOINT_MS, pushed=TENS)
        stored = scan(hub.dynamodb)
        states = Counter(each["state"]["S"] for each in stored if each["kind"]["S"] == "delivery")
        if states["delivered"] == EVENTS:
            break
        time.sleep(1)
    keep(hub, account)
    assert states == {"delivered": EVENTS}, f"{states}: the machine is too busy"
    for each in stored:
        hub.dynamodb.delete_item(TableName=MESSAGES_TABLE, Key={"pk": each["pk"], "sk": each["sk"]})
    return account


TYPES = {
    "PRICES": "dict[str, float]",
    "AT_REST": "list[tuple[str, str, float]]",
    "METRICS_AT_REST": "int",
    "METRICS": "int",
    "MESSAGES": "dict[int, dict[int, dict[str, float]]]",
    "FURTHER_SUBSCRIBERS": "dict[int, dict[str, float]]",
    "RECORDS_RUN": "dict[str, float]",
    "RECORDS_CHANGE": "dict[str, float]",
    "LARGE_CHANGES": "int",
    "STREAM_EVENTS": "dict[int, dict[str, float]]",
    "STREAM_SINKS": "dict[int, dict[str, float]]",
}
"""What is written, and its type."""


def write(values: Mapping[str, object], path: Path = MODULE) -> None:
    """Write the units into the command line."""
    parts = (f"{name}: {TYPES[name]} = {value!r}\n" for name, value in values.items())
    head = '"""Units that were counted, and their prices. Written by ``python -m bench.months --write``."""\n\n'
    path.write_text(head + "\n".join(parts))
    subprocess.run([sys.executable, "-m", "ruff", "format", "-q", str(path)], check=True)


def main() -> None:
    """Count, write, print, save."""
    page = Page("What a hub costs a month", __doc__, rounds=1, write=False)
    os.environ.update({"AWS_LAMBDA_FUNCTION_NAME": "wake", "REPORT_JOB": "report"})
    if page.options.write:
        with bench() as setup, aws_notifications.dynamodb():
            os.environ["BACKLOGS_TABLE"] = aws_notifications.BACKLOGS_TABLE
            write(measured(setup, page.options.rounds))
    page.tell(*reckoned(), *ways())
    page.save()


def measured(setup: Bench, rounds: int) -> dict[str, object]:
    """Everything that is counted."""
    setup.hub.metrics.clear()
    # Whatever night it is, it has been decided.
    tomorrow = {"day": iso_time(int(time.time() + 3_600) * 1000)[:10], "until": 0, "why": ""}
    setup.hub.s3.put_object(Bucket=RECORDS, Key=DECIDED, Body=json.dumps(tomorrow).encode())
    idle = [*standing(), *clocked(setup), *pulses(setup), *quiet_nights(setup)]
    at_rest = len(setup.hub.metrics)
    messages, full = by_size(setup, rounds)
    subscribers = further(setup, messages[FURTHER_OF])
    run_of_records, change, largest = of_records(setup, full[SHOWN.index(FURTHER_OF)])
    events, sinks = streams(setup)
    return {
        "PRICES": dict(PRICES),
        "AT_REST": [(name, count, round(dollars, 4)) for name, count, dollars in idle],
        "METRICS_AT_REST": at_rest,
        "METRICS": len(setup.hub.metrics),
        "MESSAGES": steadied(messages),
        "FURTHER_SUBSCRIBERS": subscribers,
        "RECORDS_RUN": run_of_records,
        "RECORDS_CHANGE": change,
        "LARGE_CHANGES": largest,
        "STREAM_EVENTS": events,
        "STREAM_SINKS": sinks,
    }


def ways() -> Iterator[str]:
    """The table of what a message costs besides, by where it came from, what is done to it, and where it goes."""
    from cli.cost.reckoning import SINKS, Month, bill  # noqa: PLC0415

    def dollars(month: Month) -> float:
        [found] = [each.dollars for each in bill(month) if each.part in OF_WAYS or each.part.startswith("sinks, ")]
        return found

    yield "## Sinks, sources, transformations: dollars a million, besides what any message costs"
    rows = [
        [f"a sink: {kind}", *(f"{dollars(Month(10**6, sink=kind, together=each)):.3f}" for each in (1, 10))]
        for kind in SINKS
    ]
    rows += [
        ["an event of a source", f"{dollars(Month(10**6, sourced=1)):.3f}", ""],
        ["a transformation", f"{dollars(Month(10**6, transformed=1)):.3f}", ""],
    ]
    yield table(["", "alone", "in tens"], rows)
    yield "## Events of a stream: dollars a million of 0.4 KB, in full batches, without records"
    rows = []
    for sink, sinks in (("http", 1), ("http", 2), ("s3", 1), ("kinesis", 1)):
        kind = "" if sink == "http" else sink
        months = [Month(10**6, SMALL, sinks, sink=kind, together=each, stream=True) for each in STREAM_BATCHES]
        whole = [sum(each.dollars for each in bill(month) if OF_STREAMS.match(each.part)) for month in months]
        rows.append([f"{sinks} {sink}", *cells(".2f", *whole)])
    yield table(["sinks", *(f"{each} in a batch" for each in STREAM_BATCHES)], rows)


OF_STREAMS = re.compile("messages|further deliveries|sinks, ")
OF_WAYS = ("events of sources", "transformations")


def in_full(size: int, rate: int) -> float:
    """Dollars of a million messages, of which each has two changes in full batches of records."""
    from cli.cost.counted_units import LARGE_CHANGES, MESSAGES, RECORDS_CHANGE, RECORDS_RUN  # noqa: PLC0415

    message = sum(count * PRICES[name] for name, count in MESSAGES[size][rate].items())
    change = sum(count * PRICES[name] for name, count in RECORDS_CHANGE.items())
    run_of_records = sum(count * PRICES[name] for name, count in RECORDS_RUN.items())
    return (message + 2 * (change + run_of_records / LARGE_CHANGES)) * 1e6


def reckoned() -> Iterator[str]:
    """The tables, as ``pushhub cost`` reckons them."""
    from cli.cost.reckoning import Month, at_rest, bill, total  # noqa: PLC0415 (its figures may just have been written)

    def rows(lines: list[Any]) -> list[list[str]]:
        shown = [[each.part, each.counted, f"{each.dollars:,.2f}"] for each in lines]
        return [*shown, ["all", "", f"{total(lines):,.2f}"]]

    yield "## At rest"
    yield table(["at rest", "counted", "$ a month"], rows(at_rest()))
    yield "## By messages a month, and bytes of a body"
    head = ["messages a month", *(f"{size / 1000:.1f} KB: $ a month" for size in SHOWN)]
    head += [f"{size / 1000:.1f} KB: $ a million" for size in SHOWN]
    lines = []
    for count in MONTHS:
        dollars = [total(bill(Month(count, size))) for size in SHOWN]
        lines.append(
            [f"{count:,}", *cells(",.2f", *dollars), *cells(",.2f", *(each / count * 1e6 for each in dollars))]
        )
    yield table(head, lines)
    yield "## By how full batches are: dollars a million, with all that is kept, records in full batches"
    batches = [
        [f"{one}/{other}", *cells(".2f", *(in_full(size, rate) for size in SHOWN))]
        for rate, (one, other) in RATES.items()
    ]
    yield table(["messages in a run of dispatch/push", *(f"{size / 1000:.1f} KB" for size in SHOWN)], batches)
    yield "## Part by part: a million messages of 2 KB"
    yield table(["part", "counted", "$ a month"], rows(bill(Month(1_000_000))))
    yield "## Part by part: ten thousand million messages of 2 KB"
    yield table(["part", "counted", "$ a month"], rows(bill(Month(10_000_000_000))))
    yield "## More subscribers, and failures: a hundred million messages of 2 KB"
    more = [(1, 0.0), (3, 0.0), (10, 0.0), (1, 0.05), (1, 0.5)]
    yield table(
        ["subscribers", "failing", "$ a month"],
        [
            [str(count), f"{share:.0%}", f"{total(bill(Month(100_000_000, 2_048, count, share))):,.2f}"]
            for count, share in more
        ],
    )


if __name__ == "__main__":
    main()
