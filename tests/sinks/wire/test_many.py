"""Calls for several messages, taken by moto as the services take them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import boto3
import pytest
import requests
from moto import mock_aws
from tests.sinks.examples import answered, message, place

from pushhub.base.sink_url import SinkUrl
from pushhub.base.verdict import Answer
from pushhub.sinks.model.kind import ManyKind, SinkMessage
from pushhub.sinks.wire.event_buses import EventBuses
from pushhub.sinks.wire.sns import Sns
from pushhub.sinks.wire.sqs import Sqs

ACCOUNT = "123456789012"
AUTHORIZATION = (
    "AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20270115/eu-west-1/{}/aws4_request, SignedHeaders=h, Signature=s"
)


@pytest.fixture
def aws() -> Iterator[None]:
    """Moto for AWS."""
    with mock_aws():
        yield


def client(service: str) -> Any:
    return boto3.client(service, "eu-west-1", aws_access_key_id="k", aws_secret_access_key="s")  # type: ignore[call-overload]


def here(scheme: str, name: str) -> SinkUrl:
    """A place in moto's account."""
    url = place(scheme, name)
    return SinkUrl(scheme=scheme, region=url.region, account=ACCOUNT, name=name, role=url.role)


def sent(kind: ManyKind, url: SinkUrl, messages: list[SinkMessage]) -> Answer:
    """What moto answers to the call for several messages."""
    call = kind.call_many(url, messages)
    headers = {**call.headers, "Authorization": AUTHORIZATION.format(kind.service)}
    answer = requests.post(f"https://{kind.host}.eu-west-1.amazonaws.com/", call.body, headers=headers, timeout=10)
    return answered(answer.status_code, answer.content, {name.lower(): each for name, each in answer.headers.items()})


def ten(**more: Any) -> list[SinkMessage]:
    return [
        message(
            f'{{"n": {number}, "é": 1.10}}',
            message_id=f"msg_{number}",
            once=f"msg_{number}",
            headers={"webhook-id": f"msg_{number}", "x-shop": "7"},
            **more,
        )
        for number in range(10)
    ]


BODIES = sorted(f'{{"n": {number}, "é": 1.10}}' for number in range(10))


@pytest.mark.usefixtures("aws")
@pytest.mark.parametrize("name", ["orders", "orders.fifo"])
def test_a_queue_gets_ten_as_they_are(name: str) -> None:
    sqs = client("sqs")
    attributes = {"FifoQueue": "true"} if name.endswith(".fifo") else {}
    url = sqs.create_queue(QueueName=name, Attributes=attributes)["QueueUrl"]
    answer = sent(Sqs(), here("sqs", name), ten(group=None))
    assert Sqs().refusal(answer) is None
    assert Sqs().faults(answer, 10) == [None] * 10
    found = sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10, MessageAttributeNames=["All"])["Messages"]
    assert sorted(each["Body"] for each in found) == BODIES
    assert {each["MessageAttributes"]["x-shop"]["StringValue"] for each in found} == {"7"}


@pytest.mark.usefixtures("aws")
def test_a_topic_gets_ten_as_they_are() -> None:
    sns, sqs = client("sns"), client("sqs")
    topic = sns.create_topic(Name="orders")["TopicArn"]
    url = sqs.create_queue(QueueName="subscribed")["QueueUrl"]
    arn = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
    sns.subscribe(TopicArn=topic, Protocol="sqs", Endpoint=arn, Attributes={"RawMessageDelivery": "true"})
    answer = sent(Sns(), here("sns", "orders"), ten())
    assert Sns().refusal(answer) is None
    assert Sns().faults(answer, 10) == [None] * 10
    found = sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10)["Messages"]
    assert sorted(each["Body"] for each in found) == BODIES


@pytest.mark.usefixtures("aws")
def test_a_bus_gets_ten_and_refuses_one_by_its_place() -> None:
    answer = sent(EventBuses(), here("events", "default"), ten())
    assert EventBuses().refusal(answer) is None
    assert EventBuses().faults(answer, 10) == [None] * 10
    said = json.loads(answer.body)
    said["Entries"][3] = {"ErrorCode": "MalformedDetail", "ErrorMessage": "Detail is malformed."}
    faults = EventBuses().faults(answered(200, json.dumps(said).encode()), 10)
    assert [number for number, fault in enumerate(faults) if fault is not None] == [3]
    assert faults[3] is not None
    assert faults[3].lasting


def test_sizes_are_those_that_single_messages_are_checked_by() -> None:
    body = "é" * 100
    assert Sqs().size(here("sqs", "q"), message(body)) > 200
    assert Sns().size(here("sns", "q"), message(body)) == Sqs().size(here("sqs", "q"), message(body))
    assert EventBuses().size(here("events", "q"), message(body)) > 200


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        (Sqs(), b"{"),
        (Sqs(), b'{"Successful": 1, "Failed": [1]}'),
        (Sns(), b"<x/>"),
        (EventBuses(), b'{"Entries": [1, {}, null]}'),
        (EventBuses(), b"[]"),
    ],
)
def test_an_answer_that_says_nothing_has_taken_nothing(kind: ManyKind, body: bytes) -> None:
    faults = kind.faults(answered(200, body), 3)
    assert [each.code if each else "" for each in faults] == ["UnknownAnswer"] * 3
    assert not any(each.lasting for each in faults if each)
