"""The line store on DynamoDB: one item per message, ordered by a local secondary index on its place.

A message's rank is its id, which rises with time. Reserving moves its ``place`` behind all available ones, so the front of the line is always one
short, consistent query away, however many messages are reserved or delayed. Those that came back (a reservation or delay ended) are found by a
second query over the part of the index that lies in the past, and merged by rank. Nobody has to put them back first.
"""

from __future__ import annotations

import hashlib
import heapq
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from itertools import islice
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError

from pushhub.base.errors import Forbidden, Invalid, MessageNotFound, Unavailable
from pushhub.base.ids import new_reservation_id
from pushhub.base.ports import Clock
from pushhub.cloud.calls import ROUNDS, ConditionRefused, aws_call, pause
from pushhub.cloud.table import Item, Table, number, text
from pushhub.engine.model.message import Message
from pushhub.ironmq.ports import LineMessage, Once
from pushhub.ironmq.store._pull_items import (
    AVAILABLE,
    AWAY,
    Candidate,
    away_before,
    decode_candidate,
    decode_line_message,
    encode_line_item,
    line_key,
    message_key,
    place_at,
)

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

__all__ = ["DynamoDBLineStore", "decode_line_message"]

_PUTS_PER_CALL = 100
_SPARE = 10
"""Candidates read beyond those asked for, in case other consumers are quicker."""
_PAGE = 1000
"""Index entries read at once behind the first page, and messages come back that are considered together."""
_EXPIRED_PER_CALL = 200
_THREADS = 8
"""Reservations made at the same time by one call; the client's connection pool holds ten."""
_TRANSIENT = frozenset({"TransactionConflict", "ThrottlingError", "ProvisionedThroughputExceeded"})


