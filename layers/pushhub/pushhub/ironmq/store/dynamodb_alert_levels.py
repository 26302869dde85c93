"""What the alerts of pull queues know of sizes, on DynamoDB: an item beside the places of the queue's messages."""

from __future__ import annotations

from pushhub.base.errors import Conflict
from pushhub.cloud.table import Item, TableStore, number, text
from pushhub.cloud.unreadable import decodes
from pushhub.ironmq.model.alert_level import AlertLevel, AlertLevels

_KEPT_S = 40 * 86_400
"""Longer than any message lives."""


class DynamoDBAlertLevels(TableStore):
    """Implements :class:`pushhub.ironmq.queues.size_alerts.AlertLevelStore`."""

    def levels(self, project_id: str, pull_uid: str) -> AlertLevels:
        # A query, as functions that only post may not get items of this table.
        items = self._table.items(
            KeyConditionExpression="pk = :pk",
            ExpressionAttributeValues={":pk": _key(project_id, pull_uid)["pk"]},
            ConsistentRead=True,
        )
        return next((decode(each) for each in items), AlertLevels(project=project_id, pull_uid=pull_uid))

    def save(self, levels: AlertLevels) -> None:
        item = encode(levels) | {"ttl": number(self._clock.now() // 1000 + _KEPT_S)}
        try:
            # Whoever has written them sends the alerts, so of several that write the same only one may.
            self._table.put_version(item | {"version": number(levels.version + 1)}, read=decode, alone=True)
        except Conflict as conflict:
            raise Conflict(f"alerts of {levels.pull_uid} were looked at meanwhile") from conflict


def _key(project_id: str, pull_uid: str) -> Item:
    return {"pk": text(f"{project_id}#{pull_uid}#!levels"), "sk": text("LEVELS")}


def encode(levels: AlertLevels) -> Item:
    """The item of some levels, without its end."""
    shown = {
        name: {"M": {"reached": number(each.reached), "at": number(each.at)}} for name, each in levels.levels.items()
    }
    return {**_key(levels.project, levels.pull_uid), "levels": {"M": shown}, "version": number(levels.version)}


@decodes
def decode(item: Item) -> AlertLevels:
    """The levels in an item."""
    project, pull_uid, _ = item["pk"]["S"].rsplit("#", 2)
    return AlertLevels(
        project=project,
        pull_uid=pull_uid,
        levels={
            name: AlertLevel(reached=int(each["M"]["reached"]["N"]), at=int(each["M"]["at"]["N"]))
            for name, each in item["levels"]["M"].items()
        },
        version=int(item["version"]["N"]),
    )


__all__ = ["DynamoDBAlertLevels", "decode", "encode"]
