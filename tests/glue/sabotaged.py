"""Hubs of any traffic whose records are taken away in known ways, and the night on which the report names what is gone.

Two days pass, 17 and 18 November 2026, and the report runs at half past one in the night after each, as on AWS: over
the last seven days, with the tables as they are then. What is taken away never reaches the bucket, so that no night has
seen it before.
"""

from __future__ import annotations

import gzip
import json
import random
import zlib
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from glue_jobs.delivery_report.arguments import Arguments
from glue_jobs.delivery_report.progress import Steps
from glue_jobs.delivery_report.proof import prove
from glue_jobs.delivery_report.storage import Layout
from pyspark.sql import SparkSession
from tests.glue.frames import rows_of
from tests.glue.lives import DAY, HOUR, MINUTE, NOON, Lives
from tests.glue.table_pages import TablePages

from pushhub.engine.model.pulse import Pulse
from pushhub.engine.model.record import PULSE_EVERY_S, DeliveryRecord
from pushhub.engine.store._delivery_items import encode_delivery

__all__ = ["FIRST", "SABOTAGES", "TABLES", "Hub", "Named", "Part", "made_hub", "named_by"]

FIRST = NOON - 36 * HOUR
"""Midnight at which 17 November begins."""

NIGHTS = 2
LOOKED_AT = 90 * MINUTE
"""After midnight."""

TABLES = {"messages": "hub-Messages", "lines": "hub-Lines", "topics": "hub-Topics"}
SHARDS = 2
"""Of each stream."""


@dataclass(frozen=True, slots=True)
class Line:
    """What comes out of a stream: a delivery record, or a pulse.

    Attributes:
        stream: Which (a key of :data:`TABLES`).
        shard: And which of its shards.
        at: Epoch milliseconds.
        text: As JSON.
        message_id: Of a record.
        kind: Of a record.
        last: Whether it is the last record of its delivery.
    """

    stream: str
    shard: int
    at: int
    text: str
    message_id: str = ""
    kind: str = ""
    last: bool = False

    @property
    def batch(self) -> tuple[str, int, int]:
        """The object that it comes in: what a shard has of a minute."""
        return self.stream, self.shard, self.at // MINUTE


@dataclass(frozen=True, slots=True)
class Part:
    """One thing that is taken away; each must be named by itself.

    Attributes:
        lines: What of the hub's lines it takes.
        late: In how many nights more than the next it is to be named; None: not at all.
    """

    lines: frozenset[Line]
    late: int | None = 0


@dataclass(slots=True)
class Hub:
    """What a hub did in two days.

    Attributes:
        lines: All that came out of its streams.
        items: What its tables hold, by stream: the item, when it came and when it left.
        chance: For what is taken by chance.
    """

    lines: list[Line] = field(default_factory=list)
    items: dict[str, list[tuple[dict[str, Any], int, float]]] = field(default_factory=lambda: defaultdict(list))
    chance: random.Random = field(default_factory=random.Random)

    def tables(self, now: int) -> TablePages:
        """The tables at some time."""
        there = {
            name: [item for item, came, left in self.items[stream] if came <= now < left]
            for stream, name in TABLES.items()
        }
        return TablePages(there)


def made_hub(hourly: int, *, seed: int = 1) -> Hub:
    """A hub with so many records an hour. Two thirds of its messages are pushed, and a tenth of them fail at first; the
    others are pulled within a minute, but a few stay.
    """
    hub, lives = Hub(chance=random.Random(seed)), Lives()
    chance, at, end = random.Random(f"{seed}/{hourly}"), float(FIRST), FIRST + NIGHTS * DAY + LOOKED_AT
    mean = HOUR / hourly * 2.35
    while (at := at + chance.expovariate(1 / mean)) < end:
        lives.records.clear()
        moment = int(at)
        if chance.random() < 2 / 3:
            _push(hub, lives, moment, fails=chance.random() < 0.1)
        else:
            _pull(hub, lives, moment, stays=chance.random() < 0.1)
        _record(hub, lives.records)
    for number, moment in enumerate(range(FIRST, end, PULSE_EVERY_S * 1000)):
        for stream, table in TABLES.items():
            text = json.dumps(Pulse(table=table, at=moment).as_fields())
            hub.lines.append(Line(stream, zlib.crc32(str(number).encode()) % SHARDS, moment, text))
            item = {"pk": {"S": f"pulse#{moment}"}, "sk": {"S": "pulse"}, "kind": {"S": "pulse"}}
            hub.items[stream].append((item | {"accepted_at": {"N": str(moment)}}, moment, float("inf")))
    return hub


