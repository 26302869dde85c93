"""A model of DynamoDB: tables with conditional writes, consistent and eventually consistent reads, lagging indexes,
streams and time to live.

What is modelled after which rule, and what is not: ``docs/simulation.md``. The contract tests of the stores run against
this model too.
"""

from __future__ import annotations

import bisect
import math
import re
import zlib
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from functools import cache
from hashlib import sha256
from types import MappingProxyType
from typing import Any

from botocore.exceptions import ClientError

from simulation.dynamodb_requests import fault, of_item
from simulation.expressions import Item, condition, found_at, key_values, plain, update
from simulation.items import Pace, item_bytes, pack, unpack

PAGE_BYTES = 1_000_000
"""A page of a query or scan ends at 1 MB."""

WRITE_UNIT_BYTES, READ_UNIT_BYTES = 1_024, 4_096
"""What a unit of capacity writes, or reads consistently; read eventually consistent it costs half."""

WRITES_PER_KEY, READS_PER_KEY = 1_000, 3_000
"""Units that a partition key takes within a second; what comes then is refused."""

IndexKey = tuple[Any, tuple[Any, tuple[Any, Any]]]
"""Partition of an index, and the place there: by sort key, then by the item's own keys."""

Kept = tuple[bytes, Item | None]
"""An item as it is kept, packed and unpacked; empty and None when there is none."""

_INSERTION = re.compile(r'INSERT INTO "([^"]+)" VALUE \{(.*)\}')
_ATTRIBUTE = re.compile(r"'([^']+)': \?")

THROTTLED = "ThrottlingException"

TOKEN_MS = 600_000
"""How long a transaction's token is remembered."""


MOST_ITEM_BYTES = 409_600
"""The largest item."""
MOST_READ, MOST_WRITTEN, MOST_IN_TRANSACTION = 100, 25, 100
"""Keys of a BatchGetItem, requests of a BatchWriteItem or statements of a batch, writes of a transaction."""
RETURNED = {
    "PutItem": {"NONE", "ALL_OLD"},
    "DeleteItem": {"NONE", "ALL_OLD"},
    "UpdateItem": {"NONE", "ALL_OLD", "UPDATED_OLD", "ALL_NEW", "UPDATED_NEW"},
}
"""What each operation takes for ``ReturnValues``."""


MOST_TRANSACTION_BYTES, MOST_ANSWER_BYTES = 4 * 1_048_576, 16 * 1_048_576
"""All items of a transaction, and of the answer of a BatchGetItem."""
MOST_PARTITION_KEY_BYTES, MOST_SORT_KEY_BYTES = 2_048, 1_024
"""The longest keys, of tables and of indexes; none is empty."""


MOST_STALE_MS = 2_000
"""The greatest age of what a read that is not consistent shows."""

_Past = tuple[int, Any, Any, bytes]
"""When an item changed (epoch milliseconds), its keys, and what it was before."""


def valid(holds: bool, operation: str) -> None:
    """Refuse a request that DynamoDB would not take.

    Raises:
        ClientError: It does not hold.
    """
    if not holds:
        raise service_error("ValidationException", operation)


def _fits(item: Item) -> bool:
    if next(of_item(item), None) is not None:
        return False
    # Packed it is larger than as DynamoDB counts, so most are not counted.
    return len(pack(item)) <= MOST_ITEM_BYTES or item_bytes(item) <= MOST_ITEM_BYTES


def _has_keys(item: Item, schema: Schema) -> bool:
    """Whether an item, or a key, can be found under its keys, and those that it has of indexes."""
    keys = [("pk", "sk"), *((each.partition, each.sort) for each in schema.indexes)]
    return all(
        name not in item or 0 < len(_text(item[name])) <= most
        for names in keys
        for name, most in zip(names, (MOST_PARTITION_KEY_BYTES, MOST_SORT_KEY_BYTES), strict=True)
    )


def _text(value: Mapping[str, Any]) -> bytes:
    """The bytes of a key; a number is never too long."""
    return str(value["S"]).encode(errors="surrogatepass") if "S" in value else b"0"


def service_error(code: str, operation: str, **more: Any) -> ClientError:
    """The SDK's error for an error answer."""
    response: Any = {"Error": {"Code": code, "Message": code}, **more}
    return ClientError(response, operation)


def read_insertion(statement: str, parameters: Sequence[Any]) -> tuple[str, Item]:
    """The table and the item of an insertion, the only statement of PartiQL that the hub makes.

    Raises:
        ValueError: It is another.
    """
    table, names = _insertion(statement)
    return table, dict(zip(names, parameters, strict=True))


