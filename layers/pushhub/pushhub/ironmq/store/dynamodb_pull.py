"""The messages of pull queues in DynamoDB: one item per message, and an entry for its place in the queue.

A message's rank is its id, which rises with time. Reserving a message moves its entry behind all available ones, so the
front of the queue is always one short, consistent query away, however many messages are reserved or delayed. Messages
that came back (their reservation or delay ended, or they were released) are found among the entries with a past time,
and merged by rank. Nobody has to put them back first.

Several consumers of one queue would all try to take the same front. So each call first tries only its first message,
and continues with those behind it only if it got that. A consumer that loses reads again and takes one of many slices
of the front at random, and keeps doing so for some seconds. A consumer that is alone never loses, so it keeps the
strict order.
"""

from __future__ import annotations

import hashlib
import secrets
import zlib
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice
from threading import Event
from typing import TYPE_CHECKING

from pushhub.base.errors import Forbidden, Invalid, MessageNotFound, Unavailable, Unreadable
from pushhub.base.ids import new_reservation_id
from pushhub.cloud.calls import ROUNDS, ConditionRefused, aws_call, cancellation_reasons, passing, pause
from pushhub.cloud.table import Item, Table, number, numbers, text
from pushhub.cloud.unreadable import readable
from pushhub.engine.model.keys import MessageKey
from pushhub.engine.ports import Once
from pushhub.ironmq.ports import PullMessage
from pushhub.ironmq.store._pull_items import (
    Candidate,
    decode_pull_message,
    encode_pull_item,
    first_place,
    message_key,
    place_of,
    place_until,
)
from pushhub.ironmq.store.pull_places import LARGE, PullPlaces

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from mypy_boto3_dynamodb import DynamoDBClient

    from pushhub.base.ports import Clock
    from pushhub.engine.model.message import Message

