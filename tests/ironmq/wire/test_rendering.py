"""Messages and queues as clients see them."""

from __future__ import annotations

import base64
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pushhub.base.credentials import MASK
from pushhub.base.errors import (
    Forbidden,
    Invalid,
    MessageNotFound,
    NotFound,
    QueueNotFound,
    RequestRefused,
    TooLarge,
    Unauthorized,
)
from pushhub.base.signing_change import KEEP, SigningChange
from pushhub.engine.model.queue import Alert, DeadLetter, PushSettings, Queue, QueueType, Subscriber
from pushhub.ironmq.wire.alerts import alert_body
from pushhub.ironmq.wire.error_queue import without_secrets
from pushhub.ironmq.wire.errors import status_of
from pushhub.ironmq.wire.messages import render_message
from pushhub.ironmq.wire.queues import parse_queue, render_queue, render_queue_info

QUEUE = Queue(project="p", name="q", uid="u", pull_uid="l", secret="s", created_at=0)


@given(st.binary())
def test_any_bytes_can_be_shown_and_got_back(body: bytes) -> None:
    shown = render_message("1", body, reserved_count=2, reservation_id="r")
    text = shown["body"]
    assert isinstance(text, str)
    encoded = shown.get("body_base64")
    assert (base64.b64decode(str(encoded)) if encoded else text.encode()) == body
    assert (shown["reserved_count"], shown["reservation_id"]) == (2, "r")


def test_push_settings_are_absent_on_pull_queues_and_alerts_when_there_are_none() -> None:
    assert set(render_queue(QUEUE)) == {"project_id", "id", "name", "message_timeout", "message_expiration", "type"}
    assert set(render_queue_info(QUEUE, size=1, total_messages=2)) - set(render_queue(QUEUE)) == {
        "size",
        "total_messages",
    }


@pytest.mark.parametrize(
    "queue",
    [
        QUEUE,
        replace(
            QUEUE,
            dead_letter=DeadLetter(queue_name="d", max_reservations=3),
            alerts=(Alert(alert_id="a", type="fixed", trigger=3, direction="desc", queue="t", snooze=4),),
        ),
        replace(
            QUEUE,
            type=QueueType.UNICAST,
            push=PushSettings(
                subscribers=(
                    Subscriber(subscriber_id="x", name="n", url="http://a", headers={"X": MASK}, timeout_s=20),
                    Subscriber(subscriber_id="y", name="m", url="http://b", sealed=b"keys"),
                ),
                retries=0,
                retries_delay=5,
                error_queue="e",
            ),
        ),
    ],
)
def test_what_is_shown_can_be_sent_back(queue: Queue) -> None:
    settings = parse_queue({"queue": render_queue_info(queue, size=3, total_messages=4)})
    assert settings.type is queue.type
    assert settings.own.message_timeout == queue.message_timeout
    if queue.push is not None:
        assert settings.push is not None
        for given, each in zip(settings.push.subscribers or (), queue.push.subscribers, strict=True):
            assert (given.name, given.url, given.headers) == (each.name, each.url, each.headers)
            assert given.timeout_s == each.timeout_s
            assert given.signing == (SigningChange(on=True) if each.sealed else KEEP)
        assert (settings.push.retries, settings.push.error_queue) == (queue.push.retries, queue.push.error_queue)
    if queue.alerts:
        assert settings.alerts == tuple(replace(each, alert_id="") for each in queue.alerts)


def test_alert_messages_say_what_happened() -> None:
    alert = Alert(alert_id="a1", type="progressive", trigger=5, direction="asc", queue="t")
    assert alert_body(alert, "źródło", 12, 1_392_743_443_000).decode() == (
        '{"source_queue": "źródło", "queue_size": 12, "alert_id": "a1", "alert_type": "progressive", '
        '"alert_direction": "asc", "alert_trigger": 5, "created_at": "2014-02-18T17:10:43.000Z"}'
    )


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (Invalid("x"), 400),
        (RequestRefused("x"), 400),
        (Unauthorized(), 401),
        (Forbidden("x"), 403),
        (NotFound(), 404),
        (QueueNotFound(), 404),
        (MessageNotFound(), 404),
        (TooLarge(5), 413),
    ],
)
def test_statuses_of_refusals(error: RequestRefused, status: int) -> None:
    assert status_of(error) == status


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("https://a.example/in", "https://a.example/in"),
        (
            "https://user:pass@a.example:81/in?auth=TOKEN&x=1&flag",
            "https://user:***@a.example:81/in?auth=***&x=***&***",
        ),
        ("https://token@a.example", "https://***@a.example"),
        ("https://a.example?auth=T/O@K", "https://a.example?auth=***"),
        ("https://u:p@ss@a.example/@x?", "https://u:***@a.example/@x?"),
        ("ironmq:///q", "ironmq:///q"),
        ("ironmq://P:TOKEN@/q", "ironmq://P:***@/q"),
        ("ironmq://P:TOKEN@mq.example:8080/q", "ironmq://P:***@mq.example:8080/q"),
        ("ironworker://P:TOKEN@w.example/code", "ironworker://P:***@w.example/code"),
        ("", ""),
    ],
)
def test_urls_in_error_queues_hide_their_secrets(url: str, reason: str) -> None:
    assert without_secrets(url) == reason