@cache
def _insertion(statement: str) -> tuple[str, Sequence[str]]:
    found = _INSERTION.fullmatch(statement)
    if found is None:
        raise ValueError(statement)
    return found[1], _ATTRIBUTE.findall(found[2])


@dataclass(frozen=True)
class Index:
    """A secondary index.

    Attributes:
        name: Its name.
        partition: Attribute of its partition key.
        sort: Attribute of its sort key.
        attributes: Those it has besides the keys; None for all.
        local: Whether it is a local one, which is never late.
    """

    name: str
    partition: str
    sort: str
    attributes: tuple[str, ...] | None = ()
    local: bool = False

    def shown(self, item: Item) -> Item:
        """What it has of an item."""
        if self.attributes is None:
            return item
        kept = {"pk", "sk", self.partition, self.sort, *self.attributes}
        return {name: value for name, value in item.items() if name in kept}


@dataclass(frozen=True)
class Schema:
    """A table as the template says it.

    Attributes:
        name: Its name.
        indexes: Secondary indexes.
        streams: Whether it has a stream (new and old images).
        ttl: Attribute of the time to live, if it has one.
    """

    name: str
    indexes: tuple[Index, ...] = ()
    streams: bool = False
    ttl: str | None = None


@dataclass(slots=True)
class Change:
    """A change of an item.

    Attributes:
        table: Its table.
        before: The item as it was; None when there was none.
        after: The item as it is; None when it is gone.
        packed_before: ``before``, packed; empty for none.
        packed_after: ``after``, packed; empty for none.
        expired: Whether the time to live caused it.
    """

    table: str
    before: Item | None
    after: Item | None
    packed_before: bytes
    packed_after: bytes
    expired: bool

    def packed_only(self) -> Change:
        """The same, for keeping."""
        return Change(self.table, None, None, self.packed_before, self.packed_after, self.expired)


Changed = Callable[[Change], None]


class _Sorted:
    """Items of one partition, packed; reading shows them in the order of their sort keys."""

    __slots__ = ("_order", "items")

    def __init__(self, items: Mapping[Any, bytes] = MappingProxyType({})) -> None:
        self.items: dict[Any, bytes] = {**items}
        self._order: list[Any] | None = None

    def put(self, key: Any, packed: bytes) -> None:
        if key not in self.items:
            self._order = None
        self.items[key] = packed

    def remove(self, key: Any) -> None:
        if self.items.pop(key, None) is not None:
            self._order = None

    def keys(self) -> list[Any]:
        """The keys in order. They are sorted when read: most partitions are written often and read rarely."""
        if self._order is None:
            self._order = sorted(self.items)
        return self._order

    def read(self, after: Any = None, *, backwards: bool = False) -> Iterator[Item]:
        """Its items in order, those after a key."""
        keys = self.keys()
        if backwards:
            rest = range((len(keys) if after is None else bisect.bisect_left(keys, after)) - 1, -1, -1)
        else:
            rest = range(0 if after is None else bisect.bisect_right(keys, after), len(keys))
        for place in rest:
            yield unpack(self.items[keys[place]])


@dataclass(slots=True)
class _Move:
    """What a change of an item means to an index.

    Attributes:
        late: The index.
        left: The key that the item leaves.
        taken: The one it takes.
        written: The partitions that are written to.
    """

    late: _Late
    left: IndexKey | None
    taken: IndexKey | None
    written: Sequence[str]


@dataclass
class _Late:
    """An index, and changes it does not show yet.

    Attributes:
        coming: When each is shown (epoch milliseconds), the key that the item leaves, the one it takes, and the item.
        writes: Units written to each partition.
        reads: Units read from each partition.
    """

    index: Index
    partitions: dict[Any, _Sorted] = field(default_factory=dict)
    coming: deque[tuple[int, IndexKey | None, IndexKey | None, bytes]] = field(default_factory=deque)
    writes: Pace = field(default_factory=Pace)
    reads: Pace = field(default_factory=Pace)

    def move(self, change: Change) -> _Move | None:
        """What a change means to the index; None when it is not about items in it."""
        left, taken = self.key(change.before), self.key(change.after)
        if left is None and taken is None:
            return None
        written = () if left == taken and self._shows_same(change) else dict.fromkeys((left, taken))
        return _Move(self, left, taken, [readable(each[0]) for each in written if each is not None])

    def _shows_same(self, change: Change) -> bool:
        # Of what has the same keys, an index of keys shows the same.
        index = self.index
        return index.attributes == () or index.shown(change.before or {}) == index.shown(change.after or {})

    def change(self, move: _Move, packed: bytes, now_ms: int, lag_ms: int) -> None:
        """Show a change when its time has come."""
        # An index shows changes of a table in their order.
        shows_at = max(now_ms + lag_ms, self.coming[-1][0] if self.coming else 0)
        self.coming.append((shows_at, move.left, move.taken, packed))
        self.catch_up(now_ms)
        for partition in move.written:
            self.writes.add(partition, now_ms)

    def catch_up(self, now_ms: int) -> None:
        while self.coming and self.coming[0][0] <= now_ms:
            _, left, taken, packed = self.coming.popleft()
            if left is not None:
                self.partitions[left[0]].remove(left[1])
            if taken is not None:
                self.partitions.setdefault(taken[0], _Sorted()).put(taken[1], packed)

    def key(self, item: Item | None) -> IndexKey | None:
        """Partition and place of an item in the index; None when it is not in it."""
        index = self.index
        if item is None or index.partition not in item or index.sort not in item:
            return None
        own = plain(item["pk"]), plain(item["sk"])
        return plain(item[index.partition]), (plain(item[index.sort]), own)


