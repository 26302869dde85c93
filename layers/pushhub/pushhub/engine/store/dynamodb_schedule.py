"""The schedule on DynamoDB: one small item for each wait that is too long for a queue, in its own table (decision
0031).

An entry is stored under the minute it is due in and one of :data:`SHARDS`, so that the writes of an outage do not all
hit one key. It is written once and never deleted: each shard's read position is stored beside the entries, and entries
already read expire by TTL, which costs nothing.
"""

from __future__ import annotations

import zlib
from contextlib import suppress
from typing import TYPE_CHECKING

from pushhub.base.errors import Conflict, Unavailable
from pushhub.cloud.calls import ConditionRefused
from pushhub.cloud.table import Item, Table, number, text
from pushhub.cloud.unreadable import decodes, paired
from pushhub.engine.model.keys import DeliveryKey
from pushhub.engine.model.schedule import Position, ScheduleEntry

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

    from pushhub.base.ports import Clock
    from pushhub.engine.model.delivery import Delivery

SHARDS = 32
"""Number of keys that the entries of a minute are spread over.

One key takes 1,000 writes a second; a separate run can read each one.
"""

MINUTE_MS = 60_000

LEAST_MINUTES_AHEAD = 2
"""A minute that is being read takes no new entries, even with clock skew between functions: an entry due sooner is
entered this many minutes ahead.
"""

NEW_SHARD_MINUTES = 60
"""How far back the position of a shard begins when it is first asked for."""

MINUTES_PER_LOOK = 240
"""Maximum number of empty minutes skipped in one call."""

REMEMBERED_MS = 1_800_000
"""How long positions are not read again while nothing is due.

They are two fifths of what a look at an empty schedule reads. Whoever goes by one that another environment has moved is
refused when it moves it, and reads them.
"""

LITTLE = 100
"""Items of the table up to which all of it is read instead of each shard."""

KEPT_S = 7 * 86_400
"""How long an entry is kept after its time if nobody reads it."""


