"""What the report reads of the tables, without DynamoDB."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from botocore.exceptions import ClientError


class TablePages:
    """Stands in for a DynamoDB client: scans of tables, page by page, and reads of many keys at once.

    Args:
        items: What each table holds.
        refuse: Name of a table that may not be read.
        at_once: Keys that a read gets to; it leaves the others over.

    Attributes:
        asked: The scans.
        read: The reads.
    """

    def __init__(self, items: Mapping[str, Sequence[dict[str, Any]]], *, refuse: str = "", at_once: int = 100) -> None:
        self.items = items
        self.refuse = refuse
        self.at_once = at_once
        self.asked: list[dict[str, Any]] = []
        self.read: list[dict[str, Any]] = []
        self._by_key = {(table, *_key(each)): each for table, some in items.items() for each in some}

    def get_paginator(self, operation: str) -> TablePages:
        """The paginator of scans."""
        assert operation == "scan"
        return self

    def paginate(self, **asked: Any) -> Iterator[dict[str, Any]]:
        """The pages of one segment: what was accepted within a time."""
        self.asked.append(asked)
        if asked["TableName"] == self.refuse:
            raise ClientError({"Error": {"Code": "AccessDeniedException", "Message": "no"}}, "Scan")
        values = asked["ExpressionAttributeValues"]
        for place, item in enumerate(self.items[asked["TableName"]]):
            within = int(values[":since"]["N"]) <= int(item["accepted_at"]["N"]) <= int(values[":until"]["N"])
            if (
                place % asked["TotalSegments"] == asked["Segment"]
                and item["kind"] in (values[":kind"], values[":pulse"])
                and within
            ):
                yield {"Items": [item]}
        yield {"Items": []}

    # Named as the client's.
    def batch_get_item(self, *, RequestItems: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:  # noqa: N803
        """What is there under some keys."""
        ((table, wanted),) = RequestItems.items()
        if table == self.refuse:
            raise ClientError({"Error": {"Code": "AccessDeniedException", "Message": "no"}}, "BatchGetItem")
        keys = [_key(each) for each in wanted["Keys"]]
        assert len(set(keys)) == len(keys) <= 100, "DynamoDB refuses this"
        self.read.append({"TableName": table, **wanted})
        there = [self._by_key[table, *each] for each in keys[: self.at_once] if (table, *each) in self._by_key]
        names = wanted["ExpressionAttributeNames"].values()
        shown = [{name: each[name] for name in names if name in each} for each in there]
        left = wanted["Keys"][self.at_once :]
        return {"Responses": {table: shown}, "UnprocessedKeys": {table: {**wanted, "Keys": left}} if left else {}}


def _key(item: Mapping[str, Any]) -> tuple[str, str]:
    return item["pk"]["S"], item["sk"]["S"]


__all__ = ["TablePages"]
