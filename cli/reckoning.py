"""What a month costs on AWS, reckoned from units that were counted and from list prices (docs/figures/months.md).

Only what is counted is in :mod:`.counted_units`, which ``bench/months.py`` writes. What depends on how many messages
come is reckoned here: how full batches are, how many runs write delivery records, how long the nightly report takes.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from .counted_units import (
    AT_REST,
    FURTHER_SUBSCRIBERS,
    LARGE_CHANGES,
    MESSAGES,
    METRICS,
    METRICS_AT_REST,
    PRICES,
    RECORDS_CHANGE,
    RECORDS_RUN,
)

Units = Mapping[str, float]
"""How many of each priced unit."""

HOURS = 730.0
MINUTES = HOURS * 60
SECONDS = MINUTES * 60

FREE_METRICS = 10
FREE_OUT_GB = 100.0
"""What every account has each month, without an end, as it has ten alarms."""

TABLE_LIMIT = 24 * 1024
"""Larger bodies are in the bodies bucket; as a rule, as compressed they have more than 8 KiB then."""

STREAM_SHARDS = 4
"""Of a table on demand that is written to a little; each has batches of its own."""

SHARD_WRITES = 1_000
"""Write units a second that a shard's part of the table takes."""

SCHEDULE_READS = 31 * MINUTES
"""Shards of the schedule that are read one by one, each minute, where something waits."""

REPORT_DPU = 2
REPORT_S = 240.0
REPORT_S_PER_MILLION = 8.67
"""Seconds of the nightly report for a million records, on two cores (docs/figures/records.md)."""

NIGHTS = 30.4
SEARCHES = 100
SEARCH_TB = 10e-6
"""Athena bills ten MB of a search at least."""
RECORD_BYTES = 58
"""Of a record as a search reads it (docs/figures/records.md)."""

ENVIRONMENT_S = 0.1
"""How long an environment works for a message, alone; so many more are at work at a time, each with the key."""
KEY_CALLS = 12 * HOURS
"""An environment asks for its key every five minutes."""

HEADERS = 600
"""Bytes of a request besides its body."""

FAILURE: Units = {
    "dynamodb_write_unit": 3.0,
    "dynamodb_read_unit": 3.0,
    "sqs_standard_request": 3.0,
    "lambda_request": 1.0,
    "lambda_gb_second_arm64": 0.04,
    "logs_gb": 0.6e-6,
}
"""Of an attempt that fails and is made again, besides what the last one costs: the delivery is written once more, put
into the index and taken out of it; its order is sent, received and deleted (docs/figures/outage.md); a run of 80 ms.
"""


@dataclass(frozen=True, slots=True)
class Month:
    """What a hub does in a month.

    Attributes:
        messages: How many are posted, spread evenly, one in a post.
        size: Bytes of a body of JSON that the hub's dictionary does not know.
        subscribers: Of each message.
        failing: Share of deliveries whose first attempt fails, and whose second one succeeds.
    """

    messages: int
    size: int = 2_048
    subscribers: int = 1
    failing: float = 0.0


@dataclass(frozen=True, slots=True)
class Line:
    """A part of the bill.

    Attributes:
        part: What is paid for.
        counted: How it is counted.
        dollars: A month.
    """

    part: str
    counted: str
    dollars: float


def at_rest() -> list[Line]:
    """What a hub costs without any message."""
    lines = [Line(*each) for each in AT_REST]
    beyond = max(0, METRICS_AT_REST - FREE_METRICS)
    return [*lines, Line("custom metrics", f"{METRICS_AT_REST}, {FREE_METRICS} free", beyond * PRICES["metric_month"])]


def total(lines: list[Line]) -> float:
    """The sum of a bill."""
    return sum(each.dollars for each in lines)


def bill(month: Month) -> list[Line]:
    """Every part of a month's bill."""
    if not month.messages:
        return at_rest()
    return [*_always(month), *_each_message(month), *_records(month), *_nights(month), *_others(month)]


def _always(month: Month) -> Iterator[Line]:
    """What is paid at rest, too, but for what the records and the report become with messages."""
    yield from (Line(*each) for each in AT_REST if each[0] != "report")
    hours = 1 - math.exp(-month.messages / HOURS)
    metrics = METRICS_AT_REST + (METRICS - METRICS_AT_REST) * hours
    dollars = max(0.0, metrics - FREE_METRICS) * PRICES["metric_month"]
    yield Line("custom metrics", f"{metrics:.0f}, {FREE_METRICS} free", dollars)


