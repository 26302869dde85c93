"""The settings of the hub protocol on DynamoDB: mappings, integrations, schedulers, parameters,
message types and claims.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from pushhub.base.cache import ExpiringCache
from pushhub.base.shared_reads import SharedReads
from pushhub.cloud.calls import ConditionRefused
from pushhub.cloud.table import Item, number, numbers, text
from pushhub.cloud.unreadable import paired, readable
from pushhub.hub.model.parameters import Parameter, parameter_id
from pushhub.hub.store._items import (
    decode_integration,
    decode_mapping,
    decode_parameter,
    encode_integration,
    encode_mapping,
    encode_parameter,
)
from pushhub.hub.store._keys import store_key
from pushhub.hub.store.dynamodb_schedulers import DynamoDBSchedulers
from pushhub.hub.tokens import sealed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mypy_boto3_dynamodb import DynamoDBClient

    from pushhub.base.ports import Clock
    from pushhub.engine.security.credentials import Credentials
    from pushhub.hub.model.integration import Integration
    from pushhub.hub.model.mapping import ServiceMapping


MAPPING = "MAPPING#"
INTEGRATION = "INTEGRATION#"
PARAMETER = "PARAMETER#"
_TYPE = "TYPE#"
_CHANGES = "MAPPINGS"
"""Sort key of the count of changes of a store's mappings."""

MOST_TYPES = 5_000
"""Types of messages that are listed: whoever puts ids into them has as many as messages."""

ROUTED_MS = 30_000
"""How long mappings are kept whose changes were not counted."""

MOST_ROUTED = 5_000
"""Mappings of all stores that an environment keeps, some 2 KB each."""

DELETION_KEPT_S = 7 * 86_400
"""How long it is kept when a parameter was deleted, seconds; requests that began before are answered by then."""


class _Routed(NamedTuple):
    """The mappings of a store, when so many changes of them were counted."""

    changes: int
    mappings: Sequence[ServiceMapping]
    unread: int


