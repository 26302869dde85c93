"""Topics on DynamoDB: a head that numbers commits and lists the subscribers they are owed to, and the commits
themselves.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pushhub.base.errors import Conflict
from pushhub.base.ids import new_uid
from pushhub.cloud.calls import ConditionRefused
from pushhub.cloud.table import Item, TableStore, WritesRefused, number, text
from pushhub.cloud.unreadable import paired, readable
from pushhub.notifications.model.topic import Commit, Head, Reservation, Topic
from pushhub.notifications.ports import AlreadyAppended, TopicFull
from pushhub.notifications.store._items import (
    commit_key,
    decode_commit,
    decode_head,
    decode_place,
    encode_commit,
    head_key,
    log_key,
    request_key,
    taken_name,
)

if TYPE_CHECKING:
    from pushhub.notifications.model.request import CommitPart


class DynamoDBTopicStore(TableStore):
    """Implements :class:`pushhub.notifications.ports.TopicStore`."""

    def admit(self, topic: Topic, subscriber_uid: str, *, ceiling: int) -> Head:
        fresh = {"sequence": 0, "size": 0, "ceiling": ceiling, "reserved_at": 0, "previous_at": 0}
        given = ", ".join(f"#{name} = if_not_exists(#{name}, :{name})" for name in fresh)
        item = self._table.update(
            head_key(topic),
            UpdateExpression=f"SET uid = if_not_exists(uid, :uid), {given} ADD subscribers :subscribers",
            ExpressionAttributeNames={f"#{name}": name for name in fresh},
            ExpressionAttributeValues={
                ":uid": text(new_uid()),
                ":subscribers": {"SS": [subscriber_uid]},
                **{f":{name}": number(value) for name, value in fresh.items()},
            },
        )
        return decode_head(item)

    def dismiss(self, topic: Topic, subscriber_uid: str) -> None:
        try:
            self._table.update(
                head_key(topic),
                UpdateExpression="DELETE subscribers :subscribers",
                ConditionExpression="attribute_exists(pk)",
                ExpressionAttributeValues={":subscribers": {"SS": [subscriber_uid]}},
            )
        except ConditionRefused:
            return

    def head(self, topic: Topic) -> Head | None:
        item = self._table.get(head_key(topic))
        return decode_head(item) if item else None

    def reserve(self, topic: Topic, size: int, now: int, *, admitted: bool = False) -> Reservation | None:
        """If the SDK repeats the call, a second place is reserved; the first stays empty and is voided by the
        readers.
        """
        try:
            item = self._table.update(
                head_key(topic),
                UpdateExpression="SET previous_at = reserved_at, reserved_at = :now ADD #sequence :one, #size :size",
                ConditionExpression="attribute_exists(subscribers)" + ("" if admitted else " AND #size < ceiling"),
                ExpressionAttributeNames={"#sequence": "sequence", "#size": "size"},
                ExpressionAttributeValues={":now": number(now), ":one": number(1), ":size": number(size)},
            )
        except ConditionRefused as refused:
            if "subscribers" not in refused.stored:
                return None
            raise TopicFull(decode_head(refused.stored)) from refused
        head = decode_head(item)
        return Reservation(
            topic_uid=head.uid,
            sequence=head.sequence,
            size_before=head.size - size,
            reserved_at=now,
            previous_at=int(item["previous_at"]["N"]),
            subscribers=head.subscribers,
        )

    def raise_ceiling(self, topic: Topic, ceiling: int) -> None:
        try:
            self._table.update(
                head_key(topic),
                UpdateExpression="SET ceiling = :ceiling",
                ConditionExpression="ceiling < :ceiling",
                ExpressionAttributeValues={":ceiling": number(ceiling)},
            )
        except ConditionRefused:
            return

    def append(self, commit: Commit, part: CommitPart | None = None) -> None:
        item = encode_commit(commit)
        if part is not None:
            self._append_part(item, commit.topic, part)
            return
        try:
            self._table.put(item, ConditionExpression="attribute_not_exists(pk)")
        except ConditionRefused as refused:
            if refused.stored != item:
                raise Conflict("the place is taken") from refused

    def _append_part(self, item: Item, topic: Topic, part: CommitPart) -> None:
        """Both writes or neither, so that no repetition finds one without the other."""
        put = {"Item": item, "ConditionExpression": "attribute_not_exists(pk)"}
        note = {
            "Key": request_key(topic.project, part.key),
            "UpdateExpression": "SET taken.#topic = :up_to",
            "ConditionExpression": "attribute_not_exists(taken.#topic) OR taken.#topic < :up_to",
            "ExpressionAttributeNames": {"#topic": taken_name(topic)},
            "ExpressionAttributeValues": {":up_to": number(part.up_to)},
        }
        try:
            self._table.write_together([("Put", put), ("Update", note)])
        except WritesRefused as refused:
            _, noted = refused.conditions
            if noted:
                raise AlreadyAppended("part of a request") from refused
            raise Conflict("the place is taken") from refused

    def commits(self, topic: Topic, first: int, limit: int) -> list[Commit]:
        """One page of a query: up to 1 MiB."""
        pages = self._table.pages(
            KeyConditionExpression="pk = :log AND sk >= :first",
            ExpressionAttributeValues={":log": text(log_key(topic)), ":first": commit_key(topic, first)["sk"]},
            ConsistentRead=True,
            Limit=limit,
        )
        for page in pages:
            items: list[Item] = page["Items"]
            if items:
                read = paired(items, decode_commit)
                return [commit or decode_place(item) for item, commit in read]
        return []

    def commits_at(self, topic: Topic, sequences: Sequence[int]) -> dict[int, Commit]:
        items = self._table.get_many([commit_key(topic, each) for each in sequences])
        return {commit.sequence: commit for commit in readable(items, decode_commit)}