def _each_message(month: Month) -> Iterator[Line]:
    large = month.size > TABLE_LIMIT
    one = _message(month.messages, min(MESSAGES) if large else month.size)
    further = _by_rate(FURTHER_SUBSCRIBERS, month.messages)
    yield _line("messages", f"{month.messages:,}", one, month.messages)
    deliveries = month.messages * month.subscribers
    if month.subscribers > 1:
        count = deliveries - month.messages
        yield _line("further deliveries", f"{count:,}", further, count)
    if large:
        yield _line(
            "bodies bucket", f"{month.messages:,} bodies", {"s3_put": 1.0, "s3_get": month.subscribers}, month.messages
        )
    if month.failing:
        failures = deliveries * month.failing
        yield _line("failed attempts", f"{failures:,.0f}", FAILURE, failures)


def _records(month: Month) -> Iterator[Line]:
    """Runs that write delivery records: as many as there are minutes with messages, in each shard, or full batches."""
    changes = month.messages * (1 + month.subscribers * (1 + month.failing))
    writes = changes / SECONDS
    shards = max(STREAM_SHARDS, math.ceil(writes / SHARD_WRITES))
    minutes = shards * MINUTES
    runs = max(minutes * (1 - math.exp(-month.messages / minutes)), changes / LARGE_CHANGES)
    yield _line("records, runs", f"{runs:,.0f}", RECORDS_RUN, runs)
    yield _line("records, changes", f"{changes:,.0f}", RECORDS_CHANGE, changes)


def _nights(month: Month) -> Iterator[Line]:
    records = month.messages * (1 + month.subscribers * (1 + month.failing))
    seconds = REPORT_S + REPORT_S_PER_MILLION * records / NIGHTS / 1e6
    hours = NIGHTS * REPORT_DPU * seconds / 3_600
    yield Line("report, Glue", f"{NIGHTS:.0f} nights of {seconds:,.0f} s", hours * PRICES["glue_flex_dpu_hour"])
    read = max(SEARCH_TB, records / NIGHTS * RECORD_BYTES / 1e12)
    yield Line("searches, Athena", f"{SEARCHES} of a day", SEARCHES * read * PRICES["athena_tb"])


def _others(month: Month) -> Iterator[Line]:
    yield _line("schedule's shards", f"{SCHEDULE_READS:,.0f} reads", {"dynamodb_read_unit": 1.0}, SCHEDULE_READS)
    calls = (2 + month.messages / SECONDS * ENVIRONMENT_S) * KEY_CALLS
    yield _line("calls of the key", f"{calls:,.0f}", {"kms_request": 1.0}, calls)
    out = month.messages * month.subscribers * (1 + month.failing) * (month.size + HEADERS) / 1e9
    paid = max(0.0, out - FREE_OUT_GB)
    yield Line("data out", f"{out:,.1f} GB, {FREE_OUT_GB:.0f} free", paid * PRICES["data_out_gb"])


def _line(part: str, counted: str, units: Units, times: float) -> Line:
    return Line(part, counted, times * sum(count * PRICES[name] for name, count in units.items()))


def _message(messages: float, size: int) -> Units:
    """Units of a message by its size, between sizes that were counted; beyond them, as between the last two."""
    sizes = sorted(MESSAGES)
    if size <= sizes[0]:
        return _by_rate(MESSAGES[sizes[0]], messages)
    upper = next((each for each in sizes if each >= size), sizes[-1])
    lower = sizes[sizes.index(upper) - 1]
    share = (size - lower) / (upper - lower)
    return _between(_by_rate(MESSAGES[lower], messages), _by_rate(MESSAGES[upper], messages), share)


def _by_rate(counted: Mapping[int, Units], messages: float) -> Units:
    """Units by how full batches are with so many messages a month, between rates that were counted."""
    rates = sorted(counted)
    if messages <= rates[0]:
        return counted[rates[0]]
    if messages >= rates[-1]:
        return counted[rates[-1]]
    upper = next(each for each in rates if each >= messages)
    lower = rates[rates.index(upper) - 1]
    share = math.log(messages / lower) / math.log(upper / lower)
    return _between(counted[lower], counted[upper], share)


def _between(lower: Units, upper: Units, share: float) -> Units:
    return {name: lower.get(name, 0.0) * (1 - share) + upper.get(name, 0.0) * share for name in {**lower, **upper}}
