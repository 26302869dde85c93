"""Topics, backlogs, connections and subscriptions as items of a table.

=============  ======================================  =====================
item           pk                                      sk
=============  ======================================  =====================
topic          ``{project}#T#{p or v}#{topic}``        ``HEAD``
backlog        the same                                ``S#{subscriber}``
commit         ``{project}#L#{p or v}#{topic}``        sequence, 19 digits
subscription   ``{project}#R``                         ``{context}#{source}#{topic}``
its id         ``{project}#I``                         id
connection     ``C#{connection id}``                   ``C``
request        ``{project}#K#{hash of its key}``       ``K``
=============  ======================================  =====================

``p`` is for persistent topics, ``v`` for volatile ones. Connections are found by API Gateway's id alone, which is all
that comes with a frame. Sources are quoted, so that one can never be a prefix of another's key.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator, Sequence
from typing import Any
from urllib.parse import quote

from pushhub.cloud.table import Item, number, numbers, text
from pushhub.cloud.unreadable import decodes
from pushhub.notifications.model.backlog import Backlog, Consumer, Entry
from pushhub.notifications.model.request import REPEATABLE_MS, PublishRequest
from pushhub.notifications.model.subscription import Context, Subscription
from pushhub.notifications.model.topic import Commit, Head, Notification, Topic
from pushhub.notifications.ports import Connection

KEPT_AFTER_EXPIRY_S = 86_400
"""How long a commit outlives its notifications before the table's TTL may take it, seconds."""

_QUOTED_SOURCE = 600
"""Bytes of a source in a sort key, which is limited to 1,024."""

_NEVER = 1 << 53

CONNECTION_KEPT_S = 3 * 3600
"""How long a connection is kept if nobody removes it, seconds: an hour longer than API Gateway lets one live."""


def topic_key(topic: Topic) -> str:
    """Partition of a topic's head and backlogs."""
    return f"{topic.project}#T#{'v' if topic.non_persistent else 'p'}#{topic.name}"


def log_key(topic: Topic) -> str:
    """Partition of a topic's commits."""
    return f"{topic.project}#L#{'v' if topic.non_persistent else 'p'}#{topic.name}"


def head_key(topic: Topic) -> Item:
    """Key of a topic's head."""
    return {"pk": text(topic_key(topic)), "sk": text("HEAD")}


def commit_key(topic: Topic, sequence: int) -> Item:
    """Key of a commit."""
    return {"pk": text(log_key(topic)), "sk": text(f"{sequence:019d}")}


def backlog_key(topic: Topic, subscriber: str) -> Item:
    """Key of a backlog."""
    return {"pk": text(topic_key(topic)), "sk": text(f"S#{subscriber}")}


def connection_key(connection_id: str) -> Item:
    """Key of a connection."""
    return {"pk": text(f"C#{connection_id}"), "sk": text("C")}


def request_key(project: str, key: str) -> Item:
    """Key of a publish request that may be repeated."""
    return {"pk": text(f"{project}#K#{hashlib.sha256(key.encode()).hexdigest()}"), "sk": text("K")}


def taken_name(topic: Topic) -> str:
    """A topic's name in a request's ``taken``."""
    return f"{'v' if topic.non_persistent else 'p'}#{topic.name}"


def subscription_prefix(context: Context, source: str) -> str:
    """The common prefix of the sort keys of all subscriptions to a source."""
    quoted = quote(source, safe="")
    if len(quoted) > _QUOTED_SOURCE:
        # A quoted source never contains a colon, so this cannot be another source's key.
        quoted = f"sha256:{hashlib.sha256(source.encode()).hexdigest()}"
    return f"{context.value}#{quoted}#"


def subscription_key(rule: Subscription) -> Item:
    """Key of a subscription."""
    return {"pk": text(f"{rule.project}#R"), "sk": text(subscription_prefix(rule.context, rule.source) + rule.name)}


def subscription_id_key(project_id: str, subscription_id: str) -> Item:
    """Key of the item that finds a subscription by its id."""
    return {"pk": text(f"{project_id}#I"), "sk": text(subscription_id)}


def _topic(pk: str) -> Topic:
    project, _, kind, name = pk.split("#", 3)
    return Topic(project=project, name=name, non_persistent=kind == "v")


@decodes
def decode_head(item: Item) -> Head:
    """A head."""
    return Head(
        uid=item["uid"]["S"],
        sequence=int(item["sequence"]["N"]),
        size=int(item["size"]["N"]),
        ceiling=int(item["ceiling"]["N"]),
        reserved_at=int(item["reserved_at"]["N"]),
        subscribers=frozenset(item.get("subscribers", {"SS": []})["SS"]),
    )


