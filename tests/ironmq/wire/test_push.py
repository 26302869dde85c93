"""The headers of one push."""

from __future__ import annotations

from collections.abc import Mapping

from pushhub.engine.model.message import Message
from pushhub.engine.model.queue import Queue, QueueType, Subscriber
from pushhub.ironmq.wire.push import push_headers


def headers(of_subscriber: Mapping[str, str], of_message: Mapping[str, str]) -> dict[str, str]:
    queue = Queue(project="p", name="q", uid="u", pull_uid="l", type=QueueType.MULTICAST, secret="s" * 32, created_at=0)
    message = Message(
        project="p",
        queue="q",
        queue_uid="u",
        message_id="1" * 19,
        body=b"x",
        body_size=1,
        headers=of_message,
        accepted_at=0,
        due_at=0,
        expires_at=1,
        subscriber_ids=("s0",),
    )
    subscriber = Subscriber(subscriber_id="s0", name="first", url="http://a.example/", headers=of_subscriber)
    return push_headers(
        base_url="https://hub.example",
        queue=queue,
        message=message,
        subscriber=subscriber,
        attempt=1,
        allowance=7,
        signature={},
        trace={},
    )


def test_a_messages_header_wins_over_the_subscribers_and_the_hubs_own_wins_over_both() -> None:
    # Given the same names at several levels, in other spellings
    sent = headers(
        {"x-shared": "subscriber", "X-Own": "subscriber", "content-type": "text/csv", "iron-MESSAGE-id": "forged"},
        {"X-Shared": "message", "iron-subscriber-NAME": "forged"},
    )
    # Then each is sent once: the message's before the subscriber's, both before the defaults
    assert sent["X-Shared"] == "message"
    assert sent["X-Own"] == "subscriber"
    assert sent["content-type"] == "text/csv"
    assert sent["User-Agent"] == "IronMQ Pusherd"
    # And headers reserved for the hub have the hub's values
    assert sent["Iron-Message-Id"] == "1" * 19
    assert sent["Iron-Subscriber-Name"] == "first"
    assert len({name.lower() for name in sent}) == len(sent)
    assert "forged" not in sent.values()


def test_content_type_and_user_agent_are_the_messages_before_the_subscribers_before_the_hubs() -> None:
    # Given a subscriber with both, and a message with one of them
    subscriber = {"User-Agent": "Subscriber/1", "content-type": "text/csv"}
    sent = headers(subscriber, {"Content-Type": "application/json"})
    # Then the message's goes before the subscriber's
    assert (sent["User-Agent"], sent["Content-Type"]) == ("Subscriber/1", "application/json")
    # And the message's alone before the hub's own
    sent = headers({}, {"User-Agent": "Message/1"})
    assert (sent["User-Agent"], sent["Content-Type"]) == ("Message/1", "text/plain; encoding=utf-8")
