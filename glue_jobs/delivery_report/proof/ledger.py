"""What the tables themselves hold, read along with the records: a message that has lost every record has left no trace
in them, but its item is there.

Push queues' messages and notifications' commits stay in their tables a day longer than they are owed, pull queues'
messages until they leave. Only keys and times are read, no bodies (the role may read no other attributes). Decision
0012.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, date, datetime
from itertools import islice
from typing import Any, Final

from botocore.exceptions import BotoCoreError, ClientError
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from pushhub.engine.model.record import PULSE

from ..run.arguments import midnight
from ..storage.files import remove, write_text
from ..storage.layout import small_table
from ..storage.schema import struct
from .carried import Inputs
from .findings import FINDING, NAMED, finding_of, found
from .holdings import entries
from .pulses import Pulses

SEGMENTS: Final = 8
"""Parts of a table that are read side by side."""

ROWS_PER_FILE: Final = 50_000

COMMIT_BITS: Final = 7
"""A notification's position is its commit's number, shifted by so many bits, and its place in the commit."""

ENTRY: Final = struct("string project queue queue_uid id", "bigint accepted_ms")
"""Something accepted that a table holds; ``id`` is a message's, in pull queues with
what tells its stays there apart, or the number of a commit."""


def read_tables(inputs: Inputs) -> tuple[DataFrame, Pulses]:
    """:func:`entries` of all segments, read side by side: messages are kept below ``work/``, as they may be many; of
    pulses there are a few hundred a day, by table.

    Raises:
        ClientError: A table could not be read.
    """
    client, tables = inputs.client(), inputs.arguments.tables
    within = {"since": midnight(inputs.since), "until": inputs.until}
    folder = f"{inputs.layout.work}/ledger"
    remove(folder)
    pulses: dict[str, set[datetime]] = {name: set() for name in tables.values()}

    def read(segment: int) -> int:
        held, files = held_in(entries(client, tables, segment=segment, segments=SEGMENTS, **within)), 0
        while rows := list(islice(held, ROWS_PER_FILE)):
            text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
            write_text(f"{folder}/{segment}-{files}.json", text, "application/x-ndjson")
            files += 1
        return files

    def held_in(read: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
        for each in read:
            if each["queue_uid"] == PULSE:
                pulses[each["queue"]].add(datetime.fromtimestamp(each["accepted_ms"] / 1000, UTC))
            else:
                yield each

    with ThreadPoolExecutor(max_workers=SEGMENTS) as side_by_side:
        written = sum(side_by_side.map(read, range(SEGMENTS)))
    spark = inputs.spark
    return (spark.read.schema(ENTRY).json(folder) if written else small_table(spark, [], ENTRY)), pulses


def compared(inputs: Inputs) -> tuple[DataFrame, DataFrame | None, Pulses | None]:
    """Compare the records with what the tables hold.

    Returns:
        What these hold and no record tells of, as findings; all that they hold, :data:`ENTRY`; and their pulses. If
        they could not be read, that is a finding as well, and nothing is known of the others.
    """
    try:
        held, pulses = read_tables(inputs)
    except (BotoCoreError, ClientError) as error:
        detail = f"the tables could not be read, so a message without any record would not be missed: {error}"
        failed = small_table(inputs.spark, [finding_of("breach", "not_compared", detail)], FINDING)
        return failed, None, None
    # What was accepted before is judged by what was carried over.
    lately = held.where(F.col("accepted_ms") >= round(midnight(inputs.first).timestamp() * 1000))
    return unrecorded_findings(lately, inputs.history(), inputs.first), held, pulses


def unrecorded_findings(ledger: DataFrame, records: DataFrame, date_from: date) -> DataFrame:
    """What the tables hold (from a day on) and no record tells of: one finding for each queue and hour, with the first
    ids.
    """
    notification = F.col("dialect") == "notifications"
    of_pull = F.substring_index(F.coalesce("delivery_id", F.get("owed", F.lit(0))), ".", 1)
    recorded = records.where(F.to_date("accepted_at") >= F.lit(date_from)).select(
        "queue_uid",
        F.when(notification, F.shiftright("sequence", COMMIT_BITS).cast("string"))
        .when(F.col("dialect") == "pull", of_pull)
        .otherwise(F.col("message_id"))
        .alias("id"),
    )
    lost = ledger.join(recorded.where(F.col("id").isNotNull()), ["queue_uid", "id"], "left_anti")
    accepted = F.timestamp_millis("accepted_ms")
    by_hour = lost.groupBy("project", "queue", F.date_trunc("hour", accepted).alias("hour")).agg(
        F.count(F.lit(1)).alias("lost"), F.slice(F.array_sort(F.collect_set("id")), 1, NAMED).alias("ids")
    )
    more = F.when(F.col("lost") > NAMED, F.format_string(" and %d more", F.col("lost") - NAMED)).otherwise("")
    detail = F.concat(F.lit("the table holds what no record tells of: "), F.array_join("ids", ", "), more)
    alone = F.when(F.col("lost") == 1, F.col("ids")[0])
    return found(by_hour.withColumn("message_id", alone), "breach", "not_recorded", detail)
