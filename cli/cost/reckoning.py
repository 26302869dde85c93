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
    STREAM_EVENTS,
    STREAM_SINKS,
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

RECORDS_WINDOW_S = 115
"""How long changes wait for others to become records with them: the template's ``RecordsWindow``."""

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

CODE: Units = {"lambda_request": 1.0, "lambda_gb_second_arm64": 0.0055}
"""Of a delivery with a transformation: a warm run of 5 ms with 1,024 MB (docs/transformations.md), and push's share
that waits for it, of ten side by side.
"""

FROM_SOURCE: Units = {"dynamodb_read_unit": 1.0, "dynamodb_write_unit": 1.0, "dynamodb_gb_month": 0.6e-6}
"""Of a message that came to a source, besides what any message costs: the source is read, and the sender's id is
claimed, and kept for 90 days. Its secrets are opened once in an environment.
"""

SINK_GB_S = (0.00037, 0.00018)
"""GB-seconds of push to sign and read a call for a message that goes alone, and in tens (docs/destinations.md)."""

SINKS: Mapping[str, tuple[str, bool]] = {
    "sqs": ("sqs_standard_request", True),
    "fifo": ("sqs_fifo_request", True),
    "sns": ("sns_request", False),
    "events": ("eventbridge_event", False),
    "lambda": ("lambda_request", False),
    "kinesis": ("kinesis_put_unit", False),
    "s3": ("s3_put", True),
}
"""By kind of receiver the unit that its service bills, and whether one call with several messages is one. A function's
own run is its owner's.
"""


@dataclass(frozen=True, slots=True)
class Month:
    """What a hub does in a month.

    Attributes:
        messages: How many are posted, spread evenly, one in a post.
        size: Bytes of a body of JSON that the hub's dictionary does not know.
        subscribers: Of each message.
        failing: Share of deliveries whose first attempt fails, and whose second one succeeds.
        sink: The kind of receiver on AWS that all subscribers are, one of :data:`SINKS`; empty for URLs.
        together: So many messages go to a sink in one call; of a stream, so many events are in a batch.
        transformed: Share of deliveries with code.
        sourced: Share of messages that came to sources.
        stream: Whether messages are events of a stream, and subscribers its sinks, whose batches are full.
    """

    messages: int
    size: int = 2_048
    subscribers: int = 1
    failing: float = 0.0
    sink: str = ""
    together: int = 1
    transformed: float = 0.0
    sourced: float = 0.0
    stream: bool = False


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
    always, others = _always(month), [*_records(month), *_nights(month), *_others(month)]
    return [*always, *_each_message(month), *_ways(month), *others]


def _ways(month: Month) -> Iterator[Line]:
    """What a message costs besides, by where it came from, what is done to it, and where it goes."""
    attempts = month.messages * month.subscribers * (1 + month.failing)
    if month.sourced:
        count = month.messages * month.sourced
        yield _line("events of sources", f"{count:,.0f}", FROM_SOURCE, count)
    if month.transformed:
        count = attempts * month.transformed
        yield _line("transformations", f"{count:,.0f}", CODE, count)
    if month.sink:
        unit, shared = SINKS[month.sink]
        billed = {unit: 1 / month.together if shared else 1.0}
        alone, in_tens = SINK_GB_S
        # Sending is in what was counted of streams.
        gb_s = 0.0 if month.stream else alone + (in_tens - alone) * (month.together - 1) / 9
        yield _line(f"sinks, {month.sink}", f"{attempts:,.0f}", {**billed, "lambda_gb_second_arm64": gb_s}, attempts)


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
    further = _interpolated(FURTHER_SUBSCRIBERS, month.messages)
    if month.stream:
        one = _larger(_interpolated(STREAM_EVENTS, month.together), one, _message(month.messages, min(MESSAGES)))
        further = _interpolated(STREAM_SINKS, month.together)
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
    """Runs that write delivery records: in each shard one for a first message and for all that come while it waits; or
    full batches.
    """
    changes = month.messages * (1 + month.subscribers * (1 + month.failing))
    writes = changes / SECONDS
    shards = max(STREAM_SHARDS, math.ceil(writes / SHARD_WRITES))
    apart_s = shards * SECONDS / month.messages
    runs = max(shards * SECONDS / (RECORDS_WINDOW_S + apart_s), changes / LARGE_CHANGES)
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
        return _interpolated(MESSAGES[sizes[0]], messages)
    upper = next((each for each in sizes if each >= size), sizes[-1])
    lower = sizes[sizes.index(upper) - 1]
    share = (size - lower) / (upper - lower)
    return _between(_interpolated(MESSAGES[lower], messages), _interpolated(MESSAGES[upper], messages), share)


def _interpolated(counted: Mapping[int, Units], number: float) -> Units:
    """Units by how full batches are with so many messages a month, or in one batch, between what was counted."""
    numbers = sorted(counted)
    if number <= numbers[0]:
        return counted[numbers[0]]
    if number >= numbers[-1]:
        return counted[numbers[-1]]
    upper = next(each for each in numbers if each >= number)
    lower = numbers[numbers.index(upper) - 1]
    share = math.log(number / lower) / math.log(upper / lower)
    return _between(counted[lower], counted[upper], share)


def _between(lower: Units, upper: Units, share: float) -> Units:
    return {name: lower.get(name, 0.0) * (1 - share) + upper.get(name, 0.0) * share for name in {**lower, **upper}}


def _larger(units: Units, larger: Units, smaller: Units) -> Units:
    """Units with what a larger body takes more than a smaller one."""
    names = {**units, **larger}
    return {name: units.get(name, 0.0) + larger.get(name, 0.0) - smaller.get(name, 0.0) for name in names}