_PUTS_PER_CALL = 100
_SPARE = 10
"""Extra candidates to read, in case other consumers are quicker."""
_EXPIRED_PER_CALL = 200
_THREADS = 8
"""Parallel reservations in one call; the client's connection pool holds ten."""
_MOST_SLICES = 64
_FEWEST_SLICES = 16
_CROWDED_ENTRIES = 640
"""Competing consumers divide the front of a queue into slices. Their number times the number of messages requested is
about this, but they are never fewer or more than these bounds. With 16 consumers and 64 slices, two of them pick
the same slice in one of four calls, which costs one wasted write.
"""
_CROWDED_MS = 5_000
"""How long a consumer that lost a message to another one avoids the others."""
_CROWDED_QUEUES = 1_000
"""Maximum number of queues remembered as crowded; others are forgotten and detected again."""
_RESERVE_WITHIN_MS = 8_000
"""How long one call tries before it returns what it has, possibly nothing."""
_MEND_AFTER_MS = 2_000
"""How long an outdated entry is left to the call that moved its message. A shorter time would be as safe, but cost
writes.
"""
_SWEEP_EVERY_MS = 5_000
"""How long after looking for outdated entries of a queue an environment looks again, if its size is to be exact."""
_SWEPT = 200
"""Entries looked at each time, at 0.5 to 2 read units each."""
_PASSED_OVER = "passed over"
_LONGEST_PAUSE = 3
"""The pause after a loss stops growing at this many losses."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Reserving:
    """The state of one reserving call.

    Attributes:
        count: Number of messages requested.
        timeout_ms: How long to reserve them.
        ahead_ms: How far the caller's clock is ahead of ours.
        held: Messages reserved so far.
        moved: Items of messages whose entries have to be moved.
        expired: Expired messages found on the way.
        missed: By place, messages that are no longer there, with their stored items (empty when they are gone).
    """

    project_id: str
    pull_uid: str
    count: int
    timeout_ms: int
    ahead_ms: int
    held: list[PullMessage] = field(default_factory=list)
    moved: list[Item] = field(default_factory=list)
    expired: list[Candidate] = field(default_factory=list)
    missed: dict[str, tuple[Candidate, Item]] = field(default_factory=dict)

    @property
    def wanted(self) -> int:
        """How many are still needed."""
        return self.count - len(self.held)


@dataclass(frozen=True, slots=True)
class _Crowd:
    """A queue in which other consumers were encountered.

    Attributes:
        until: How long to avoid them, by our clock.
        lane: Which slices of the front this consumer uses.
    """

    until: int
    lane: int


class DynamoDBPullStore:
    """Implements :class:`pushhub.ironmq.ports.PullStore`.

    The order is exact as long as at most a thousand messages that came back are waiting; beyond that, those that came
    back first are considered.

    Args:
        clock: Provides pauses, between rounds of a batch and after a message was lost to another consumer, and random
            choices of where to try next.
        threads: Parallel reservations in one call.
    """

    def __init__(self, client: DynamoDBClient, table: str, clock: Clock, *, threads: int = _THREADS) -> None:
        self._client = client
        self._name = table
        self._clock = clock
        self._threads = threads
        self._crowds: dict[tuple[str, str], _Crowd] = {}
        self._swept_at: dict[tuple[str, str], int] = {}
        self._table = Table(client, table, clock)
        self._places = PullPlaces(self._table, clock)

    def put(self, messages: Sequence[Message]) -> None:
        """Messages are stored all or none, then get their entries: only a call that fails in between can leave just
        some of them in the queue.
        """
        for start in range(0, len(messages), _PUTS_PER_CALL):
            items = [self._entering(each, first_place(each)) for each in messages[start : start + _PUTS_PER_CALL]]
            self._places.enter(self._put_alone(items[0]) if len(items) == 1 else self._put_together(items))

    def put_once(self, message: Message, *, reserved_count: int = 0) -> Once:
        # A message moved here again after it was consumed gets a new, distinct place, and a life of its own in the
        # records.
        entry = secrets.token_hex(4)
        item = self._entering(message, first_place(message, entry), reserved_count=reserved_count, entry=entry)
        (stored,) = self._put_alone(item)
        if stored is not item and decode_pull_message(stored).message.cause != message.cause:
            return Once.TAKEN
        self._places.enter([stored])
        return Once.STORED if stored is item else Once.KNOWN

    def _entering(self, message: Message, place: str, *, reserved_count: int = 0, entry: str = "") -> Item:
        """The item of a message that enters its queue."""
        shard = self._places.shard_for(message.project, message.queue_uid, message.message_id)
        return encode_pull_item(message, place=place, reserved_count=reserved_count, shard=shard, entry=entry)

    def _put_alone(self, item: Item) -> list[Item]:
        """The item as stored now: the given one, or that of an earlier call, which may have failed before it wrote the
        entry.
        """
        try:
            self._table.put(item, ConditionExpression="attribute_not_exists(pk)")
        except ConditionRefused as refused:
            return [refused.stored]
        return [item]

    def reserve(self, project_id: str, pull_uid: str, *, count: int, timeout_ms: int, now: int) -> list[PullMessage]:
        """If a call fails half-way, the messages reserved by then are returned.

        With several consumers, a call may return fewer messages than there are, and not those at the very front; a
        consumer that is alone gets the first ones.
        """
        call = self._call(project_id, pull_uid, count=count, timeout_ms=timeout_ms, now=now)
        try:
            self._reserve(call)
        except Unavailable:
            if not call.held:
                raise
        # If this fails, the next consumer or the table's TTL does it.
        with suppress(Unavailable):
            self._tidy(call)
        return sorted(call.held, key=lambda each: each.message.message_id)

    def _tidy(self, call: _Reserving) -> None:
        """Remove expired messages and outdated entries."""
        expired = call.expired[:_EXPIRED_PER_CALL]
        keys = [MessageKey(call.project_id, call.pull_uid, each.message_id) for each in expired]
        self._table.delete_many([message_key(each) for each in keys])
        orphaned: list[Candidate] = []
        for candidate, item in call.missed.values():
            if not item:
                orphaned.append(candidate)
            elif (
                place_of(item) != candidate.place
                and self._now(call) - (numbers(item, "placed_at") or 0) >= _MEND_AFTER_MS
            ):
                self._mend(call, candidate, item)
                orphaned.append(candidate)
        self._places.forget(call.project_id, call.pull_uid, [*expired, *orphaned])

    def _mend(self, call: _Reserving, candidate: Candidate, item: Item) -> None:
        """Write the entry that a message ought to have. If the message has gone or moved on meanwhile, whoever did that
        has deleted the entry before it was written, so it is deleted here: it would be counted until somebody finds it.
        """
        self._places.enter([item])
        now_stored = self._table.get(message_key(MessageKey(call.project_id, call.pull_uid, candidate.message_id)))
        if now_stored is None or place_of(now_stored) != place_of(item):
            self._places.leave([item])

    def _call(self, project_id: str, pull_uid: str, *, count: int, timeout_ms: int, now: int) -> _Reserving:
        ahead_ms = now - self._clock.now()
        return _Reserving(
            project_id=project_id, pull_uid=pull_uid, count=count, timeout_ms=timeout_ms, ahead_ms=ahead_ms
        )

    def _now(self, call: _Reserving) -> int:
        return self._clock.now() + call.ahead_ms

    def _reserve(self, call: _Reserving) -> None:
        """Take the front or, after meeting another consumer there, slices picked at random."""
        ends_at = self._clock.now() + _RESERVE_WITHIN_MS
        while not self._is_crowded(call) and self._clock.now() < ends_at:
            front = self._front(call)
            # If none that were there can be read, those behind them are taken.
            if not front or (self._take(call, front) and call.held):
                return
        losses = 0
        # Having met others, it leaves the rest to them once it holds something.
        while call.wanted and not (losses and call.held) and self._clock.now() < ends_at:
            run = self._slice(call)
            if not run:
                return
            if not self._stands(call, run[0]) or not self._take(call, run):
                losses += 1
                pause(self._clock, min(losses, _LONGEST_PAUSE))

    def _front(self, call: _Reserving) -> list[Candidate]:
        return list(islice(self._candidates(call, call.wanted + _SPARE), call.wanted))

    def _slice(self, call: _Reserving) -> list[Candidate]:
        """Some messages near the front, in order: those whose ids belong to this consumer's lane.

        Slices are made by id rather than position, so that consumers who see different fronts divide them alike. The
        number of slices is a power of two, so that different numbers of slices are compatible too. A consumer that
        meets nobody stays in its lane, so that over time each consumer has its own.
        """
        most = max(_FEWEST_SLICES, min(_MOST_SLICES, _CROWDED_ENTRIES // call.wanted))
        crowd = self._crowds.get((call.project_id, call.pull_uid))
        lane = crowd.lane if crowd else None
        seen = list(islice(self._candidates(call, most * call.wanted, lane=lane), most * call.wanted))
        slices = 1 << max(0, min(most, len(seen) // call.wanted).bit_length() - 1)
        start = lane % slices if lane else 0
        cut: dict[int, list[Candidate]] = {}
        for each in seen:
            cut.setdefault(zlib.crc32(each.message_id.encode()) % slices, []).append(each)
        # The next slice that contains anything; all are near the front.
        picked = min(cut, key=lambda number: (number - start) % slices, default=0)
        return cut.get(picked, [])[: call.wanted]

    def _stands(self, call: _Reserving, candidate: Candidate) -> bool:
        """Whether a message is still in the place its entry says: with competitors, a read is cheaper than a wasted
        write.
        """
        item = self._table.get(message_key(MessageKey(call.project_id, call.pull_uid, candidate.message_id))) or {}
        if item and place_of(item) == candidate.place:
            return True
        call.missed[candidate.place] = candidate, item
        self._meet(call)
        return False

    def _take(self, call: _Reserving, run: list[Candidate]) -> bool:
        """Reserve messages: the first one alone, because the consumer that gets it gets the others. False after meeting
        a consumer.
        """
        try:
            alone = self._hold_all(call, run[:1]) and (len(run) == 1 or self._hold_all(call, run[1:]))
        finally:
            # The messages are held whatever happens to their entries.
            with suppress(Unavailable):
                self._places.move(call.moved)
            call.moved.clear()
        if not alone:
            self._meet(call)
        return alone

    def _meet(self, call: _Reserving) -> None:
        """Another consumer was met: avoid it for a while by using another lane."""
        if len(self._crowds) >= _CROWDED_QUEUES:
            self._crowds.clear()
        lane = min(int(self._clock.jitter() * _MOST_SLICES), _MOST_SLICES - 1)
        self._crowds[call.project_id, call.pull_uid] = _Crowd(self._clock.now() + _CROWDED_MS, lane)

    def _is_crowded(self, call: _Reserving) -> bool:
        crowd = self._crowds.get((call.project_id, call.pull_uid))
        return crowd is not None and self._clock.now() < crowd.until

    def peek(self, project_id: str, pull_uid: str, *, count: int, now: int) -> list[PullMessage]:
        found: list[PullMessage] = []
        candidates = self._candidates(self._call(project_id, pull_uid, count=count, timeout_ms=0, now=now), count)
        while wave := list(islice(candidates, count - len(found))):
            items = self._table.get_many(
                [message_key(MessageKey(project_id, pull_uid, each.message_id)) for each in wave]
            )
            seen = {each.place for each in wave}
            there = (item for item in items if place_of(item) in seen)
            found += readable(there, lambda item: decode_pull_message(item, now))
        return sorted(found, key=lambda each: each.message.message_id)

    def get(self, key: MessageKey, now: int) -> PullMessage | None:
        item = self._table.get(message_key(key))
        found = decode_pull_message(item, now) if item else None
        return found if found and found.message.expires_at > now else None

    def touch(self, key: MessageKey, *, reservation_id: str, timeout_ms: int, now: int) -> str:
        new_id, until = new_reservation_id(), now + timeout_ms
        place = place_until(key.message_id, until, new_id[:8])
        item = self._move(
            key,
            place,
            now,
            "reservation_id = :new, reserved_until = :until ADD reserved_count :one",
            {":new": text(new_id), ":until": number(until), ":one": number(1)},
            held=reservation_id,
        )
        with suppress(Unavailable):
            self._places.move([item])
        return new_id

    def release(
        self,
        key: MessageKey,
        *,
        reservation_id: str,
        delay_ms: int,
        now: int,
        counted: bool = True,
    ) -> None:
        item = self._release(key, reservation_id, delay_ms, now, counted=counted)
        # Without its entry, it comes back when its reservation would have ended.
        with suppress(Unavailable):
            self._places.move([item])

    def _release(self, key: MessageKey, reservation_id: str, delay_ms: int, now: int, *, counted: bool) -> Item:
        place = place_until(key.message_id, now + delay_ms if delay_ms else 0, secrets.token_hex(4))
        removal = "REMOVE reservation_id, reserved_until" + ("" if counted else " ADD unseen :one")
        return self._move(key, place, now, removal, {} if counted else {":one": number(1)}, held=reservation_id)

    def _move(self, key: MessageKey, place: str, now: int, change: str, values: Item, *, held: str) -> Item:
        """Change a held message and move it to another place; returns its new item.

        Args:
            key: Key of the message.
            place: The new place.
            change: The rest of the update expression.
            values: Values for that.
            held: The reservation that must hold it.

        Raises:
            MessageNotFound: No such message.
            Forbidden: The reservation is not the current one, or timed out.
        """
        comma = "" if change.startswith("REMOVE") else ","
        try:
            return self._table.update(
                message_key(key),
                UpdateExpression=f"{_MOVE}{comma} {change}",
                ConditionExpression=_HELD,
                ExpressionAttributeValues={
                    **values,
                    ":place": text(place),
                    ":now": number(now),
                    ":held": text(held),
                },
            )
        except ConditionRefused as refused:
            # The client repeats calls that timed out, and may then find its own write.
            if not refused.stored or place_of(refused.stored) != place:
                raise _refusal(refused.stored, now) from refused
            return refused.stored

    def delete(
        self,
        key: MessageKey,
        *,
        reservation_id: str | None,
        now: int,
        leaving: str = "",
    ) -> None:
        item_key = message_key(key)
        values: Item = {":now": number(now)}
        condition = _FREE
        if reservation_id is not None:
            values[":held"] = text(reservation_id)
            condition = _HELD
        try:
            if leaving:
                # The stream shows a removal without its reason, so the reason is written first.
                self._table.update(
                    item_key,
                    UpdateExpression="SET leaving = :leaving",
                    ConditionExpression=condition,
                    ExpressionAttributeValues=values | {":leaving": text(leaving)},
                )
            gone = self._table.delete(item_key, ConditionExpression=condition, ExpressionAttributeValues=values)
        except ConditionRefused as refused:
            refusal = _refusal(refused.stored, now)
            if reservation_id is None and isinstance(refusal, Forbidden):
                raise Invalid("A reservation_id is required") from refused
            raise refusal from refused
        with suppress(Unavailable):
            self._places.leave([gone] if gone else [])

    def size(self, project_id: str, pull_uid: str, now: int, *, at_most: int | None = None, exact: bool = False) -> int:
        """Reads the entries, 1 MB (some 8,000 messages) per call; those of a large queue not each time.

        A call that is cut off between deleting a message and deleting its entry leaves the entry behind, and it would
        be counted until its time has come and a consumer finds it. ``exact`` looks for such entries, every few seconds
        for each queue and environment, so that whoever wants to know the size pays for that, and not each message.
        """
        size = self._places.count(project_id, pull_uid, now, at_most=at_most)
        if exact and size and self._sweeps(project_id, pull_uid, now) and size < LARGE:
            size = self._places.count(project_id, pull_uid, now, at_most=at_most)
        return size

    def sizes(self, project_id: str, pull_uids: Sequence[str], now: int) -> list[int]:
        """One read for the marks of a hundred queues, and one for each queue, or for each 8,000 messages."""
        return self._places.counts(project_id, pull_uids, now)

    def _sweeps(self, project_id: str, pull_uid: str, now: int) -> bool:
        """Look for outdated entries if it is time to, and repair them; returns whether there were any."""
        queue = project_id, pull_uid
        if self._clock.now() < self._swept_at.get(queue, 0) + _SWEEP_EVERY_MS:
            return False
        if len(self._swept_at) >= _CROWDED_QUEUES:
            self._swept_at.clear()
        self._swept_at[queue] = self._clock.now()
        call = self._call(project_id, pull_uid, count=0, timeout_ms=0, now=now)
        # The size is known, if not exactly, so it is told whatever fails here.
        with suppress(Unavailable):
            found = self._places.some(project_id, pull_uid, _SWEPT)
            keys = [MessageKey(project_id, pull_uid, each) for each in {each.message_id for each in found}]
            items = {item["pk"]["S"]: item for item in self._table.get_many([message_key(each) for each in keys])}
            for each in found:
                item = items.get(message_key(MessageKey(project_id, pull_uid, each.message_id))["pk"]["S"], {})
                if not item or place_of(item) != each.place:
                    call.missed[each.place] = each, item
            self._tidy(call)
        return bool(call.missed)

    def _put_together(self, items: list[Item]) -> list[Item]:
        """The items as stored now: all of them, or none."""
        # The token is that of the messages, so that a repeated call does not restore messages consumed meanwhile. The
        # entries it leaves behind lead nowhere, and are repaired when they are found.
        keys = "\n".join(each["pk"]["S"] for each in items)
        token = hashlib.sha256(keys.encode()).hexdigest()[:36]
        for round_number in range(1, ROUNDS + 1):
            try:
                with aws_call("dynamodb:TransactWriteItems"):
                    self._client.transact_write_items(
                        ClientRequestToken=token,
                        TransactItems=[
                            {
                                "Put": {
                                    "TableName": self._name,
                                    "Item": each,
                                    "ConditionExpression": "attribute_not_exists(pk)",
                                }
                            }
                            for each in items
                        ],
                    )
            except Unavailable as unavailable:
                reasons = cancellation_reasons(unavailable)
                # The same messages in other shards, as more is known of their queue than when they were first put.
                other = unavailable.reason == "IdempotentParameterMismatchException"
                if other or "ConditionalCheckFailed" in reasons:
                    # Ids are unique: if one message exists already, all of them were written together before.
                    stored = self._table.get_many([{name: each[name] for name in ("pk", "sk")} for each in items])
                    # Whether a call with other shards took effect is not said; if no message is there, they were
                    # consumed or never stored, and the caller tries again until the token is forgotten.
                    if stored or not other:
                        return stored
                busy = passing(unavailable)
                if busy is None:
                    raise
                if round_number == ROUNDS:
                    raise busy from unavailable
                pause(self._clock, round_number)
            else:
                break
        return items

    def _candidates(self, call: _Reserving, first_page: int, *, lane: int | None = None) -> Iterator[Candidate]:
        """Available messages in order, read lazily; expired ones are set aside."""
        now = self._now(call)
        for each in self._places.front(call.project_id, call.pull_uid, now=now, first_page=first_page, lane=lane):
            if each.expires_at <= now:
                call.expired.append(each)
            elif each.place not in call.missed:
                yield each

    def _hold_all(self, call: _Reserving, wave: list[Candidate]) -> bool:
        """Try to reserve each of some candidates until one is lost; returns whether all were reserved. Reservations
        made before a call fails are kept.
        """
        stop = Event()

        def hold(candidate: Candidate) -> PullMessage | Unavailable | str | None:
            outcome = None if stop.is_set() else self._hold(call, candidate)
            if not isinstance(outcome, PullMessage | str):
                # The consumer that took this one will take those behind it, and a failing service should not get more
                # load.
                stop.set()
            return outcome

        threads = min(self._threads, len(wave))
        if threads == 1:
            outcomes = [hold(each) for each in wave]
        else:
            with ThreadPoolExecutor(max_workers=threads) as pool:
                outcomes = list(pool.map(hold, wave))
        call.held.extend(each for each in outcomes if isinstance(each, PullMessage))
        for each in outcomes:
            if isinstance(each, Unavailable):
                raise each
        return all(outcomes)

    def _hold(self, call: _Reserving, candidate: Candidate) -> PullMessage | Unavailable | str | None:
        """Reserve one message if it is still in its place; None when another consumer was quicker, the error if the
        call failed, or :data:`_PASSED_OVER` for one that cannot be read.
        """
        reservation_id, until = new_reservation_id(), self._now(call) + call.timeout_ms
        try:
            item = self._table.update(
                message_key(MessageKey(call.project_id, call.pull_uid, candidate.message_id)),
                UpdateExpression=f"{_MOVE}, reservation_id = :new, reserved_until = :until ADD reserved_count :one",
                ConditionExpression="place = :seen",
                ExpressionAttributeValues={
                    ":place": text(place_until(candidate.message_id, until, reservation_id[:8])),
                    ":now": number(self._now(call)),
                    ":new": text(reservation_id),
                    ":until": number(until),
                    ":one": number(1),
                    ":seen": text(candidate.place),
                },
            )
        except ConditionRefused as refused:
            item = refused.stored
        except Unavailable as unavailable:
            self._undo(call, candidate, reservation_id)
            return unavailable
        if not _holds(item, reservation_id):
            call.missed[candidate.place] = candidate, item
            # One that says no place was not taken by another consumer.
            return _PASSED_OVER if item and not place_of(item) else None
        call.moved.append(item)
        try:
            return decode_pull_message(item)
        except Unreadable:
            # It stays reserved, as if its consumer had died: those behind it are handed out.
            return _PASSED_OVER

    def _undo(self, call: _Reserving, candidate: Candidate, reservation_id: str) -> None:
        """Give back a message that may have been reserved after all: no consumer will learn of that reservation."""
        key = MessageKey(call.project_id, call.pull_uid, candidate.message_id)
        with suppress(Forbidden, MessageNotFound, Unavailable):
            item = self._release(key, reservation_id, 0, self._now(call), counted=False)
            # That reservation has no entry.
            self._places.enter([item])
            self._places.forget(call.project_id, call.pull_uid, [candidate])


_MOVE = "SET came_from = place, place = :place, placed_at = :now"
_HELD = "reservation_id = :held AND reserved_until > :now AND expires_at > :now"
_FREE = "expires_at > :now AND (attribute_not_exists(reservation_id) OR reserved_until <= :now)"


def _holds(item: Item, reservation_id: str) -> bool:
    """Whether the stored reservation is this one: the client repeats calls that timed out, and may then find its
    own.
    """
    return "reservation_id" in item and item["reservation_id"]["S"] == reservation_id


def _refusal(stored: Item, now: int) -> Forbidden | MessageNotFound:
    """Why a message could not be changed."""
    if not stored or (numbers(stored, "expires_at") or 0) <= now:
        return MessageNotFound()
    return Forbidden("Reservation has timed out")
