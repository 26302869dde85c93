"""The places of messages in a pull queue: entries in queue order, maintained by the store instead of an index (decision
0049).

The message's own item says where its place is, and every change of that is one conditional write to the item. The
entries follow: the new one is written, then the old one is deleted. No place is used twice. So an entry whose message
is not in that place is outdated for good. And as long as a message exists, some entry leads to it: at its current place
or, if the call that moved it was interrupted, at the previous one. An outdated entry is repaired when it is found.

A queue's entries are in one partition until an environment posts many messages to it. That environment then writes a
mark before the first place, valid for ten minutes, and new places are spread over eight partitions by the hash of the
message's id. Consumers see the mark in the query they make anyway, and merge the fronts of all partitions. An expired
mark is removed once the other partitions are empty; nothing is written there in the last minute before it expires.
"""

from __future__ import annotations

import heapq
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import chain, islice
from typing import TYPE_CHECKING, TypeVar

from pushhub.base.errors import Unavailable
from pushhub.cloud.calls import ConditionRefused
from pushhub.cloud.table import Item, Table, number, text
from pushhub.cloud.unreadable import readable
from pushhub.ironmq.store._pull_items import (
    AVAILABLE,
    AWAY,
    Candidate,
    away_before,
    decode_candidate,
    decode_mark,
    encode_entry,
    entry_key,
    shard_key,
)

if TYPE_CHECKING:
    from pushhub.base.ports import Clock

_T = TypeVar("_T")

_PAGE = 1000
"""Entries read at once after the first page; also the number of returned messages considered together."""
SHARDS = 8
"""Partitions for the entries of a fast queue: each takes 1,000 writes a second, enough for 250 messages."""
MARK = "!"
"""Sort key, before all places, of the item that tells consumers that there are further shards, and until when (at
least) messages go there.
"""
_BEHIND_ALL = "1#~"
"""After all places."""
_BUSY = 200
"""Messages that an environment must have posted to a queue within :data:`_BUSY_WITHIN_MS` before it uses all shards."""
_BUSY_WITHIN_MS = 10_000
_MARKED_MS = 600_000
_SURE_MS = 60_000
"""How long before its mark expires a queue's posts return to the first shard: longer than any call, and than the clock
skew.
"""
_MARK_KEPT_S = 40 * 86_400
"""Longer than any message lives."""
LARGE = 50_000
"""Messages from which on a counted size is remembered: a partition gives 3,000 read units a second to all who read it,
and a million messages are 33,000.
"""
_REMEMBERED_MS = 0.1
"""How long it is, for each message: counting takes a tenth of what the partition gives."""
_COUNTS_MS = 8_000
"""After this time, a size is what was counted by then."""
_QUEUES = 1_000
"""Maximum number of queues remembered; others are forgotten and detected again."""


