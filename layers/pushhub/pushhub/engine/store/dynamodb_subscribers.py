"""State of subscribers and their backlogs, on DynamoDB. Healthy subscribers have no items."""

from __future__ import annotations

import heapq
import secrets
import zlib
from contextlib import suppress
from dataclasses import replace
from decimal import Decimal
from itertools import chain, islice
from typing import TYPE_CHECKING

from pushhub.cloud.calls import ConditionRefused
from pushhub.cloud.table import Item, TableStore, number, numbers, text, texts
from pushhub.cloud.unreadable import decodes, paired, readable
from pushhub.engine.model.circuit import CircuitState, Health, SubscriberKey
from pushhub.engine.model.flow import BacklogEntry, FlowKey, LeaseState, Limits, Terms
from pushhub.engine.model.keys import DeliveryKey
from pushhub.engine.model.work import WorkOrder
from pushhub.engine.ports import BacklogOrder

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


LISTS = 4
"""Partitions of the list of subscribers to look after."""

SHARDS = 8
"""Partitions of one subscriber's backlog; one takes 1,000 writes a second."""

NOTED_TO_MS = 60_000
"""Times until which subscribers count as slow are rounded up to this, so that everybody who notes one within that time
writes the same item.
"""

KEPT_S = 31 * 86_400
"""How long an unchanged item is kept: longer than any message lives."""

_MANUAL = "!"
"""Follows the message's id of an order for a manual try; no id contains it."""

_BEHIND_ALL = "~~"
"""Sorts behind every place in a line."""

_COUNTS = ("changed_at", "probe_at", "probes", "ramped", "warnings", "warned_at", "version")


