"""Open deliveries, looked up in the table that holds them.

Records tell what happened, and nothing of what waits: behind an earlier message with the same ordering key, for a
circuit, in the line of a subscriber with a rate, for one that is paused. The table has it all the while, at the version
of its last record. It also shows a delivery that has gone on without a record, whenever the next one would be due.
docs/decisions/records.md.

Only keys, states and times are read, no bodies (the role may read no other attributes).
"""

from __future__ import annotations

import json
import time
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from itertools import islice
from typing import Any, Final

from botocore.exceptions import BotoCoreError, ClientError
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from ..storage.files import remove, write_text
from ..storage.layout import small_table
from ..storage.schema import SETTLED, struct
from .carried import Inputs
from .deliveries import IDENTITY
from .findings import FINDING, finding_of, found

AT_ONCE: Final = 40_000
"""Deliveries in memory at a time."""

PER_READ: Final = 100
"""Keys that DynamoDB takes in one read."""

READERS: Final = 4
"""Reads side by side; the hub needs the table, too."""

PAUSES_S: Final = (0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 12.8)
"""Waits before the rest of a read is asked for again, seconds."""

OUTLIVES: Final = timedelta(days=1)
"""Once their message has expired, the hub finds and ends all its deliveries within a day."""

LISTED, LISTED_PARTS = "~", 4
"""Where messages of queues that can be listed lie: the same as in ``pushhub.engine.store._keys``, which Glue lacks."""

WANTED: Final = (
    *("pk", "sk", "state", "version"),
    *("accepted_at", "settled_at", "asked_at", "changed_at", "last", "deleted"),
)
"""Attributes that are read; the job's role (``template.yaml``) may read no others."""

SIGHTED: Final = struct("string " + " ".join(IDENTITY), "timestamp hour", "boolean due", "string sighted detail")
"""What was seen of a delivery: a :class:`Sight`, ``due`` if its record was overdue, and what the table says instead."""

Key = tuple[str, str]
Item = Mapping[str, Any]


class Sight(StrEnum):
    """How the table has a delivery that is open according to its records."""

    WAITS = "waits"
    """Open, and as its last record left it."""
    LATELY = "lately"
    """Further along, but so lately that the record may still be on its way."""
    AHEAD = "ahead"
    """Further along for longer: a record is missing."""
    GONE = "gone"
    """Not at all, or as it was before its last record; or it should have ended long ago."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Open:
    """A delivery that is looked up, as its records have it.

    Attributes:
        hour: Of its acceptance, ISO 8601.
        version: Of the last record; 0 when there is only the acceptance.
        due: Whether the next record is overdue.
        ended: Whether it had ended already, and one more try was asked for.
    """

    project: str
    queue: str
    queue_uid: str
    message_id: str
    delivery_id: str
    hour: str
    version: int
    expires_ms: int
    due: bool
    ended: bool = False

    @property
    def key(self) -> Key:
        """Of its item."""
        subscriber = self.delivery_id.rpartition(".")[2]
        pk, before = self._place
        return pk, f"{before}#D#{subscriber}" if before else f"D#{subscriber}"

    @property
    def message_key(self) -> Key:
        """Of its message's item."""
        pk, before = self._place
        return pk, before or "M"

    @property
    def keys(self) -> tuple[Key, ...]:
        """Of what has to be read: one that was never tried has no item of its own yet."""
        return (self.key, self.message_key) if self.due and not self.version else (self.key,)

    @property
    def _place(self) -> tuple[str, str]:
        if not self.queue_uid.startswith(LISTED):
            return f"{self.project}#{self.queue_uid}#{self.message_id}", ""
        part = zlib.crc32(self.message_id.encode()) % LISTED_PARTS
        return f"{self.project}#{self.queue_uid}#{part}", self.message_id


def sight_of(known: Open, items: Mapping[Key, Item], *, as_of: datetime, now: datetime, grace: timedelta) -> Sight:
    """How the table has a delivery; ``now`` it was read, and records of events before ``as_of``, less the grace, should
    be there.
    """
    item = items.get(known.key)
    version = int(item["version"]["N"]) if item else 0
    if item and version >= known.version and (version > known.version or _ended(item) != known.ended):
        return Sight.LATELY if changed_at(item) > as_of - grace else Sight.AHEAD
    message = items.get(known.message_key)
    there = known.version > 0 if item else known.version == 0 and message is not None and "deleted" not in message
    lasts = now < _moment(known.expires_ms) + OUTLIVES + grace
    return Sight.WAITS if there and version == known.version and lasts else Sight.GONE


def changed_at(item: Item) -> datetime:
    """When a delivery was last changed, as far as its item tells."""
    times = [item[name]["N"] for name in ("accepted_at", "settled_at", "asked_at", "changed_at") if name in item]
    if "last" in item:
        times.append(item["last"]["M"]["finished_at"]["N"])
    return _moment(max(map(int, times), default=0))