class PullPlaces:
    """The entries of pull queues.

    Args:
        clock: Measures how fast this environment posts.
    """

    def __init__(self, table: Table, clock: Clock) -> None:
        self._table = table
        self._clock = clock
        self._posted: dict[tuple[str, str], tuple[int, int]] = {}
        self._marked: dict[tuple[str, str], int] = {}
        self._seen_spread: dict[tuple[str, str], bool] = {}
        self._looked_at: dict[tuple[str, str], tuple[int, str]] = {}
        self._large: dict[tuple[str, str], tuple[int, int]] = {}

    def enter(self, items: Sequence[Item]) -> None:
        """Write entries for the current places of messages, given their items. This is what adds a stored message to
        its queue.
        """
        entries = [*readable(items, encode_entry)]
        if len(entries) == 1:
            self._table.put(entries[0])
        else:
            self._table.put_many(entries)

    def move(self, items: Sequence[Item]) -> None:
        """Update the entries of messages that were moved, given their items."""
        if items:
            self.enter(items)
            self.leave(items, "came_from")

    def leave(self, items: Sequence[Item], which: str = "place") -> None:
        """Delete the entries of messages that have left a place.

        Args:
            items: Items of the messages.
            which: The attribute with the place.
        """
        self._table.delete_many([entry_key(each, each[which]["S"]) for each in items])

    def forget(self, project_id: str, pull_uid: str, candidates: Iterable[Candidate]) -> None:
        """Delete entries that lead nowhere."""
        self._table.delete_many(
            [{"pk": shard_key(project_id, pull_uid, each.shard), "sk": text(each.place)} for each in candidates]
        )

    def shard_for(self, project_id: str, pull_uid: str, message_id: str) -> int:
        """The shard for a new message: the first one, unless this environment posts many messages to the queue."""
        return zlib.crc32(message_id.encode()) % SHARDS if self._spreads((project_id, pull_uid)) else 0

    def _spreads(self, queue: tuple[str, str]) -> bool:
        """Whether messages may go to any shard now, because consumers are sure to see the mark."""
        now = self._clock.now()
        began, count = self._posted.get(queue, (now, 0))
        if now - began > _BUSY_WITHIN_MS:
            began, count = now, 0
        _remember(self._posted, queue, (began, count + 1))
        if count + 1 >= _BUSY and self._marked.get(queue, 0) - now < _MARKED_MS // 2:
            with suppress(Unavailable):
                _remember(self._marked, queue, self._mark(queue, now + _MARKED_MS))
        return now < self._marked.get(queue, 0) - _SURE_MS

    def _mark(self, queue: tuple[str, str], until: int) -> int:
        """Tell consumers that messages go to all shards until a given time; returns the actual time, which may be
        later.
        """
        mark = _mark_key(*queue) | {"until": number(until), "ttl": number(until // 1000 + _MARK_KEPT_S)}
        try:
            self._table.put(
                mark,
                ConditionExpression="attribute_not_exists(pk) OR #until < :until",
                ExpressionAttributeNames={"#until": "until"},
                ExpressionAttributeValues={":until": mark["until"]},
            )
        except ConditionRefused as refused:
            return decode_mark(refused.stored)
        return until

    def front(
        self, project_id: str, pull_uid: str, *, now: int, first_page: int, lane: int | None = None
    ) -> Iterator[Candidate]:
        """Available messages in queue order, read lazily; expired ones are included.

        Args:
            pull_uid: Generation of its messages.
            first_page: How many will probably be needed.
            lane: Read only one shard, chosen by this number, if it has entries and the queue is known to have several
                shards.
        """
        if lane is not None and (project_id, pull_uid) in self._seen_spread:
            found, _ = self._look(project_id, pull_uid, lane % SHARDS, now, first_page)
            first = next(found, None)
            if first is not None:
                return chain([first], found)
        found, until = self._look(project_id, pull_uid, 0, now, first_page)
        if until is None:
            self._seen_spread.pop((project_id, pull_uid), None)
            return found
        _remember(self._seen_spread, (project_id, pull_uid), True)
        others = [self._look(project_id, pull_uid, shard, now, first_page)[0] for shard in range(1, SHARDS)]
        all_found = heapq.merge(found, *others, key=_rank)
        first = next(all_found, None)
        if first is None:
            self._unmark(project_id, pull_uid, until, now)
            return iter(())
        return chain([first], all_found)

    def _unmark(self, project_id: str, pull_uid: str, until: int, now: int) -> None:
        """Remove an expired mark if the other shards have no entries at all, so that consumers only need to read the
        first shard.
        """
        if now <= until or any(self._holds_any(project_id, pull_uid, shard) for shard in range(1, SHARDS)):
            return
        with suppress(ConditionRefused):
            self._table.delete(
                _mark_key(project_id, pull_uid),
                ConditionExpression="#until = :until",
                ExpressionAttributeNames={"#until": "until"},
                ExpressionAttributeValues={":until": number(until)},
            )

    def _holds_any(self, project_id: str, pull_uid: str, shard: int) -> bool:
        pages = self._table.pages(
            Select="COUNT",
            ConsistentRead=True,
            Limit=1,
            KeyConditionExpression="pk = :shard",
            ExpressionAttributeValues={":shard": shard_key(project_id, pull_uid, shard)},
        )
        return any(page["Count"] for page in pages)

    def _look(
        self, project_id: str, pull_uid: str, shard: int, now: int, first_page: int
    ) -> tuple[Iterator[Candidate], int | None]:
        """The front of a shard, and until when there are other shards; None when there are none (the first shard
        knows).
        """
        # A single query covers a short queue: its mark, the messages never reserved, then those that came back.
        look = self._read(shard_key(project_id, pull_uid, shard), MARK, away_before(now), first_page)
        cut = len(look) == first_page
        until: int | None = None
        if look and look[0]["sk"]["S"] == MARK:
            # One that cannot be read tells of the other shards, too.
            until = next(readable([look.pop(0)], decode_mark), 0)
        candidates = [*readable(look, decode_candidate)]
        new = [each for each in candidates if each.place < AWAY]
        back = candidates[len(new) :]
        more = cut and not back
        if cut:
            # Messages that came back are read first and completely, because they are not in queue order.
            read = self._read(shard_key(project_id, pull_uid, shard), AWAY, away_before(now), _PAGE)
            back = [*readable(read, decode_candidate)]
        places = [each["sk"]["S"] for each in look if each["sk"]["S"] < AWAY]
        after = f"{places[-1]}!" if places else AVAILABLE
        waiting = self._waiting(project_id, pull_uid, shard, new, after if more else "")
        return heapq.merge(sorted(back, key=_rank), waiting, key=_rank), until

    def count(self, project_id: str, pull_uid: str, now: int, *, at_most: int | None = None) -> int:
        """Messages in the queue; counting stops at ``at_most``. Reads 1 MB (some 8,000 messages) per call. What was
        counted of a large queue is told again for a while.
        """
        shards = SHARDS if self._table.get(_mark_key(project_id, pull_uid)) else 1
        if at_most is not None:
            return self._counted(_shards(project_id, pull_uid, shards), now, at_most, self._clock.now() + _COUNTS_MS)
        return self._whole(project_id, pull_uid, shards, now, self._clock.now() + _COUNTS_MS)

    def counts(self, project_id: str, pull_uids: Sequence[str], now: int) -> list[int]:
        """The same of several queues, whose marks are read together."""
        marks = self._table.get_many([_mark_key(project_id, each) for each in dict.fromkeys(pull_uids)])
        marked = {each["pk"]["S"] for each in marks}
        ends_at = self._clock.now() + _COUNTS_MS

        def count(pull_uid: str) -> int:
            shards = SHARDS if _mark_key(project_id, pull_uid)["pk"]["S"] in marked else 1
            return self._whole(project_id, pull_uid, shards, now, ends_at)

        return [count(each) for each in pull_uids]

    def _whole(self, project_id: str, pull_uid: str, shards: int, now: int, ends_at: int) -> int:
        known, until = self._large.get((project_id, pull_uid), (0, 0))
        if self._clock.now() < until:
            return known
        count = self._counted(_shards(project_id, pull_uid, shards), now, None, ends_at)
        if count >= LARGE:
            until = self._clock.now() + int(count * _REMEMBERED_MS)
            _remember(self._large, (project_id, pull_uid), (count, until))
        return count

    def _counted(self, shards: Sequence[dict[str, str]], now: int, at_most: int | None, ends_at: int) -> int:
        bound: dict[str, int] = {} if at_most is None else {"Limit": at_most}
        count = 0
        for shard in shards:
            pages = self._table.pages(
                **bound,
                Select="COUNT",
                ConsistentRead=True,
                KeyConditionExpression="pk = :shard",
                FilterExpression="expires_at > :now",
                ExpressionAttributeValues={":shard": shard, ":now": number(now)},
            )
            try:
                for page in pages:
                    count += int(page["Count"])
                    if at_most is not None and count >= at_most:
                        return at_most
                    if self._clock.now() >= ends_at:
                        return count
            except Unavailable as error:
                # The table gives no more now: what was counted of a large queue is better than nothing, for ever.
                if count < LARGE or not error.throttled:
                    raise
                return count
        return count

    def some(self, project_id: str, pull_uid: str, most: int) -> list[Candidate]:
        """All entries of a short queue. Of a long one, the first ones, and as many others of messages that are or were
        away, from call to call the next ones.
        """
        queue = project_id, pull_uid
        shards = [shard_key(*queue, shard) for shard in range(SHARDS if self._table.get(_mark_key(*queue)) else 1)]
        each_limit, left = most // 2 // len(shards), most // 2
        fronts = [self._read(shard, AVAILABLE, _BEHIND_ALL, each_limit) for shard in shards]
        found = list(chain.from_iterable(fronts))
        if any(len(each) == each_limit for each in fronts):
            position, after = self._looked_at.pop(queue, (0, AWAY))
            for step in range(position, position + len(shards) + 1):
                away = self._read(shards[step % len(shards)], after, _BEHIND_ALL, left)
                found += away
                left -= len(away)
                if not left:
                    _remember(self._looked_at, queue, (step % len(shards), f"{away[-1]['sk']['S']}!"))
                    break
                after = AWAY
        return list({each.place: each for each in readable(found, decode_candidate)}.values())

    def _waiting(
        self, project_id: str, pull_uid: str, shard: int, first: Sequence[Candidate], after: str
    ) -> Iterator[Candidate]:
        """Messages that were never reserved: those read first, and those from a place on; none if that is empty."""
        yield from first
        while after:
            read = self._read(shard_key(project_id, pull_uid, shard), after, AWAY, _PAGE)
            yield from readable(read, decode_candidate)
            # "!" sorts before every character of a place, so nothing is between the last place read and this.
            after = f"{read[-1]['sk']['S']}!" if len(read) == _PAGE else ""

    def _read(self, shard: dict[str, str], first: str, last: str, limit: int) -> list[Item]:
        items = self._table.items(
            KeyConditionExpression="pk = :shard AND sk BETWEEN :first AND :last",
            ExpressionAttributeValues={
                ":shard": shard,
                ":first": text(first),
                ":last": text(last),
            },
            ConsistentRead=True,
            Limit=limit,
        )
        return list(islice(items, limit))


def _remember(known: dict[tuple[str, str], _T], queue: tuple[str, str], value: _T) -> None:
    if len(known) >= _QUEUES:
        known.clear()
    known[queue] = value


def _shards(project_id: str, pull_uid: str, count: int) -> list[dict[str, str]]:
    return [shard_key(project_id, pull_uid, shard) for shard in range(count)]


def _mark_key(project_id: str, pull_uid: str) -> Item:
    return {"pk": shard_key(project_id, pull_uid, 0), "sk": text(MARK)}


def _rank(candidate: Candidate) -> str:
    return candidate.message_id