class DynamoDBSchedule:
    """Implements :class:`pushhub.engine.waiting.ports.Schedule`.

    Args:
        clock: Decides which minutes still accept entries.
    """

    def __init__(self, client: DynamoDBClient, table: str, clock: Clock) -> None:
        self._table = Table(client, table, clock)
        self._clock = clock
        self._empty_until: dict[int, tuple[Position, int]] = {}
        self._remembered: dict[int, Position] = {}
        self._read_at = 0
        self._holds_much_until = 0

    def enter(self, delivery: Delivery) -> None:
        if delivery.wakes_at is None:
            raise ValueError("only a delivery with a due time can be scheduled")
        soonest = (self._clock.now() // MINUTE_MS + LEAST_MINUTES_AHEAD) * MINUTE_MS
        wakes_at = max(delivery.wakes_at, soonest)
        key = "#".join(delivery.key)
        item: Item = {
            "pk": text(_partition(wakes_at // MINUTE_MS, zlib.crc32(key.encode()) % SHARDS)),
            "sk": text(f"{wakes_at:015d}#{key}#{delivery.version}"),
            "queue": text(delivery.queue),
            "ttl": number(wakes_at // 1000 + KEPT_S),
        }
        if delivery.update_url is not None:
            item["polls"] = {"BOOL": True}
        self._table.put(item)

    def positions(self) -> list[Position]:
        now = self._clock.now()
        if self._remembered and 0 <= now - self._read_at < REMEMBERED_MS:
            positions = [*self._remembered.values()]
        else:
            positions = self._positions()
            self._forget()
            if all(each.taken_until <= now for each in positions):
                self._remembered = {each.shard: each for each in positions}
                self._read_at = now
        with suppress(Unavailable):
            self._look_at_all(positions, now)
        return positions

    def _look_at_all(self, positions: list[Position], now: int) -> None:
        """While the table holds little, one consistent read of all of it says of every shard that nothing is due, for a
        thirtieth of what it takes to ask each (docs/decisions/retries.md).
        """
        if now < self._holds_much_until:
            return
        items, more = next(self._table.scanned(Limit=LITTLE, ProjectionExpression="pk"))
        if more:
            self._holds_much_until = now + REMEMBERED_MS
            return
        this_minute = now // MINUTE_MS
        entered = {each["pk"]["S"] for each in items}
        # The minutes that have entries, by shard as it is written. Positions are in the table, too, and have no minute.
        minutes: dict[str, list[int]] = {}
        for minute, _, shard in (each.partition("#") for each in entered):
            if minute.isdecimal():
                minutes.setdefault(shard, []).append(int(minute))
        for each in positions:
            waiting = minutes.get(f"{each.shard:02d}", ())
            if not any(each.minute <= minute <= this_minute for minute in waiting):
                self._empty_until[each.shard] = each, this_minute + 1

    def _forget(self) -> None:
        self._remembered = {}

    def _positions(self) -> list[Position]:
        found = self._table.get_many([_position_key(shard) for shard in range(SHARDS)])
        stored = {item["pk"]["S"]: position for item, position in paired(found, _decode_position)}
        start = self._clock.now() // MINUTE_MS - NEW_SHARD_MINUTES
        positions = [
            stored[key] if key in stored else self._begun(Position(shard=shard, minute=start))
            for shard in range(SHARDS)
            for key in (_position_key(shard)["pk"]["S"],)
        ]
        # A shard whose position cannot be read waits for somebody to mend it, and the others do not wait for it.
        return [each for each in positions if each is not None]

    def _begun(self, position: Position) -> Position:
        """Store a shard's first position.

        If each run chose its own, a run after failed ones would start too late and skip what was due.
        """
        try:
            self._table.put(_encode_position(position), ConditionExpression="attribute_not_exists(pk)")
        except ConditionRefused as refused:
            return _decode_position(refused.stored) if refused.stored else position
        return position

    def due(self, position: Position, now: int, limit: int) -> tuple[list[ScheduleEntry], Position]:
        """Reads consistently: every entry made in time is seen.

        Minutes that were found empty are not read again from the same position: a minute that has begun gets no new
        entries. Without that, all minutes since the position was moved would be read each minute.
        """
        this_minute = now // MINUTE_MS
        minute, after = position.minute, position.after
        known, until = self._empty_until.get(position.shard, (None, 0))
        if known == position and until > this_minute > minute:
            return [], position.at(this_minute, "")
        if known == position and min(until, this_minute) > minute:
            minute, after = min(until, this_minute), ""
        for _ in range(MINUTES_PER_LOOK):
            items = self._entries(minute, position.shard, after, limit)
            entries: list[ScheduleEntry] = []
            for item, entry in paired(items, _decode_entry):
                if entry is not None and entry.wakes_at > now:
                    break
                # What cannot be read is passed by.
                after = item["sk"]["S"]
                entries += [entry] if entry is not None else []
            if entries:
                # Something is going on, perhaps in several environments.
                self._forget()
                return entries, position.at(minute, after)
            if items and after == items[-1]["sk"]["S"]:
                continue
            if minute >= this_minute:
                until = minute if items else minute + 1
                break
            minute, after = minute + 1, ""
            until = minute
        self._empty_until[position.shard] = position, until
        return [], position.at(minute, after)

    def move(self, before: Position, after: Position) -> None:
        try:
            self._table.put(
                _encode_position(after),
                ConditionExpression=(
                    "attribute_not_exists(pk) OR (#minute = :minute AND #after = :after AND #until = :until)"
                ),
                ExpressionAttributeNames={"#minute": "minute", "#after": "after", "#until": "until"},
                ExpressionAttributeValues={
                    ":minute": number(before.minute),
                    ":after": text(before.after),
                    ":until": number(before.taken_until),
                },
            )
        except ConditionRefused as refused:
            if not refused.stored or _decode_position(refused.stored) != after:
                self._forget()
                raise Conflict(f"the position of shard {before.shard} of the schedule was changed") from refused
        if before.shard in self._remembered:
            self._remembered[before.shard] = after

    def _entries(self, minute: int, shard: int, after: str, limit: int) -> list[Item]:
        """The entries of a whole minute, which tells whether it has any that are not due yet."""
        page = next(
            self._table.pages(
                KeyConditionExpression="pk = :pk AND sk BETWEEN :after AND :end",
                ExpressionAttributeValues={
                    ":pk": text(_partition(minute, shard)),
                    # The query includes the last entry already read, which is skipped; a key value may not be empty.
                    ":after": text(after or "0"),
                    ":end": text(f"{(minute + 1) * MINUTE_MS:015d}"),
                },
                ConsistentRead=True,
                Limit=limit + 1,
            )
        )
        return [each for each in page["Items"] if each["sk"]["S"] != after][:limit]


def _partition(minute: int, shard: int) -> str:
    return f"{minute}#{shard:02d}"


@decodes
def _decode_entry(item: Item) -> ScheduleEntry:
    wakes_at, _, rest = item["sk"]["S"].partition("#")
    *key, version = rest.rsplit("#", 4)
    return ScheduleEntry(
        key=DeliveryKey(*key),
        queue=item["queue"]["S"],
        version=int(version),
        wakes_at=int(wakes_at),
        polls="polls" in item,
    )


def _position_key(shard: int) -> Item:
    return {"pk": text(f"POSITION#{shard:02d}"), "sk": text("POSITION")}


def _encode_position(position: Position) -> Item:
    return _position_key(position.shard) | {
        "minute": number(position.minute),
        "after": text(position.after),
        "until": number(position.taken_until),
    }


@decodes
def _decode_position(item: Item) -> Position:
    return Position(
        shard=int(item["pk"]["S"].partition("#")[2]),
        minute=int(item["minute"]["N"]),
        after=item["after"]["S"],
        taken_until=int(item["until"]["N"]),
    )
