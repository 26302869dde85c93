"""Sample messages, queues and answers: plain ones, and ones with every field set."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

from tests.fakes.clock import START_MS

from pushhub.base.verdict import Answer, Verdict
from pushhub.engine.model.backoff import FixedDelay
from pushhub.engine.model.delivery import Delivery, after_attempt, opening
from pushhub.engine.model.message import BodyRef, Message
from pushhub.engine.model.queue import (
    Queue,
)
from pushhub.engine.model.work import WorkOrder

PROJECT = "5c1f0a9e2b7d4c3f8a6e1d20"
OTHER_PROJECT = "ffffffffffffffffffffffff"
QUEUE_UID = "0a1b2c3d4e5f"
SUBSCRIBER = "a1a2a3a4a5a6"
POLICY = FixedDelay(retries=3, delay_s=60)
NOW = START_MS

_ids = itertools.count(6_112_035_678_239_908_289)


def message(**changes: Any) -> Message:
    """A small message for one subscriber, with an id above all before it."""
    body = changes.pop("body", "Grüße, 世界".encode())
    fields: dict[str, Any] = {
        "project": PROJECT,
        "queue": "orders",
        "queue_uid": QUEUE_UID,
        "message_id": str(next(_ids)),
        "body": body,
        "body_size": len(body) if body is not None else 0,
        "accepted_at": NOW,
        "due_at": NOW,
        "expires_at": NOW + 604_800_000,
        "subscriber_ids": (SUBSCRIBER,),
    }
    return Message(**(fields | changes))


def full_message(**changes: Any) -> Message:
    """A message with every field set."""
    fields: dict[str, Any] = {
        "body": None,
        "body_ref": BodyRef(key="bodies/p/2026-11-21/x", offset=3, length=9_000),
        "body_size": 9_000,
        "headers": {"X-Trace": "ä1", "Accept": "*/*"},
        "due_at": NOW + 5_000,
        "subscriber_ids": ("a1a2a3a4a5a6", "b1b2b3b4b5b6"),
        "unicast": True,
        "hops": 2,
        "root": "1910848478410441216",
        "descendants": 17,
        "cause": "an error",
    }
    return message(**(fields | changes))


def answer(status_code: int, at: int = NOW, **changes: Any) -> Answer:
    """An answer that took 40 ms."""
    fields: dict[str, Any] = {
        "status_code": status_code,
        "message": "Said so",
        "started_at": at - 40,
        "finished_at": at,
        "bytes_out": 500,
        "bytes_in": 12,
    }
    return Answer(**(fields | changes))


def tried(delivery: Delivery, verdict: Verdict, at: int = NOW, **changes: Any) -> Delivery:
    """The delivery after one more attempt."""
    status = {Verdict.DELIVERED: 200, Verdict.RESERVED: 202}.get(verdict, 503)
    after = after_attempt(
        delivery,
        answer(status, at),
        verdict,
        policy=changes.pop("policy", POLICY),
        reserve_ms=60_000,
        jitter=0,
        subscriber="ship é",
        dialect="hub",
    )
    return replace(after, **changes)


def first(of: Message, verdict: Verdict, **changes: Any) -> Delivery:
    """The delivery of a message to its first subscriber after one attempt."""
    return tried(opening(of, of.delivery_subscribers[0]), verdict, **changes)


def order(of: Message, subscriber_id: str | None = None) -> WorkOrder:
    """The work order of a delivery."""
    return WorkOrder.carrying(of, subscriber_id or of.delivery_subscribers[0])


def queue(name: str = "orders", **changes: Any) -> Queue:
    """A pull queue with defaults."""
    fields: dict[str, Any] = {
        "project": PROJECT,
        "name": name,
        "uid": QUEUE_UID,
        "pull_uid": "f0e1d2c3b4a5",
        "secret": "0123456789abcdef0123456789abcdef",
        "created_at": NOW,
    }
    return Queue(**(fields | changes))
