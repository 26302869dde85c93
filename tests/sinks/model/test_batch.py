"""Messages as lines of JSON."""

from __future__ import annotations

import json

import pytest

from pushhub.engine.target import BatchedMessage
from pushhub.sinks.model.batch import line_of


def line(body: bytes) -> str:
    return line_of(BatchedMessage(message_id="msg_1", about="order.paid", at=1_800_000_000_123, body=body))


@pytest.mark.parametrize(
    ("body", "payload"),
    [
        (b'{"price":1.10,"a":"\xc3\xa9"}', '{"price":1.10,"a":"é"}'),
        (b'{\n "price": 1.10,\r\n "a": 1\n}', '{"price":1.10,"a":1}'),
        (b"not JSON\nat all", '"not JSON\\nat all"'),
        (b"", '""'),
        (b"\xff", '"\ufffd"'),
        (b'"text"', '"text"'),
    ],
)
def test_a_payload_is_one_line_and_json_is_written_as_it_was_posted(body: bytes, payload: str) -> None:
    written = line(body)
    assert written.endswith(f'"payload":{payload}}}')
    assert "\n" not in written
    assert "\r" not in written
    assert {**json.loads(written), "payload": None} == {
        "id": "msg_1",
        "eventType": "order.paid",
        "timestamp": "2027-01-15T08:00:00.123Z",
        "payload": None,
    }
