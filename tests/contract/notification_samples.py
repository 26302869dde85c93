"""Samples for the contract tests of the notification ports."""

from __future__ import annotations

from typing import Any

from pushhub.notifications.model.backlog import Backlog, Consumer, Entry
from pushhub.notifications.model.subscription import Context, Subscription
from pushhub.notifications.model.topic import Commit, Notification, Topic
from pushhub.notifications.ports import Connection

NOW = 1_795_000_000_000
TOPIC = Topic(project="5e0000000000000000000001", name="orders")
VOLATILE = Topic(project="5e0000000000000000000001", name="orders", non_persistent=True)


def a_commit(sequence: int, **more: Any) -> Commit:
    fields: dict[str, Any] = {
        "topic": TOPIC,
        "topic_uid": "u" * 12,
        "sequence": sequence,
        "notifications": (
            Notification(message_id="1", api="events", source="s/ö", action="CREATE", body='{"a":"ä\\u2028"}'),
            Notification(message_id="2", api="alarms", source="2", action="UPDATE", body=""),
        ),
        "accepted_at": NOW,
        "expires_at": NOW + 1000,
        "previous_at": NOW - 5,
        "size_before": 77,
        "owed_to": ("a", "b"),
    }
    return Commit(**fields | more)


def a_backlog(**more: Any) -> Backlog:
    fields: dict[str, Any] = {
        "topic": TOPIC,
        "subscriber": "app",
        "uid": "abc",
        "created_at": NOW,
        "version": 1,
    }
    return Backlog(**fields | more)


def a_busy_backlog(**more: Any) -> Backlog:
    unacknowledged = tuple(Entry((number * number << 7) + number % 3, number % 65_536) for number in range(1, 900))
    fields: dict[str, Any] = {
        "shared": True,
        "made_after": 17,
        "next": 2**40,
        "returned": (Entry(3, 65_535), Entry(2**39, 0)),
        "acknowledged_early": frozenset({2**40, 2**40 + 1}),
        "consumers": (
            Consumer(
                connection_id="c1=", name="alpha", joined_at=NOW, active_at=NOW + 1, unacknowledged=unacknowledged
            ),
            Consumer(connection_id="c2=", name="c2=", joined_at=NOW, active_at=NOW),
        ),
        "lapsed": ((1, 5), (9, 9)),
    }
    return a_backlog(**fields | more)


def a_connection(connection_id: str = "c1=", **more: Any) -> Connection:
    fields: dict[str, Any] = {
        "connection_id": connection_id,
        "topic": TOPIC,
        "subscriber": "app",
        "subscriber_uid": "abc",
        "shared": False,
        "opened_at": NOW,
    }
    return Connection(**fields | more)


def a_subscription(subscription_id: str = "1", **more: Any) -> Subscription:
    fields: dict[str, Any] = {
        "subscription_id": subscription_id,
        "project": TOPIC.project,
        "context": Context.MANAGED_OBJECT,
        "source": "111",
        "name": "orders",
        "created_at": NOW,
    }
    return Subscription(**fields | more)
