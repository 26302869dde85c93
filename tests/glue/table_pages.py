"""What the report reads of the tables, without DynamoDB."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from botocore.exceptions import ClientError


class TablePages:
    """Stands in for a DynamoDB client: scans of tables, page by page.

    Args:
        items: What each table holds.
        refuse: Name of a table that may not be read.

    Attributes:
        asked: The scans.
    """

    def __init__(self, items: Mapping[str, Sequence[dict[str, Any]]], *, refuse: str = "") -> None:
        self.items = items
        self.refuse = refuse
        self.asked: list[dict[str, Any]] = []

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
            if place % asked["TotalSegments"] == asked["Segment"] and item["kind"] == values[":kind"] and within:
                yield {"Items": [item]}
        yield {"Items": []}


__all__ = ["TablePages"]