class Table:
    """One table.

    Args:
        schema: Its keys and indexes.
        now_ms: DynamoDB's own clock, epoch milliseconds.
        lag_ms: How long an index takes to show the write just made, milliseconds.
        changed: Told of each change.
        refuses: Whether it refuses requests beyond what a partition key takes in a second.

    Attributes:
        writes: Units written to each partition.
        reads: Units read from each partition.
        refused: Writes and reads that were refused because a key had reached its limit.
    """

    def __init__(
        self,
        schema: Schema,
        *,
        now_ms: Callable[[], int],
        lag_ms: Callable[[], int],
        changed: Changed,
        refuses: bool,
    ) -> None:
        self.schema = schema
        self.writes, self.reads = Pace(), Pace()
        self.refused = 0
        self._refuses = refuses
        self._now_ms = now_ms
        self._lag_ms = lag_ms
        self._changed = changed
        self._partitions: dict[Any, _Sorted] = {}
        self._late = {each.name: _Late(each) for each in schema.indexes}
        self._expires_at = math.inf
        self._past: deque[_Past] = deque()

    def as_it_was(self, ago_ms: int) -> Table:
        """The table as it was so many milliseconds ago (:data:`MOST_STALE_MS` at most), for reading."""
        then = self._now_ms() - ago_ms
        copied = copy(self)
        copied._partitions = dict(self._partitions)
        mended: set[Any] = set()
        for at_ms, pk, sk, packed in reversed(self._past):
            if at_ms <= then:
                break
            if pk not in mended:
                mended.add(pk)
                copied._partitions[pk] = _Sorted(self._partitions[pk].items if pk in self._partitions else {})
            if packed:
                copied._partitions[pk].put(sk, packed)
            else:
                copied._partitions[pk].remove(sk)
        return copied

    def item(self, key: Item) -> Item | None:
        """An item as it is."""
        return self.kept(key)[1]

    def kept(self, key: Item) -> Kept:
        """An item as it is, and as it is kept."""
        partition = self._partitions.get(plain(key["pk"]))
        packed = partition.items.get(plain(key["sk"]), b"") if partition else b""
        return packed, unpack(packed) if packed else None

    def get(self, key: Item, more: Mapping[str, Any]) -> Item | None:
        """An item as it is, counted as a read."""
        packed, item = self.kept(key)
        # Packed it is larger than as DynamoDB counts, so most are not counted.
        size = item_bytes(item) if item and len(packed) > READ_UNIT_BYTES else len(packed)
        self.count_read(key["pk"], size, more, None)
        return item

    def store(self, item: Item, kept: Kept, *, transaction: bool = False) -> None:
        """Put an item whole in place of what is kept. In a transaction that costs twice, and is not refused.

        Raises:
            ClientError: A key has had what it takes in this second.
        """
        (old, before), packed = kept, pack(item)
        change = Change(self.schema.name, before, item, old, packed, expired=False)
        moves = self._moves(change)
        units = max(_write_units(old, before), _write_units(packed, item))
        self._count_change(item, moves, units, transaction=transaction)
        self._partitions.setdefault(plain(item["pk"]), _Sorted()).put(plain(item["sk"]), packed)
        if self.schema.ttl in item:
            self._expires_at = min(self._expires_at, plain(item[self.schema.ttl]))
        self._tell(change, moves)

    def drop(self, key: Item, kept: Kept, *, expired: bool = False, transaction: bool = False) -> None:
        """Remove an item that is kept, as :meth:`store` puts it. What its time to live does costs nothing.

        Raises:
            ClientError: A key has had what it takes in this second.
        """
        old, before = kept
        change = Change(self.schema.name, before, None, old, b"", expired=expired)
        moves = self._moves(change)
        if not expired:
            self._count_change(key, moves, _write_units(old, before), transaction=transaction)
        if before is not None:
            partition = self._partitions[plain(key["pk"])]
            partition.remove(plain(key["sk"]))
            if not partition.items:
                del self._partitions[plain(key["pk"])]
            self._tell(change, moves)

    def _moves(self, change: Change) -> list[_Move]:
        return [move for late in self._late.values() if (move := late.move(change))]

    def _count_change(self, key: Item, moves: Sequence[_Move], units: int, *, transaction: bool) -> None:
        """Count what a change costs its partition, unless that or one of the indexes refuses it."""
        if transaction:
            self.count_write(key, 2 * units)
            return
        now = self._now_ms()
        full = self.writes.within(readable(plain(key["pk"])), now) >= WRITES_PER_KEY or any(
            move.late.writes.within(partition, now) >= WRITES_PER_KEY for move in moves for partition in move.written
        )
        if full:
            self.refuse()
        self.count_write(key, units)

    def refuse(self) -> None:
        """Refuse a read or a write, if it refuses any.

        Raises:
            ClientError: It does.
        """
        if not self._refuses:
            return
        self.refused += 1
        raise service_error(THROTTLED, "DynamoDB")

    def count_write(self, key: Item, units: float = 1) -> None:
        """Count what a write costs its partition; one that is refused costs as well."""
        self.writes.add(readable(plain(key["pk"])), self._now_ms(), units)

    def count_read(self, partition: Any, size: int, more: Mapping[str, Any], index: Index | None) -> None:
        """Count what reading this many bytes costs a partition of the table or of an index.

        Raises:
            ClientError: It has had what it takes in this second.
        """
        units = max(1, math.ceil(size / READ_UNIT_BYTES))
        reads = self.reads if index is None else self._late[index.name].reads
        if reads.within(readable(plain(partition)), self._now_ms()) >= READS_PER_KEY:
            self.refuse()
        reads.add(readable(plain(partition)), self._now_ms(), units if more.get("ConsistentRead") else units / 2)

    def everything(self) -> Iterator[Item]:
        """All items, those of one partition together."""
        for partition in list(self._partitions.values()):
            for key in partition.keys():  # noqa: SIM118 (not a dictionary's)
                if key in partition.items:
                    yield unpack(partition.items[key])

    def read(
        self, partition: Any, index: Index | None = None, *, after: Item | None = None, backwards: bool = False
    ) -> Iterator[Item]:
        """The items of a partition, of the table or as an index shows them, in order, those after a key."""
        if index is None:
            found = self._partitions.get(plain(partition))
            place: Any = after and plain(after["sk"])
        else:
            late = self._late[index.name]
            late.catch_up(self._now_ms())
            found = late.partitions.get(plain(partition))
            key = late.key(after)
            place = key and key[1]
        return found.read(place, backwards=backwards) if found else iter(())

    def segment(self, number: int, count: int, *, after: Item | None = None) -> Iterator[Item]:
        """One of several segments of the table, the items after a key."""
        # Items come in the order their partitions were made. Where the item to start from is gone, nothing follows.
        waits_for = after and (plain(after["pk"]), plain(after["sk"]))
        for own, partition in self._partitions.items():
            if count > 1 and zlib.crc32(own) % count != number:
                continue
            for key in partition.keys():  # noqa: SIM118
                if waits_for is None:
                    yield unpack(partition.items[key])
                elif waits_for == (own, key):
                    waits_for = None

    def expire(self, chosen: Callable[[], bool]) -> int:
        """Remove some of the items whose time to live is over; returns how many."""
        attribute, now_s = self.schema.ttl, self._now_ms() // 1000
        if attribute is None or self._expires_at >= now_s:
            return 0
        old, self._expires_at = [], math.inf
        for each in self.everything():
            if attribute in each:
                expires_at = plain(each[attribute])
                self._expires_at = min(self._expires_at, expires_at)
                if expires_at < now_s:
                    old.append(each)
        gone = [each for each in old if chosen()]
        for each in gone:
            self.drop(each, self.kept(each), expired=True)
        return len(gone)

    def lose(self, project: str) -> int:
        """Lose all items of a project, as in a disaster: the stream says nothing of it; returns how many."""
        lost = [each for each in self.everything() if readable(plain(each["pk"])).startswith(f"{project}#")]
        for each in lost:
            change = Change(self.schema.name, each, None, self.kept(each)[0], b"", expired=False)
            for move in self._moves(change):
                move.late.change(move, b"", self._now_ms(), 0)
            self._partitions[plain(each["pk"])].remove(plain(each["sk"]))
        self._past.clear()
        return len(lost)

    def paces(self) -> Iterator[tuple[str, Pace, Pace]]:
        """Name, writes and reads of the table and of each index."""
        yield self.schema.name, self.writes, self.reads
        for name, late in self._late.items():
            yield f"{self.schema.name}, index {name}", late.writes, late.reads

    def _tell(self, change: Change, moves: Sequence[_Move]) -> None:
        now = self._now_ms()
        item = change.after or change.before or {}
        self._past.append((now, plain(item["pk"]), plain(item["sk"]), change.packed_before))
        while self._past[0][0] < now - MOST_STALE_MS:
            self._past.popleft()
        for move in moves:
            move.late.change(move, change.packed_after, now, 0 if move.late.index.local else self._lag_ms())
        self._changed(change)


