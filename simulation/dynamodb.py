"""A model of DynamoDB: tables with conditional writes, consistent and eventually consistent reads, lagging indexes,
streams and time to live.

What is modelled after which rule, and what is not: ``docs/simulation.md``. The contract tests of the stores run against
this model too.
"""

from __future__ import annotations

import bisect
import re
import zlib
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from botocore.exceptions import ClientError

from simulation.expressions import Item, condition, found_at, key_values, plain, update

PAGE_BYTES = 1_000_000
"""A page of a query or scan ends at 1 MB."""

_INSERTION = re.compile(r'INSERT INTO "([^"]+)" VALUE \{(.*)\}')
_ATTRIBUTE = re.compile(r"'([^']+)': \?")

TOKEN_MS = 600_000
"""How long a transaction's token is remembered."""


def service_error(code: str, operation: str, **more: Any) -> ClientError:
    """The SDK's error for an error answer."""
    response: Any = {"Error": {"Code": code, "Message": code}, **more}
    return ClientError(response, operation)


def read_insertion(statement: str, parameters: Sequence[Any]) -> tuple[str, Item]:
    """The table and the item of an insertion, the only statement of PartiQL that the hub makes.

    Raises:
        ValueError: It is another.
    """
    found = _INSERTION.fullmatch(statement)
    if found is None:
        raise ValueError(statement)
    return found[1], dict(zip(_ATTRIBUTE.findall(found[2]), parameters, strict=True))


@dataclass(frozen=True)
class Index:
    """A secondary index.

    Attributes:
        name: Its name.
        partition: Attribute of its partition key.
        sort: Attribute of its sort key.
        attributes: Those it has besides keys; None for all.
        local: Whether it is a local one, which is never late.
    """

    name: str
    partition: str
    sort: str
    attributes: tuple[str, ...] | None = ()
    local: bool = False


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


class _Sorted:
    """Items of one partition in the order of their sort keys."""

    def __init__(self) -> None:
        self.keys: list[Any] = []
        self.items: dict[Any, Item] = {}

    def put(self, key: Any, item: Item) -> None:
        if key not in self.items:
            bisect.insort(self.keys, key)
        self.items[key] = item

    def remove(self, key: Any) -> None:
        if self.items.pop(key, None) is not None:
            del self.keys[bisect.bisect_left(self.keys, key)]


@dataclass
class _Late:
    """An index, and changes it does not show yet."""

    index: Index
    partitions: dict[Any, _Sorted] = field(default_factory=dict)
    coming: deque[tuple[int, Item | None, Item | None]] = field(default_factory=deque)

    def catch_up(self, now_ms: int) -> None:
        while self.coming and self.coming[0][0] <= now_ms:
            _, before, after = self.coming.popleft()
            if before is not None and (key := self._key(before)) is not None:
                self.partitions[key[0]].remove(key[1])
            if after is not None and (key := self._key(after)) is not None:
                self.partitions.setdefault(key[0], _Sorted()).put(key[1], after)

    def _key(self, item: Item) -> tuple[Any, Any] | None:
        index = self.index
        if index.partition not in item or index.sort not in item:
            return None
        own = plain(item["pk"]), plain(item["sk"])
        return plain(item[index.partition]), (plain(item[index.sort]), own)


