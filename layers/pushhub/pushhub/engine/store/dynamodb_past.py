"""Searches of the past on DynamoDB: an item for each, under its project, so that no other project finds it."""

from __future__ import annotations

from dataclasses import asdict

from pushhub.base import json_text
from pushhub.base.times import iso_time
from pushhub.cloud.table import Item, TableStore, number, text
from pushhub.engine.model.past import PastQuery

KEPT_S = 86_400
"""How long a search is remembered; what it found in S3 is kept for as long."""


class DynamoDBPastSearches(TableStore):
    """Implements :class:`pushhub.engine.records.ports.PastSearchStore`."""

    def put(self, project_id: str, search_id: str, query: PastQuery, run: str, now: int) -> None:
        wanted = {name: value for name, value in asdict(query).items() if name != "project"}
        self._table.put(
            _key(project_id, f"S#{search_id}")
            | {
                "query": text(json_text.write(wanted)),
                "run": text(run),
                "ttl": number(now // 1000 + KEPT_S),
            }
        )

    def get(self, project_id: str, search_id: str) -> tuple[PastQuery, str] | None:
        item = self._table.get(_key(project_id, f"S#{search_id}"))
        if item is None:
            return None
        # The project is that of the key: nothing that is stored in an item can name another.
        return PastQuery(project=project_id, **json_text.stored(item["query"]["S"])), item["run"]["S"]

    def count(self, project_id: str, hour: int) -> int:
        counted = self._table.update(
            _key(project_id, f"H#{iso_time(hour)}"),
            UpdateExpression="ADD searches :one SET #ttl = :ttl",
            ExpressionAttributeNames={"#ttl": "ttl"},
            ExpressionAttributeValues={":one": number(1), ":ttl": number(hour // 1000 + KEPT_S)},
        )
        return int(counted["searches"]["N"])


def _key(project_id: str, name: str) -> Item:
    return {"pk": text(f"PAST#{project_id}"), "sk": text(name)}
