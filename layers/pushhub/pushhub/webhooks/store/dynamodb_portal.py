"""Portal tokens on DynamoDB: an item for each, ``PORTAL#{digest}`` in its application's partition."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress

from pushhub.base import json_text
from pushhub.cloud.calls import ConditionRefused
from pushhub.cloud.documents import Codec, Document
from pushhub.cloud.table import Item, TableStore, number, text
from pushhub.cloud.unreadable import decodes, readable
from pushhub.webhooks.model.portal import Capability, PortalAccess
from pushhub.webhooks.store._items import app_pk, doc, key

_PREFIX = "PORTAL#"
_ACCESS = Document(
    PortalAccess, {"frozenset[Capability]": Codec(sorted, lambda found: frozenset(map(Capability, found)))}
)


class DynamoDBPortalTokens(TableStore):
    """Implements :class:`pushhub.webhooks.applications.portal.PortalTokens`."""

    def put_access(self, access: PortalAccess) -> None:
        self._table.put(_encoded(access))

    def change_access(self, access: PortalAccess) -> None:
        # A token revoked meanwhile stays deleted, and one that was to end sooner does.
        item = _encoded(access)
        with suppress(ConditionRefused):
            self._table.put(
                item,
                ConditionExpression="#ttl >= :ttl",
                ExpressionAttributeNames={"#ttl": "ttl"},
                ExpressionAttributeValues={":ttl": item["ttl"]},
            )

    def access(self, project_id: str, app_id: str, digest: str) -> PortalAccess | None:
        item = self._table.get(key(app_pk(project_id, app_id), _PREFIX + digest))
        return _decoded(item) if item else None

    def accesses(self, project_id: str, app_id: str) -> Iterator[PortalAccess]:
        found = self._table.items(
            KeyConditionExpression="pk = :pk AND begins_with(sk, :prefix)",
            ExpressionAttributeValues={":pk": text(app_pk(project_id, app_id)), ":prefix": text(_PREFIX)},
            ConsistentRead=True,
        )
        return readable(found, _decoded)

    def remove_accesses(self, accesses: Sequence[PortalAccess]) -> None:
        self._table.delete_many([_key(each) for each in accesses])


def _key(access: PortalAccess) -> Item:
    return key(app_pk(access.project, access.app_id), _PREFIX + access.digest)


def _encoded(access: PortalAccess) -> Item:
    value = {**_ACCESS.encode(access), "at": [access.created_at, access.expires_at]}
    return _key(access) | {"doc": doc(value), "ttl": number(access.expires_at // 1000 + 1)}


@decodes
def _decoded(item: Item) -> PortalAccess:
    value = json_text.stored(item["doc"]["S"])
    _, project, app_id = item["pk"]["S"].split("#")
    access: PortalAccess = _ACCESS.decode(
        value,
        project=project,
        app_id=app_id,
        digest=item["sk"]["S"].removeprefix(_PREFIX),
        created_at=value["at"][0],
        expires_at=value["at"][1],
    )
    return access