class Table:
    """One table.

    Args:
        schema: Its keys and indexes.
        now_ms: DynamoDB's own clock, epoch milliseconds.
        lag_ms: How late an index is with the write just made, milliseconds.
        changed: Told of each change: the item before and after, and whether its time to live made it.
    """

    def __init__(
        self,
        schema: Schema,
        *,
        now_ms: Callable[[], int],
        lag_ms: Callable[[], int],
        changed: Callable[[str, Item | None, Item | None, bool], None],
    ) -> None:
        self.schema = schema
        self._now_ms = now_ms
        self._lag_ms = lag_ms
        self._changed = changed
        self._partitions: dict[Any, _Sorted] = {}
        self._late = {each.name: _Late(each) for each in schema.indexes}

    def item(self, key: Item) -> Item | None:
        """An item as it is."""
        partition = self._partitions.get(plain(key["pk"]))
        return partition.items.get(plain(key["sk"])) if partition else None

    def store(self, item: Item) -> None:
        """Put an item whole."""
        before = self.item(item)
        self._partitions.setdefault(plain(item["pk"]), _Sorted()).put(plain(item["sk"]), item)
        self._tell(before, item, expired=False)

    def drop(self, key: Item, *, expired: bool = False) -> Item | None:
        """Remove an item."""
        before = self.item(key)
        if before is not None:
            partition = self._partitions[plain(key["pk"])]
            partition.remove(plain(key["sk"]))
            if not partition.keys:
                del self._partitions[plain(key["pk"])]
            self._tell(before, None, expired=expired)
        return before

    def everything(self) -> Iterator[Item]:
        """All items, those of one partition together."""
        for each in list(self._partitions.values()):
            for key in list(each.keys):
                if key in each.items:
                    yield each.items[key]

    def partition(self, value: Any) -> Sequence[Item]:
        """The items of a partition in order."""
        found = self._partitions.get(plain(value))
        return [found.items[each] for each in found.keys] if found else []

    def indexed(self, name: str, value: Any) -> Sequence[tuple[Any, Item]]:
        """What an index shows of a partition, in order, each with its place."""
        late = self._late[name]
        late.catch_up(self._now_ms())
        found = late.partitions.get(plain(value))
        return [(each, found.items[each]) for each in found.keys] if found else []

    def expire(self, chosen: Callable[[], bool]) -> int:
        """Remove some of the items whose time to live is over; how many."""
        attribute, now_s = self.schema.ttl, self._now_ms() // 1000
        if attribute is None:
            return 0
        old = [each for each in self.everything() if attribute in each and plain(each[attribute]) < now_s]
        gone = [each for each in old if chosen()]
        for each in gone:
            self.drop(each, expired=True)
        return len(gone)

    def _tell(self, before: Item | None, after: Item | None, *, expired: bool) -> None:
        now = self._now_ms()
        for late in self._late.values():
            index = late.index
            if not any(each and index.partition in each and index.sort in each for each in (before, after)):
                continue
            shows_at = now if index.local else now + self._lag_ms()
            if late.coming:
                # An index shows changes of a table in their order.
                shows_at = max(shows_at, late.coming[-1][0])
            late.coming.append((shows_at, before, after))
        self._changed(self.schema.name, before, after, expired)