def _push(hub: Hub, lives: Lives, at: int, *, fails: bool) -> None:
    (opened,) = lives.post(at)
    ended = lives.attempt(lives.attempt(opened, 503) if fails else opened)
    hub.items["messages"].append((_item(lives.records[0], "message"), at, float("inf")))
    hub.items["messages"].append((encode_delivery(ended), at, float("inf")))


def _pull(hub: Hub, lives: Lives, at: int, *, stays: bool) -> None:
    line = lives.put(at)
    left = at + 25_000
    if not stays:
        lives.remove(lives.reserve(line, at + 20_000), left)
    hub.items["lines"].append((_item(lives.records[0], "line"), at, float("inf") if stays else left))


def _item(record: DeliveryRecord, kind: str) -> dict[str, Any]:
    at = str(_ms(record.accepted_at))
    key = {"pk": {"S": f"{record.project}#{record.queue_uid}#{record.message_id}"}, "sk": {"S": "M"}}
    return {**key, "kind": {"S": kind}, "accepted_at": {"N": at}, "queue": {"S": record.queue}}


def _record(hub: Hub, records: Sequence[DeliveryRecord]) -> None:
    for number, each in enumerate(records, start=1):
        stream = "lines" if each.dialect == "pull" else "messages"
        shard = zlib.crc32(each.message_id.encode()) % SHARDS
        last = number == len(records) > 1
        hub.lines.append(
            Line(stream, shard, _ms(each.at), json.dumps(each.as_fields()), each.message_id, each.kind, last)
        )


def _ms(text: str) -> int:
    return round(datetime.fromisoformat(text).timestamp() * 1000)


def _between(since: int, until: float, *streams: str) -> Callable[[Hub], list[Part]]:
    """Everything of some streams, or of all, within a time after the beginning."""
    return lambda hub: [
        _of(each for each in hub.lines if (not streams or each.stream in streams) and since <= each.at - FIRST < until)
    ]


def _together(*sabotages: Callable[[Hub], list[Part]]) -> Callable[[Hub], list[Part]]:
    return lambda hub: [part for each in sabotages for part in each(hub)]


def _of(lines: Iterable[Line], late: int | None = 0) -> Part:
    return Part(frozenset(lines), late)


def _shard(hub: Hub) -> list[Part]:
    return [
        _of(each for each in hub.lines if each.shard == 0 and each.stream == "lines" and each.at >= FIRST + 10 * HOUR)
    ]


def _all_but_a_few(hub: Hub) -> list[Part]:
    return [_of(each for each in hub.lines if hub.chance.random() < 299 / 300)]


def _object(stream: str, *, pulse: bool, nth: int = 0) -> Callable[[Hub], list[Part]]:
    """An object of the first day, after ten o'clock, with or without a pulse among its records."""

    def one(hub: Hub) -> list[Part]:
        batches: dict[tuple[str, int, int], list[Line]] = defaultdict(list)
        for each in hub.lines:
            batches[each.batch].append(each)
        fit = [
            lines
            for (of, _, minute), lines in sorted(batches.items())
            if of == stream
            and minute * MINUTE >= FIRST + 10 * HOUR
            and any(each.kind for each in lines)
            and any(not each.kind for each in lines) == pulse
        ]
        chosen = fit[nth]
        # Of pulled messages that are gone, and all of whose records were in it, nothing is left that could tell of it.
        left = {each.message_id for each in hub.lines if each.kind and each not in chosen}
        ended = {each.message_id for each in chosen if each.last}
        traceless = stream == "lines" and not pulse and all(each.message_id in ended - left for each in chosen)
        return [_of(chosen, None if traceless else 0)]

    return one


