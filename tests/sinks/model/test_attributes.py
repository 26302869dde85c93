"""What goes with a message beside its body, and which texts services take."""

from __future__ import annotations

import json

import pytest
from tests.sinks.examples import message

from pushhub.base.errors import THROTTLED
from pushhub.sinks.model.attributes import (
    as_json,
    attributes_of,
    check_size,
    enveloped,
    group_of,
    short,
    size_of,
    text_of,
)
from pushhub.sinks.model.kind import EXPIRED, ServiceFault, Unfit


@pytest.mark.parametrize("text", ["", "\t\n\r ~", "\ud7ff\ue000\ufffd", "\U00010000\U0010ffff", "é"])
def test_a_body_of_the_characters_that_services_take_stays_as_it_is(text: str) -> None:
    assert text_of(text.encode()) == text


@pytest.mark.parametrize(
    "body", [b"\x00", b"a\x1f", "\ufffe".encode(), "\uffff".encode(), b"\xff", b"\xed\xa0\x80", b"\x0b"]
)
def test_a_body_that_aws_refuses_never_leaves(body: bytes) -> None:
    # Emulators take these
    with pytest.raises(Unfit):
        text_of(body)


def test_headers_are_attributes_the_id_first() -> None:
    found = attributes_of(message(headers={"X-Shop": "7", "webhook-signature": "v1,x"}))
    assert found == {"webhook-id": "msg_1", "webhook-signature": "v1,x", "X-Shop": "7"}
    assert next(iter(found)) == "webhook-id"


def test_what_cannot_be_an_attribute_is_in_one_with_the_rest() -> None:
    # Given headers with an empty value, a name that is no attribute's, and one that AWS keeps for itself
    odd = {"X-Empty": "", "a..b": "1", "AWS.x": "2", "headers": "3", "X~Y": "4", "ok": "5"}
    found = attributes_of(message(headers=odd))
    # Then nothing is lost
    assert {name: value for name, value in found.items() if name != "headers"} == {"webhook-id": "msg_1", "ok": "5"}
    assert json.loads(found["headers"]) == {name: value for name, value in odd.items() if name != "ok"}


@pytest.mark.parametrize("count", [9, 10, 40])
def test_there_are_at_most_ten(count: int) -> None:
    headers = {f"x-{each:02}": str(each) for each in range(count)}
    found = attributes_of(message(headers=headers))
    assert len(found) <= 10
    rest = json.loads(found.get("headers", "{}"))
    own = {name: value for name, value in found.items() if name != "headers"}
    assert {**own, **rest} == {"webhook-id": "msg_1", **headers}
    assert ("headers" in found) == (count > 9)


def test_the_size_counts_attributes_with_their_types() -> None:
    assert size_of("é", {"ab": "c"}) == 2 + 2 + 6 + 1
    check_size("x" * 10, {}, 10)
    with pytest.raises(Unfit, match="11 bytes"):
        check_size("x" * 11, {}, 10)


def test_an_ordering_key_is_a_group_and_whoever_has_none_waits_for_nobody() -> None:
    assert group_of(message(group="customer-7")) == "customer-7"
    assert group_of(message()) == "msg_1"
    # And one that is too long for a group is its digest
    assert len(group_of(message(group="k" * 200))) == 64
    assert short("k" * 129) != short("k" * 130)
    assert short("a b") == short("a b") != "a b"


@pytest.mark.parametrize(
    ("body", "payload"),
    [('{"n": 1.10, "n": 2}', '{"n": 1.10, "n": 2}'), ("12345678901234567890", "12345678901234567890"), ("no", '"no"')],
)
def test_an_envelope_holds_the_payload_as_it_was_posted(body: str, payload: str) -> None:
    assert enveloped(message(body)) == f'{{"payload":{payload},"eventType":"invoice.paid"}}'
    assert as_json(body) == payload


def test_a_fault_is_told_in_one_line_without_what_was_signed() -> None:
    fault = ServiceFault(
        code="SignatureDoesNotMatch", text="It does not match.\n\nThe Canonical String\nx-amz-security-token:secret"
    )
    assert fault.message == "SignatureDoesNotMatch: It does not match."
    assert ServiceFault(code="X").message == "X"
    assert all(ServiceFault(code=each).throttled for each in THROTTLED)
    assert all(ServiceFault(code=each).expired for each in EXPIRED)
