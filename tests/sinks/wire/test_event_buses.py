"""Event buses of EventBridge."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.sinks.examples import ACCOUNT, answered, message, place

from pushhub.base.errors import Invalid
from pushhub.sinks.model.kind import Unfit
from pushhub.sinks.wire.event_buses import MOST_BYTES, EventBuses

BUSES = EventBuses()
ARN = f"arn:aws:events:eu-west-1:{ACCOUNT}:event-bus/bus"


def entry(body: bytes | str, **options: str) -> Any:
    call = BUSES.call(place("events", "bus", **options), message(body))
    assert call.headers["X-Amz-Target"] == "AWSEvents.PutEvents"
    [found] = json.loads(call.body)["Entries"]
    return found


def test_a_payload_is_the_detail_as_it_was_posted() -> None:
    assert entry(' {"n": 1.10}') == {
        "Source": "pushhub",
        "DetailType": "invoice.paid",
        "Detail": ' {"n": 1.10}',
        "EventBusName": ARN,
        "Time": 1_800_000_000,
        "Resources": ["msg_1"],
    }
    own = entry("{}", source="shop", detailType="paid")
    assert (own["Source"], own["DetailType"]) == ("shop", "paid")


@pytest.mark.parametrize(
    ("body", "detail"), [("[1]", '{"payload":[1]}'), ("text", '{"payload":"text"}'), ("{", '{"payload":"{"}')]
)
def test_what_is_no_object_is_wrapped_in_one(body: str, detail: str) -> None:
    assert entry(body)["Detail"] == detail


def test_an_envelope_holds_both() -> None:
    call = BUSES.call(place("events", "bus", body="envelope"), message("[1]"))
    assert '{\\"payload\\":[1],\\"eventType\\":\\"invoice.paid\\"}' in call.body.decode()


def test_what_a_bus_would_never_take_is_not_sent() -> None:
    for body in (b"\xff", b'{"a": "' + b"x" * MOST_BYTES + b'"}'):
        with pytest.raises(Unfit):
            entry(body)
    with pytest.raises(Unfit, match="detailType"):
        BUSES.call(place("events", "bus"), message(about="t" * 129))
    # The id is among the resources, which count
    spare = MOST_BYTES - len("pushhubinvoice.paid") - 14 - len('{"a":""}')
    largest = b'{"a":"' + b"x" * (spare - 201) + b'"}'
    BUSES.call(place("events", "bus"), message(largest, message_id="i" * 200))
    with pytest.raises(Unfit):
        BUSES.call(place("events", "bus"), message(largest, message_id="i" * 201))


@pytest.mark.parametrize("options", [{"source": "aws.x"}, {"source": ""}, {"detailType": "t" * 129}, {"body": "x"}])
def test_options_that_a_bus_cannot_have_are_refused(options: dict[str, str]) -> None:
    with pytest.raises(Invalid):
        BUSES.check(place("events", "bus", **options))


def test_a_name_that_no_bus_has_is_refused() -> None:
    with pytest.raises(Invalid):
        BUSES.check(place("events", "a b"))


@pytest.mark.parametrize(
    ("said", "code", "lasting", "throttled"),
    [
        ({"FailedEntryCount": 1, "Entries": [{"ErrorCode": "MalformedDetail"}]}, "MalformedDetail", True, False),
        (
            {"FailedEntryCount": 1, "Entries": [{"ErrorCode": "ThrottlingException", "ErrorMessage": "slow"}]},
            "ThrottlingException",
            False,
            True,
        ),
        ({"FailedEntryCount": 1, "Entries": [{"ErrorCode": "InternalFailure"}]}, "InternalFailure", False, False),
        ({}, "UnknownAnswer", False, False),
        ({"Entries": [7]}, "UnknownAnswer", False, False),
    ],
)
def test_an_entry_is_refused_in_an_answer_that_is_right_by_its_status(
    said: object, code: str, lasting: bool, throttled: bool
) -> None:
    fault = BUSES.fault(answered(200, json.dumps(said).encode()))
    assert fault is not None
    assert (fault.code, fault.lasting, fault.throttled) == (code, lasting, throttled)


def test_a_bus_that_took_it_has_no_fault_and_one_that_refuses_all_has() -> None:
    assert BUSES.fault(answered(200, b'{"FailedEntryCount": 0, "Entries": [{"EventId": "1"}]}')) is None
    refused = BUSES.fault(answered(400, b'{"__type": "AccessDeniedException"}'))
    assert refused is not None
    assert refused.code == "AccessDeniedException"


def test_a_role_may_put_events_into_that_bus() -> None:
    assert BUSES.grants(place("events", "bus")) == [{"Effect": "Allow", "Action": "events:PutEvents", "Resource": ARN}]