class DynamoDBSubscribers(TableStore):
    """Implements :class:`pushhub.engine.stores.SubscriberStore`."""

    def health(self, key: SubscriberKey) -> Health | None:
        item = self._table.get(_health_key(key))
        return _decode_health(item, key) if item else None

    def healths(self, keys: Sequence[SubscriberKey]) -> dict[SubscriberKey, Health]:
        places = {(place["pk"]["S"], place["sk"]["S"]): key for key in keys for place in (_health_key(key),)}
        items = self._table.get_many([{"pk": text(pk), "sk": text(sk)} for pk, sk in places], consistent=False)
        found = readable(items, lambda item: _decode_health(item, places[item["pk"]["S"], item["sk"]["S"]]))
        return {each.key: each for each in found}

    def healths_of(self, project_id: str) -> Iterator[Health]:
        """Reads lazily."""
        for shard in range(LISTS):
            items = self._table.items(
                KeyConditionExpression="pk = :pk",
                ExpressionAttributeValues={":pk": text(f"HEALTH#{project_id}#{shard}")},
            )
            yield from readable(items, decode_health)

    def save(self, health: Health) -> None:
        item = _encode_health(health) | self._time_to_live()
        self._table.put_version(item, read=lambda each: _decode_health(each, health.key))

    def flow(self, key: FlowKey) -> LeaseState | None:
        item = self._table.get(_turn_key(key))
        return _decode_flow(item, before=False) if item else None

    def take_lease(self, key: FlowKey, holder: str, terms: Terms, *, now: int, until: int) -> LeaseState | None:
        """The state before is kept beside the new one, because an update tells only the new one."""
        try:
            item = self._table.update(
                _turn_key(key),
                UpdateExpression=(
                    "SET #before = if_not_exists(#until, :none), #until = :until, holder = :holder, terms = :terms, "
                    "#ttl = :ttl"
                ),
                ConditionExpression="attribute_not_exists(pk) OR #until <= :now OR holder = :holder",
                ExpressionAttributeNames={"#until": "until", "#before": "before", "#ttl": "ttl"},
                ExpressionAttributeValues={
                    ":none": number(0),
                    ":now": number(now),
                    ":until": number(until),
                    ":holder": text(holder),
                    ":terms": _encode_terms(terms),
                    ":ttl": self._time_to_live()["ttl"],
                },
            )
        except ConditionRefused:
            return None
        return _decode_flow(item, before=True)

    def give_back(self, key: FlowKey, holder: str, *, mark: int, places: int, woken_at: int | None = None) -> None:
        changes = ["#until = :none", "mark = :mark", "places = :places"]
        values = {":none": number(0), ":mark": number(mark), ":places": number(places), ":holder": text(holder)}
        if woken_at is not None:
            changes.append("called_at = :called")
            values[":called"] = number(woken_at)
        with suppress(ConditionRefused):
            self._table.update(
                _turn_key(key),
                UpdateExpression=f"SET {', '.join(changes)} REMOVE holder",
                ConditionExpression="holder = :holder",
                ExpressionAttributeNames={"#until": "until"},
                ExpressionAttributeValues=values,
            )

    def note_wake_up(self, key: FlowKey, now: int, at: int) -> bool:
        try:
            self._table.update(
                _turn_key(key),
                UpdateExpression="SET called_at = :at",
                ConditionExpression="attribute_exists(pk) AND (attribute_not_exists(called_at) OR called_at <= :now)",
                ExpressionAttributeValues={":at": number(at), ":now": number(now)},
            )
        except ConditionRefused:
            return False
        return True

    def add_to_backlog(self, key: FlowKey, orders: Sequence[WorkOrder], now: int) -> None:
        self._table.put(_standing(key, f"{now:015d}#{secrets.token_hex(6)}", orders) | self._time_to_live())

    def set_aside(self, key: FlowKey, orders: Sequence[WorkOrder], until: int) -> str:
        place = f"{_aside(until)}#{secrets.token_hex(6)}"
        self._table.put(_standing(key, place, orders) | self._time_to_live())
        return place

    def backlog(self, key: FlowKey, limit: int, *, now: int | None = None) -> list[BacklogEntry]:
        reach = _BEHIND_ALL if now is None else _aside(now)
        items = self._table.items(
            KeyConditionExpression="pk = :pk AND sk < :reach",
            ExpressionAttributeValues={":pk": text(_line(key)), ":reach": text(reach)},
            ConsistentRead=True,
            Limit=limit,
        )
        return [*islice(readable(items, lambda item: _decode_place(item, key)), limit)]

    def remove_from_backlog(self, key: FlowKey, place: str, rest: Sequence[WorkOrder]) -> None:
        if rest:
            self._table.put(_standing(key, place, rest) | self._time_to_live())
        else:
            self._table.delete({"pk": text(_line(key)), "sk": text(place)})

    def list_backlog(self, key: FlowKey, now: int) -> None:
        self._table.put(_tended_key(key) | {"added_at": number(now)} | self._time_to_live())

    def listed_backlogs(self) -> Iterator[tuple[FlowKey, int]]:
        """Reads lazily."""
        for shard in range(LISTS):
            items = self._table.items(
                KeyConditionExpression="pk = :pk", ExpressionAttributeValues={":pk": text(f"LINES#{shard}")}
            )
            yield from readable(items, _decode_tended)

    def unlist_backlog(self, key: FlowKey, added_at: int) -> None:
        with suppress(ConditionRefused):
            self._table.delete(
                _tended_key(key),
                ConditionExpression="added_at = :added",
                ExpressionAttributeValues={":added": number(added_at)},
            )

    def look_after(self, key: SubscriberKey, now: int) -> None:
        listed = {"queue": text(key.queue), "added_at": number(now)}
        self._table.put(_list_key(key) | listed | self._time_to_live())

    def looked_after(self) -> Iterator[SubscriberKey]:
        """Reads lazily."""
        for shard in range(LISTS):
            items = self._table.items(
                KeyConditionExpression="pk = :pk", ExpressionAttributeValues={":pk": text(f"CIRCUITS#{shard}")}
            )
            yield from readable(items, _decode_listed)

    def leave(self, key: SubscriberKey, since: int) -> None:
        """Versions before this one noted no time."""
        with suppress(ConditionRefused):
            self._table.delete(
                _list_key(key),
                ConditionExpression="attribute_not_exists(added_at) OR added_at < :since",
                ExpressionAttributeValues={":since": number(since)},
            )

    def add(self, key: SubscriberKey, order: WorkOrder, now: int) -> None:
        message_id = order.key.message_id
        shard = zlib.crc32(message_id.encode()) % SHARDS
        self._table.put(
            {
                "pk": text(_waiting_partition(key, shard)),
                "sk": text(f"{now:015d}#{message_id}"),
                "order": text(replace(order, message=None).encode()),
            }
            | self._time_to_live()
        )

    def waiting(self, key: SubscriberKey, limit: int) -> list[BacklogOrder]:
        """Consistent."""
        shards = (self._waiting_in(key, shard, limit) for shard in range(SHARDS))
        return list(islice(heapq.merge(*shards, key=lambda each: each.place.partition("/")[2]), limit))

    def waiting_ids(self, key: SubscriberKey, limit: int) -> list[str]:
        shards = (
            self._table.items(
                KeyConditionExpression="pk = :pk",
                ExpressionAttributeValues={":pk": text(_waiting_partition(key, shard))},
                ProjectionExpression="sk",
            )
            for shard in range(SHARDS)
        )
        found: dict[str, None] = {}
        for each in chain.from_iterable(shards):
            # One that waits for the second time, because a run died in between, is there twice.
            found[each["sk"]["S"].partition("#")[2]] = None
            if len(found) == limit:
                # A million may wait, and are not read for this.
                break
        return [*found]

    def remove(self, key: SubscriberKey, waiting: Sequence[BacklogOrder]) -> None:
        places = [each.place.partition("/") for each in waiting]
        self._table.delete_many(
            [{"pk": text(_waiting_partition(key, int(shard))), "sk": text(sk)} for shard, _, sk in places]
        )

    def _waiting_in(self, key: SubscriberKey, shard: int, limit: int) -> Iterator[BacklogOrder]:
        items = self._table.items(
            KeyConditionExpression="pk = :pk",
            ExpressionAttributeValues={":pk": text(_waiting_partition(key, shard))},
            ConsistentRead=True,
            Limit=max(1, limit // SHARDS),
        )
        for item, order in paired(items, _decode_order):
            if order is not None:
                yield BacklogOrder(order=order, place=f"{shard}/{item['sk']['S']}")

    def wait_behind(self, before: DeliveryKey, order: WorkOrder) -> None:
        item = _behind_key(before) | {"order": text(replace(order, message=None).encode())}
        self._table.put(item | self._time_to_live())

    def behind(self, ended: DeliveryKey) -> WorkOrder | None:
        item = self._table.get(_behind_key(ended))
        return _decode_order(item) if item else None

    def take(self, before: DeliveryKey, order: WorkOrder, *, by_itself: bool) -> bool:
        taken_by = text("itself" if by_itself else "before")
        item = _behind_key(before) | {"order": text(replace(order, message=None).encode()), "taken_by": taken_by}
        try:
            self._table.put(
                item | self._time_to_live(),
                ConditionExpression="attribute_exists(pk) AND (attribute_not_exists(taken_by) OR taken_by = :by)",
                ExpressionAttributeValues={":by": taken_by},
            )
        except ConditionRefused:
            return False
        return True

    def let_go(self, ended: DeliveryKey) -> None:
        self._table.delete(_behind_key(ended))

    def note_slow(self, keys: Sequence[tuple[str, str, str]], until: int) -> None:
        rounded = -(-until // NOTED_TO_MS) * NOTED_TO_MS
        for key in keys:
            place = {"pk": text("SLOW"), "sk": text(f"{rounded:015d}#{'#'.join(key)}")}
            self._table.put(place | {"ttl": number(rounded // 1000)})

    def slow(self, now: int, limit: int) -> dict[tuple[str, str, str], int]:
        """One page of one partition: a note per slow subscriber and ten minutes is not much."""
        items = self._table.items(
            KeyConditionExpression="pk = :pk AND sk > :now",
            ExpressionAttributeValues={":pk": text("SLOW"), ":now": text(f"{now:015d}")},
            ScanIndexForward=False,
            Limit=limit,
        )
        found: dict[tuple[str, str, str], int] = {}
        for key, until in readable(islice(items, limit), _decode_slow):
            found.setdefault(key, until)
        return found

    def _time_to_live(self) -> Item:
        return {"ttl": number(self._clock.now() // 1000 + KEPT_S)}


def _name(key: SubscriberKey) -> str:
    return f"{key.project}#{key.queue_uid}#{key.subscriber_id}"


def _health_key(key: SubscriberKey) -> Item:
    name = f"{key.queue_uid}#{key.subscriber_id}"
    return {"pk": text(f"HEALTH#{key.project}#{zlib.crc32(name.encode()) % LISTS}"), "sk": text(name)}


def _turn_key(key: FlowKey) -> Item:
    return {"pk": text(f"FLOW#{key.project}#{key.name}"), "sk": text("TURN")}


def _line(key: FlowKey) -> str:
    return f"LINE#{key.project}#{key.name}"


def _aside(until: int) -> str:
    """Where those stand who are out of reach until then: behind everybody else, whatever anybody's clock says."""
    return f"~{until:015d}"


def _tended_key(key: FlowKey) -> Item:
    name = f"{key.project}#{key.name}"
    return {"pk": text(f"LINES#{zlib.crc32(name.encode()) % LISTS}"), "sk": text(name)}


def _behind_key(before: DeliveryKey) -> Item:
    return {"pk": text(f"BEHIND#{'#'.join(before)}"), "sk": text("BEHIND")}


def _list_key(key: SubscriberKey) -> Item:
    return {"pk": text(f"CIRCUITS#{zlib.crc32(_name(key).encode()) % LISTS}"), "sk": text(_name(key))}


def _waiting_partition(key: SubscriberKey, shard: int) -> str:
    return f"WAITING#{_name(key)}#{shard}"


@decodes
def _decode_order(item: Item) -> WorkOrder:
    return WorkOrder.decode(item["order"]["S"])


@decodes
def _decode_tended(item: Item) -> tuple[FlowKey, int]:
    project, _, name = item["sk"]["S"].partition("#")
    return FlowKey(project, name), int(item["added_at"]["N"])


@decodes
def _decode_listed(item: Item) -> SubscriberKey:
    project, queue_uid, subscriber_id = item["sk"]["S"].split("#", 2)
    return SubscriberKey(project=project, queue=item["queue"]["S"], queue_uid=queue_uid, subscriber_id=subscriber_id)


@decodes
def _decode_slow(item: Item) -> tuple[tuple[str, str, str], int]:
    until, project, queue_uid, subscriber_id = item["sk"]["S"].split("#", 3)
    return (project, queue_uid, subscriber_id), int(until)


def _encode_health(health: Health) -> Item:
    item = _health_key(health.key) | {"queue": text(health.key.queue), "state": text(health.state)}
    item |= {name: number(getattr(health, name)) for name in _COUNTS}
    if health.claim:
        item["claim"] = text(health.claim)
    return item if health.failing_since is None else item | {"failing_since": number(health.failing_since)}


@decodes
def decode_health(item: Item) -> Health:
    """The health in a table item."""
    queue_uid, _, subscriber_id = item["sk"]["S"].partition("#")
    project = item["pk"]["S"].split("#")[1]
    key = SubscriberKey(project=project, queue=item["queue"]["S"], queue_uid=queue_uid, subscriber_id=subscriber_id)
    return _decode_health(item, key)


@decodes
def _decode_health(item: Item, key: SubscriberKey) -> Health:
    return Health(
        key=key,
        state=CircuitState(item["state"]["S"]),
        failing_since=numbers(item, "failing_since"),
        claim=item["claim"]["S"] if "claim" in item else "",
        **{name: int(item[name]["N"]) for name in _COUNTS},
    )


def _encode_terms(terms: Terms) -> Item:
    fields: Item = {"longest_ms": number(terms.longest_ms)}
    if terms.limits.rate_per_s is not None:
        fields["rate_per_s"] = {"N": str(Decimal(str(terms.limits.rate_per_s)))}
    if terms.limits.concurrency is not None:
        fields["concurrency"] = number(terms.limits.concurrency)
    return {"M": fields}


def _decode_terms(holder: Item) -> Terms:
    fields: Item = holder["M"]
    rate = float(fields["rate_per_s"]["N"]) if "rate_per_s" in fields else None
    limits = Limits(rate_per_s=rate, concurrency=numbers(fields, "concurrency"))
    return Terms(limits=limits, longest_ms=int(fields["longest_ms"]["N"]))


@decodes
def _decode_flow(item: Item, *, before: bool) -> LeaseState:
    """The state of a flow, as stored or (``before``) as it was before the lease was taken."""
    until = int(item["before" if before else "until"]["N"])
    return LeaseState(
        terms=_decode_terms(item["terms"]),
        until=until,
        mark=numbers(item, "mark") or 0,
        # Whoever had it and never gave it back has left nothing but its end.
        places=numbers(item, "places") or (1 if until else 0),
        woken_at=numbers(item, "called_at") or 0,
    )


def _standing(key: FlowKey, place: str, orders: Sequence[WorkOrder]) -> Item:
    """Only what tells the orders apart is stored for each: their number decides what a place costs."""
    first = orders[0]
    return {
        "pk": text(_line(key)),
        "sk": text(place),
        "queue": text(first.queue),
        "queue_uid": text(first.key.queue_uid),
        "subscriber": text(first.key.subscriber_id),
        "orders": texts([f"{each.key.message_id}{_MANUAL if each.manual else ''}" for each in orders]),
    }


@decodes
def _decode_place(item: Item, key: FlowKey) -> BacklogEntry:
    queue, queue_uid, subscriber = (item[name]["S"] for name in ("queue", "queue_uid", "subscriber"))
    given = [each["S"] for each in item["orders"]["L"]]
    orders = tuple(
        WorkOrder(
            key=DeliveryKey(key.project, queue_uid, each.removesuffix(_MANUAL), subscriber),
            queue=queue,
            manual=each.endswith(_MANUAL),
        )
        for each in given
    )
    return BacklogEntry(place=item["sk"]["S"], orders=orders)