class DynamoDBHubSettings(DynamoDBSchedulers):
    """Implements :class:`pushhub.hub.ports.HubSettings`.

    A changed mapping or parameter takes effect with the next message, retry or poll. The mappings that messages are
    compared with are kept for as long as the count of their changes stays the same, which is read for each message.
    """

    def __init__(self, client: DynamoDBClient, table: str, clock: Clock, credentials: Credentials) -> None:
        super().__init__(client, table, clock)
        self._credentials = credentials
        self._routed = ExpiringCache[_Routed](clock, ttl_ms=ROUTED_MS, capacity=MOST_ROUTED)
        self._routed_reads = SharedReads[_Routed]()

    def mapping(self, project_id: str, mapping_id: str) -> ServiceMapping | None:
        return self.one(project_id, MAPPING + mapping_id, decode_mapping)

    def mappings(self, project_id: str) -> list[ServiceMapping]:
        return [*readable(self.all(project_id, MAPPING), decode_mapping)]

    def routed_mappings(self, project_id: str) -> tuple[Sequence[ServiceMapping], int]:
        """A store with hundreds of mappings has more of them than a partition gives for a few messages a second."""
        counted = self._table.get(store_key(project_id, _CHANGES)) or {}
        changes = numbers(counted, "changes") or 0
        known = self._routed.get(project_id)
        if known is None or known.changes != changes:
            known, own = self._routed_reads.read((project_id, changes), lambda: self._read_routed(project_id, changes))
            if own:
                self._routed.put(project_id, known, weight=1 + len(known.mappings))
        return known.mappings, known.unread

    def _read_routed(self, project_id: str, changes: int) -> _Routed:
        found = [mapping for _, mapping in paired(self.all(project_id, MAPPING), decode_mapping)]
        mappings = [each for each in found if each is not None]
        return _Routed(changes, mappings, len(found) - len(mappings))

    def _count_change(self, project_id: str) -> None:
        """Count a change of a store's mappings, once it is written. If a crash comes in between, whoever has kept them
        reads them again within :data:`ROUTED_MS`.
        """
        self._table.update(
            store_key(project_id, _CHANGES),
            UpdateExpression="ADD changes :one",
            ExpressionAttributeValues={":one": number(1)},
        )

    def put_mapping(self, project_id: str, mapping: ServiceMapping) -> ServiceMapping:
        """If the client repeats a call that timed out, the repeated identical write counts as success."""
        raised = sealed(replace(mapping, version=mapping.version + 1), project_id, self._credentials)
        key = store_key(project_id, MAPPING + mapping.mapping_id)
        self._table.put_version(key | encode_mapping(raised))
        self._count_change(project_id)
        return raised

    def delete_mapping(self, project_id: str, mapping_id: str) -> bool:
        """Its claims are left behind but unreachable, as ids of mappings are never reused."""
        deleted = self._table.delete(store_key(project_id, MAPPING + mapping_id)) is not None
        self._count_change(project_id)
        return deleted

    def integration(self, project_id: str, integration_id: str) -> Integration | None:
        return self.one(project_id, INTEGRATION + integration_id, decode_integration)

    def integrations(self, project_id: str) -> list[Integration]:
        return [*readable(self.all(project_id, INTEGRATION), decode_integration)]

    def put_integration(self, project_id: str, integration: Integration) -> Integration:
        raised = sealed(replace(integration, version=integration.version + 1), project_id, self._credentials)
        key = store_key(project_id, INTEGRATION + integration.integration_id)
        self._table.put_version(key | encode_integration(raised))
        return raised

    def delete_integration(self, project_id: str, integration_id: str) -> bool:
        return self._table.delete(store_key(project_id, INTEGRATION + integration_id)) is not None

    def parameters(self, project_id: str) -> list[Parameter]:
        items = (each for each in self.all(project_id, PARAMETER) if "sealed" in each)
        found = readable(items, lambda item: decode_parameter(item, project_id, self._credentials))
        return sorted(found, key=lambda each: each.name)

    def parameters_of(self, project_id: str, ids: Sequence[str]) -> list[Parameter]:
        """All of a store's are one cheap read, unless they are more than a page of a megabyte: a partition gives twelve
        a second, so those that it does not have are then read alone.
        """
        if not ids:
            return []
        page = next(self.pages(project_id, PARAMETER))
        found = {each["sk"]["S"].removeprefix(PARAMETER): each for each in page["Items"]}
        if page.get("LastEvaluatedKey"):
            alone = {
                each: self._table.get(store_key(project_id, PARAMETER + each)) for each in ids if each not in found
            }
            found |= {name: item for name, item in alone.items() if item is not None}
        items = (found[each] for each in ids if "sealed" in found.get(each, ()))
        return [decode_parameter(each, project_id, self._credentials) for each in items]

    def set_parameter(self, parameter: Parameter) -> bool:
        try:
            self._update_parameter(parameter, ConditionExpression="attribute_not_exists(pk) OR as_of <= :as_of")
        except ConditionRefused:
            return False
        return True

    def _update_parameter(self, parameter: Parameter, **condition: str) -> None:
        item = encode_parameter(parameter, self._credentials)
        self._table.update(
            _parameter_key(parameter.project, parameter.name),
            UpdateExpression="SET #name = :name, sealed = :sealed, as_of = :as_of, "
            "data_type = if_not_exists(data_type, :data_type) REMOVE #value, #ttl",
            ExpressionAttributeNames={"#name": "name", "#value": "value", "#ttl": "ttl"},
            ExpressionAttributeValues={f":{name}": value for name, value in item.items()},
            **condition,
        )

    def put_parameter(self, parameter: Parameter, *, keep_type: bool) -> None:
        if keep_type:
            self._update_parameter(parameter)
        else:
            key = _parameter_key(parameter.project, parameter.name)
            self._table.put(key | encode_parameter(parameter, self._credentials))

    def delete_parameter(self, project_id: str, name: str, as_of: int) -> bool:
        """Its time stays for a week."""
        deleted = {"as_of": number(as_of), "ttl": number(as_of // 1000 + DELETION_KEPT_S)}
        try:
            self._table.put(_parameter_key(project_id, name) | deleted, ConditionExpression="attribute_exists(sealed)")
        except ConditionRefused:
            return False
        return True

    def note_type(self, project_id: str, message_type: str) -> None:
        self._table.put(store_key(project_id, _TYPE + message_type))

    def types(self, project_id: str) -> list[str]:
        found = islice(self.all(project_id, _TYPE), MOST_TYPES)
        return sorted(each["sk"]["S"].removeprefix(_TYPE) for each in found)

    def claim(self, project_id: str, mapping_id: str, identity: str, message_id: str) -> str:
        """Each claim has its own partition, so that no mapping gets a hot one."""
        try:
            self._table.put(
                {
                    "pk": text(f"{project_id}#C#{mapping_id}#{identity}"),
                    "sk": text("CLAIM"),
                    "message_id": text(message_id),
                },
                ConditionExpression="attribute_not_exists(pk) OR message_id = :message",
                ExpressionAttributeValues={":message": text(message_id)},
            )
        except ConditionRefused as refused:
            holder: str = refused.stored["message_id"]["S"]
            return holder
        return message_id


def _parameter_key(project_id: str, name: str) -> Item:
    return store_key(project_id, PARAMETER + parameter_id(project_id, name))