def _write_units(packed: bytes, item: Item | None) -> int:
    """What an item costs to write: 1 KB each. Packed it is larger than as DynamoDB counts, so most are not counted."""
    if item is None or len(packed) <= WRITE_UNIT_BYTES:
        return 1
    return math.ceil(item_bytes(item) / WRITE_UNIT_BYTES)


def readable(key: Any) -> str:
    """A key's value in readable form."""
    return key.decode(errors="replace") if isinstance(key, bytes) else str(key)


class DynamoDB:
    """The service: the operations of the low-level client that the hub uses.

    Args:
        schemas: The tables.
        now_ms: Its clock, epoch milliseconds.
        lag_ms: How long an index takes to show a write.
        stale_ms: How old the items are that an eventually consistent read of a table shows; asked for each such call.
        undone: Asked for each entry of a batch: whether it is left undone this time.
        changed: See :class:`Table`.
        refuses: See :class:`Table`.
    """

    def __init__(
        self,
        schemas: Sequence[Schema],
        *,
        now_ms: Callable[[], int],
        lag_ms: Callable[[], int] = lambda: 0,
        stale_ms: Callable[[], int] = lambda: 0,
        undone: Callable[[], bool] = lambda: False,
        changed: Changed = lambda _: None,
        refuses: bool = True,
    ) -> None:
        self._now_ms = now_ms
        self._stale_ms = stale_ms
        self._undone = undone
        self._held: Counter[tuple[str, Any, Any]] = Counter()
        self.tables = {
            each.name: Table(each, now_ms=now_ms, lag_ms=lag_ms, changed=changed, refuses=refuses) for each in schemas
        }
        self._tokens: dict[str, tuple[int, bytes]] = {}

    def get_item(self, *, TableName: str, Key: Item, **more: Any) -> dict[str, Any]:  # noqa: N803 (the service's)
        """GetItem, consistent."""
        table = self.tables[TableName]
        valid(_has_keys(Key, table.schema), "GetItem")
        item = self._seen(table, more).get(Key, more)
        return {} if item is None else {"Item": item}

    def put_item(self, *, TableName: str, Item: Item, **more: Any) -> dict[str, Any]:  # noqa: N803
        """PutItem."""
        table = self.tables[TableName]
        _well_formed(more, "PutItem")
        valid(_fits(Item) and _has_keys(Item, table.schema), "PutItem")
        self._check_free(TableName, Item, "PutItem")
        kept = table.kept(Item)
        self._check(kept[1], more, "PutItem")
        table.store(Item, kept)
        return _returned(kept[1], Item, more)

    def update_item(self, *, TableName: str, Key: Item, UpdateExpression: str, **more: Any) -> dict[str, Any]:  # noqa: N803
        """UpdateItem."""
        table = self.tables[TableName]
        _well_formed({**more, "UpdateExpression": UpdateExpression}, "UpdateItem")
        valid(_has_keys(Key, table.schema), "UpdateItem")
        self._check_free(TableName, Key, "UpdateItem")
        kept = table.kept(Key)
        self._check(kept[1], more, "UpdateItem")
        after = self._updated(kept[1], Key, UpdateExpression, more)
        valid(_fits(after) and _has_keys(after, table.schema), "UpdateItem")
        table.store(after, kept)
        return _returned(kept[1], after, more)

    def delete_item(self, *, TableName: str, Key: Item, **more: Any) -> dict[str, Any]:  # noqa: N803
        """DeleteItem."""
        table = self.tables[TableName]
        _well_formed(more, "DeleteItem")
        valid(_has_keys(Key, table.schema), "DeleteItem")
        self._check_free(TableName, Key, "DeleteItem")
        kept = table.kept(Key)
        self._check(kept[1], more, "DeleteItem")
        table.drop(Key, kept)
        return _returned(kept[1], None, more)

    def batch_get_item(self, *, RequestItems: Mapping[str, Any]) -> dict[str, Any]:  # noqa: N803
        """BatchGetItem; some keys may be left unprocessed."""
        for asked in RequestItems.values():
            _valid_batch(asked["Keys"], MOST_READ, "BatchGetItem")
        valid(sum(len(asked["Keys"]) for asked in RequestItems.values()) <= MOST_READ, "BatchGetItem")
        responses: dict[str, list[Item]] = {}
        undone: dict[str, Any] = {}
        size = 0
        for name, asked in RequestItems.items():
            table = self.tables[name]
            valid(all(_has_keys(each, table.schema) for each in asked["Keys"]), "BatchGetItem")
            seen = self._seen(table, asked)
            rest = [each for each in asked["Keys"] if self._undone()]
            found: list[Item | None] = []
            for each in asked["Keys"]:
                if each in rest:
                    continue
                try:
                    item = seen.get(each, asked)
                except ClientError:
                    rest.append(each)
                    continue
                size += item_bytes(item) if item else 0
                if size > MOST_ANSWER_BYTES:
                    rest.append(each)
                else:
                    found.append(item)
            responses[name] = [each for each in found if each is not None]
            if rest:
                undone[name] = {**asked, "Keys": rest}
        return {"Responses": responses} | ({"UnprocessedKeys": undone} if undone else {})

    def batch_write_item(self, *, RequestItems: Mapping[str, Any]) -> dict[str, Any]:  # noqa: N803
        """BatchWriteItem; some requests may be left unprocessed."""
        ((name, requests),) = RequestItems.items()
        written = [each.get("PutRequest", {}).get("Item") or each["DeleteRequest"]["Key"] for each in requests]
        _valid_batch(written, MOST_WRITTEN, "BatchWriteItem")
        table = self.tables[name]
        valid(all(_fits(each) and _has_keys(each, table.schema) for each in written), "BatchWriteItem")
        rest = [each for each in requests if self._undone()]
        for each in requests:
            if each in rest:
                continue
            try:
                if "PutRequest" in each:
                    table.store(each["PutRequest"]["Item"], table.kept(each["PutRequest"]["Item"]))
                else:
                    table.drop(each["DeleteRequest"]["Key"], table.kept(each["DeleteRequest"]["Key"]))
            except ClientError:
                rest.append(each)
        return {"UnprocessedItems": {name: rest}} if rest else {}

    def batch_execute_statement(self, *, Statements: Sequence[Any]) -> dict[str, Any]:  # noqa: N803
        """BatchExecuteStatement of insertions; some may be refused for lack of capacity."""
        valid(0 < len(Statements) <= MOST_WRITTEN, "BatchExecuteStatement")
        return {"Responses": [self._inserted(**each) for each in Statements]}

    def _inserted(self, *, Statement: str, Parameters: Sequence[Any]) -> dict[str, Any]:  # noqa: N803
        """Insert one item."""
        name, item = read_insertion(Statement, Parameters)
        table = self.tables[name]
        if not (_fits(item) and _has_keys(item, table.schema)):
            return {"Error": {"Code": "ValidationError"}, "TableName": name}
        if self._undone():
            return {"Error": {"Code": "ThrottlingError"}, "TableName": name}
        if self._is_held(name, item):
            return {"Error": {"Code": "TransactionConflict"}, "TableName": name}
        kept = table.kept(item)
        if kept[1] is not None:
            table.count_write(item)
            return {"Error": {"Code": "DuplicateItem"}, "TableName": name}
        try:
            table.store(item, kept)
        except ClientError:
            return {"Error": {"Code": "ThrottlingError"}, "TableName": name}
        return {"TableName": name}

    def transact_write_items(self, *, TransactItems: Sequence[Any], ClientRequestToken: str) -> dict[str, Any]:  # noqa: N803
        """TransactWriteItems: all or none, once for each token."""
        now = self._now_ms()
        made_at, answer = self._tokens.get(ClientRequestToken, (-TOKEN_MS, b""))
        asked = sha256(repr(TransactItems).encode()).digest()
        if now - made_at < TOKEN_MS:
            if answer != asked:
                raise service_error("IdempotentParameterMismatchException", "TransactWriteItems")
            return {}
        writes = [(kind, write) for each in TransactItems for kind, write in each.items()]
        for _, write in writes:
            _well_formed(write, "TransactWriteItems")
        _valid_batch([_key_of(*each) for each in writes], MOST_IN_TRANSACTION, "TransactWriteItems", by_table=writes)
        items = [write["Item"] for kind, write in writes if kind == "Put"]
        valid(all(map(_fits, items)) and sum(map(item_bytes, items)) <= MOST_TRANSACTION_BYTES, "TransactWriteItems")
        named = [_has_keys(_key_of(kind, write), self.tables[write["TableName"]].schema) for kind, write in writes]
        valid(all(named), "TransactWriteItems")
        busy = [self._is_held(write["TableName"], _key_of(kind, write)) for kind, write in writes]
        if any(busy):
            reasons = [{"Code": "TransactionConflict" if each else "None"} for each in busy]
            raise service_error("TransactionCanceledException", "TransactWriteItems", CancellationReasons=reasons)
        refused = [
            not self._holds(self.tables[write["TableName"]].item(_key_of(kind, write)), write) for kind, write in writes
        ]
        if any(refused):
            reasons = [{"Code": "ConditionalCheckFailed" if each else "None"} for each in refused]
            raise service_error("TransactionCanceledException", "TransactWriteItems", CancellationReasons=reasons)
        for kind, write in writes:
            table, key = self.tables[write["TableName"]], _key_of(kind, write)
            kept = table.kept(key)
            if kind == "Put":
                table.store(key, kept, transaction=True)
            elif kind == "Update":
                table.store(self._updated(kept[1], key, write["UpdateExpression"], write), kept, transaction=True)
            elif kind == "Delete":
                table.drop(key, kept, transaction=True)
            else:
                table.count_write(key, 2)
        self._tokens[ClientRequestToken] = now, asked
        return {}

    def query(self, *, TableName: str, KeyConditionExpression: str, **more: Any) -> dict[str, Any]:  # noqa: N803
        """Query of a table or an index, by pages."""
        table = self.tables[TableName]
        names, values = _named(more)
        _, partition = key_values(KeyConditionExpression, names, values)
        valid(0 < len(_text(partition)) <= MOST_PARTITION_KEY_BYTES, "Query")
        _, *others = [values[each] for each in re.findall(r":\w+", KeyConditionExpression)]
        valid(all(0 < len(_text(each)) <= MOST_SORT_KEY_BYTES for each in others), "Query")
        index = next((each for each in table.schema.indexes if each.name == more.get("IndexName")), None)
        _well_formed({**more, "KeyConditionExpression": KeyConditionExpression}, "Query", index, query=True)
        start = more.get("ExclusiveStartKey")
        if start is not None:
            # "The provided starting key is outside query boundaries based on provided conditions".
            valid(start.keys() == _keys_of(index) and _has_keys(start, table.schema), "Query")
            valid(condition(KeyConditionExpression)(start, names, values), "Query")
        items = self._seen(table, more if index is None else {"ConsistentRead": True}).read(
            partition,
            index,
            after=more.get("ExclusiveStartKey"),
            backwards=more.get("ScanIndexForward") is False,
        )
        answer, page = self._page(_range(items, KeyConditionExpression, names, values), index, more)
        size = sum(item_bytes(each if index is None else index.shown(each)) for each in page)
        table.count_read(partition, size, more, index)
        return answer

    def scan(self, *, TableName: str, **more: Any) -> dict[str, Any]:  # noqa: N803
        """Scan of a table, of a segment of it or of an index; it is not counted for any key."""
        table = self.tables[TableName]
        index = next((each for each in table.schema.indexes if each.name == more.get("IndexName")), None)
        _well_formed(more, "Scan", index)
        items = self._seen(table, more).segment(
            more.get("Segment", 0), more.get("TotalSegments", 1), after=more.get("ExclusiveStartKey")
        )
        if index is not None:
            items = (each for each in items if index.partition in each and index.sort in each)
        return self._page(items, index, more)[0]

    def _page(
        self, items: Iterator[Item], index: Index | None, more: Mapping[str, Any]
    ) -> tuple[dict[str, Any], Sequence[Item]]:
        """The answer that a page of some items makes, and the page."""
        names, values = _named(more)
        page: list[Item] = []
        limit, size, ends = more.get("Limit"), 0, True
        for each in items:
            if len(page) == limit or size >= PAGE_BYTES:
                ends = False
                break
            size += _size(each)
            page.append(each)
        answer: dict[str, Any] = {}
        if page and (not ends or len(page) == limit):
            last = page[-1]
            answer["LastEvaluatedKey"] = {each: last[each] for each in _keys_of(index)}
        found = page
        if "FilterExpression" in more:
            holds = condition(more["FilterExpression"])
            found = [each for each in found if holds(each, names, values)]
        if more.get("Select") == "COUNT":
            return answer | {"Count": len(found)}, page
        if index is not None:
            found = [index.shown(each) for each in found]
        if "ProjectionExpression" in more:
            wanted = [each.strip() for each in more["ProjectionExpression"].split(",")]
            wanted = [names.get(each, each) for each in wanted]
            found = [{name: value for name, value in each.items() if name in wanted} for each in found]
        return answer | {"Items": found, "Count": len(found)}, page

    def lose(self, table: str, project: str) -> int:
        """Have a table lose all items of a project; returns how many."""
        return self.tables[table].lose(project)

    def hold(self, writes: Sequence[Any]) -> Callable[[], None]:
        """Begin a transaction: until what is returned is called, other writes to its items conflict with it."""
        keys = [
            (write["TableName"], plain(key["pk"]), plain(key["sk"]))
            for each in writes
            for kind, write in each.items()
            for key in [_key_of(kind, write)]
        ]
        self._held.update(keys)

        def release() -> None:
            while keys:
                self._held[keys.pop()] -= 1

        return release

    def _is_held(self, table: str, key: Item) -> bool:
        return self._held[table, plain(key["pk"]), plain(key["sk"])] > 0

    def _check_free(self, table: str, key: Item, operation: str) -> None:
        if self._is_held(table, key):
            raise service_error("TransactionConflictException", operation)

    def _seen(self, table: Table, more: Mapping[str, Any]) -> Table:
        """A table as a read sees it."""
        ago_ms = 0 if more.get("ConsistentRead") else self._stale_ms()
        return table.as_it_was(ago_ms) if ago_ms else table

    @staticmethod
    def _holds(stored: Item | None, more: Mapping[str, Any]) -> bool:
        if "ConditionExpression" not in more:
            return True
        names, values = _named(more)
        return condition(more["ConditionExpression"])(stored or {}, names, values)

    def _check(self, stored: Item | None, more: Mapping[str, Any], operation: str) -> None:
        valid(more.get("ReturnValues", "NONE") in RETURNED[operation], operation)
        if not self._holds(stored, more):
            asked = more.get("ReturnValuesOnConditionCheckFailure") == "ALL_OLD" and stored is not None
            raise service_error("ConditionalCheckFailedException", operation, **({"Item": stored} if asked else {}))

    @staticmethod
    def _updated(stored: Item | None, key: Item, expression: str, more: Mapping[str, Any]) -> Item:
        names, values = _named(more)
        return update(expression)(stored or dict(key), names, values)


