"""What moto lacks for the hub, and what it does too slowly: thousands of tests make tables and call them."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any, cast
from unittest.mock import patch

from moto.core.model import StructureShape
from moto.core.serialize import BaseJSONSerializer
from moto.dynamodb.models import DynamoDBBackend
from moto.dynamodb.models.dynamo_type import DynamoType, Item
from moto.dynamodb.models.table import Table
from moto.kms.utils import generate_private_key
from simulation.dynamodb import read_insertion

_PLAIN = frozenset({"S", "N", "BOOL", "NULL"})


@contextmanager
def quick_moto() -> Iterator[None]:
    """Both, while moto stands for AWS; all tables have the keys ``pk`` and ``sk``."""
    with (
        patch.object(DynamoDBBackend, "batch_execute_statement", _insert),
        patch.object(DynamoDBBackend, "transact_write_items", _transact),
        patch.object(Table, "__deepcopy__", lambda table, memo: table, create=True),
        patch.object(Table, "all_items", _all_items),
        patch("moto.kms.models.generate_private_key", _private_key),
        patch.object(BaseJSONSerializer, "_serialize_type_structure", _serialize_structure),
    ):
        yield


# Even a symmetric key gets a new RSA key, which nothing here uses.
_private_key = cache(generate_private_key)


def _insert(backend: DynamoDBBackend, statements: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The only PartiQL statement that the hub uses: moto accepts no parameters in an insertion, and overwrites what is
    there.
    """
    return [_inserted(backend, each) for each in statements]


def _inserted(backend: DynamoDBBackend, statement: dict[str, Any]) -> dict[str, Any]:
    name, item = read_insertion(statement["Statement"], statement["Parameters"])
    if backend.get_item(name, {"pk": item["pk"], "sk": item["sk"]}):
        return {"TableName": name, "Error": {"Code": "DuplicateItem"}}
    backend.put_item(name, item)
    return {"TableName": name}


def _all_items(table: Table) -> list[Item]:
    """In order of their keys, which are strings in every table here: moto looks at types in each comparison."""
    found = [item for items in table.items.values() for item in cast(dict[DynamoType, Item], items).values()]
    return sorted(found, key=lambda each: (each.hash_key.value, each.range_key.value if each.range_key else ""))


_moto_serializes = BaseJSONSerializer._serialize_type_structure


def _serialize_structure(
    serializer: BaseJSONSerializer, serialized: dict[str, Any], value: Any, shape: StructureShape, key: str
) -> None:
    """A plain attribute is answered as it is: moto looks for ten possible types in it, under four names each."""
    if shape.name == "AttributeValue" and type(value) is dict and value.keys() <= _PLAIN:
        serialized[key] = value
    else:
        _moto_serializes(serializer, serialized, value, shape, key)


_moto_transacts = DynamoDBBackend.transact_write_items


def _transact(backend: DynamoDBBackend, transact_items: list[dict[str, Any]]) -> None:
    """A transaction that remembers the items it may touch: moto copies the whole table once for each of them."""
    before = [_remember(backend, each) for each in transact_items]
    try:
        _moto_transacts(backend, transact_items)
    except Exception:
        for table, pk, sk, item in before:
            if item is not None:
                table.items[pk][sk] = item
            else:
                table.items[pk].pop(sk, None)
        raise


def _remember(backend: DynamoDBBackend, action: dict[str, Any]) -> tuple[Table, DynamoType, DynamoType, Item | None]:
    [operation] = action.values()
    key = operation.get("Key") or operation["Item"]
    pk, sk = DynamoType(key["pk"]), DynamoType(key["sk"])
    table = backend.get_table(operation["TableName"])
    return table, pk, sk, copy.deepcopy(table.get_item(pk, sk))
