"""Queues of SQS: the request for a message, and what answers mean."""

from __future__ import annotations

import json

import pytest
from tests.sinks.examples import ACCOUNT, answered, message, place

from pushhub.base.errors import Invalid
from pushhub.sinks.model.kind import Unfit
from pushhub.sinks.wire.sqs import MOST_BYTES, Sqs

SQS = Sqs()


def test_a_message_is_sent_as_it_was_posted_with_its_headers() -> None:
    call = SQS.call(place("sqs", "orders"), message('{"a": 1.10}'))
    assert call.path == "/"
    assert call.headers == {"Content-Type": "application/x-amz-json-1.0", "X-Amz-Target": "AmazonSQS.SendMessage"}
    sent = json.loads(call.body)
    assert sent["QueueUrl"] == f"https://sqs.eu-west-1.amazonaws.com/{ACCOUNT}/orders"
    assert sent["MessageBody"] == '{"a": 1.10}'
    assert sent["MessageAttributes"]["webhook-id"] == {"DataType": "String", "StringValue": "msg_1"}
    assert "MessageGroupId" not in sent


def test_a_fifo_queue_is_told_the_group_and_the_id() -> None:
    sent = json.loads(SQS.call(place("sqs", "orders.fifo"), message(group="customer-7", once="msg_1/5")).body)
    assert (sent["MessageGroupId"], len(sent["MessageDeduplicationId"])) == ("customer-7", 7)


def test_the_queue_is_known_by_the_place_it_is_called_at() -> None:
    url = place("sqs", "orders", endpoint="http://127.0.0.1:4566/")
    assert json.loads(SQS.call(url, message()).body)["QueueUrl"] == f"http://127.0.0.1:4566/{ACCOUNT}/orders"


def test_an_envelope_is_sent_where_it_is_wanted() -> None:
    sent = json.loads(SQS.call(place("sqs", "orders", body="envelope"), message('{"a": 1}')).body)
    assert sent["MessageBody"] == '{"payload":{"a": 1},"eventType":"invoice.paid"}'


def test_what_a_queue_would_never_take_is_not_sent() -> None:
    for body in (b"", b"a\x00", b"\xff", b"x" * MOST_BYTES):
        with pytest.raises(Unfit):
            SQS.call(place("sqs", "orders"), message(body))
    # The attributes count
    SQS.call(place("sqs", "orders"), message(b"x" * (MOST_BYTES - 200)))


@pytest.mark.parametrize("name", ["", "a/b", "a.b", "a b", "x" * 81, "x" * 76 + ".fifo", ".fifo", "a.fifo.fifo", "é"])
def test_a_name_that_no_queue_has_is_refused(name: str) -> None:
    url = place("sqs", "q")
    with pytest.raises(Invalid):
        SQS.check(type(url)(scheme="sqs", region=url.region, account=url.account, name=name))


def test_another_body_is_refused() -> None:
    with pytest.raises(Invalid):
        SQS.check(place("sqs", "q", body="xml"))


@pytest.mark.parametrize(
    ("status", "body", "code", "lasting", "throttled"),
    [
        (400, {"__type": "com.amazonaws.sqs#QueueDoesNotExist", "message": "no"}, "QueueDoesNotExist", False, False),
        (400, {"__type": "com.amazonaws.sqs#InvalidMessageContents"}, "InvalidMessageContents", True, False),
        (400, {"__type": "com.amazon.coral.service#AccessDeniedException"}, "AccessDeniedException", False, False),
        (403, {"__type": "com.amazonaws.sqs#RequestThrottled"}, "RequestThrottled", False, True),
        (429, None, "Throttled", False, True),
        (503, None, "Status503", False, False),
        (400, {"__type": ["x"]}, "Status400", False, False),
    ],
)
def test_an_error_ends_a_delivery_or_lets_it_wait(
    status: int, body: object, code: str, lasting: bool, throttled: bool
) -> None:
    fault = SQS.fault(answered(status, json.dumps(body).encode() if body else b"<html>"))
    assert fault is not None
    assert (fault.code, fault.lasting, fault.throttled) == (code, lasting, throttled)


def test_a_queue_that_took_it_has_no_fault() -> None:
    assert SQS.fault(answered(200, b'{"MessageId": "1"}')) is None


def test_a_role_may_send_to_that_queue_and_encrypt_for_it() -> None:
    send, encrypt = SQS.grants(place("sqs", "orders"))
    assert send == {
        "Effect": "Allow",
        "Action": "sqs:SendMessage",
        "Resource": f"arn:aws:sqs:eu-west-1:{ACCOUNT}:orders",
    }
    assert encrypt["Condition"] == {"StringEquals": {"kms:ViaService": "sqs.eu-west-1.amazonaws.com"}}
