"""Stream records of the table of notifications, read as changes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pushhub.notifications.model.records import BacklogChange, CommitChange
from pushhub.notifications.store._items import decode_backlog, decode_commit


def notification_change(stream_record: Mapping[str, Any]) -> BacklogChange | CommitChange | None:
    """The change in one stream record; None when changes of its kind are not recorded.

    Args:
        stream_record: The record from Lambda (``NEW_AND_OLD_IMAGES``).

    Raises:
        KeyError: An image lacks an attribute.
        ValueError: An attribute has an invalid value.
    """
    stream = stream_record["dynamodb"]
    before, after = stream.get("OldImage"), stream.get("NewImage")
    kind = (after or before).get("kind", {"S": ""})["S"]
    changed_at = round(float(stream["ApproximateCreationDateTime"]) * 1000)
    if kind == "commit":
        return CommitChange(commit=decode_commit(after or before), removed=after is None, changed_at=changed_at)
    if kind == "backlog":
        return BacklogChange(
            before=decode_backlog(before) if before else None,
            after=decode_backlog(after) if after else None,
            changed_at=changed_at,
        )
    return None