def _valid_batch(keys: Sequence[Item], most: int, operation: str, by_table: Sequence[Any] = ()) -> None:
    """Refuse a batch that is empty, too large, or names an item twice."""
    tables = [write["TableName"] for _, write in by_table] or [""] * len(keys)
    named = {(name, plain(each["pk"]), plain(each["sk"])) for name, each in zip(tables, keys, strict=True)}
    valid(0 < len(keys) <= most and len(named) == len(keys), operation)


def _keys_of(index: Index | None) -> set[str]:
    """The attributes of a key to start from."""
    return {"pk", "sk"} if index is None else {"pk", "sk", index.partition, index.sort}


def _well_formed(more: Mapping[str, Any], operation: str, index: Index | None = None, *, query: bool = False) -> None:
    """Refuse a request whose expressions DynamoDB would not take."""
    keys = ("pk", "sk") if index is None else (index.partition, index.sort)
    found = fault(more, keys, index=index is not None and not index.local, query=query)
    if found:
        raise service_error("ValidationException", operation, Why=found)


def _returned(before: Item | None, after: Item | None, more: Mapping[str, Any]) -> dict[str, Any]:
    """The answer to a write: what was asked for of the item."""
    asked = more.get("ReturnValues", "NONE")
    item = before if asked.endswith("_OLD") else after if asked.endswith("_NEW") else None
    return {} if item is None else {"Attributes": item}


def _named(more: Mapping[str, Any]) -> tuple[Mapping[str, str], Mapping[str, Any]]:
    return more.get("ExpressionAttributeNames", {}), more.get("ExpressionAttributeValues", {})


def _key_of(kind: str, write: Mapping[str, Any]) -> Item:
    item: Item = write["Item"] if kind == "Put" else write["Key"]
    return item


def _range(items: Iterator[Item], text: str, names: Mapping[str, str], values: Mapping[str, Any]) -> Iterator[Item]:
    """The items for which a key condition holds: they lie next to each other."""
    holds, began = condition(text), False
    for each in items:
        if holds(each, names, values):
            began = True
            yield each
        elif began:
            return


def _size(item: Item) -> int:
    """Roughly the size of an item in bytes: the body counts, the rest is small."""
    body = item.get("body")
    return 400 + (len(body.get("B", b"")) if isinstance(body, dict) else 0)


__all__ = ["DynamoDB", "Index", "Item", "Schema", "Table", "found_at", "service_error"]