class DynamoDB:
    """The service: the operations of the low-level client that the hub uses.

    Args:
        schemas: The tables.
        now_ms: Its clock, epoch milliseconds.
        lag_ms: How late an index is with a write.
        stale_ms: How old what an eventually consistent read of a table shows may be; reads of a scan only.
        undone: Asked for each entry of a batch: whether it is left undone this time.
        changed: See :class:`Table`.
    """

    def __init__(
        self,
        schemas: Sequence[Schema],
        *,
        now_ms: Callable[[], int],
        lag_ms: Callable[[], int] = lambda: 0,
        undone: Callable[[], bool] = lambda: False,
        changed: Callable[[str, Item | None, Item | None, bool], None] = lambda *_: None,
    ) -> None:
        self._now_ms = now_ms
        self._undone = undone
        self.tables = {each.name: Table(each, now_ms=now_ms, lag_ms=lag_ms, changed=changed) for each in schemas}
        self._tokens: dict[str, int] = {}

    def get_item(self, *, TableName: str, Key: Item, **_: Any) -> dict[str, Any]:  # noqa: N803 (the service's)
        """GetItem, consistent."""
        item = self.tables[TableName].item(Key)
        return {} if item is None else {"Item": item}

    def put_item(self, *, TableName: str, Item: Item, **more: Any) -> dict[str, Any]:  # noqa: N803
        """PutItem."""
        table = self.tables[TableName]
        self._check(table, Item, more, "PutItem")
        table.store(Item)
        return {}

    def update_item(self, *, TableName: str, Key: Item, UpdateExpression: str, **more: Any) -> dict[str, Any]:  # noqa: N803
        """UpdateItem; always answers with the new item."""
        table = self.tables[TableName]
        self._check(table, Key, more, "UpdateItem")
        after = self._updated(table, Key, UpdateExpression, more)
        table.store(after)
        return {"Attributes": after}

    def delete_item(self, *, TableName: str, Key: Item, **more: Any) -> dict[str, Any]:  # noqa: N803
        """DeleteItem; answers with the old item."""
        table = self.tables[TableName]
        self._check(table, Key, more, "DeleteItem")
        before = table.drop(Key)
        return {} if before is None else {"Attributes": before}

    def batch_get_item(self, *, RequestItems: Mapping[str, Any]) -> dict[str, Any]:  # noqa: N803
        """BatchGetItem; some keys may be left unprocessed."""
        ((name, asked),) = RequestItems.items()
        table = self.tables[name]
        rest = [each for each in asked["Keys"] if self._undone()]
        found = [table.item(each) for each in asked["Keys"] if each not in rest]
        answer: dict[str, Any] = {"Responses": {name: [each for each in found if each is not None]}}
        return answer | ({"UnprocessedKeys": {name: {**asked, "Keys": rest}}} if rest else {})

    def batch_write_item(self, *, RequestItems: Mapping[str, Any]) -> dict[str, Any]:  # noqa: N803
        """BatchWriteItem; some requests may be left unprocessed."""
        ((name, requests),) = RequestItems.items()
        table = self.tables[name]
        rest = [each for each in requests if self._undone()]
        for each in requests:
            if each in rest:
                continue
            if "PutRequest" in each:
                table.store(each["PutRequest"]["Item"])
            else:
                table.drop(each["DeleteRequest"]["Key"])
        return {"UnprocessedItems": {name: rest}} if rest else {}

    def batch_execute_statement(self, *, Statements: Sequence[Any]) -> dict[str, Any]:  # noqa: N803
        """BatchExecuteStatement of insertions; some may be refused for want of capacity."""
        return {"Responses": [self._inserted(**each) for each in Statements]}

    def _inserted(self, *, Statement: str, Parameters: Sequence[Any]) -> dict[str, Any]:  # noqa: N803
        """Insert one item."""
        name, item = read_insertion(Statement, Parameters)
        table = self.tables[name]
        if self._undone():
            return {"Error": {"Code": "ThrottlingError"}, "TableName": name}
        if table.item(item) is not None:
            return {"Error": {"Code": "DuplicateItem"}, "TableName": name}
        table.store(item)
        return {"TableName": name}

    def transact_write_items(self, *, TransactItems: Sequence[Any], ClientRequestToken: str) -> dict[str, Any]:  # noqa: N803
        """TransactWriteItems: all or none, once for each token."""
        now = self._now_ms()
        if now - self._tokens.get(ClientRequestToken, -TOKEN_MS) < TOKEN_MS:
            return {}
        writes = [(kind, write) for each in TransactItems for kind, write in each.items()]
        refused = [
            not self._holds(self.tables[write["TableName"]], _key_of(kind, write), write) for kind, write in writes
        ]
        if any(refused):
            reasons = [{"Code": "ConditionalCheckFailed" if each else "None"} for each in refused]
            raise service_error("TransactionCanceledException", "TransactWriteItems", CancellationReasons=reasons)
        for kind, write in writes:
            table = self.tables[write["TableName"]]
            if kind == "Put":
                table.store(write["Item"])
            elif kind == "Update":
                table.store(self._updated(table, write["Key"], write["UpdateExpression"], write))
            elif kind == "Delete":
                table.drop(write["Key"])
        self._tokens[ClientRequestToken] = now
        return {}

    def query(self, *, TableName: str, KeyConditionExpression: str, **more: Any) -> dict[str, Any]:  # noqa: N803
        """Query of a table or an index, by pages."""
        table = self.tables[TableName]
        names, values = _named(more)
        _, partition = key_values(KeyConditionExpression, names, values)
        holds = condition(KeyConditionExpression)
        index = next((each for each in table.schema.indexes if each.name == more.get("IndexName")), None)
        if index is None:
            placed = [((plain(each["sk"]),), each) for each in table.partition(partition)]
        else:
            placed = list(table.indexed(index.name, partition))
        backwards = more.get("ScanIndexForward") is False
        placed = placed[::-1] if backwards else placed
        start = more.get("ExclusiveStartKey")
        if start is not None:
            after = _place(start, index)
            placed = [each for each in placed if (each[0] < after if backwards else each[0] > after)]
        found = [each for _, each in placed if holds(each, names, values)]
        return self._page(found, index, more)

    def scan(self, *, TableName: str, **more: Any) -> dict[str, Any]:  # noqa: N803
        """Scan of a table, or of a segment of it."""
        segment, segments = more.get("Segment", 0), more.get("TotalSegments", 1)
        items = [
            each
            for each in self.tables[TableName].everything()
            if segments == 1 or zlib.crc32(plain(each["pk"])) % segments == segment
        ]
        start = more.get("ExclusiveStartKey")
        if start is not None:
            # Items come in the order their partitions were made; where that of the start was, those behind it follow.
            marks = [(plain(each["pk"]), plain(each["sk"])) for each in items]
            mark = plain(start["pk"]), plain(start["sk"])
            items = items[marks.index(mark) + 1 :] if mark in marks else []
        return self._page(items, None, more)

    def _page(self, found: Sequence[Item], index: Index | None, more: Mapping[str, Any]) -> dict[str, Any]:
        names, values = _named(more)
        limit, size, page = more.get("Limit", len(found)), 0, []
        for each in found[:limit]:
            size += _size(each)
            page.append(each)
            if size >= PAGE_BYTES:
                break
        answer: dict[str, Any] = {}
        if page and (len(page) < len(found) or ("Limit" in more and len(page) == limit)):
            last = page[-1]
            attributes = ("pk", "sk") if index is None else ("pk", "sk", index.partition, index.sort)
            answer["LastEvaluatedKey"] = {each: last[each] for each in attributes}
        if "FilterExpression" in more:
            holds = condition(more["FilterExpression"])
            page = [each for each in page if holds(each, names, values)]
        if more.get("Select") == "COUNT":
            return answer | {"Count": len(page)}
        if index is not None and index.attributes is not None:
            kept = {"pk", "sk", index.partition, index.sort, *index.attributes}
            page = [{name: value for name, value in each.items() if name in kept} for each in page]
        if "ProjectionExpression" in more:
            wanted = [each.strip() for each in more["ProjectionExpression"].split(",")]
            wanted = [names.get(each, each) for each in wanted]
            page = [{name: value for name, value in each.items() if name in wanted} for each in page]
        return answer | {"Items": page, "Count": len(page)}

    @staticmethod
    def _holds(table: Table, key: Item, more: Mapping[str, Any]) -> bool:
        if "ConditionExpression" not in more:
            return True
        names, values = _named(more)
        return condition(more["ConditionExpression"])(table.item(key) or {}, names, values)

    def _check(self, table: Table, key: Item, more: Mapping[str, Any], operation: str) -> None:
        if not self._holds(table, key, more):
            stored = table.item(key)
            raise service_error(
                "ConditionalCheckFailedException", operation, **({"Item": stored} if stored is not None else {})
            )

    @staticmethod
    def _updated(table: Table, key: Item, expression: str, more: Mapping[str, Any]) -> Item:
        names, values = _named(more)
        return update(expression)(table.item(key) or dict(key), names, values)


def _named(more: Mapping[str, Any]) -> tuple[Mapping[str, str], Mapping[str, Any]]:
    return more.get("ExpressionAttributeNames", {}), more.get("ExpressionAttributeValues", {})


def _key_of(kind: str, write: Mapping[str, Any]) -> Item:
    item: Item = write["Item"] if kind == "Put" else write["Key"]
    return item


def _place(key: Item, index: Index | None) -> tuple[Any, ...]:
    if index is None:
        return (plain(key["sk"]),)
    return plain(key[index.sort]), (plain(key["pk"]), plain(key["sk"]))


def _size(item: Item) -> int:
    """About how many bytes an item has: a body decides, the rest is small."""
    body = item.get("body")
    return 400 + (len(body.get("B", b"")) if isinstance(body, dict) else 0)


__all__ = ["DynamoDB", "Index", "Item", "Schema", "Table", "found_at", "service_error"]