def read_items(
    client: Any, table: str, keys: Iterable[Key], *, pause: Callable[[float], None] = time.sleep
) -> dict[Key, Item]:
    """What the table holds under some keys, different from each other and at most :data:`PER_READ`.

    Raises:
        ClientError: The table could not be read.
        TimeoutError: It did not get to all keys.
    """
    names = {f"#{each}": each for each in WANTED}
    wanted: dict[str, Any] = {
        table: {
            "Keys": [{"pk": {"S": pk}, "sk": {"S": sk}} for pk, sk in keys],
            "ProjectionExpression": ", ".join(names),
            "ExpressionAttributeNames": names,
        }
    }
    read: dict[Key, Item] = {}
    for wait in (0.0, *PAUSES_S):
        if wait:
            pause(wait)
        answer = client.batch_get_item(RequestItems=wanted)
        read |= {(each["pk"]["S"], each["sk"]["S"]): each for each in answer["Responses"].get(table, ())}
        wanted = answer.get("UnprocessedKeys") or {}
        if not wanted:
            return read
    raise TimeoutError(f"{len(wanted[table]['Keys'])} keys of {table} were not read in {sum(PAUSES_S):.0f} s")


def is_open() -> Column:
    """Whether a delivery is looked up: pushed, accepted, and according to its records open, or ended and about to be
    tried once more because a person asked for it.
    """
    pushed = ~F.col("pull") & ~F.col("notification")
    goes_on = ~F.col("state").isin(*SETTLED) | F.col("asked")
    return pushed & (F.col("acceptances") > 0) & (F.col("owed") > 0) & goes_on


def look_up(inputs: Inputs, judged: DataFrame, count: int) -> tuple[DataFrame, DataFrame]:
    """Look all open deliveries up.

    Args:
        judged: :func:`.conservation.with_standing` of deliveries.
        count: How many of them are open, about.

    Returns:
        How the table has overdue ones (``sighted``), and findings: ``record_missing``, ``waiting``, ``not_compared``.
    """
    spark, table, client = inputs.spark, inputs.arguments.tables["messages"], inputs.client()
    times = {"as_of": inputs.as_of, "now": inputs.arguments.now}
    folder = f"{inputs.layout.work}/sightings"
    remove(folder)
    rows = judged.where(is_open()).select(
        *IDENTITY,
        F.date_format("hour", "yyyy-MM-dd'T'HH:mm:ss'Z'").alias("hour"),
        F.coalesce("top_step", F.lit(0)).alias("version"),
        F.unix_millis("expires_at").alias("expires_ms"),
        (F.col("standing") == "missing").alias("due"),
        F.col("state").isin(*SETTLED).alias("ended"),
    )
    # Spark hands them over part by part.
    parts = rows.repartition(1 + count // AT_ONCE)
    opened = (Open(**each.asDict()) for each in parts.toLocalIterator())
    files = unread = 0
    error: Exception | None = None
    while some := list(islice(opened, AT_ONCE)):
        try:
            items = {} if error else _read_all(client, table, some)
        except (BotoCoreError, ClientError, TimeoutError) as raised:
            error = raised
        if error:
            unread += len(some)
            continue
        sights = ((each, sight_of(each, items, grace=inputs.arguments.grace, **times)) for each in some)
        lines = [line for each, sight in sights if (line := _line(each, sight, items))]
        if lines:
            write_text(f"{folder}/{files}.json", "\n".join(lines) + "\n", "application/x-ndjson")
            files += 1
    sighted = spark.read.schema(SIGHTED).json(folder) if files else small_table(spark, [], SIGHTED)
    ahead = found(sighted.where(F.col("sighted") == Sight.AHEAD), "breach", "record_missing", F.col("detail"))
    findings = ahead.unionByName(_waiting(sighted))
    if error is not None:
        detail = f"{unread} open deliveries could not be looked up in the table: {error}"
        findings = findings.unionByName(small_table(spark, [finding_of("breach", "not_compared", detail)], FINDING))
    return sighted.where(F.col("due")).select(*IDENTITY, "sighted"), findings


def _read_all(client: Any, table: str, opened: Iterable[Open]) -> dict[Key, Item]:
    keys = iter(dict.fromkeys(key for each in opened for key in each.keys))
    batches: Iterator[list[Key]] = iter(lambda: list(islice(keys, PER_READ)), [])
    read: dict[Key, Item] = {}
    with ThreadPoolExecutor(max_workers=READERS) as side_by_side:
        for some in side_by_side.map(lambda batch: read_items(client, table, batch), batches):
            read |= some
    return read


def _line(known: Open, sight: Sight, items: Mapping[Key, Item]) -> str | None:
    """What is kept of a sighting, as JSON; None if it says nothing new."""
    if sight is Sight.GONE or (not known.due and sight is not Sight.AHEAD):
        return None
    detail = None
    if sight is Sight.AHEAD:
        item = items[known.key]
        detail = (
            f"the table has it {item['state']['S']} at version {item['version']['N']} since"
            f" {changed_at(item):%Y-%m-%d %H:%M:%S}, the last record is of version {known.version}"
        )
    kept = {name: getattr(known, name) for name in (*IDENTITY, "hour", "due")}
    return json.dumps({**kept, "sighted": sight.value, "detail": detail})


def _waiting(sighted: DataFrame) -> DataFrame:
    """What is due and waits, one notice for each queue."""
    waits = sighted.where(F.col("sighted") == Sight.WAITS)
    by_queue = waits.groupBy("project", "queue").agg(
        F.min("message_id").alias("message_id"),
        F.min("delivery_id").alias("delivery_id"),
        F.min("hour").alias("hour"),
        F.count(F.lit(1)).alias("number"),
    )
    detail = F.format_string("%d deliveries are due and wait; the table has them as their last records do", "number")
    return found(by_queue, "notice", "waiting", detail)


def _ended(item: Item) -> bool:
    return item["state"]["S"] in SETTLED


def _moment(ms: int) -> datetime:
    return datetime.fromtimestamp(ms / 1000, UTC)
