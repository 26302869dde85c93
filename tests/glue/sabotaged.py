"""Hubs of any traffic whose records are taken away in known ways, and the night on which the report names what is gone.

Two days pass, 17 and 18 November 2026, and the report runs at half past one in the night after each, as on AWS: over
the last seven days, with the tables as they are then. What is taken away never reaches the bucket, or whole objects are
removed from it before a night has seen them. Each shard has an environment of the records function, and another one
every two hours.
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
from functools import lru_cache
from pathlib import Path
from typing import Any

from glue_jobs.delivery_report.proof.night import prove
from glue_jobs.delivery_report.run.arguments import Arguments
from glue_jobs.delivery_report.run.progress import Steps
from glue_jobs.delivery_report.storage.layout import Layout
from pyspark.sql import SparkSession
from tests.glue.frames import rows_of
from tests.glue.lives import DAY, HOUR, MINUTE, NOON, Lives
from tests.glue.table_pages import TablePages

from pushhub.engine.model.pulse import NAMES_MS, Pulse
from pushhub.engine.model.record import LINK, PULSE_EVERY_S, DeliveryRecord
from pushhub.engine.store._delivery_items import encode_delivery

__all__ = ["FIRST", "SABOTAGES", "TABLES", "Hub", "Named", "Part", "drawn", "expected", "made_hub", "named_by"]

Batch = tuple[str, int, int]
"""Stream, shard and minute."""

LIVES_MIN = 120
"""Minutes after which a shard has another environment."""

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
    def batch(self) -> Batch:
        """The object that it comes in: what a shard has of a minute."""
        return self.stream, self.shard, self.at // MINUTE


@dataclass(frozen=True, slots=True)
class Part:
    """One thing that is taken away; each must be named by itself.

    Attributes:
        lines: What of the hub's lines it takes.
        object_removed: Whether an object was written, and then removed as a whole.
    """

    lines: frozenset[Line]
    object_removed: bool = False

    @property
    def since(self) -> int:
        """When the first of them came."""
        return min(each.at for each in self.lines)


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


def _of(lines: Iterable[Line]) -> Part:
    return Part(frozenset(lines))


def expected(hub: Hub, parts: Sequence[Part]) -> list[int | None]:
    """In how many nights more than the next each part is to be named; None: not at all.

    Args:
        hub: Before anything was taken from it.
        parts: What is taken from the first day.
    """
    taken = frozenset[Line]().union(*(each.lines for each in parts))
    lives: dict[str, list[Line]] = defaultdict(list)
    for each in hub.lines:
        if each.kind:
            lives[each.message_id].append(each)
    removed = {line.batch for each in parts if each.object_removed for line in each.lines}
    followers = _followed(hub, taken, removed)

    def of(line: Line) -> int | None:
        life = lives[line.message_id]
        if line.stream == "messages":
            # It is in its table, and how far along it is.
            return 0
        if all(each in taken for each in life):
            # In its table if it is not consumed; else nothing is left.
            return 0 if len(life) == 1 else None
        left_after = any(each.at > line.at and each not in taken for each in life)
        return 0 if left_after else 1

    found: list[int | None] = []
    for part in parts:
        followed = part.object_removed and next(iter(part.lines)).batch in followers
        if followed or any(not each.kind for each in part.lines):
            found.append(0)
        else:
            nights = [night for each in part.lines if (night := of(each)) is not None]
            found.append(min(nights, default=None))
    return found


def _followed(hub: Hub, taken: frozenset[Line], removed: set[Batch]) -> set[Batch]:
    """The objects that another one names which is there."""
    whole = {each.batch for each in hub.lines if each not in taken}
    followed, before = set(), dict[tuple[str, int, int], Batch]()
    for batch in sorted(whole | removed, key=lambda each: each[2]):
        former = before.get(_environment(batch))
        if former and batch not in removed:
            followed.add(former)
        before[_environment(batch)] = batch
    naming = {hour for each in hub.lines if each not in taken and (hour := _named_hour([each])) is not None}
    return followed | {each for each in whole | removed if each[2] // 60 in naming}


def _named_hour(lines: Iterable[Line]) -> int | None:
    """The hour, counted from 1970, whose objects an object with these lines names."""
    return next((each.at // HOUR - 1 for each in lines if not each.kind and each.at % HOUR == NAMES_MS), None)


def _environment(batch: Batch) -> tuple[str, int, int]:
    stream, shard, minute = batch
    return stream, shard, minute // LIVES_MIN


def drawn(hub: Hub, chance: random.Random) -> Part:
    """Something of the first day that chance takes away: a record, an object, all records of a message, a span of one
    stream, of one shard or of all of them, or a share of them.
    """
    day = [each for each in hub.lines if each.at < FIRST + 22 * HOUR]
    events = [each for each in day if each.kind]
    what = chance.choice(("record", "end", "object", "object", "message", "span", "span", "shard", "all", "share"))
    if what in ("record", "end"):
        return _of([chance.choice([each for each in events if what == "record" or each.last])])
    if what == "object":
        batch = chance.choice(events).batch
        return Part(frozenset(each for each in hub.lines if each.batch == batch), object_removed=True)
    if what == "message":
        whose = chance.choice(events).message_id
        return _of(each for each in hub.lines if each.kind and each.message_id == whose)
    lasts = MINUTE * 10 ** chance.uniform(0.7, 2.8)
    since = chance.uniform(FIRST, FIRST + 22 * HOUR - min(lasts, 12 * HOUR))
    stream, shard = chance.choice(list(TABLES)), chance.randrange(SHARDS)
    share = chance.uniform(0.2, 0.99) if what == "share" else 1.0
    found = [
        each
        for each in hub.lines
        if since <= each.at < since + lasts
        and (what in ("all", "share") or each.stream == stream)
        and (what != "shard" or each.shard == shard)
        and chance.random() < share
    ]
    return _of(found) if found else drawn(hub, chance)


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
        return [Part(frozenset(fit[nth]), object_removed=True)]

    return one


def _record_of(stream: str, which: Callable[[Line], bool], *, nth: int = 0) -> Callable[[Hub], list[Part]]:
    """One record of the first day, after ten o'clock."""

    def one(hub: Hub) -> list[Part]:
        fit = [each for each in hub.lines if each.stream == stream and each.kind and each.at >= FIRST + 10 * HOUR]
        return [_of([[each for each in fit if which(each)][nth]])]

    return one