def _record_of(
    stream: str, which: Callable[[Line], bool], *, late: int | None = 0, nth: int = 0
) -> Callable[[Hub], list[Part]]:
    """One record of the first day, after ten o'clock."""

    def one(hub: Hub) -> list[Part]:
        fit = [each for each in hub.lines if each.stream == stream and each.kind and each.at >= FIRST + 10 * HOUR]
        return [_of([[each for each in fit if which(each)][nth]], late)]

    return one


def _message_of(stream: str, *, consumed: bool, late: int | None) -> Callable[[Hub], list[Part]]:
    """Every record of a message of the first day."""

    def one(hub: Hub) -> list[Part]:
        whole: dict[str, list[Line]] = defaultdict(list)
        for each in hub.lines:
            if each.stream == stream and each.kind:
                whole[each.message_id].append(each)
        fit = (lines for lines in whole.values() if lines[0].at >= FIRST + 2 * HOUR and (len(lines) > 1) == consumed)
        return [_of(next(fit), late)]

    return one


SABOTAGES: Mapping[str, Callable[[Hub], list[Part]]] = {
    "nothing": lambda _: [],
    "the acceptance of a pushed message": _record_of("messages", lambda each: each.kind == "accepted"),
    "the end of a pushed message": _record_of("messages", lambda each: each.last),
    "the end of a pulled message": _record_of("lines", lambda each: each.last, late=1),
    "all records of a pushed message": _message_of("messages", consumed=True, late=0),
    "all records of a pulled message that waits": _message_of("lines", consumed=False, late=0),
    "all records of a pulled message that was consumed": _message_of("lines", consumed=True, late=None),
    "an object with a pulse in it": _object("lines", pulse=True),
    "an object without a pulse, of pushed messages": _object("messages", pulse=False),
    "an object without a pulse, of pulled messages": _object("lines", pulse=False),
    "an hour of every stream": _between(10 * HOUR, 11 * HOUR),
    "an hour of one stream": _between(10 * HOUR, 11 * HOUR, "lines"),
    "the last hour before midnight": _between(23 * HOUR, 24 * HOUR),
    "a day of every stream": _between(0, DAY),
    "a day of one stream": _between(0, DAY, "messages"),
    "every stream, for good": _between(10 * HOUR, float("inf")),
    "one stream, for good": _between(10 * HOUR, float("inf"), "lines"),
    "a stream on which nobody sends, for good": _between(10 * HOUR, float("inf"), "topics"),
    "a shard of one stream, for good": _shard,
    "299 of 300 records": _all_but_a_few,
    "the same hour of both days": _together(_between(10 * HOUR, 11 * HOUR), _between(34 * HOUR, 35 * HOUR)),
    "the same hour of one stream, both days": _together(
        _between(10 * HOUR, 11 * HOUR, "lines"), _between(34 * HOUR, 35 * HOUR, "lines")
    ),
    "an hour of one stream, another hour of another": _together(
        _between(10 * HOUR, 11 * HOUR, "lines"), _between(14 * HOUR, 15 * HOUR, "messages")
    ),
    "one stream for good, a day of another": _together(
        _between(10 * HOUR, float("inf"), "lines"), _between(DAY, 2 * DAY, "messages")
    ),
    "two objects with pulses": _together(_object("messages", pulse=True), _object("lines", pulse=True)),
    "two ends, pushed and pulled": _together(
        _record_of("messages", lambda each: each.last), _record_of("lines", lambda each: each.last, late=1)
    ),
    "the ends of two pulled messages": _together(
        _record_of("lines", lambda each: each.last, late=1), _record_of("lines", lambda each: each.last, late=1, nth=1)
    ),
}
"""What is taken away: functions that choose it."""


