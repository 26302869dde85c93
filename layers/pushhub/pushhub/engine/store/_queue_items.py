"""Queues as items of the configuration table: which attributes they have stands on their fields."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pushhub.base.gates import ClientCertificate
from pushhub.cloud.records import Record, choice, one_of
from pushhub.cloud.unreadable import decodes
from pushhub.engine.model.answer_rules import AnswerRules, OnStatus, StatusRule
from pushhub.engine.model.backoff import Exponential, FixedDelay, RetrySchedule
from pushhub.engine.model.circuit import Circuit
from pushhub.engine.model.flow import Limits
from pushhub.engine.model.queue import (
    AcceptedSender,
    Alert,
    DeadLetter,
    FormerSubscriber,
    PushSettings,
    Queue,
    QueueType,
    Subscriber,
)

if TYPE_CHECKING:
    from pushhub.cloud.table import Item

_POLICIES = {
    "RetryPolicy": one_of(Record(FixedDelay), Record(Exponential), Record(RetrySchedule)),
    "AnswerRules": Record(AnswerRules, {"StatusRule": Record(StatusRule, {"OnStatus": choice(OnStatus)}).kind}).kind,
    "Limits": Record(Limits).kind,
    "Circuit": Record(Circuit).kind,
}
_PUSH = {
    **_POLICIES,
    "Subscriber": Record(Subscriber, {**_POLICIES, "ClientCertificate": Record(ClientCertificate).kind}).kind,
    "FormerSubscriber": Record(FormerSubscriber).kind,
}
_QUEUE = Record(
    Queue,
    {
        "QueueType": choice(QueueType),
        "PushSettings": Record(PushSettings, _PUSH).kind,
        "DeadLetter": Record(DeadLetter).kind,
        "Alert": Record(Alert).kind,
        "AcceptedSender": Record(AcceptedSender).kind,
    },
)


def encode_queue(queue: Queue) -> Item:
    """All attributes of a queue except its keys."""
    return _QUEUE.encode(queue)


@decodes
def decode_queue(item: Item, project_id: str, name: str) -> Queue:
    """The queue from its item."""
    queue: Queue = _QUEUE.decode(item, project=project_id, name=name)
    return queue
