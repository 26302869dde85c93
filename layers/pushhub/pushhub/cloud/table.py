"""One DynamoDB table through the low-level client: calls that page, batch, and may leave entries unprocessed."""

from __future__ import annotations

import secrets
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pushhub.base.errors import Conflict, Unavailable
from pushhub.cloud.calls import ROUNDS, ConditionRefused, aws_call, cancellation_reasons, passing, pause

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

    from pushhub.base.ports import Clock

Item = dict[str, Any]
"""An item in the low-level client's format: attribute names mapped to ``{"S": ...}``, ``{"N": ...}``, ``{"B": ...}``
...
"""

WRITES_PER_CALL = 25
"""Maximum number of items per batch write."""
_READS_PER_CALL = 100
_CONDITION = "ConditionalCheckFailed"


def text(value: str) -> dict[str, str]:
    """A string attribute."""
    return {"S": value}


def number(value: int) -> dict[str, str]:
    """A number attribute."""
    return {"N": str(value)}


def texts(values: Sequence[str]) -> dict[str, list[dict[str, str]]]:
    """A list of strings."""
    return {"L": [{"S": value} for value in values]}


def numbers(item: Item, name: str) -> int | None:
    """A number of an item, or None when it has no such attribute."""
    return int(item[name]["N"]) if name in item else None


class WritesRefused(Exception):
    """A group of writes was not made because the condition of at least one was not met.

    Args:
        conditions: For each write, whether its own condition failed.
    """

    def __init__(self, conditions: Sequence[bool]) -> None:
        super().__init__("condition not met")
        self.conditions = tuple(conditions)


