"""Tokens of subscribers on DynamoDB: an item each, removed by the table's time to live."""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING

from pushhub.cloud.table import Item, TableStore, number, text
from pushhub.cloud.unreadable import decodes, readable
from pushhub.engine.security.oauth import TokenOwner, TokenState

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

LISTS = 4
"""Partitions of the tokens of a project."""

KEPT_S = 86_400
"""How long an item is kept after everything in it has ended."""

_COUNTS = (
    "usable_until",
    "failures",
    "ask_at",
    "failing_since",
    "out_since",
    "claimed_until",
    "useless_until",
    "version",
)


class DynamoDBTokens(TableStore):
    """Implements :class:`pushhub.engine.security.oauth.AccessTokenStore`."""

    def token_state(self, owner: TokenOwner) -> TokenState | None:
        item = self._table.get(_key(owner))
        return _decode(item, owner) if item else None

    def token_states(self, owners: Sequence[TokenOwner]) -> list[TokenState]:
        items = self._table.get_many([_key(each) for each in dict.fromkeys(owners)], consistent=False)
        return [*readable(items, _decode_listed)]

    def token_states_of(self, project_id: str) -> Iterator[TokenState]:
        """Reads lazily."""
        for shard in range(LISTS):
            items = self._table.items(
                KeyConditionExpression="pk = :pk",
                ExpressionAttributeValues={":pk": text(f"TOKEN#{project_id}#{shard}")},
            )
            yield from readable(items, _decode_listed)

    def save_token_state(self, state: TokenState) -> None:
        ends = max(self._clock.now(), state.usable_until, state.ask_at, state.claimed_until, state.useless_until)
        item = _key(state.owner) | {
            "revision": text(state.revision),
            "reason": text(state.reason),
            "claim": text(state.claim),
            **({"sealed": {"B": state.sealed}} if state.sealed else {}),
            **{name: number(getattr(state, name)) for name in _COUNTS},
            "ttl": number(ends // 1000 + KEPT_S),
        }
        self._table.put_version(item, read=lambda each: _decode(each, state.owner))


def _key(owner: TokenOwner) -> Item:
    shard = zlib.crc32(owner.name.encode()) % LISTS
    return {"pk": text(f"TOKEN#{owner.project}#{shard}"), "sk": text(owner.name)}


@decodes
def _decode_listed(item: Item) -> TokenState:
    return _decode(item, TokenOwner(item["pk"]["S"].split("#")[1], item["sk"]["S"]))


@decodes
def _decode(item: Item, owner: TokenOwner) -> TokenState:
    return TokenState(
        owner=owner,
        revision=item["revision"]["S"],
        sealed=bytes(item["sealed"]["B"]) if "sealed" in item else b"",
        reason=item["reason"]["S"],
        claim=item["claim"]["S"],
        **{name: int(item[name]["N"]) for name in _COUNTS},
    )
