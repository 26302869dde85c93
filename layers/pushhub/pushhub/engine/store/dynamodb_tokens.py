"""Tokens of subscribers on DynamoDB: an item each, removed by the table's time to live."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pushhub.cloud.table import Item, TableStore, number, text
from pushhub.cloud.unreadable import decodes
from pushhub.engine.oauth import TokenOwner, TokenState

if TYPE_CHECKING:
    pass

KEPT_S = 86_400
"""How long an item is kept after everything in it has ended."""

_COUNTS = ("usable_until", "failures", "ask_at", "out_since", "claimed_until", "useless_until", "version")


class DynamoDBTokens(TableStore):
    """Implements :class:`pushhub.engine.oauth.TokenStore`."""

    def token_state(self, owner: TokenOwner) -> TokenState | None:
        item = self._table.get(_key(owner))
        return _decode(item, owner) if item else None

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
    return {"pk": text(f"TOKEN#{owner.project}#{owner.name}"), "sk": text("TOKEN")}


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
