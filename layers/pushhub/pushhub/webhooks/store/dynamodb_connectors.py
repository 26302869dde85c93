"""Connectors on DynamoDB: an item for each, ``CONN#{id}`` in its project's partition, and one that claims its uid."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pushhub.base import json_text
from pushhub.base.errors import Conflict
from pushhub.cloud.documents import Document, read_by
from pushhub.cloud.table import Item, TableStore, WritesRefused, number, text
from pushhub.cloud.unreadable import decodes, readable
from pushhub.webhooks.model.connector import Connector, ConnectorFields, ConnectorKind, ConnectorProduct
from pushhub.webhooks.model.ids import IdPrefix, is_id
from pushhub.webhooks.ports import UidTaken
from pushhub.webhooks.store._items import between, doc, key, project_pk

if TYPE_CHECKING:
    from pushhub.webhooks.model.page import KeyRange

_PREFIX, _UID = "CONN#", "CONNUID#"
_FIELDS = Document(
    ConnectorFields, {"ConnectorKind": read_by(ConnectorKind), "ConnectorProduct": read_by(ConnectorProduct)}
)

_PAGE = 100
"""Items that one call of a list reads."""


class DynamoDBConnectors(TableStore):
    """Implements :class:`pushhub.webhooks.applications.connectors.ConnectorStore`."""

    def connector(self, project_id: str, name: str) -> Connector | None:
        pk, identifier = project_pk(project_id), name
        if not is_id(IdPrefix.CONNECTOR, name):
            claim = self._table.get(key(pk, _UID + name))
            if claim is None:
                return None
            identifier = claim["id"]["S"]
        item = self._table.get(key(pk, _PREFIX + identifier))
        return _decoded(item) if item else None

    def connectors(self, project_id: str, span: KeyRange) -> Iterator[Connector]:
        if span.empty:
            return iter(())
        items = self._table.items(Limit=_PAGE, **between(project_pk(project_id), _PREFIX, span))
        return (each for each in readable(items, _decoded) if span.has(each.connector_id))

    def put_connector(self, connector: Connector) -> Connector:
        raised = replace(connector, version=connector.version + 1)
        if connector.version or connector.fields.uid is None:
            self._table.put_version(_encoded(raised), read=_decoded)
            return raised
        put = {"Item": _encoded(raised), "ConditionExpression": "attribute_not_exists(pk)"}
        claim = _claim(connector, connector.fields.uid)
        try:
            self._table.write_together([("Put", put), ("Put", claim)])
        except WritesRefused as refused:
            if refused.conditions[1]:
                raise UidTaken from refused
            raise Conflict("a connector has that id") from refused
        return raised

    def delete_connector(self, connector: Connector) -> None:
        delete: tuple[str, dict[str, Any]] = ("Delete", {"Key": _key(connector)})
        uid = connector.fields.uid
        if uid is None:
            self._table.delete(_key(connector))
            return
        claim = _claim(connector, uid)
        free = {"Key": {name: claim["Item"][name] for name in ("pk", "sk")}} | {
            name: claim[name] for name in claim if name != "Item"
        }
        try:
            self._table.write_together([delete, ("Delete", free)])
        except WritesRefused:
            # Another one has that uid by now, so this one is gone.
            return


def _key(connector: Connector) -> Item:
    return key(project_pk(connector.project), _PREFIX + connector.connector_id)


def _claim(connector: Connector, uid: str) -> dict[str, Any]:
    """The write that claims a uid: nobody has it, or this one has."""
    owner = text(connector.connector_id)
    return {
        "Item": key(project_pk(connector.project), _UID + uid) | {"id": owner},
        "ConditionExpression": "attribute_not_exists(pk) OR id = :id",
        "ExpressionAttributeValues": {":id": owner},
    }


def _encoded(connector: Connector) -> Item:
    at = [connector.created_at, connector.updated_at, connector.code_updated_at]
    content = {"doc": doc({**_FIELDS.encode(connector.fields), "at": at}), "version": number(connector.version)}
    return _key(connector) | content


@decodes
def _decoded(item: Item) -> Connector:
    value = json_text.stored(item["doc"]["S"])
    created_at, updated_at, code_updated_at = value["at"]
    return Connector(
        project=item["pk"]["S"].removeprefix("P#"),
        connector_id=item["sk"]["S"].removeprefix(_PREFIX),
        fields=_FIELDS.decode(value),
        created_at=created_at,
        updated_at=updated_at,
        code_updated_at=code_updated_at,
        version=int(item["version"]["N"]),
    )