def encode_commit(commit: Commit) -> Item:
    """A commit as an item."""
    item: Item = {
        **commit_key(commit.topic, commit.sequence),
        "kind": text("commit"),
        "topic_uid": text(commit.topic_uid),
        "notifications": {
            "L": [
                {"L": [text(value) for value in (each.message_id, each.api, each.source, each.action, each.body)]}
                for each in commit.notifications
            ]
        },
        "accepted_at": number(commit.accepted_at),
        "expires_at": number(commit.expires_at),
        "previous_at": number(commit.previous_at),
        "size_before": number(commit.size_before),
        "ttl": number(commit.expires_at // 1000 + KEPT_AFTER_EXPIRY_S),
    }
    if commit.owed_to:
        item["owed_to"] = text(" ".join(commit.owed_to))
    return item


@decodes
def decode_commit(item: Item) -> Commit:
    """A commit from an item or a stream image."""
    return Commit(
        topic=_topic(item["pk"]["S"]),
        topic_uid=item["topic_uid"]["S"],
        sequence=int(item["sk"]["S"]),
        notifications=tuple(_notification(each["L"]) for each in item["notifications"]["L"]),
        accepted_at=int(item["accepted_at"]["N"]),
        expires_at=int(item["expires_at"]["N"]),
        previous_at=int(item["previous_at"]["N"]),
        size_before=int(item["size_before"]["N"]),
        owed_to=tuple(item.get("owed_to", text(""))["S"].split()),
    )


@decodes
def decode_place(item: Item) -> Commit:
    """The place of a commit that cannot be read, of which nothing is sent: it keeps none behind it waiting."""
    return Commit(
        topic=_topic(item["pk"]["S"]),
        topic_uid="",
        sequence=int(item["sk"]["S"]),
        notifications=(),
        accepted_at=0,
        expires_at=_if_number(item, "expires_at", _NEVER),
        previous_at=_if_number(item, "previous_at", 0),
        size_before=0,
    )


def _if_number(item: Item, name: str, default: int) -> int:
    given = str(item.get(name, {}).get("N", ""))
    return int(given) if given.isdecimal() else default


def _notification(values: list[Any]) -> Notification:
    message_id, api, source, action, body = (each["S"] for each in values)
    return Notification(message_id=message_id, api=api, source=source, action=action, body=body)


def encode_backlog(backlog: Backlog) -> Item:
    """A backlog as an item."""
    item: Item = {
        **backlog_key(backlog.topic, backlog.subscriber),
        "kind": text("backlog"),
        "uid": text(backlog.uid),
        "version": number(backlog.version),
        "created_at": number(backlog.created_at),
    }
    if backlog.shared:
        item["shared"] = {"BOOL": True}
    if backlog.made_after is not None:
        item["made_after"] = number(backlog.made_after)
    if backlog.next is not None:
        item["next"] = number(backlog.next)
    if backlog.returned:
        item["returned"] = {"B": _packed(backlog.returned)}
    if backlog.acknowledged_early:
        item["acknowledged_early"] = {"NS": [str(each) for each in sorted(backlog.acknowledged_early)]}
    if backlog.consumers:
        item["consumers"] = {"L": [_encode_consumer(each) for each in backlog.consumers]}
    if backlog.lapsed:
        item["lapsed"] = {"L": [number(position) for pair in backlog.lapsed for position in pair]}
    return item


def _encode_consumer(consumer: Consumer) -> Item:
    fields: Item = {
        "id": text(consumer.connection_id),
        "joined_at": number(consumer.joined_at),
        "active_at": number(consumer.active_at),
    }
    if consumer.name != consumer.connection_id:
        fields["name"] = text(consumer.name)
    if consumer.unacknowledged:
        fields["unacknowledged"] = {"B": _packed(consumer.unacknowledged)}
    return {"M": fields}


@decodes
def decode_backlog(item: Item) -> Backlog:
    """A backlog from an item or a stream image."""
    bounds = [int(each["N"]) for each in item.get("lapsed", {"L": []})["L"]]
    return Backlog(
        topic=_topic(item["pk"]["S"]),
        subscriber=item["sk"]["S"].removeprefix("S#"),
        uid=item["uid"]["S"],
        shared="shared" in item,
        made_after=numbers(item, "made_after"),
        next=numbers(item, "next"),
        returned=_unpacked(item.get("returned")),
        acknowledged_early=decode_positions(item, "acknowledged_early"),
        consumers=tuple(_decode_consumer(each["M"]) for each in item.get("consumers", {"L": []})["L"]),
        lapsed=tuple(zip(bounds[::2], bounds[1::2], strict=True)),
        created_at=int(item["created_at"]["N"]),
        version=int(item["version"]["N"]),
    )


def _decode_consumer(fields: Item) -> Consumer:
    connection_id: str = fields["id"]["S"]
    return Consumer(
        connection_id=connection_id,
        name=fields["name"]["S"] if "name" in fields else connection_id,
        joined_at=int(fields["joined_at"]["N"]),
        active_at=int(fields["active_at"]["N"]),
        unacknowledged=_unpacked(fields.get("unacknowledged")),
    )


def _packed(entries: Sequence[Entry]) -> bytes:
    """Entries in order as bytes, about four each: the increase of the position (seven bits per byte, lowest first),
    then the bucket.
    """
    packed = bytearray()
    before = 0
    for entry in entries:
        rise = entry.position - before
        before = entry.position
        while rise > 0x7F:
            packed.append(0x80 | rise & 0x7F)
            rise >>= 7
        packed.append(rise)
        packed += entry.bucket.to_bytes(2)
    return bytes(packed)


def _unpacked(value: Any) -> tuple[Entry, ...]:
    if value is None:
        return ()
    stored = value["B"]
    packed = base64.b64decode(stored) if isinstance(stored, str) else bytes(stored)
    return tuple(_entries(packed))


def _entries(packed: bytes) -> Iterator[Entry]:
    position = at = 0
    while at < len(packed):
        shift = 0
        while packed[at] & 0x80:
            position += (packed[at] & 0x7F) << shift
            shift, at = shift + 7, at + 1
        position += packed[at] << shift
        yield Entry(position, int.from_bytes(packed[at + 1 : at + 3]))
        at += 3


@decodes
def decode_positions(item: Item, name: str) -> frozenset[int]:
    """A set of positions."""
    return frozenset(int(each) for each in item.get(name, {"NS": []})["NS"])


def encode_connection(connection: Connection) -> Item:
    """A new connection as an item."""
    return {
        **connection_key(connection.connection_id),
        "kind": text("connection"),
        "topic": text(topic_key(connection.topic)),
        "subscriber": text(connection.subscriber),
        "subscriber_uid": text(connection.subscriber_uid),
        "shared": {"BOOL": connection.shared},
        "token_id": text(connection.token_id),
        "issued_by": text(connection.issued_by),
        "opened_at": number(connection.opened_at),
        "ttl": number(connection.opened_at // 1000 + CONNECTION_KEPT_S),
    }


@decodes
def decode_connection(item: Item) -> Connection:
    """A connection from an item or a stream image."""
    return Connection(
        connection_id=item["pk"]["S"].removeprefix("C#"),
        topic=_topic(item["topic"]["S"]),
        subscriber=item["subscriber"]["S"],
        subscriber_uid=item["subscriber_uid"]["S"],
        shared=item["shared"]["BOOL"],
        opened_at=int(item["opened_at"]["N"]),
        acknowledged=decode_positions(item, "acknowledged"),
        stalled="stalled" in item,
        token_id=item.get("token_id", text(""))["S"],
        issued_by=item.get("issued_by", text(""))["S"],
        leaving="leaving" in item,
    )


def encode_request(request: PublishRequest, noted_at: int) -> Item:
    """A new request as an item."""
    return {
        **request_key(request.project, request.key),
        "kind": text("request"),
        "key": text(request.key),
        "digest": text(request.digest),
        "ids": text(" ".join(request.ids)),
        "taken": {"M": {taken_name(topic): number(up_to) for topic, up_to in request.taken.items()}},
        "ttl": number(-(-(noted_at + 2 * REPEATABLE_MS) // 1000)),
        "noted_at": number(noted_at),
    }


@decodes
def decode_request(item: Item) -> PublishRequest:
    """A request."""
    project = item["pk"]["S"].partition("#")[0]
    return PublishRequest(
        project=project,
        key=item["key"]["S"],
        digest=item["digest"]["S"],
        ids=tuple(item["ids"]["S"].split()),
        taken={_taken(project, name): int(up_to["N"]) for name, up_to in item["taken"]["M"].items()},
    )


def _taken(project: str, name: str) -> Topic:
    kind, _, topic = name.partition("#")
    return Topic(project=project, name=topic, non_persistent=kind == "v")


def encode_subscription(rule: Subscription) -> Item:
    """A subscription as an item."""
    item: Item = {
        **subscription_key(rule),
        "kind": text("subscription"),
        "id": text(rule.subscription_id),
        "context": text(rule.context.value),
        "source": text(rule.source),
        "name": text(rule.name),
        "created_at": number(rule.created_at),
    }
    if rule.apis:
        item["apis"] = text(" ".join(rule.apis))
    if rule.type_filter:
        item["type_filter"] = text(rule.type_filter)
    if rule.fragments:
        item["fragments"] = {"L": [text(each) for each in rule.fragments]}
    if rule.non_persistent:
        item["non_persistent"] = {"BOOL": True}
    return item


@decodes
def decode_subscription(item: Item) -> Subscription:
    """A subscription."""
    return Subscription(
        subscription_id=item["id"]["S"],
        project=item["pk"]["S"].removesuffix("#R"),
        context=Context(item["context"]["S"]),
        source=item["source"]["S"],
        name=item["name"]["S"],
        apis=tuple(item.get("apis", text(""))["S"].split()),
        type_filter=item.get("type_filter", text(""))["S"],
        fragments=tuple(each["S"] for each in item.get("fragments", {"L": []})["L"]),
        non_persistent="non_persistent" in item,
        created_at=int(item["created_at"]["N"]),
    )
