"""Records of Kinesis."""

from __future__ import annotations

import base64
import json

import pytest
from tests.sinks.examples import ACCOUNT, answered, message, place

from pushhub.base.errors import Invalid
from pushhub.engine.target import BatchedMessage
from pushhub.sinks.wire.kinesis import DataStreams

BATCH = tuple(BatchedMessage(message_id=f"msg_{each}", about="a", at=each, body=b"{}") for each in range(3))


def test_all_of_a_receivers_records_go_to_one_shard_unless_they_are_to_be_spread() -> None:
    for options, keys in (({}, ["ep_1"] * 3), ({"partition": "id"}, ["msg_0", "msg_1", "msg_2"])):
        call = DataStreams().call(place("kinesis", "orders", **options), message(receiver="ep_1", batch=BATCH))
        said = json.loads(call.body)
        assert said["StreamARN"] == f"arn:aws:kinesis:eu-west-1:{ACCOUNT}:stream/orders"
        assert [each["PartitionKey"] for each in said["Records"]] == keys
        assert [json.loads(base64.b64decode(each["Data"]))["id"] for each in said["Records"]] == [
            "msg_0",
            "msg_1",
            "msg_2",
        ]


def test_a_message_that_goes_alone_is_a_record_with_its_bytes() -> None:
    said = json.loads(DataStreams().call(place("kinesis", "orders"), message(b"\xff", group="g")).body)
    assert said["Records"] == [{"Data": "/w==", "PartitionKey": "g"}]


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b'{"FailedRecordCount": 0, "Records": [{}]}', None),
        (b'{"FailedRecordCount": 1, "Records": [{}, {"ErrorCode": "InternalFailure"}]}', "InternalFailure"),
        (b'{"FailedRecordCount": 1, "Records": 7}', "Unclear"),
        (b"", "Unclear"),
    ],
)
def test_an_answer_that_is_right_by_its_status_may_say_that_records_were_refused(body: bytes, code: str | None) -> None:
    fault = DataStreams().fault(answered(200, body))
    assert (None if fault is None else fault.code) == code


def test_what_is_no_data_stream_is_refused() -> None:
    for url in (place("kinesis", "a/b"), place("kinesis", "orders", partition="no")):
        with pytest.raises(Invalid):
            DataStreams().check(url)