@dataclass(frozen=True, slots=True)
class Named:
    """What became of a sabotage.

    Attributes:
        nights: For each part, how many nights after the next one it was named; None: never.
        expected: The same as it should be.
        false: Breaches that are about nothing that was taken away.
        by: The kinds of breaches that named a part.
    """

    nights: list[int | None]
    expected: list[int | None]
    false: list[dict[str, Any]]
    by: list[str]


def named_by(spark: SparkSession, folder: Path, hub: Hub, parts: Sequence[Part]) -> Named:
    """Let two nights pass over a hub from which parts are taken, and see what they name.

    Args:
        spark: Session.
        folder: An empty folder.
        hub: See :func:`made_hub`.
        parts: What is taken.
    """
    taken = frozenset[Line]().union(*(each.lines for each in parts))
    batches: dict[tuple[str, int, int], list[Line]] = defaultdict(list)
    for each in hub.lines:
        if each not in taken:
            batches[each.batch].append(each)
    nights: list[int | None] = [None] * len(parts)
    false: list[dict[str, Any]] = []
    by: set[str] = set()
    for night in range(NIGHTS):
        now = FIRST + (night + 1) * DAY + LOOKED_AT
        for batch in sorted(each for each in batches if each[2] * MINUTE < now - MINUTE):
            _write(folder / "records", batch, batches.pop(batch))
        for row in _breaches(spark, folder, hub, now):
            whose = [number for number, part in enumerate(parts) if _tells_of(row, part)]
            by.update(row["finding"] for _ in whose)
            false += [row] if not whose else []
            for number in whose:
                due = max(0, (min(each.at for each in parts[number].lines) - FIRST) // DAY)
                if nights[number] is None:
                    # What is lost after midnight may be named in the same night.
                    nights[number] = max(0, night - due)
    return Named(nights, [each.late for each in parts], false, sorted(by))


def _write(records: Path, batch: tuple[str, int, int], lines: list[Line]) -> None:
    stream, shard, minute = batch
    at = datetime.fromtimestamp(minute * 60, UTC)
    place = records / f"{at:dt=%Y-%m-%d/hour=%H}"
    place.mkdir(parents=True, exist_ok=True)
    content = "".join(f"{each.text}\n" for each in lines).encode()
    name = f"{TABLES[stream]}-{minute}{shard}-{minute}{shard}-{len(lines)}.json.gz"
    (place / name).write_bytes(gzip.compress(content, 1, mtime=0))


def _breaches(spark: SparkSession, folder: Path, hub: Hub, now: int) -> list[dict[str, Any]]:
    moment = datetime.fromtimestamp(now / 1000, UTC)
    arguments = Arguments(
        input=f"file://{folder}/records",
        output=f"file://{folder}/out",
        date_from=moment.date() - timedelta(days=6),
        date_to=moment.date(),
        now=moment,
        baseline_days=28,
        tables=TABLES,
    )
    client = hub.tables(now)
    proof = prove(spark, arguments, Layout(arguments.output, "report"), Steps(), client=lambda: client)
    return [row for row in rows_of(proof.findings) if row["severity"] == "breach"]


def _tells_of(row: Mapping[str, Any], part: Part) -> bool:
    """Whether a breach is about what was taken: its stream and time, or one of its messages."""
    if row["finding"] == "pulse_missing":
        table = row["detail"].removeprefix("stream of ").partition(":")[0]
        since, until = (_ms(f"{each}:00+00:00") for each in _times(row["detail"]))
        return any(not each.kind and TABLES[each.stream] == table and since <= each.at < until for each in part.lines)
    ids = {each.message_id for each in part.lines if each.kind}
    if row["message_id"]:
        return row["message_id"] in ids
    if row["finding"] == "not_recorded":
        return any(each in ids for each in row["detail"].replace(",", " ").split())
    # Of everything: that there was silence.
    hour = row["hour"].replace(tzinfo=UTC).timestamp() * 1000 if row["hour"] else 0
    return row["finding"] == "silence" and any(hour <= each.at < hour + HOUR for each in part.lines)


def _times(detail: str) -> tuple[str, str]:
    between = detail.partition(" between ")[2].partition(" left no ")[0]
    since, _, until = between.partition(" and ")
    return since, until
