"""Topics of SNS."""

from __future__ import annotations

from urllib.parse import parse_qs

import pytest
from tests.sinks.examples import ACCOUNT, answered, message, place

from pushhub.base.errors import Invalid
from pushhub.sinks.model.kind import Unfit
from pushhub.sinks.wire.sns import MOST_BYTES, Sns

SNS = Sns()
ARN = f"arn:aws:sns:eu-west-1:{ACCOUNT}:orders"


def test_a_message_is_published_with_its_headers_as_attributes() -> None:
    # Given a body with what forms escape
    call = SNS.call(place("sns", "orders"), message('{"a": "ü&=+ %"}'))
    sent = {name: value[0] for name, value in parse_qs(call.body.decode(), strict_parsing=True).items()}
    assert sent["Action"] == "Publish"
    assert sent["TopicArn"] == ARN
    assert sent["Message"] == '{"a": "ü&=+ %"}'
    assert sent["MessageAttributes.entry.1.Name"] == "webhook-id"
    assert sent["MessageAttributes.entry.1.Value.DataType"] == "String"
    assert sent["MessageAttributes.entry.1.Value.StringValue"] == "msg_1"
    assert "MessageGroupId" not in sent


def test_a_fifo_topic_is_told_group_and_id_and_an_envelope_is_sent_where_it_is_wanted() -> None:
    call = SNS.call(place("sns", "orders.fifo", body="envelope"), message(group="k"))
    sent = {name: value[0] for name, value in parse_qs(call.body.decode()).items()}
    assert (sent["MessageGroupId"], sent["MessageDeduplicationId"]) == ("k", "msg_1")
    assert sent["Message"] == '{"payload":{"a": 1},"eventType":"invoice.paid"}'


@pytest.mark.parametrize("body", [b"", b"\x00", b"x" * MOST_BYTES])
def test_what_a_topic_would_never_take_is_not_sent(body: bytes) -> None:
    with pytest.raises(Unfit):
        SNS.call(place("sns", "orders"), message(body))


@pytest.mark.parametrize("name", ["a.b", "a/b", "x" * 257])
def test_a_name_that_no_topic_has_is_refused(name: str) -> None:
    with pytest.raises(Invalid):
        SNS.check(place("sns", name))


def test_errors_are_read_from_xml() -> None:
    body = (
        b"<ErrorResponse><Error><Type>Sender</Type><Code>%s</Code><Message>a &lt; b</Message></Error></ErrorResponse>"
    )
    fault = SNS.fault(answered(400, body % b"InvalidParameter"))
    assert fault is not None
    assert (fault.code, fault.text, fault.lasting) == ("InvalidParameter", "a < b", True)
    throttled, odd = SNS.fault(answered(400, body % b"Throttling")), SNS.fault(answered(500, b"\xff<Code>"))
    assert throttled is not None
    assert throttled.throttled
    assert odd is not None
    assert (odd.code, odd.lasting) == ("Status500", False)
    assert SNS.fault(answered(200, b"<PublishResponse/>")) is None


def test_a_role_may_publish_to_that_topic() -> None:
    assert SNS.grants(place("sns", "orders"))[0] == {"Effect": "Allow", "Action": "sns:Publish", "Resource": ARN}
