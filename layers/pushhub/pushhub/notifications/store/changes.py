"""Stream records of the table of notifications, read as changes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pushhub.engine.model.catalogue import Accepted
from pushhub.notifications.model.records import DIALECT, BacklogChange, CommitChange
from pushhub.notifications.model.topic import place_in_topic
from pushhub.notifications.store._items import decode_backlog, decode_commit


def accepted_in_topic(stream_record: Mapping[str, Any]) -> Sequence[Accepted]:
    """The notifications that an inserted item brings, if it is a commit. Where each is in its topic is in its queue's
    generation.

    Raises:
        Unreadable: The item is damaged.
    """
    image = stream_record["dynamodb"]["NewImage"]
    if image.get("kind", {"S": ""})["S"] != "commit":
        return []
    commit = decode_commit(image)
    topic = commit.topic
    return [
        Accepted(
            project=topic.project,
            queue=f"{DIALECT}/{topic.name}",
            queue_uid=place_in_topic(topic, position),
            message_id=each.message_id,
            accepted_at=commit.accepted_at,
            body=each.body.encode(errors="surrogatepass"),
        )
        for position, each in commit.positions
    ]


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
