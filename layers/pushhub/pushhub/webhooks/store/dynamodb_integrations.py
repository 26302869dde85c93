"""Integrations on DynamoDB: an item for each, ``INTEG#{id}`` in its application's partition."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from pushhub.base import json_text
from pushhub.cloud.calls import ConditionRefused
from pushhub.cloud.documents import Document
from pushhub.cloud.table import Item, TableStore
from pushhub.cloud.unreadable import decodes, readable
from pushhub.webhooks.model.integration import AppIntegration, AppIntegrationFields
from pushhub.webhooks.store._items import app_pk, between, doc, key

if TYPE_CHECKING:
    from pushhub.webhooks.model.page import KeyRange

_PREFIX = "INTEG#"
_FIELDS = Document(AppIntegrationFields)

_PAGE = 100
"""Items that one call of a list reads."""


class DynamoDBAppIntegrations(TableStore):
    """Implements :class:`pushhub.webhooks.applications.integrations.AppIntegrationStore`."""

    def integration(self, project_id: str, app_id: str, integration_id: str) -> AppIntegration | None:
        item = self._table.get(key(app_pk(project_id, app_id), _PREFIX + integration_id))
        return _decoded(item) if item else None

    def integrations(self, project_id: str, app_id: str, span: KeyRange) -> Iterator[AppIntegration]:
        if span.empty:
            return iter(())
        items = self._table.items(Limit=_PAGE, **between(app_pk(project_id, app_id), _PREFIX, span))
        return (each for each in readable(items, _decoded) if span.has(each.integration_id))

    def put_integration(self, integration: AppIntegration) -> None:
        self._table.put(_encoded(integration))

    def change_integration(self, integration: AppIntegration) -> bool:
        try:
            self._table.put(_encoded(integration), ConditionExpression="attribute_exists(pk)")
        except ConditionRefused:
            return False
        return True

    def delete_integration(self, integration: AppIntegration) -> None:
        self._table.delete(_key(integration))


def _key(integration: AppIntegration) -> Item:
    return key(app_pk(integration.project, integration.app_id), _PREFIX + integration.integration_id)


def _encoded(integration: AppIntegration) -> Item:
    at = [integration.created_at, integration.updated_at]
    return _key(integration) | {"doc": doc({**_FIELDS.encode(integration.fields), "at": at})}


@decodes
def _decoded(item: Item) -> AppIntegration:
    value = json_text.stored(item["doc"]["S"])
    _, project, app_id = item["pk"]["S"].split("#")
    return AppIntegration(
        project=project,
        app_id=app_id,
        integration_id=item["sk"]["S"].removeprefix(_PREFIX),
        fields=_FIELDS.decode(value),
        created_at=value["at"][0],
        updated_at=value["at"][1],
    )