class Table:
    """A table with keys ``pk`` and ``sk``."""

    def __init__(self, client: DynamoDBClient, name: str, clock: Clock) -> None:
        self._client = client
        self._name = name
        self._clock = clock

    def get(self, key: Item) -> Item | None:
        """An item, read consistently, or None."""
        with aws_call("dynamodb:GetItem"):
            return self._client.get_item(TableName=self._name, Key=key, ConsistentRead=True).get("Item")

    def put(self, item: Item, **condition: Any) -> None:
        """Write a whole item.

        Args:
            condition: ``ConditionExpression`` and its parameters.

        Raises:
            ConditionRefused: With the stored item.
        """
        if condition:
            condition["ReturnValuesOnConditionCheckFailure"] = "ALL_OLD"
        with aws_call("dynamodb:PutItem"):
            self._client.put_item(TableName=self._name, Item=item, **condition)

    def put_version(
        self,
        item: Item,
        *,
        read: Callable[[Item], object] = lambda item: item,
        same: Sequence[str] = (),
        alone: bool = False,
    ) -> None:
        """Write an item whose ``version`` is one higher than the stored one's, or 1 when there is none.

        The same write made twice (the client repeats a call that timed out) counts as written.

        Args:
            item: The item, with its ``version``.
            read: Decodes an item; items that decode to the same value are the same.
            same: Attributes in which the stored item must equal this one.
            alone: Whether only one of several that write the same value at the same moment has written it, as what
                follows is for one alone. The attribute ``writer`` tells them apart.

        Raises:
            Conflict: The stored one has another version.
        """
        version = int(item["version"]["N"])
        if alone:
            item = item | {"writer": text(secrets.token_hex(8))}
        condition: dict[str, Any] = {"ConditionExpression": "attribute_not_exists(pk)"}
        if version > 1:
            values = {f":{name}": item[name] for name in same}
            condition = {
                "ConditionExpression": " AND ".join(["#version = :before", *(f"{name} = :{name}" for name in same)]),
                "ExpressionAttributeNames": {"#version": "version"},
                "ExpressionAttributeValues": {":before": number(version - 1), **values},
            }
        try:
            self.put(item, **condition)
        except ConditionRefused as refused:
            stored = refused.stored
            if not stored or stored.get("writer") != item.get("writer") or read(stored) != read(item):
                raise Conflict(f"{item['sk']['S']} has another version than {version - 1}") from refused

    def update(self, key: Item, **update: Any) -> Item:
        """Change an item; returns its new state.

        Args:
            update: ``UpdateExpression`` and its parameters.

        Raises:
            ConditionRefused: With the stored item.
        """
        with aws_call("dynamodb:UpdateItem"):
            answer = self._client.update_item(
                TableName=self._name,
                Key=key,
                ReturnValues="ALL_NEW",
                ReturnValuesOnConditionCheckFailure="ALL_OLD",
                **update,
            )
        return answer["Attributes"]

    def delete(self, key: Item, **condition: Any) -> Item | None:
        """Delete an item; returns its last state, or None when there was none.

        Raises:
            ConditionRefused: With the stored item.
        """
        if condition:
            condition["ReturnValuesOnConditionCheckFailure"] = "ALL_OLD"
        with aws_call("dynamodb:DeleteItem"):
            answer = self._client.delete_item(TableName=self._name, Key=key, ReturnValues="ALL_OLD", **condition)
        return answer.get("Attributes")

    def write_together(self, writes: Sequence[tuple[str, dict[str, Any]]]) -> None:
        """Make several conditional writes to different items, all or none.

        Args:
            writes: ``Put``, ``Update`` or ``Delete``, with its parameters except the table's name.

        Raises:
            WritesRefused: A condition was not met.
        """
        items: list[Any] = [{kind: {"TableName": self._name, **write}} for kind, write in writes]
        # The token stays the same for all rounds: DynamoDB treats a write repeated with its token as already made.
        token = str(uuid.uuid4())
        for round_number in range(1, ROUNDS + 1):
            try:
                with aws_call("dynamodb:TransactWriteItems"):
                    self._client.transact_write_items(TransactItems=items, ClientRequestToken=token)
            except Unavailable as unavailable:
                reasons = cancellation_reasons(unavailable)
                if _CONDITION in reasons:
                    raise WritesRefused([each == _CONDITION for each in reasons]) from unavailable
                busy = passing(unavailable)
                if busy is None:
                    raise
                if round_number == ROUNDS:
                    raise busy from unavailable
                pause(self._clock, round_number)
            else:
                return

    def pages(self, **query: Any) -> Iterator[Any]:
        """The pages of a query, one call each, fetched lazily."""
        while True:
            with aws_call("dynamodb:Query"):
                page = self._client.query(TableName=self._name, **query)
            yield page
            if not page.get("LastEvaluatedKey"):
                return
            query["ExclusiveStartKey"] = page["LastEvaluatedKey"]

    def items(self, **query: Any) -> Iterator[Item]:
        """The items of a query, fetched lazily page by page."""
        for page in self.pages(**query):
            yield from page["Items"]

    def scan(self, *, consistent: bool = True, **scan: Any) -> Iterator[Item]:
        """The items of a scan of the whole table, fetched lazily page by page."""
        for items, _ in self.scanned(consistent=consistent, **scan):
            yield from items

    def scanned(
        self, *, consistent: bool = True, start: Item | None = None, **scan: Any
    ) -> Iterator[tuple[list[Item], Item | None]]:
        """The pages of a scan of the whole table, or of its rest from a key on: the items of each, and the key that the
        next one starts from, None after the last.
        """
        while True:
            more: dict[str, Any] = {"ExclusiveStartKey": start} if start else {}
            with aws_call("dynamodb:Scan"):
                page = self._client.scan(TableName=self._name, ConsistentRead=consistent, **more, **scan)
            start = page.get("LastEvaluatedKey")
            yield page["Items"], start
            if not start:
                return

    def get_many(self, keys: Sequence[Item], *, consistent: bool = True) -> list[Item]:
        """Items by key, in no particular order; missing items are left out. Keys must be distinct. A read that is not
        consistent costs half, and may show items as they were seconds ago.
        """
        found: list[Item] = []
        for start in range(0, len(keys), _READS_PER_CALL):
            part = keys[start : start + _READS_PER_CALL]
            found += self._read_together({self._name: part}, consistent=consistent)[self._name]
        return found

    def get_many_beside(self, table: str, key: Item, keys: Sequence[Item]) -> tuple[Item | None, list[Item]]:
        """An item of another table, or None, and items of this one, all read consistently, that one in the first call.
        Keys must be distinct; missing items are left out.
        """
        together = _READS_PER_CALL - 1
        found = self._read_together({table: [key], self._name: keys[:together]}, consistent=True)
        return next(iter(found[table]), None), found[self._name] + self.get_many(keys[together:])

    def _read_together(self, keys: Mapping[str, Sequence[Item]], *, consistent: bool) -> dict[str, list[Item]]:
        """Items of several tables, by table, as many as fit into one call."""
        found: dict[str, list[Item]] = {name: [] for name in keys}
        rest: dict[str, Any] = {name: [*several] for name, several in keys.items()}
        for round_number in range(1, ROUNDS + 1):
            with aws_call("dynamodb:BatchGetItem"):
                answer = self._client.batch_get_item(
                    RequestItems={name: {"Keys": each, "ConsistentRead": consistent} for name, each in rest.items()}
                )
            for name, items in answer["Responses"].items():
                found[name] += items
            undone: Any = answer.get("UnprocessedKeys", {})
            rest = {name: each["Keys"] for name, each in undone.items()}
            if not rest:
                return found
            if round_number < ROUNDS:
                pause(self._clock, round_number)
        raise Unavailable("dynamodb:BatchGetItem", "UnprocessedKeys")

    def insert_many(self, items: Sequence[Item]) -> list[bool]:
        """Write up to :data:`WRITES_PER_CALL` items that do not exist yet, in one call.

        Returns:
            For each, whether it was written. An item not written may already exist, possibly written by this very call
            if the client had to repeat it.
        """
        statements: list[Any] = []
        for item in items:
            names = ", ".join(f"'{name}': ?" for name in item)
            statements.append(
                {"Statement": f'INSERT INTO "{self._name}" VALUE {{{names}}}', "Parameters": [*item.values()]}
            )
        with aws_call("dynamodb:BatchExecuteStatement"):
            answer = self._client.batch_execute_statement(Statements=statements)
        return ["Error" not in each for each in answer["Responses"]]

    def put_many(self, items: Sequence[Item]) -> None:
        """Write whole items unconditionally."""
        self._write_many([{"PutRequest": {"Item": item}} for item in items])

    def delete_many(self, keys: Sequence[Item]) -> None:
        """Delete items unconditionally."""
        self._write_many([{"DeleteRequest": {"Key": key}} for key in keys])

    def _write_many(self, requests: list[Any]) -> None:
        for start in range(0, len(requests), WRITES_PER_CALL):
            rest = requests[start : start + WRITES_PER_CALL]
            for round_number in range(1, ROUNDS + 1):
                with aws_call("dynamodb:BatchWriteItem"):
                    answer = self._client.batch_write_item(RequestItems={self._name: rest})
                rest = answer.get("UnprocessedItems", {}).get(self._name, [])
                if not rest:
                    break
                if round_number == ROUNDS:
                    raise Unavailable("dynamodb:BatchWriteItem", "UnprocessedItems")
                pause(self._clock, round_number)


class TableStore:
    """A store whose items are in one table.

    Args:
        clock: Waits between rounds, and decides when items expire.
    """

    def __init__(self, client: DynamoDBClient, table: str, clock: Clock) -> None:
        self._table = Table(client, table, clock)
        self._clock = clock
