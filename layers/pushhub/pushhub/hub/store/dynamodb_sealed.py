"""Mappings, integrations and parameters, to be sealed anew."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from pushhub.base.errors import Conflict, Unreadable
from pushhub.cloud.calls import ConditionRefused
from pushhub.cloud.table import Item, Table, text
from pushhub.engine.security.reseal import SealedItem, damaged_item
from pushhub.hub.model.mapping import ServiceMapping
from pushhub.hub.store._items import SEALED, decode_integration, decode_mapping, decode_parameter, encode_parameter
from pushhub.hub.store.dynamodb_settings import INTEGRATION, MAPPING, PARAMETER, DynamoDBHubSettings
from pushhub.hub.tokens import token_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mypy_boto3_dynamodb import DynamoDBClient

    from pushhub.base.ports import Clock, Vault
    from pushhub.engine.security.credentials import Credentials
    from pushhub.hub.model.integration import Integration


class SealedHubItems:
    """All items of stores that hold a token, a value or signing keys."""

    def __init__(
        self, client: DynamoDBClient, table: str, clock: Clock, vault: Vault, credentials: Credentials
    ) -> None:
        self._table = Table(client, table, clock)
        self._settings = DynamoDBHubSettings(client, table, clock, credentials)
        self._vault = vault
        self._credentials = credentials

    def items(self) -> Iterator[SealedItem]:
        """The items, one after the other."""
        scanned = self._table.scan(
            FilterExpression="begins_with(sk, :mapping) OR begins_with(sk, :integration) "
            "OR begins_with(sk, :parameter)",
            ExpressionAttributeValues={
                ":mapping": text(MAPPING),
                ":integration": text(INTEGRATION),
                ":parameter": text(PARAMETER),
            },
        )
        for item in scanned:
            try:
                found = self._item(item)
            except Unreadable:
                found = damaged_item(item["pk"]["S"], item["sk"]["S"])
            if found.sealed or found.damaged:
                yield found

    def _item(self, item: Item) -> SealedItem:
        project = item["pk"]["S"].removeprefix("P#")
        kind = item["sk"]["S"].partition("#")[0] + "#"
        name = f"{kind.strip('#').lower()} {item['sk']['S'].partition('#')[2]} of store {project}"
        sealed = tuple(bytes(item[each]["B"]) for each in SEALED if each in item)
        if kind == PARAMETER:
            return SealedItem(name, project, sealed, partial(self._write_parameter, project, item))
        holder = decode_mapping(item) if kind == MAPPING else decode_integration(item)
        return SealedItem(name, project, sealed, partial(self._write_holder, project, holder))

    def _write_holder(self, project: str, holder: ServiceMapping | Integration) -> None:
        token = token_of(holder, project, self._credentials)
        if isinstance(holder, ServiceMapping):
            again = replace(
                holder,
                token=token,
                sealed=self._again(project, holder.sealed),
                oauth=self._again(project, holder.oauth),
                identity=self._again(project, holder.identity),
            )
            self._settings.put_mapping(project, again)
        else:
            self._settings.put_integration(project, replace(holder, token=token))

    def _again(self, project: str, sealed: bytes) -> bytes:
        return self._vault.seal(project, self._vault.open(project, sealed)) if sealed else b""

    def _write_parameter(self, project: str, item: Item) -> None:
        new = encode_parameter(decode_parameter(item, project, self._credentials), self._credentials)
        try:
            self._table.update(
                {"pk": item["pk"], "sk": item["sk"]},
                UpdateExpression="SET sealed = :sealed",
                ConditionExpression="sealed = :before",
                ExpressionAttributeValues={":sealed": new["sealed"], ":before": item["sealed"]},
            )
        except ConditionRefused as refused:
            raise Conflict("the parameter has changed") from refused