def _message_of(stream: str, *, consumed: bool) -> Callable[[Hub], list[Part]]:
    """Every record of a message of the first day."""

    def one(hub: Hub) -> list[Part]:
        whole: dict[str, list[Line]] = defaultdict(list)
        for each in hub.lines:
            if each.stream == stream and each.kind:
                whole[each.message_id].append(each)
        fit = (lines for lines in whole.values() if lines[0].at >= FIRST + 2 * HOUR and (len(lines) > 1) == consumed)
        return [_of(next(fit))]

    return one


SABOTAGES: Mapping[str, Callable[[Hub], list[Part]]] = {
    "nothing": lambda _: [],
    "the acceptance of a pushed message": _record_of("messages", lambda each: each.kind == "accepted"),
    "the end of a pushed message": _record_of("messages", lambda each: each.last),
    "the end of a pulled message": _record_of("lines", lambda each: each.last),
    "all records of a pushed message": _message_of("messages", consumed=True),
    "all records of a pulled message that waits": _message_of("lines", consumed=False),
    "all records of a pulled message that was consumed": _message_of("lines", consumed=True),
    "an object with a pulse in it": _object("lines", pulse=True),
    "an object without a pulse, of pushed messages": _object("messages", pulse=False),
    "an object without a pulse, of pulled messages": _object("lines", pulse=False),
    "two objects without pulses": _together(_object("messages", pulse=False), _object("lines", pulse=False, nth=2)),
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
        _record_of("messages", lambda each: each.last), _record_of("lines", lambda each: each.last)
    ),
    "the ends of two pulled messages": _together(
        _record_of("lines", lambda each: each.last), _record_of("lines", lambda each: each.last, nth=1)
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


def named_by(spark: SparkSession, folder: Path, hub: Hub, parts: Sequence[Part], *, brief: bool = False) -> Named:
    """Let two nights pass over a hub from which parts are taken, and see what they name.

    Args:
        spark: Session.
        folder: An empty folder.
        hub: See :func:`made_hub`.
        parts: What is taken.
        brief: Whether the second night is left out if the first has named everything.
    """
    taken = frozenset[Line]().union(*(each.lines for each in parts))
    batches: dict[tuple[str, int, int], list[Line]] = defaultdict(list)
    for each in hub.lines:
        if each not in taken:
            batches[each.batch].append(each)
    removed = {line.batch for each in parts if each.object_removed for line in each.lines}
    environments: dict[tuple[str, int, int], str] = {}
    of_hour: dict[int, list[str]] = defaultdict(list)
    nights: list[int | None] = [None] * len(parts)
    false: list[dict[str, Any]] = []
    by: set[str] = set()
    due = [max(0, (each.since - FIRST) // DAY) for each in parts]
    for night in range(NIGHTS):
        now = FIRST + (night + 1) * DAY + LOOKED_AT
        ready = [each for each in batches.keys() | removed if each[2] * MINUTE < now - MINUTE]
        for batch in sorted(ready, key=lambda each: each[2]):
            former = environments.get(_environment(batch))
            if batch in removed:
                removed.discard(batch)
                lines = [each for each in hub.lines if each.batch == batch]
            else:
                lines = batches.pop(batch)
                named = of_hour[hour] if (hour := _named_hour(lines)) is not None else []
                _write(folder / "records", batch, lines, [*([former] if former else []), *named])
            environments[_environment(batch)] = _name(batch, lines)
            of_hour[batch[2] // 60].append(_name(batch, lines))
        for row in _breaches(spark, folder, hub, now):
            whose = [number for number, part in enumerate(parts) if _tells_of(row, part)]
            by.update(row["finding"] for _ in whose)
            false += [row] if not whose else []
            for number in whose:
                if nights[number] is None:
                    # What is lost after midnight may be named in the same night.
                    nights[number] = max(0, night - due[number])
        if brief and None not in nights:
            break
    return Named(nights, expected(hub, parts), false, sorted(by))


def _name(batch: Batch, lines: Sequence[Line]) -> str:
    """An object's key below ``records/``."""
    stream, shard, minute = batch
    at = datetime.fromtimestamp(minute * 60, UTC)
    return f"{at:dt=%Y-%m-%d/hour=%H}/{TABLES[stream]}-{minute}{shard}-{minute}{shard}-{len(lines)}.json.gz"


def _write(records: Path, batch: Batch, lines: Sequence[Line], named: Iterable[str]) -> None:
    file = records / _name(batch, lines)
    file.parent.mkdir(parents=True, exist_ok=True)
    texts = [each.text for each in lines]
    at = json.loads(texts[0])["at"]
    for each in dict.fromkeys(named):
        texts.append(json.dumps({"schema_version": 2, "record_id": f"{LINK}/{each}", "kind": LINK, "at": at}))
    file.write_bytes(gzip.compress("".join(f"{each}\n" for each in texts).encode(), 1, mtime=0))


def _breaches(spark: SparkSession, folder: Path, hub: Hub, now: int) -> list[dict[str, Any]]:
    moment = datetime.fromtimestamp(now / 1000, UTC)
    arguments = Arguments(
        input=f"file://{folder}/records",
        output=f"file://{folder}/out",
        date_from=moment.date() - timedelta(days=6),
        date_to=moment.date(),
        now=moment,
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
        return any(TABLES[each.stream] == table and since <= each.at < until for each in _pulses(part))
    if row["finding"] == "object_missing":
        return part.object_removed and _name(next(iter(part.lines)).batch, tuple(part.lines)) in _names(row["detail"])
    ids = _messages(part)
    if row["message_id"]:
        return row["message_id"] in ids
    named = row["detail"].replace(",", " ").split()
    return row["finding"] == "not_recorded" and any(each in ids for each in named)


@lru_cache
def _pulses(part: Part) -> list[Line]:
    return [each for each in part.lines if not each.kind]


@lru_cache
def _messages(part: Part) -> frozenset[str]:
    return frozenset(each.message_id for each in part.lines if each.kind)


def _times(detail: str) -> tuple[str, str]:
    between = detail.partition(" between ")[2].partition(" left no ")[0]
    since, _, until = between.partition(" and ")
    return since, until


def _names(detail: str) -> set[str]:
    hour, _, rest = detail.partition("/: written once, never read, not there: ")
    return {f"{hour}/{each.strip()}" for each in rest.partition(";")[0].split(",")}