class DynamoDBLineStore:
    """Implements :class:`pushhub.engine.ports.LineStore`.

    The order is exact as long as no more than a thousand messages have come back and wait; of more than that, those
    that came back first are considered. All messages of one line share a partition: 1,000 writes a second, 10 GB.

    Args:
        client: Low-level DynamoDB client.
        table: Name of the lines table (local index ``line`` on ``place``, with ``expires_at``).
        clock: Waits between rounds of a batch.
    """

    def __init__(self, client: DynamoDBClient, table: str, clock: Clock) -> None:
        self._client = client
        self._name = table
        self._clock = clock
        self._table = Table(client, table, clock)

    def put(self, messages: Sequence[Message]) -> None:
        """See the port. One message alone may come again if it was consumed before the call is repeated."""
        if len(messages) == 1:
            with suppress(ConditionRefused):
                self._table.put(encode_line_item(messages[0]), ConditionExpression="attribute_not_exists(pk)")
            return
        for start in range(0, len(messages), _PUTS_PER_CALL):
            self._put_together(messages[start : start + _PUTS_PER_CALL])

    def put_once(self, message: Message, *, reserved_count: int = 0) -> Once:
        """See the port."""
        item = encode_line_item(message, reserved_count=reserved_count)
        try:
            self._table.put(item, ConditionExpression="attribute_not_exists(pk)")
        except ConditionRefused as refused:
            same = decode_line_message(refused.stored).message.cause == message.cause
            return Once.KNOWN if same else Once.TAKEN
        return Once.STORED

    def reserve(self, project_id: str, line_uid: str, *, count: int, timeout_ms: int, now: int) -> list[LineMessage]:
        """See the port. When a call fails half-way, what was reserved by then is returned."""
        expired: list[Candidate] = []
        held: list[LineMessage] = []
        until = now + timeout_ms
        candidates = self._candidates(project_id, line_uid, now, count + _SPARE, expired)
        try:
            while wave := list(islice(candidates, count - len(held))):
                self._hold_all(project_id, line_uid, wave, until, held)
        except Unavailable:
            if not held:
                raise
        # The next consumer, or the table's TTL, does it if this fails.
        with suppress(Unavailable):
            gone = [message_key(project_id, line_uid, each.message_id) for each in expired[:_EXPIRED_PER_CALL]]
            self._table.delete_many(gone)
        return sorted(held, key=lambda each: each.message.message_id)

    def peek(self, project_id: str, line_uid: str, *, count: int, now: int) -> list[LineMessage]:
        """See the port."""
        found: list[LineMessage] = []
        candidates = self._candidates(project_id, line_uid, now, count, [])
        while wave := list(islice(candidates, count - len(found))):
            items = self._table.get_many([message_key(project_id, line_uid, each.message_id) for each in wave])
            seen = {each.place for each in wave}
            found += [decode_line_message(item, now) for item in items if item["place"]["S"] in seen]
        return sorted(found, key=lambda each: each.message.message_id)

    def get(self, project_id: str, line_uid: str, message_id: str, now: int) -> LineMessage | None:
        """See the port."""
        item = self._table.get(message_key(project_id, line_uid, message_id))
        found = decode_line_message(item, now) if item else None
        return found if found and found.message.expires_at > now else None

    def touch(
        self, project_id: str, line_uid: str, message_id: str, *, reservation_id: str, timeout_ms: int, now: int
    ) -> str:
        """See the port."""
        new_id, until = new_reservation_id(), now + timeout_ms
        try:
            self._table.update(
                message_key(project_id, line_uid, message_id),
                UpdateExpression="SET place = :place, reservation_id = :new, reserved_until = :until "
                "ADD reserved_count :one",
                ConditionExpression=_HELD,
                ExpressionAttributeValues={
                    ":place": text(place_at(message_id, until)),
                    ":new": text(new_id),
                    ":until": number(until),
                    ":one": number(1),
                    ":held": text(reservation_id),
                    ":now": number(now),
                },
            )
        except ConditionRefused as refused:
            if not _holds(refused.stored, new_id):
                raise _refusal(refused.stored, now) from refused
        return new_id

    def release(
        self,
        project_id: str,
        line_uid: str,
        message_id: str,
        *,
        reservation_id: str,
        delay_ms: int,
        now: int,
        counted: bool = True,
    ) -> None:
        """See the port."""
        place = place_at(message_id, now + delay_ms if delay_ms else None)
        values = {":place": text(place), ":held": text(reservation_id), ":now": number(now)}
        try:
            self._table.update(
                message_key(project_id, line_uid, message_id),
                UpdateExpression="SET place = :place REMOVE reservation_id, reserved_until"
                + ("" if counted else " ADD unseen :one"),
                ConditionExpression=_HELD,
                ExpressionAttributeValues=values if counted else values | {":one": number(1)},
            )
        except ConditionRefused as refused:
            raise _refusal(refused.stored, now) from refused

    def delete(
        self,
        project_id: str,
        line_uid: str,
        message_id: str,
        *,
        reservation_id: str | None,
        now: int,
        leaving: str = "",
    ) -> None:
        """See the port."""
        key = message_key(project_id, line_uid, message_id)
        values: Item = {":now": number(now)}
        condition = _FREE
        if reservation_id is not None:
            values[":held"] = text(reservation_id)
            condition = _HELD
        try:
            if leaving:
                # The stream shows a removal without its reason, so the reason is written first.
                self._table.update(
                    key,
                    UpdateExpression="SET leaving = :leaving",
                    ConditionExpression=condition,
                    ExpressionAttributeValues=values | {":leaving": text(leaving)},
                )
            self._table.delete(key, ConditionExpression=condition, ExpressionAttributeValues=values)
        except ConditionRefused as refused:
            refusal = _refusal(refused.stored, now)
            if reservation_id is None and isinstance(refusal, Forbidden):
                raise Invalid("A reservation_id is required") from refused
            raise refusal from refused

    def size(self, project_id: str, line_uid: str, now: int, *, at_most: int | None = None) -> int:
        """See the port. Reads the index of the line, 1 MB (some 8,000 messages) a call."""
        bound: dict[str, int] = {} if at_most is None else {"Limit": at_most}
        pages = self._table.pages(
            **bound,
            IndexName="line",
            Select="COUNT",
            ConsistentRead=True,
            KeyConditionExpression="pk = :line",
            FilterExpression="expires_at > :now",
            ExpressionAttributeValues={":line": line_key(project_id, line_uid), ":now": number(now)},
        )
        count = 0
        for page in pages:
            count += page["Count"]
            if at_most is not None and count >= at_most:
                return at_most
        return count

    def _put_together(self, messages: Sequence[Message]) -> None:
        keys = "\n".join(f"{each.project}#{each.queue_uid}#{each.message_id}" for each in messages)
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
                                    "Item": encode_line_item(each),
                                    "ConditionExpression": "attribute_not_exists(pk)",
                                }
                            }
                            for each in messages
                        ],
                    )
            except Unavailable as unavailable:
                reasons = _cancellation_reasons(unavailable)
                if "ConditionalCheckFailed" in reasons:
                    # Ids are unique: if one message is there already, all of them went in together before.
                    return
                if round_number == ROUNDS or not reasons & _TRANSIENT:
                    raise
                pause(self._clock, round_number)
            else:
                return

    def _candidates(
        self, project_id: str, line_uid: str, now: int, first_page: int, expired: list[Candidate]
    ) -> Iterator[Candidate]:
        """Available messages in order, read as they are asked for; expired ones are put aside into ``expired``."""
        # The past part of the index is small; it is read first and whole, because its order is not the line's.
        back = sorted(islice(self._back(project_id, line_uid, now), _PAGE), key=_rank)
        for each in heapq.merge(back, self._waiting(project_id, line_uid, first_page), key=_rank):
            if each.expires_at <= now:
                expired.append(each)
            else:
                yield each

    def _back(self, project_id: str, line_uid: str, now: int) -> Iterator[Candidate]:
        items = self._table.items(
            IndexName="line",
            KeyConditionExpression="pk = :line AND place BETWEEN :from AND :to",
            ExpressionAttributeValues={
                ":line": line_key(project_id, line_uid),
                ":from": text(AWAY),
                ":to": text(away_before(now)),
            },
            ConsistentRead=True,
            Limit=_PAGE,
        )
        return map(decode_candidate, items)

    def _waiting(self, project_id: str, line_uid: str, first_page: int) -> Iterator[Candidate]:
        after, page = AVAILABLE, first_page
        while True:
            items = self._table.items(
                IndexName="line",
                KeyConditionExpression="pk = :line AND place BETWEEN :after AND :end",
                ExpressionAttributeValues={
                    ":line": line_key(project_id, line_uid),
                    ":after": text(after),
                    ":end": text(AWAY),
                },
                ConsistentRead=True,
                Limit=page,
            )
            found = [decode_candidate(item) for item in islice(items, page)]
            yield from found
            if len(found) < page:
                return
            # "!" sorts before every digit, so nothing lies between the last place read and this one.
            after, page = f"{found[-1].place}!", _PAGE

    def _hold_all(
        self, project_id: str, line_uid: str, wave: list[Candidate], until: int, held: list[LineMessage]
    ) -> None:
        """Try to reserve each of some candidates; those won are added to ``held``, also when another call fails."""
        if len(wave) == 1:
            won = self._hold(project_id, line_uid, wave[0], until)
            held += [won] if won else []
            return
        with ThreadPoolExecutor(max_workers=min(_THREADS, len(wave))) as pool:
            calls = [pool.submit(self._hold, project_id, line_uid, each, until) for each in wave]
        errors = [error for call in calls if (error := call.exception())]
        held += [won for call in calls if not call.exception() and (won := call.result())]
        if errors:
            raise errors[0]

    def _hold(self, project_id: str, line_uid: str, candidate: Candidate, until: int) -> LineMessage | None:
        """Reserve one message if it still stands where it stood; None when somebody else was quicker."""
        reservation_id = new_reservation_id()
        try:
            item = self._table.update(
                message_key(project_id, line_uid, candidate.message_id),
                UpdateExpression="SET place = :place, reservation_id = :new, reserved_until = :until "
                "ADD reserved_count :one",
                ConditionExpression="place = :seen",
                ExpressionAttributeValues={
                    ":place": text(place_at(candidate.message_id, until)),
                    ":new": text(reservation_id),
                    ":until": number(until),
                    ":one": number(1),
                    ":seen": text(candidate.place),
                },
            )
        except ConditionRefused as refused:
            item = refused.stored
        return decode_line_message(item) if _holds(item, reservation_id) else None


_HELD = "reservation_id = :held AND reserved_until > :now AND expires_at > :now"
_FREE = "expires_at > :now AND (attribute_not_exists(reservation_id) OR reserved_until <= :now)"


def _rank(candidate: Candidate) -> str:
    return candidate.message_id


def _holds(item: Item, reservation_id: str) -> bool:
    """Whether a reservation is the stored one: the client repeats calls that timed out, and then meets its own."""
    return "reservation_id" in item and item["reservation_id"]["S"] == reservation_id


def _refusal(stored: Item, now: int) -> Forbidden | MessageNotFound:
    """Why a message could not be changed."""
    if not stored or int(stored["expires_at"]["N"]) <= now:
        return MessageNotFound()
    return Forbidden("Reservation has timed out")


def _cancellation_reasons(unavailable: Unavailable) -> set[str]:
    """Codes of a cancelled transaction; empty when it failed for another reason."""
    cause = unavailable.__cause__
    if not isinstance(cause, ClientError):
        return set()
    answer: dict[str, Any] = {**cause.response}
    return {reason.get("Code", "") for reason in answer.get("CancellationReasons", [])}
