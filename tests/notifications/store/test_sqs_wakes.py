"""The wake-up queue on SQS (FIFO)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.cloud.aws_services import Intercepted, fails
from tests.fakes import FakeClock
from tests.notifications.store import aws_notifications as aws

from pushhub.base.errors import Unavailable
from pushhub.notifications.model.topic import Topic
from pushhub.notifications.ports import WakeUp
from pushhub.notifications.store.sqs_wakes import SqsWakeQueue, decode_wake, encode_wake

WAKE = WakeUp(topic=Topic(project="p", name="orders"), subscriber="ü app", subscriber_uid="abc", version=3)


def received(sqs: Any, url: str) -> list[Any]:
    found: list[Any] = []
    while messages := sqs.receive_message(
        QueueUrl=url, MaxNumberOfMessages=10, AttributeNames=["All"], VisibilityTimeout=60
    ).get("Messages", []):
        found += messages
        for each in messages:
            sqs.delete_message(QueueUrl=url, ReceiptHandle=each["ReceiptHandle"])
    return found


def test_one_version_is_one_message_in_its_subscriber_s_group() -> None:
    with aws.wakes() as (sqs, url):
        queue = SqsWakeQueue(sqs, url, FakeClock())
        # When the same version is sent twice, the next one, and another subscriber's
        queue.wake([WAKE])
        queue.wake([WAKE, replace(WAKE, version=4), replace(WAKE, subscriber_uid="def")])
        # Then three messages are there
        messages = received(sqs, url)
        reported = sorted(
            (each["Attributes"]["MessageGroupId"], decode_wake(each["Body"]).version) for each in messages
        )
        assert reported == [("abc", 3), ("abc", 4), ("def", 3)]


def test_many_are_sent_in_tens() -> None:
    with aws.wakes() as (sqs, url):
        client: Any = Intercepted(sqs)
        SqsWakeQueue(client, url, FakeClock()).wake([replace(WAKE, subscriber_uid=f"s{each}") for each in range(25)])
        assert client.count("send_message_batch") == 3
        assert len(received(sqs, url)) == 25


def test_what_sqs_leaves_undone_is_sent_again() -> None:
    with aws.wakes() as (sqs, url):
        client: Any = Intercepted(sqs)

        def one_fails(real: Any, parameters: dict[str, Any]) -> Any:
            first, *rest = parameters["Entries"]
            answer = real(QueueUrl=url, Entries=rest)
            return answer | {"Failed": [{"Id": first["Id"], "SenderFault": False, "Code": "InternalError"}]}

        client.next("send_message_batch", one_fails)
        SqsWakeQueue(client, url, FakeClock()).wake([WAKE, replace(WAKE, version=4)])
        assert [len(parameters["Entries"]) for _, parameters in client.calls] == [2, 1]
        assert len(received(sqs, url)) == 2


def test_a_queue_that_does_not_answer_is_unavailable_but_deferring_never_fails() -> None:
    with aws.wakes() as (sqs, url):
        client: Any = Intercepted(sqs)
        client.next("send_message_batch", fails)
        client.next("change_message_visibility_batch", fails)
        queue = SqsWakeQueue(client, url, FakeClock())
        with pytest.raises(Unavailable):
            queue.wake([WAKE])
        queue.defer({"handle": 1})
        assert client.count("change_message_visibility_batch") == 1


@given(st.text(), st.text(), st.text(), st.booleans(), st.integers(0))
def test_a_wake_up_reads_back(project: str, name: str, subscriber: str, volatile: bool, version: int) -> None:
    wake = WakeUp(
        topic=Topic(project=project, name=name, non_persistent=volatile),
        subscriber=subscriber,
        subscriber_uid="u",
        version=version,
    )
    assert decode_wake(encode_wake(wake)) == wake


@pytest.mark.parametrize("body", ["", "7", "{}", "[]", '["p","o",false,"a","u","3"]', "not json"])
def test_anything_else_is_no_wake_up(body: str) -> None:
    with pytest.raises(ValueError):
        decode_wake(body)
