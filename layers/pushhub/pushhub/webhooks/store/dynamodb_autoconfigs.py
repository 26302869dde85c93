"""Autoconfigurations on DynamoDB: an item for each, ``AUTOCONF#{id}`` in its application's partition."""

from __future__ import annotations

from pushhub.base import json_text
from pushhub.cloud.calls import ConditionRefused
from pushhub.cloud.documents import Document
from pushhub.cloud.table import Item, TableStore
from pushhub.cloud.unreadable import decodes
from pushhub.webhooks.model.autoconfig import Autoconfig
from pushhub.webhooks.store._items import app_pk, doc, key

_PREFIX = "AUTOCONF#"
_AUTOCONFIG = Document(Autoconfig)


class DynamoDBAutoconfigs(TableStore):
    """Implements :class:`pushhub.webhooks.endpoints.autoconfigs.AutoconfigStore`."""

    def autoconfig(self, project_id: str, app_id: str, autoconfig_id: str) -> Autoconfig | None:
        item = self._table.get(key(app_pk(project_id, app_id), _PREFIX + autoconfig_id))
        return _decoded(item) if item else None

    def put_autoconfig(self, autoconfig: Autoconfig) -> None:
        self._table.put(_encoded(autoconfig))

    def change_autoconfig(self, before: Autoconfig, after: Autoconfig) -> bool:
        item, stored = _encoded(after), self._table.get(_key(before))
        if stored is None or _decoded(stored) != before:
            return False
        try:
            self._table.put(
                item,
                ConditionExpression="#doc = :before",
                ExpressionAttributeNames={"#doc": "doc"},
                ExpressionAttributeValues={":before": stored["doc"]},
            )
        except ConditionRefused as refused:
            # The client repeats a call that timed out.
            return bool(refused.stored) and refused.stored["doc"] == item["doc"]
        return True

    def delete_autoconfig(self, autoconfig: Autoconfig) -> None:
        self._table.delete(_key(autoconfig))


def _key(autoconfig: Autoconfig) -> Item:
    return key(app_pk(autoconfig.project, autoconfig.app_id), _PREFIX + autoconfig.autoconfig_id)


def _encoded(autoconfig: Autoconfig) -> Item:
    return _key(autoconfig) | {"doc": doc(_AUTOCONFIG.encode(autoconfig))}


@decodes
def _decoded(item: Item) -> Autoconfig:
    _, project, app_id = item["pk"]["S"].split("#")
    found: Autoconfig = _AUTOCONFIG.decode(
        json_text.stored(item["doc"]["S"]),
        project=project,
        app_id=app_id,
        autoconfig_id=item["sk"]["S"].removeprefix(_PREFIX),
    )
    return found
